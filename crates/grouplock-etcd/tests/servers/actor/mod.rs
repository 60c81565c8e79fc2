//! Other processes: this test program again, running the test called `actor` of the module that starts them.

#![allow(dead_code, reason = "no test file needs all of it")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The variable that turns the test `actor` into a process of the play.
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

/// Waits for the next command; `None` if none will come, as when the one who gives them has died.
pub(crate) fn listen() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Another process.
pub(crate) struct Actor {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
}

impl Actor {
    /// Starts this program again in that role. `module` is `module_path!()`.
    pub(crate) fn start(module: &str, role: &[&str]) -> Self {
        Actor::start_with(module, role, &[])
    }

    /// The same with more in its environment.
    pub(crate) fn start_with(module: &str, role: &[&str], variables: &[(&str, &str)]) -> Self {
        let (_, module) = module.split_once("::").expect("a module is in a crate");
        Actor::start_as(&format!("{module}::actor"), role, variables)
    }

    /// The same in a test of another name.
    pub(crate) fn start_as(test: &str, role: &[&str], variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program)
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ROLE, role.join("\u{1f}"))
            .envs(variables.iter().copied())
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
        let input = child.stdin.take().expect("it is piped");
        Actor { child, input, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives a command.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the process listens");
    }

    /// The next thing it says; `None` if it ends before or says nothing for long.
    pub(crate) fn hear(&self) -> Option<String> {
        self.hear_within(Duration::from_secs(20))
    }

    /// What it says within that time.
    pub(crate) fn hear_within(&self, time: Duration) -> Option<String> {
        self.output.recv_timeout(time).ok()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, signal).expect("it is our child");
    }

    /// Kills it as hard as possible, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}
