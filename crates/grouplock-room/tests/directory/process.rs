//! Directories that go away, processes that can be told what to do and killed, and waiting with a deadline.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use grouplock_room::Room;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Longer than anything takes on a busy machine, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits for something that will be true.
pub(crate) fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !true_now() {
        assert!(Instant::now() < deadline, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until that many wait in the room.
pub(crate) fn until_waiting(room: &Room, waiters: usize) {
    until(&format!("{waiters} wait"), || {
        room.snapshot().expect("it can be looked at").waiters() == waiters
    });
}

/// A directory of the test's own, in memory where possible: rooms belong there.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("grouplock-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory for the test");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The path as a part of a role.
    pub(crate) fn text(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The variable that turns a test into a process of the play.
const ROLE: &str = "GROUPLOCK_TEST_ROLE";

/// What this process is to play, if it was started by [`Actor::start`].
pub(crate) fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    Some(role.split('\u{1f}').map(str::to_owned).collect())
}

/// Tells whoever started this process something.
pub(crate) fn say(line: &str) {
    println!("\n@{line}");
    std::io::stdout().flush().expect("someone listens");
}

/// Waits for the next command; `None` if none will come.
pub(crate) fn listen() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Not a test: a process that enters and stays until it is killed.
#[test]
fn guest() {
    let Some(role) = role() else { return };
    let [directory, room, session] = &role[..] else { panic!("not a guest: {role:?}") };
    let room = Room::open(directory.as_str(), room).expect("the room can be opened");
    let guard = room.enter(session).expect("it is admitted at some time");
    say("inside");
    while listen().is_some() {}
    drop(guard);
}

/// Another process.
pub(crate) struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Actor {
    /// Starts this program again, running only that test, which plays the role.
    pub(crate) fn start(test: &str, role: &[&str]) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self::start_by(&mut Command::new(program), test, role)
    }

    /// The same with nothing in its environment.
    pub(crate) fn start_without_environment(test: &str, role: &[&str]) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self::start_by(Command::new(program).env_clear(), test, role)
    }

    fn start_by(program: &mut Command, test: &str, role: &[&str]) -> Self {
        let mut child = program
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ROLE, role.join("\u{1f}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if let Some(said) = line.strip_prefix('@')
                    && sender.send(said.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Actor { child, input, output }
    }

    /// A process that enters `session` of `room`, or waits for it, and stays until it is killed.
    pub(crate) fn guest(scratch: &Scratch, room: &str, session: &str) -> Self {
        Actor::start("process::guest", &[scratch.text(), room, session])
    }

    /// As [`guest`](Actor::guest), once it is inside.
    pub(crate) fn inside(scratch: &Scratch, room: &str, session: &str) -> Self {
        let guest = Actor::guest(scratch, room, session);
        assert_eq!(guest.hear().as_deref(), Some("inside"));
        guest
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives a command.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it was not closed");
        writeln!(input, "{line}").expect("the process listens");
    }

    /// The next thing it says; `None` if it ends before or says nothing for long. What it said before it ended or
    /// was killed is heard.
    pub(crate) fn hear(&self) -> Option<String> {
        self.output.recv_timeout(LONG).ok()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(self.id(), signal).expect("it is our child");
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Stops all its threads, and waits until they are stopped.
    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let news = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        until("the process is stopped", || {
            matches!(waitid(Id::Pid(self.id()), news), Ok(WaitStatus::Stopped(..)))
        });
    }

    /// Kills it as hard as possible, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it ends by itself, since nobody talks to it any more.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.input = None;
        let mut ended = None;
        until("the process ends", || {
            ended = self.child.try_wait().expect("it is our child");
            ended.is_some()
        });
        ended.expect("it has ended")
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}
