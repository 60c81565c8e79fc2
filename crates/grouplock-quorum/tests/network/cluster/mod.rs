//! A cluster on this machine. Each member is a process of its own, with free ports and a temporary
//! directory.
//!
//! A member is this test program, which runs the test `member`.
//!
//! Members are killed when the cluster is dropped. If the thread that started them ends, the kernel
//! kills them.

#![allow(dead_code, reason = "no test file needs all of it")]

pub(crate) mod certificates;
pub(crate) mod client;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use grouplock_quorum::node::{self, Config};
use grouplock_testing::{Scratch, free_port};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a test waits for anything that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

const CONFIG: &str = "GROUPLOCK_TEST_MEMBER";

/// Runs a member if this process was started as one. Otherwise does nothing.
pub(crate) fn play_member() {
    let Ok(path) = std::env::var(CONFIG) else { return };
    set_pdeathsig(Signal::SIGKILL).expect("the kernel can end us with our parent");
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .init();
    let config = match Config::read(Path::new(&path)) {
        Ok(config) => config,
        Err(error) => fail(&error.to_string()),
    };
    let result = node::run(&config, |ready| {
        println!("\n@{ready}");
        std::io::stdout().flush().expect("someone listens");
    });
    match result {
        Ok(()) => std::process::exit(0),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(why: &str) -> ! {
    println!("\n@failed: {why}");
    _ = std::io::stdout().flush();
    std::process::exit(1);
}

/// The settings of the members.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) members: u16,
    pub(crate) coterie: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) votes: &'static str,
    pub(crate) lease: &'static str,
    pub(crate) retry: &'static str,
    pub(crate) clock_tolerance: &'static str,
    pub(crate) tls: bool,
}

impl Options {
    pub(crate) fn new(members: u16) -> Self {
        let coterie = if [3, 7, 13].contains(&members) { "plane" } else { "majority" };
        Options {
            members,
            coterie,
            policy: "fifo",
            votes: "any",
            lease: "4s",
            retry: "200ms",
            clock_tolerance: "5s",
            tls: false,
        }
    }
}

struct Running {
    child: Child,
    said: Receiver<String>,
    status: SocketAddr,
}

pub(crate) struct Cluster {
    pub(crate) options: Options,
    pub(crate) scratch: Scratch,
    ports: Vec<u16>,
    running: Vec<Option<Running>>,
    environment: BTreeMap<usize, Vec<(String, String)>>,
    /// The largest size of files, in the shell's blocks.
    pub(crate) limits: BTreeMap<usize, u32>,
    /// The largest number of descriptors.
    pub(crate) descriptors: BTreeMap<usize, u32>,
}

impl Cluster {
    /// Starts all members. They may not be connected yet.
    pub(crate) fn start(options: impl Borrow<Options>) -> Self {
        let options = options.borrow();
        // Another process may take a free port before it is used. Then the start is repeated.
        for _ in 0..10 {
            let mut cluster = Self::prepare(options.clone());
            let started: Result<Vec<()>, String> =
                (0..cluster.len()).map(|id| cluster.try_launch(id)).collect();
            match started {
                Ok(_) => return cluster,
                Err(why) if why.contains("cannot listen") => {}
                Err(why) => panic!("a member does not start: {why}"),
            }
        }
        panic!("no free ports");
    }

    /// Writes the files, and starts no member.
    pub(crate) fn prepare(options: Options) -> Self {
        let scratch = Scratch::new();
        if options.tls {
            certificates::make(scratch.path(), options.members);
        }
        let ports: Vec<_> = (0..options.members).map(|_| free_port()).collect();
        let running = ports.iter().map(|_| None).collect();
        let cluster = Cluster {
            options,
            scratch,
            ports,
            running,
            environment: BTreeMap::new(),
            limits: BTreeMap::new(),
            descriptors: BTreeMap::new(),
        };
        for id in 0..cluster.len() {
            fs::write(cluster.config(id), cluster.toml(id)).expect("a configuration");
        }
        cluster
    }

    pub(crate) fn len(&self) -> usize {
        self.ports.len()
    }

