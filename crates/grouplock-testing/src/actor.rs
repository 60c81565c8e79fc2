//! Other processes that obey commands. Each is this test program again, and runs one test, which
//! finds its [`role`] and plays it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::{LONG, until};

/// The variable that makes a test play a role.
const ROLE: &str = "GROUPLOCK_TEST_ROLE";

/// The role of this process, if it is an [`Actor`].
pub fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    Some(role.split('\u{1f}').map(str::to_owned).collect())
}

/// Sends a line to the process that started this one.
///
/// # Panics
/// If the other end is closed.
pub fn say(line: &str) {
    println!("\n@{line}");
    std::io::stdout().flush().expect("the other end is open");
}

/// Waits for the next command. `None` if none will come, for instance because the parent has died.
pub fn listen() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Another process. Dropping this kills it.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

#[expect(clippy::missing_panics_doc, reason = "whatever goes wrong here fails the test")]
impl Actor {
    /// Starts this program again with only that test, which plays the role.
    pub fn start(test: &str, role: &[&str]) -> Self {
        Actor::start_by(test, role, |_| ())
    }

    /// The same, after `prepare` has changed the command, for instance its environment.
    pub fn start_by(test: &str, role: &[&str], prepare: impl FnOnce(&mut Command)) -> Self {
        let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
        prepare(&mut program);
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

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Gives a command.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it was not closed");
        writeln!(input, "{line}").expect("the process listens");
    }

    /// Its next line. `None` if it ends before, or is silent for long. Lines that it wrote before
    /// it ended or was killed arrive.
    pub fn hear(&self) -> Option<String> {
        self.hear_within(LONG)
    }

    /// Its next line within that time.
    pub fn hear_within(&self, time: Duration) -> Option<String> {
        self.output.recv_timeout(time).ok()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.id(), signal).expect("it is our child");
    }

    /// Stops all its threads, and waits until they are stopped.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let news = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        until("the process is stopped", || {
            matches!(waitid(Id::Pid(self.id()), news), Ok(WaitStatus::Stopped(..)))
        });
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may be gone already.
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Closes its input, and waits until it ends.
    pub fn end(&mut self) -> ExitStatus {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Not a test: repeats every command.
    #[test]
    fn parrot() {
        let Some(role) = role() else { return };
        say(&role.join(" "));
        while let Some(line) = listen() {
            say(&line);
        }
    }

    #[test]
    fn it_says_what_it_must_and_ends_when_nobody_talks_to_it() {
        let mut parrot = Actor::start("actor::tests::parrot", &["a b", "c"]);
        assert_eq!(parrot.hear().as_deref(), Some("a b c"));
        parrot.tell("d");
        assert_eq!(parrot.hear().as_deref(), Some("d"));
        parrot.stop();
        parrot.tell("e");
        assert_eq!(parrot.hear_within(Duration::from_millis(20)), None);
        parrot.signal(Signal::SIGCONT);
        assert_eq!(parrot.hear().as_deref(), Some("e"));
        assert!(parrot.end().success());
        assert_eq!(parrot.hear(), None);
    }
}
