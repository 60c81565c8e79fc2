//! `grouplock run` next to `etcdctl lock`, as programs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::libraries::{Waits, in_turns};
use super::server::Server;
use super::{EtcdError, Pair, now};

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs<'s> {
    server: &'s Server,
    grouplock: PathBuf,
    us: PathBuf,
}

impl<'s> Programs<'s> {
    /// Finds them: `grouplock` is beside this program.
    ///
    /// # Errors
    /// If it is not.
    pub fn find(server: &'s Server) -> Result<Self, EtcdError> {
        let us = std::env::current_exe().map_err(EtcdError::system("tell where we are"))?;
        let grouplock = us.with_file_name("grouplock");
        if !grouplock.exists() {
            let advice = "it is not there: `cargo build --release -p grouplock-cli --features etcd` makes it";
            return Err(EtcdError::program(grouplock.display().to_string(), advice));
        }
        Ok(Programs { server, grouplock, us })
    }

    /// `command` to be run inside, by ours or by etcd's.
    fn program(&self, ourselves: bool, session: &str, command: &[&str]) -> Command {
        if !ourselves {
            let mut program = self.server.etcdctl();
            program.args(["lock", "programs", "--"]).args(command);
            return program;
        }
        let mut program = Command::new(&self.grouplock);
        let place = format!("etcd://{}", self.server.endpoint);
        program.args(["run", "--at", &place, "programs", session, "--"]).args(command);
        program.stdin(Stdio::null());
        program
    }

    /// Each runs `true` while nobody else is there, from its start to its end.
    ///
    /// # Errors
    /// If one fails.
    pub fn alone(&self, rounds: usize) -> Result<Pair, EtcdError> {
        in_turns(rounds, |ourselves| Ok(vec![time(self.program(ourselves, "session", &["true"]))?]))
    }

    /// One holds the lock for a command that ends when it is told to, and another one waits: from the moment that command is told to
    /// the moment the other one's command has started and looks at the clock.
    ///
    /// # Errors
    /// If one fails.
    pub fn hand_over(
        &self,
        directory: &Path,
        rounds: usize,
        mut waits: Waits,
    ) -> Result<Pair, EtcdError> {
        in_turns(rounds, |ourselves| Ok(vec![self.exchange(directory, waits.next(), ourselves)?]))
    }

    fn exchange(
        &self,
        directory: &Path,
        wait: Duration,
        ourselves: bool,
    ) -> Result<f64, EtcdError> {
        let us = self.us.display().to_string();
        let [go, inside] = ["go", "inside"].map(|name| directory.join(name));
        for file in [&go, &inside] {
            // Left from the last time, or not there.
            _ = std::fs::remove_file(file);
        }
        let (go_path, inside_path) = (go.display().to_string(), inside.display().to_string());
        let held = [us.as_str(), "--await", &go_path, &inside_path];
        let mut holder = Ended(
            self.program(ourselves, "one", &held)
                .spawn()
                .map_err(EtcdError::system("start a holder"))?,
        );
        await_file(&inside)?;
        let mut command = self.program(ourselves, "two", &[&us, "--clock"]);
        let mut waiter = Ended(
            command.stdout(Stdio::piped()).spawn().map_err(EtcdError::system("start a waiter"))?,
        );
        thread::sleep(wait);
        let before = now()?;
        File::create(&go).map_err(EtcdError::system("make a file"))?;
        let mut told = String::new();
        if let Some(mut output) = waiter.0.stdout.take() {
            output.read_to_string(&mut told).map_err(EtcdError::system("hear from a waiter"))?;
        }
        for child in [&mut holder, &mut waiter] {
            let status = child.0.wait().map_err(EtcdError::system("wait for a program"))?;
            if !status.success() {
                return Err(EtcdError::program("a program", format!("it ended with {status}")));
            }
        }
        let after: u64 =
            told.trim().parse().map_err(|_| EtcdError::program("--clock", told.clone()))?;
        after
            .checked_sub(before)
            .map(|nanos| nanos as f64 / 1e6)
            .ok_or_else(|| EtcdError::program("lock", "the waiter did not wait"))
    }
}

/// A process that does not outlive the measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn time(mut command: Command) -> Result<f64, EtcdError> {
    let start = Instant::now();
    let output = command.output().map_err(EtcdError::system("start a program"))?;
    let time = start.elapsed();
    if output.status.success() {
        return Ok(time.as_secs_f64() * 1e3);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(EtcdError::program(format!("{command:?}"), said.trim()))
}

fn await_file(path: &Path) -> Result<(), EtcdError> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        if Instant::now() > deadline {
            return Err(EtcdError::program("a holder", "it is not inside within 30 s"));
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// What the holder's command does: says that it is inside, and ends when `go` is there.
///
/// # Errors
/// If it waits for too long.
pub fn wait_inside(go: &Path, inside: &Path) -> Result<(), EtcdError> {
    File::create(inside).map_err(EtcdError::system("make a file"))?;
    await_file(go)
}
