//! A cluster on this machine. Members are processes: this program with the argument `member`.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use grouplock_quorum::node::{self, Config};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs a member until it is killed.
pub(crate) fn serve(config: &str) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    let config = Config::read(Path::new(config))?;
    node::run(&config, |ready| println!("{ready}"))?;
    Ok(())
}

/// Running members. They end with this value.
pub(crate) struct Members {
    directory: PathBuf,
    addresses: Vec<String>,
    status: Vec<String>,
    children: Vec<Child>,
}

impl Members {
    /// Starts members with their logs below `base`.
    pub(crate) fn start(count: u16, policy: &str, base: &Path) -> Result<Self> {
        let directory = base.join(format!("grouplock-wire-{}-{count}", std::process::id()));
        fs::create_dir(&directory)?;
        let ports: Vec<_> = (0..count * 2)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<std::result::Result<_, _>>()?;
        let mut addresses = Vec::new();
        for port in &ports {
            addresses.push(port.local_addr()?.to_string());
        }
        drop(ports);
        let status = addresses.split_off(count.into());
        let mut members = Members { directory, addresses, status, children: Vec::new() };
        let mut list = String::new();
        for address in &members.addresses {
            writeln!(list, "  {{ address = \"{address}\" }},")?;
        }
        for id in 0..count {
            let config = members.directory.join(format!("{id}.toml"));
            let status = &members.status[usize::from(id)];
            let text = format!(
                "id = {id}\ndata = \"data-{id}\"\nstatus = \"{status}\"\n\n[cluster]\nname = \"wire\"\n\
                 members = [\n{list}]\ncoterie = \"plane\"\npolicy = \"{policy}\"\n\n[tls]\nplaintext = true\n"
            );
            fs::write(&config, text)?;
            let mut child = Command::new(std::env::current_exe()?)
                .arg("member")
                .arg(config)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()?;
            let said = child.stdout.take();
            members.children.push(child);
            let mut line = String::new();
            BufReader::new(said.ok_or("it is piped")?).read_line(&mut line)?;
            if !line.starts_with("ready") {
                return Err(format!("member {id} of {count} does not start: {line}").into());
            }
        }
        members.wait_connected()?;
        Ok(members)
    }

    pub(crate) fn count(&self) -> u16 {
        self.addresses.len() as u16
    }

    /// The place of the cluster, for clients.
    pub(crate) fn place(&self) -> String {
        format!("gbp://{}", self.addresses.join(","))
    }

    fn wait_connected(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.sum("grouplock_members_connected", &[])? < self.pairs() {
            if Instant::now() > deadline {
                return Err("the members do not connect to each other".into());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn pairs(&self) -> f64 {
        f64::from(self.count()) * (f64::from(self.count()) - 1.0)
    }

    /// The sum of a metric over all members and over all lines with these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> Result<f64> {
        let mut sum = 0.0;
        for status in &self.status {
            for line in metrics(status)?.lines() {
                let Some((key, value)) = line.rsplit_once(' ') else { continue };
                let (family, rest) = key.split_once('{').unwrap_or((key, ""));
                if family == name && labels.iter().all(|label| rest.contains(label)) {
                    sum += value.parse::<f64>()?;
                }
            }
        }
        Ok(sum)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for child in &mut self.children {
            _ = child.kill();
            _ = child.wait();
        }
        _ = fs::remove_dir_all(&self.directory);
    }
}

fn metrics(status: &str) -> Result<String> {
    let mut stream = TcpStream::connect(status)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}
