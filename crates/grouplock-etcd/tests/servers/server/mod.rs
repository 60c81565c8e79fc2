//! Real etcd servers for tests. They use free ports and temporary directories, and die with the
//! test program.
//!
//! When the test program ends in any way, a pipe to a shell breaks, and the shell kills the server.
//! This needs no drop, so all tests of a program can share a server.

#![allow(dead_code, reason = "no test file needs all of it")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub(crate) use grouplock_testing::free_port;
use grouplock_testing::{Scratch, current_test, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A server starts faster than this, unless it hangs.
const START: Duration = Duration::from_secs(20);

/// Whether etcd is installed. If not, the test is skipped.
pub(crate) fn is_installed() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        let found = |program| {
            Command::new(program)
                .arg(if program == "etcd" { "--version" } else { "version" })
                .env("ETCDCTL_API", "3")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        found("etcd") && found("etcdctl")
    });
    if !found {
        skip(&current_test(), "etcd and etcdctl are not installed");
    }
    found
}

/// The settings of a server at its start.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// The directory of its data. The server can start again with it.
    pub(crate) data: PathBuf,
    /// `http` or `https`, for clients.
    pub(crate) scheme: &'static str,
    pub(crate) client_port: u16,
    pub(crate) peer_port: u16,
    /// `name=http://host:port` of all members.
    pub(crate) cluster: String,
    /// Further arguments of its command line.
    pub(crate) more: Vec<String>,
}

impl Plan {
    /// A server of its own in a directory.
    pub(crate) fn single(directory: &Path) -> Self {
        let (client_port, peer_port) = (free_port(), free_port());
        Plan {
            name: "one".to_owned(),
            data: directory.join("one"),
            scheme: "http",
            client_port,
            peer_port,
            cluster: format!("one=http://127.0.0.1:{peer_port}"),
            more: Vec::new(),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let client = format!("{}://127.0.0.1:{}", self.scheme, self.client_port);
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let mut arguments: Vec<String> = [
            ("name", self.name.as_str()),
            ("data-dir", &self.data.display().to_string()),
            ("listen-client-urls", &client),
            ("advertise-client-urls", &client),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", &self.cluster),
            ("initial-cluster-token", &self.cluster),
            // Elections and leases as short as they can be: TTLs from one second.
            ("heartbeat-interval", "20"),
            ("election-timeout", "200"),
        ]
        .iter()
        .map(|(option, value)| format!("--{option}={value}"))
        .collect();
        arguments.extend(self.more.iter().cloned());
        arguments
    }
}

/// A server that runs or ran.
pub(crate) struct Server {
    pub(crate) plan: Plan,
    shell: Child,
    /// The pipe that keeps the server alive.
    line: Option<ChildStdin>,
    pid: Pid,
    log: PathBuf,
}

impl Server {
    /// Starts the server and returns at once. [`until_ready`](Server::until_ready) waits.
    pub(crate) fn launch(plan: Plan) -> Self {
        let log = plan.data.with_extension("log");
        let errors = File::options().create(true).append(true).open(&log).expect("a log");
        let script = r#"etcd "$@" >/dev/null & echo $!; cat >/dev/null; kill -9 $!; wait"#;
        let mut shell = Command::new("sh")
            .args(["-c", script, "etcd"])
            .args(plan.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("a shell can be started");
        let line = shell.stdin.take();
        let mut pid = String::new();
        let output = shell.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut pid).expect("the shell tells the pid");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number"));
        Server { plan, shell, line, pid, log }
    }

    /// Starts one server on free ports, and waits until it is ready.
    pub(crate) fn single(directory: &Path, more: &[String], scheme: &'static str) -> Self {
        for attempt in 0.. {
            // Another process may have taken a port since it was found free.
            let place = directory.join(attempt.to_string());
            fs::create_dir(&place).expect("a directory for the server");
            let plan = Plan { scheme, more: more.to_vec(), ..Plan::single(&place) };
            let server = Server::launch(plan);
            match server.until_ready() {
                Ok(()) => return server,
                Err(log) => assert!(attempt < 5, "etcd does not start: {log}"),
            }
        }
        unreachable!("the loop ends")
    }

    /// Waits until the server serves clients. If it ends instead, the error is what it printed.
    pub(crate) fn until_ready(&self) -> Result<(), String> {
        let deadline = Instant::now() + START;
        loop {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if log.contains("ready to serve client requests") {
                return Ok(());
            }
            if kill(self.pid, None).is_err() || Instant::now() > deadline || is_zombie(self.pid) {
                return Err(log);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// `host:port` for clients.
    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.plan.client_port)
    }

    /// Sends a signal to the server.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("the server is our grandchild");
    }

    /// Ends the server at once. Its data stay.
    pub(crate) fn kill(&mut self) {
        self.line = None;
        _ = self.shell.wait();
    }

    /// Starts the server again with its data.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        _ = fs::remove_file(&self.log);
        *self = Server::launch(self.plan.clone());
    }

    /// Runs `etcdctl` with these arguments on this server.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> Output {
        Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .env("ETCDCTL_ENDPOINTS", format!("{}://{}", self.plan.scheme, self.endpoint()))
            .args(arguments)
            .output()
            .expect("etcdctl can be started")
    }

    /// The same, but it must succeed. Returns what it printed.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let output = self.etcdctl(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a process has ended and waits to be reaped.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// One server for all tests of this program. `None`, with a notice, if etcd is not installed.
pub(crate) fn shared() -> Option<Arc<Server>> {
    static SHARED: OnceLock<(Scratch, Arc<Server>)> = OnceLock::new();
    if !is_installed() {
        return None;
    }
    let (_, server) = SHARED.get_or_init(|| {
        let scratch = Scratch::until_the_end();
        let server = Server::single(scratch.path(), &[], "http");
        (scratch, Arc::new(server))
    });
    Some(Arc::clone(server))
}

/// A prefix that no other test of this server uses.
pub(crate) fn fresh_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}
