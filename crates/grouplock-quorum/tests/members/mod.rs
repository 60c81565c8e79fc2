//! A cluster whose members are processes: this test program again, running the test called `member`, which every file that
//! uses this has.

#![allow(dead_code, reason = "no test file needs all of it")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A directory of the test's own, in memory where possible: a disk that is slow would say nothing more.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("grouplock-gbp-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory for the test");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ROLE: &str = "GROUPLOCK_TEST_MEMBER";

/// The body of the test `member`: runs one if that is what this process was started for.
pub(crate) fn be_a_member() {
    let Some(config) = std::env::var_os(ROLE) else { return };
    die_with_parent();
    let config = grouplock_quorum::node::Config::read(Path::new(&config)).expect("a configuration");
    let ready = |ready: &grouplock_quorum::node::Ready| println!("\n@{ready}");
    grouplock_quorum::node::run(&config, ready).expect("the member runs");
}

/// Starts a process from a thread that stays as long as this process does: who [dies with its
/// parent](die_with_parent) dies with the thread that started it, and a test has a thread of its own.
pub(crate) fn spawn(command: Command) -> Child {
    type Job = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: LazyLock<Mutex<Sender<Job>>> = LazyLock::new(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(jobs)
    });
    let (answer, child) = channel();
    SPAWNER.lock().unwrap().send((command, answer)).expect("the thread is there");
    child.recv().expect("the thread answers").expect("this program can be started")
}

/// Nothing that a test starts outlives it.
pub(crate) fn die_with_parent() {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("Linux has it");
    assert_ne!(nix::unistd::getppid().as_raw(), 1, "the test is gone already");
}

/// What all members agree on.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) members: u16,
    pub(crate) coterie: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) lease: &'static str,
    pub(crate) retry: &'static str,
}

impl Plan {
    pub(crate) fn fifo(members: u16) -> Self {
        Plan { members, coterie: "plane", policy: "fifo", lease: "2s", retry: "300ms" }
    }
}

pub(crate) struct Members {
    scratch: Scratch,
    pub(crate) addresses: Vec<String>,
    pub(crate) status: Vec<String>,
    children: Vec<Option<Child>>,
}

impl Members {
    pub(crate) fn start(plan: &Plan) -> Self {
        let scratch = Scratch::new();
        // Held until all are known, so that no two are the same.
        let ports: Vec<_> = (0..plan.members * 2)
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
            .collect();
        let mut addresses: Vec<_> =
            ports.iter().map(|port| port.local_addr().expect("it is bound").to_string()).collect();
        drop(ports);
        let status = addresses.split_off(plan.members.into());
        let mut list = String::new();
        for address in &addresses {
            let _ = writeln!(list, "  {{ address = \"{address}\" }},");
        }
        let Plan { coterie, policy, lease, retry, .. } = plan;
        for (id, status) in status.iter().enumerate() {
            let text = format!(
                "id = {id}\ndata = \"data-{id}\"\nstatus = \"{status}\"\n\n[cluster]\nname = \"test\"\n\
                 members = [\n{list}]\ncoterie = \"{coterie}\"\npolicy = \"{policy}\"\nlease = \"{lease}\"\n\
                 retry = \"{retry}\"\n\n[tls]\nplaintext = true\n"
            );
            std::fs::write(scratch.path().join(format!("{id}.toml")), text).expect("written");
        }
        let children = (0..plan.members).map(|_| None).collect();
        let mut members = Members { scratch, addresses, status, children };
        for id in 0..plan.members {
            members.restart(id);
        }
        members
    }

    /// Where clients find it.
    pub(crate) fn place(&self) -> String {
        format!("gbp://{}", self.addresses.join(","))
    }

    /// Starts a member that is not running, and waits until it listens.
    pub(crate) fn restart(&mut self, id: u16) {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command
            .args(["--exact", "member", "--nocapture", "--test-threads=1"])
            .env(ROLE, self.scratch.path().join(format!("{id}.toml")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = spawn(command);
        let stdout = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines();
        let ready = lines.any(|line| line.is_ok_and(|line| line.starts_with("@ready")));
        // Who writes to a pipe that nobody reads would fail.
        std::thread::spawn(move || lines.for_each(drop));
        self.children[usize::from(id)] = Some(child);
        assert!(ready, "member {id} did not start");
    }

    /// As hard as possible.
    pub(crate) fn kill(&mut self, id: u16) {
        if let Some(mut child) = self.children[usize::from(id)].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn signal(&self, id: u16, signal: Signal) {
        if let Some(child) = &self.children[usize::from(id)] {
            kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it is our child");
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for id in 0..self.children.len() as u16 {
            self.kill(id);
        }
    }
}
