//! A headless Chromium, driven by the part of the `WebDriver` protocol that the tests of our pages
//! need: JSON over HTTP to chromedriver.
//!
//! Every failure is a panic: a test cannot continue without its browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser. `None` if none is installed. Its files are in a folder named after
    /// `folder`, which no other browser of this process may use.
    ///
    /// # Panics
    /// If one is installed and does not start.
    pub fn start(folder: &Path) -> Option<Self> {
        let chromium = installed(&["chromium", "chromium-browser", "google-chrome"])?;
        let chromedriver = installed(&["chromedriver"])?;
        let mut driver = Command::new(chromedriver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let port = port(&mut driver);
        let profile = PathBuf::from(format!("{}-{}", folder.display(), std::process::id()));
        _ = std::fs::remove_dir_all(&profile);
        let mut browser = Browser { driver, port, session: String::new(), profile };
        let arguments = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--window-size=1280,900".to_owned(),
            // On a page that scrolls smoothly, the driver would click beside the element.
            "--force-prefers-reduced-motion".to_owned(),
            format!("--user-data-dir={}", browser.profile.display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask("POST", "/session", &wanted);
        let id = made["sessionId"].as_str().expect("a session has an id");
        id.clone_into(&mut browser.session);
        Some(browser)
    }

    /// Opens an address.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn open(&self, address: &str) {
        self.tell("url", &json!({ "url": address }));
    }

    /// Runs a script in the page and returns what it returns.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn run(&self, script: &str) -> Value {
        self.tell("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Clicks the first element that `selector` finds.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn click(&self, selector: &str) {
        let id = self.element(selector);
        self.tell(&format!("element/{id}/click"), &json!({}));
    }

    /// Types into the first element that `selector` finds.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn press(&self, selector: &str, keys: &str) {
        let id = self.element(selector);
        self.tell(&format!("element/{id}/value"), &json!({ "text": keys }));
    }

    /// Gives the page this width, as on a phone, and a colour scheme.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn emulate(&self, width: u32, scheme: &str) {
        let size =
            json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// The messages of the console at level SEVERE: errors of scripts, and files that could not be
    /// loaded.
    ///
    /// # Panics
    /// If the driver does not do it.
    pub fn errors(&self) -> Vec<String> {
        let log = self.tell("se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().expect("a log is a list").iter();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.tell("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.tell("element", &json!({ "using": "css selector", "value": selector }));
        let found = found.as_object().and_then(|found| found.values().next());
        found.and_then(Value::as_str).expect("an element has an id").to_owned()
    }

    fn tell(&self, command: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{command}", self.session), body)
    }

    /// # Panics
    /// If the answer is an error: the test cannot go on, and the message says what was asked.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.exchange(method, path, &body.to_string()).expect("chromedriver answers");
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path} {body}: {value}");
        value
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromedriver ends the browser with the session.
        _ = self.exchange("DELETE", &format!("/session/{}", self.session), "{}");
        _ = self.driver.kill();
        _ = self.driver.wait();
        _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Where the first of `names` is installed.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let places = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// The port that chromedriver says it has chosen.
fn port(driver: &mut Child) -> u16 {
    let output = driver.stdout.take().expect("the output is piped");
    let port = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    port.expect("chromedriver prints its port")
}
