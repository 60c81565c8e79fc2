//! Measures `grouplock run` next to `etcdctl lock`, as programs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use grouplock_testing::overlaps::now;
use grouplock_testing::{Running, Scratch};

use super::party::part;
use super::server::Server;
use super::{Pair, Waits, in_turns};
use crate::report::{Cannot, Outcome};

/// The two programs, and where they lock.
#[derive(Debug)]
pub(super) struct Programs<'s> {
    server: &'s Server,
    grouplock: PathBuf,
}

impl<'s> Programs<'s> {
    /// Finds `grouplock`, which is beside this program.
    pub(super) fn find(server: &'s Server) -> Outcome<Self> {
        let grouplock = std::env::current_exe()?.with_file_name("grouplock");
        if grouplock.exists() {
            return Ok(Programs { server, grouplock });
        }
        let advice = "`cargo build --release -p grouplock-cli --features etcd` makes it";
        Err(format!("{} does not exist: {advice}", grouplock.display()).into())
    }

    /// Our program or etcd's, which will run the part `command` of this program inside.
    fn program(&self, ours: bool, session: &str, command: &Command) -> Command {
        let mut program = if ours {
            let mut program = Command::new(&self.grouplock);
            let place = format!("etcd://{}", self.server.endpoint);
            program.args(["run", "--at", &place, "programs", session, "--"]);
            program
        } else {
            let mut program = self.server.etcdctl();
            program.args(["lock", "programs", "--"]);
            program
        };
        program.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        program
    }

    /// Each runs `true`, from its start to its end. No other process uses the lock.
    pub(super) fn alone(&self, rounds: usize) -> Outcome<Pair> {
        in_turns(rounds, |ours| {
            let mut program = self.program(ours, "session", &Command::new("true"));
            let start = Instant::now();
            let output = program.output().cannot("start a program")?;
            let time = start.elapsed();
            if !output.status.success() {
                let messages = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{program:?}: {}", messages.trim()).into());
            }
            Ok(vec![time.as_secs_f64() * 1e3])
        })
    }

    /// One program holds the lock while its command waits for a file, and another program waits for
    /// the lock: the time from the moment the file is made until the other one's command reads the
    /// clock.
    pub(super) fn hand_over(&self, rounds: usize, mut waits: Waits) -> Outcome<Pair> {
        in_turns(rounds, |ours| Ok(vec![self.exchange(waits.next(), ours)?]))
    }

    fn exchange(&self, wait: Duration, ours: bool) -> Outcome<f64> {
        let directory = Scratch::below(&std::env::temp_dir()).cannot("make a directory")?;
        let [go, inside] = ["go", "inside"].map(|name| directory.join(name));
        let (mut holding, mut clock) = (part()?, part()?);
        holding.arg("await").args([&go, &inside]);
        clock.arg("clock");
        let holder = self.program(ours, "one", &holding).spawn();
        let mut holder = Running(holder.cannot("start a holder")?);
        await_file(&inside)?;
        let waiter = self.program(ours, "two", &clock).stdout(Stdio::piped()).spawn();
        let mut waiter = Running(waiter.cannot("start a waiter")?);
        thread::sleep(wait);
        let before = now();
        File::create(&go).cannot("make a file")?;
        let mut text = String::new();
        if let Some(mut output) = waiter.0.stdout.take() {
            output.read_to_string(&mut text).cannot("read from a waiter")?;
        }
        for child in [&mut holder, &mut waiter] {
            let status = child.0.wait().cannot("wait for a program")?;
            if !status.success() {
                return Err(format!("a program ended with {status}").into());
            }
        }
        let after: u64 = text.trim().parse().cannot(format_args!("read the time `{text}`"))?;
        Ok(after.checked_sub(before).ok_or("the waiter did not wait")? as f64 / 1e6)
    }
}

fn await_file(path: &Path) -> Outcome<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        if Instant::now() > deadline {
            return Err(format!("{} did not appear within 30 s", path.display()).into());
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// The holder's command: makes the file `inside`, and ends when `go` exists.
pub(super) fn wait_inside(go: &Path, inside: &Path) -> Outcome<()> {
    File::create(inside).cannot("make a file")?;
    await_file(go)
}