    /// The configuration of a member.
    pub(crate) fn toml(&self, id: usize) -> String {
        let Options { coterie, policy, votes, lease, retry, clock_tolerance, tls, .. } =
            self.options;
        let mut members = String::new();
        for id in 0..self.len() {
            let address = self.address(id);
            write!(members, "{{ address = \"{address}\", name = \"member-{id}.test\" }}, ")
                .expect("it is a text");
        }
        let tls = if tls {
            format!("cert = \"member-{id}.pem\"\nkey = \"member-{id}.key\"\nca = \"ca.pem\"")
        } else {
            "plaintext = true".to_owned()
        };
        format!(
            "id = {id}\ndata = \"data-{id}\"\nstatus = \"127.0.0.1:0\"\n\n[cluster]\nname = \"test\"\n\
             members = [{members}]\ncoterie = \"{coterie}\"\npolicy = \"{policy}\"\nvotes = \"{votes}\"\nlease = \"{lease}\"\n\
             retry = \"{retry}\"\nclock_tolerance = \"{clock_tolerance}\"\n\n[tls]\n{tls}\n"
        )
    }

    pub(crate) fn config(&self, id: usize) -> PathBuf {
        self.scratch.path().join(format!("node-{id}.toml"))
    }

    pub(crate) fn data(&self, id: usize) -> PathBuf {
        self.scratch.path().join(format!("data-{id}"))
    }

    pub(crate) fn address(&self, id: usize) -> String {
        format!("127.0.0.1:{}", self.ports[id])
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        (0..self.len()).map(|id| self.address(id)).collect()
    }

    /// The place, as `--at` takes it.
    pub(crate) fn place(&self, id: usize) -> String {
        format!("gbp://{}", self.address(id))
    }

    /// Sets an environment variable for the next starts of a member.
    pub(crate) fn set(&mut self, id: usize, variable: &str, value: &str) {
        let variables = self.environment.entry(id).or_default();
        variables.push((variable.to_owned(), value.to_owned()));
    }

    /// Removes these variables.
    pub(crate) fn unset(&mut self, id: usize) {
        self.environment.remove(&id);
    }

    /// Starts a member that is not running. The calling thread must live as long as the cluster.
    pub(crate) fn launch(&mut self, id: usize) {
        self.try_launch(id).unwrap_or_else(|why| panic!("member {id} does not start: {why}"));
    }

    /// The same. The error is what the member printed when it failed.
    pub(crate) fn try_launch(&mut self, id: usize) -> Result<(), String> {
        assert!(self.running[id].is_none(), "member {id} runs");
        let mut child = self.spawn(&self.config(id), id);
        let said = listen(&mut child);
        match said.recv_timeout(PATIENCE).ok() {
            Some(line) if line.starts_with("ready: ") => {
                let (_, status) = line.split_once("http://").expect("it has a status page");
                let status = status.trim_end_matches('/').parse().expect("an address");
                self.running[id] = Some(Running { child, said, status });
                Ok(())
            }
            line => {
                _ = child.kill();
                _ = child.wait();
                Err(line.unwrap_or("it said nothing".to_owned()))
            }
        }
    }

