//! Programs under test, and their output.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{until, until_else};

/// A process that does not outlive its test: dropping this kills it.
#[derive(Debug)]
pub struct Running(pub Child);

#[expect(clippy::missing_panics_doc, reason = "every failure here fails the test")]
impl Running {
    /// Starts it.
    pub fn start(mut command: Command) -> Self {
        Running(command.spawn().expect("the program starts"))
    }

    /// The number of the process.
    pub fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// Sends a signal.
    pub fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it can be sent");
    }

    /// Its stdout, which must be piped.
    pub fn stdout(&mut self) -> Heard {
        Heard::listen(self.0.stdout.take().expect("it is piped"))
    }

    /// Its stderr, which must be piped.
    pub fn stderr(&mut self) -> Heard {
        Heard::listen(self.0.stderr.take().expect("it is piped"))
    }

    /// Waits until it ends. Returns its status.
    pub fn ending(mut self) -> ExitStatus {
        let mut ending = None;
        until("the program ends", || {
            ending = self.0.try_wait().expect("it is our child");
            ending.is_some()
        });
        ending.expect("it has ended")
    }

    /// Waits until it ends. Returns its exit code, or 128 + n if signal n has ended it, as in
    /// shells.
    pub fn code(self) -> Option<i32> {
        let ending = self.ending();
        ending.code().or_else(|| ending.signal().map(|signal| 128 + signal))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The output of a pipe or a terminal, as it arrives.
#[derive(Debug)]
pub struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Heard {
    /// Reads `source` to its end.
    pub fn listen(mut source: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let listener = std::thread::spawn(move || {
            let mut some = [0; 4096];
            // Reading from a terminal whose process has ended is an error.
            while let Ok(count @ 1..) = source.read(&mut some) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&some[..count]);
            }
        });
        Heard { bytes, listener }
    }

    /// The output so far.
    pub fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the output has this text.
    pub fn until_says(&self, what: &str) {
        until_else(|| self.text().contains(what), || format!("{:?} has {what:?}", self.text()));
    }

    /// All output, when no process can write any more.
    pub fn to_end(&self) -> String {
        until_else(|| self.listener.is_finished(), || format!("{:?} ends", self.text()));
        self.text()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Running::start(command)
    }

    #[test]
    fn the_output_arrives_and_the_code_is_that_of_a_shell() {
        let mut running = shell("echo one; read line; echo two; exit 3");
        let output = running.stdout();
        output.until_says("one\n");
        drop(running.0.stdin.take());
        assert_eq!(output.to_end(), "one\ntwo\n");
        assert_eq!(running.code(), Some(3));
        let running = shell("read line");
        running.send(Signal::SIGTERM);
        assert_eq!(running.code(), Some(128 + 15));
    }

    #[test]
    fn it_does_not_outlive_its_owner() {
        let running = shell("read line");
        let pid = Pid::from_raw(running.pid());
        drop(running);
        assert!(kill(pid, None).is_err());
    }
}
