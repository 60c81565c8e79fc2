//! A process that enters and leaves on command.
//!
//! It reads a command per line and answers each with a line:
//! * `enter`: the moment when it was inside.
//! * `leave`: the moment before it began to leave.
//! * `pass N`: the times of N passages in nanoseconds.
//! * `storm MS`: the number of passages in so many milliseconds.
//! * `crowd N`: it enters N times more, and stays inside.
//!
//! All processes of the machine share the clock.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use grouplock_room::{Guard, Places, Room, RoomOptions};
use grouplock_testing::overlaps::now;

use super::designs::DesignLock;
use super::rpc::RpcLock;
use crate::report::{Cannot, Outcome};

/// Which lock a party uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// A room of ours.
    Room,
    /// etcd's lock.
    Rpc,
    // The other designs.
    Put,
    Guarded,
    Single,
    Pair,
    Shipped,
}

enum PeerLock {
    Room { room: Room, session: String, inside: Option<Guard<'static>> },
    Rpc(Box<RpcLock>),
    Design(Box<DesignLock>),
}

impl PeerLock {
    fn new(peer: Peer, endpoint: &str, name: &str, session: &str) -> Outcome<Self> {
        Ok(match peer {
            Peer::Room => {
                let places = Places::new().with(grouplock_etcd::opener());
                let place = format!("etcd://{endpoint}");
                let room = places.open(&place, name, &RoomOptions::new())?;
                PeerLock::Room { room, session: session.to_owned(), inside: None }
            }
            Peer::Rpc => PeerLock::Rpc(Box::new(RpcLock::new(endpoint, name)?)),
            design => PeerLock::Design(Box::new(DesignLock::new(design, endpoint, name)?)),
        })
    }

    fn enter(&mut self) -> Outcome<()> {
        match self {
            PeerLock::Room { room, session, inside } => {
                *inside = Some(room.request(session).enter_owned()?);
                Ok(())
            }
            PeerLock::Rpc(lock) => lock.lock(),
            PeerLock::Design(lock) => lock.enter(),
        }
    }

    fn leave(&mut self) -> Outcome<()> {
        match self {
            PeerLock::Room { inside, .. } => Ok(inside.take().map_or(Ok(()), Guard::leave)?),
            PeerLock::Rpc(lock) => lock.unlock(),
            PeerLock::Design(lock) => lock.leave(),
        }
    }
}

/// Obeys until the input ends.
pub(super) fn run(peer: Peer, endpoint: &str, name: &str, session: &str) -> Outcome<()> {
    let mut lock = PeerLock::new(peer, endpoint, name, session)?;
    let mut crowd = Vec::new();
    for line in io::stdin().lines() {
        let line = line.cannot("read a command")?;
        let (command, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number: u64 = number.parse().cannot(format_args!("read the number in `{line}`"))?;
        let answer = match command {
            "enter" => {
                lock.enter()?;
                now().to_string()
            }
            "leave" => {
                let before = now();
                lock.leave()?;
                before.to_string()
            }
            "pass" => {
                let mut times = Vec::new();
                for _ in 0..number {
                    let before = now();
                    lock.enter()?;
                    lock.leave()?;
                    times.push((now() - before).to_string());
                }
                times.join(" ")
            }
            "storm" => {
                let end = now() + number * 1_000_000;
                let mut entries = 0_u64;
                while now() < end {
                    lock.enter()?;
                    entries += u64::from(now() < end);
                    lock.leave()?;
                }
                entries.to_string()
            }
            "crowd" => {
                if let PeerLock::Room { room, session, .. } = &lock {
                    for _ in 0..number {
                        crowd.push(room.request(session).enter_owned()?);
                    }
                }
                crowd.len().to_string()
            }
            _ => return Err(format!("`{line}` is no command").into()),
        };
        writeln!(io::stdout(), "{answer}").cannot("answer")?;
    }
    Ok(())
}

/// Starts this program again, as a part.
pub(super) fn part() -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe().cannot("find this program")?);
    command.arg("part");
    Ok(command)
}

/// Such a process, as its parent sees it.
#[derive(Debug)]
pub(super) struct Party {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Party {
    pub(super) fn start(peer: Peer, endpoint: &str, name: &str, session: &str) -> Outcome<Self> {
        let peer = peer.to_possible_value().ok_or("a peer has no name")?;
        let mut command = part()?;
        command.args(["party", peer.get_name(), endpoint, name, session]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().cannot("start a party")?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (commands, answers) = pipes.ok_or("a party has no pipes")?;
        Ok(Party { process, commands, answers: BufReader::new(answers) })
    }

    pub(super) fn tell(&mut self, command: &str) -> Outcome<()> {
        writeln!(self.commands, "{command}").cannot("command a party")
    }

    /// Waits for the answer: one number or more.
    pub(super) fn answer(&mut self) -> Outcome<Vec<u64>> {
        let mut line = String::new();
        self.answers.read_line(&mut line).cannot("read from a party")?;
        let numbers: Option<Vec<u64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty());
        Ok(numbers.ok_or_else(|| format!("a party answered `{}`", line.trim()))?)
    }

    /// Enters and leaves, and returns the times in milliseconds.
    pub(super) fn pass(&mut self, passages: usize) -> Outcome<Vec<f64>> {
        self.tell(&format!("pass {passages}"))?;
        Ok(self.answer()?.into_iter().map(|nanos| nanos as f64 / 1e6).collect())
    }

    /// Gives a command and waits for the answer.
    pub(super) fn ask(&mut self, command: &str) -> Outcome<u64> {
        self.tell(command)?;
        Ok(self.answer()?[0])
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // It ends with its input, but not while it waits for a lock.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