    /// Starts a process with any configuration. Its log goes to the file of member `id`.
    pub(crate) fn spawn(&self, config: &Path, id: usize) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.log_path(id));
        let program = std::env::current_exe().expect("this program has a path");
        // If the limit also applies to the log, the log is discarded.
        let limit = self.limits.get(&id).map(|blocks| {
            format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\" 2>/dev/null")
        });
        let few = self.descriptors.get(&id);
        let few = few.map(|most| format!("ulimit -n {most}; exec \"$0\" \"$@\""));
        let mut command = match limit.or(few) {
            None => Command::new(program),
            Some(script) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(script).arg(program);
                shell
            }
        };
        command
            .args(["--exact", "member", "--nocapture", "--test-threads=1"])
            .env(CONFIG, config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("a file for the log"));
        for (variable, value) in self.environment.get(&id).into_iter().flatten() {
            command.env(variable, value);
        }
        command.spawn().expect("this program can be started")
    }

    pub(crate) fn is_running(&self, id: usize) -> bool {
        self.running[id].is_some()
    }

    /// Kills a member.
    pub(crate) fn kill(&mut self, id: usize) {
        let mut running = self.running[id].take().expect("it runs");
        _ = running.child.kill();
        _ = running.child.wait();
    }

    /// Waits until a member ends by itself. Returns its exit code, `None` if a signal ended it.
    pub(crate) fn wait(&mut self, id: usize) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let running = self.running[id].as_mut().expect("it runs");
            if let Some(status) = running.child.try_wait().expect("it is our child") {
                self.running[id] = None;
                return status.code();
            }
            assert!(Instant::now() < deadline, "member {id} does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The next line that a member prints.
    pub(crate) fn hear(&self, id: usize) -> Option<String> {
        self.running[id].as_ref().expect("it runs").said.recv_timeout(PATIENCE).ok()
    }

    /// Asks a member to end. Returns its exit code.
    pub(crate) fn stop(&mut self, id: usize) -> Option<i32> {
        self.signal(id, Signal::SIGTERM);
        self.wait(id)
    }

    /// Sends a signal. After a signal to stop, waits until every thread has stopped.
    pub(crate) fn signal(&self, id: usize, signal: Signal) {
        let process = self.running[id].as_ref().expect("it runs").child.id();
        kill(Pid::from_raw(process.cast_signed()), signal).expect("it is our child");
        let stopped = || {
            let threads = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
            let stat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).ok();
            let mut stats = threads.flatten().filter_map(stat);
            stats
                .all(|stat| stat.rsplit_once(')').is_some_and(|(_, state)| state.starts_with(" T")))
        };
        if signal == Signal::SIGSTOP {
            eventually("all its threads have stopped", stopped);
        }
    }

    /// The memory of a member.
    pub(crate) fn resident_kib(&self, id: usize) -> u64 {
        let process = self.running[id].as_ref().expect("it runs").child.id();
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    fn log_path(&self, id: usize) -> PathBuf {
        self.scratch.path().join(format!("stderr-{id}.txt"))
    }

    /// The log of a member.
    pub(crate) fn log(&self, id: usize) -> String {
        fs::read_to_string(self.log_path(id)).unwrap_or_default()
    }

    pub(crate) fn status_address(&self, id: usize) -> SocketAddr {
        self.running[id].as_ref().expect("it runs").status
    }

    /// A document of the status page.
    pub(crate) fn get(&self, id: usize, path: &str) -> String {
        let response = request(
            self.status_address(id),
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        );
        let (head, body) = response.split_once("\r\n\r\n").expect("a response");
        assert!(head.starts_with("HTTP/1.1 200 "), "{response}");
        body.to_owned()
    }

    /// The sum of all values of a metric whose labels contain `labels`.
    pub(crate) fn metric(&self, id: usize, name: &str, labels: &str) -> u64 {
        let text = self.get(id, "/metrics");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let ours = lines.filter_map(|line| line.rsplit_once(' ')).filter(|(key, _)| {
            let (family, rest) = key.split_once('{').unwrap_or((key, ""));
            family == name && rest.contains(labels)
        });
        ours.map(|(_, value)| value.parse::<u64>().expect("a whole number")).sum()
    }

    pub(crate) fn refused(&self, id: usize, reason: &str) -> u64 {
        self.metric(id, "grouplock_refused_total", &format!("reason=\"{reason}\""))
    }

    /// Waits until every running member is connected to every other.
    pub(crate) fn wait_connected(&self) {
        let running: Vec<_> = (0..self.len()).filter(|id| self.is_running(*id)).collect();
        let others = running.len() as u64 - 1;
        eventually("members are connected", || {
            running.iter().all(|id| self.metric(*id, "grouplock_members_connected", "") >= others)
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for id in 0..self.len() {
                let log = self.log(id);
                let lines: Vec<_> = log.lines().collect();
                let last = &lines[lines.len().saturating_sub(15)..];
                eprintln!("---- the end of member {id}'s log ----\n{}", last.join("\n"));
            }
        }
        for running in self.running.iter_mut().flatten() {
            _ = running.child.kill();
            _ = running.child.wait();
        }
    }
}

/// Sends one request over HTTP and returns the whole answer.
pub(crate) fn request(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the status page listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut response = String::new();
    _ = stream.read_to_string(&mut response);
    response
}

/// Waits until the condition holds.
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "it did not come to pass that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lines that a member prints.
pub(crate) fn listen(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().expect("it is piped");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            if let Some(said) = line.strip_prefix('@') {
                _ = sender.send(said.to_owned());
            }
        }
    });
    receiver
}
