//! A process that enters and leaves as it is told.
//!
//! It reads a word per line and answers each with a line: `pass N` with the times of N passages in nanoseconds, `storm MS` with the number of
//! passages that were made in so many milliseconds, `crowd N` when it is inside N times more, for good, `enter` with the moment it was inside, `leave` with the moment before it began to
//! leave. The clock is one that all processes share.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use grouplock_room::{Guard, Places, Room, RoomOptions};

use super::rpc::RpcLock;
use super::{EtcdError, now};

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A room of ours.
    Room,
    /// etcd's.
    Rpc,
}

enum Lock {
    Room { room: Room, session: String, inside: Option<Guard<'static>> },
    Rpc(Box<RpcLock>),
}

impl Lock {
    fn new(kind: Kind, endpoint: &str, name: &str, session: &str) -> Result<Self, EtcdError> {
        Ok(match kind {
            Kind::Room => {
                let places = Places::new().with(grouplock_etcd::opener());
                let place = format!("etcd://{endpoint}");
                let room = places.open(&place, name, &RoomOptions::new())?;
                Lock::Room { room, session: session.to_owned(), inside: None }
            }
            Kind::Rpc => Lock::Rpc(Box::new(RpcLock::new(endpoint, name)?)),
        })
    }

    fn enter(&mut self) -> Result<(), EtcdError> {
        match self {
            Lock::Room { room, session, inside } => {
                *inside = Some(room.request(session).enter_owned()?);
                Ok(())
            }
            Lock::Rpc(lock) => lock.lock(),
        }
    }

    fn leave(&mut self) -> Result<(), EtcdError> {
        match self {
            Lock::Room { inside, .. } => Ok(inside.take().map_or(Ok(()), Guard::leave)?),
            Lock::Rpc(lock) => lock.unlock(),
        }
    }
}

/// What the process does, until its input ends.
///
/// # Errors
/// If the lock fails.
pub fn run(kind: Kind, endpoint: &str, name: &str, session: &str) -> Result<(), EtcdError> {
    let mut lock = Lock::new(kind, endpoint, name, session)?;
    let mut crowd = Vec::new();
    for line in io::stdin().lines() {
        let line = line.map_err(EtcdError::system("read what to do"))?;
        let answer = match line.split_once(' ') {
            None if line == "enter" => {
                lock.enter()?;
                now()?.to_string()
            }
            None if line == "leave" => {
                let before = now()?;
                lock.leave()?;
                before.to_string()
            }
            Some(("pass", count)) => {
                let count = count.parse().map_err(|_| EtcdError::program("pass", count))?;
                let mut times = Vec::new();
                for _ in 0..count {
                    let before = now()?;
                    lock.enter()?;
                    lock.leave()?;
                    times.push((now()? - before).to_string());
                }
                times.join(" ")
            }
            Some(("storm", time)) => {
                let time: u64 = time.parse().map_err(|_| EtcdError::program("storm", time))?;
                let end = now()? + time * 1_000_000;
                let mut entries = 0_u64;
                while now()? < end {
                    lock.enter()?;
                    entries += u64::from(now()? < end);
                    lock.leave()?;
                }
                entries.to_string()
            }
            Some(("crowd", count)) => {
                let count = count.parse().map_err(|_| EtcdError::program("crowd", count))?;
                if let Lock::Room { room, session, .. } = &lock {
                    for _ in 0..count {
                        crowd.push(room.request(session).enter_owned()?);
                    }
                }
                crowd.len().to_string()
            }
            _ => return Err(EtcdError::program("party", format!("what is `{line}`?"))),
        };
        writeln!(io::stdout(), "{answer}").map_err(EtcdError::system("answer"))?;
    }
    Ok(())
}

/// The other end: such a process, and what it is told.
#[derive(Debug)]
pub struct Party {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Party {
    /// Starts this program again as a party.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn start(kind: Kind, endpoint: &str, name: &str, session: &str) -> Result<Self, EtcdError> {
        let us = std::env::current_exe().map_err(EtcdError::system("tell where we are"))?;
        let mut command = Command::new(us);
        let kind = if kind == Kind::Room { "room" } else { "rpc" };
        command.args(["--party", kind, endpoint, name, session]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(EtcdError::system("start a party"))?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(orders), Some(answers)) => {
                Ok(Party { process, orders, answers: BufReader::new(answers) })
            }
            _ => Err(EtcdError::program("party", "it has no pipes")),
        }
    }

    /// Says what to do.
    ///
    /// # Errors
    /// If the party is gone.
    pub fn tell(&mut self, order: &str) -> Result<(), EtcdError> {
        writeln!(self.orders, "{order}").map_err(EtcdError::system("tell a party what to do"))
    }

    /// Waits for the answer: some numbers.
    ///
    /// # Errors
    /// If the party has failed.
    pub fn answer(&mut self) -> Result<Vec<u64>, EtcdError> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(EtcdError::system("hear from a party"))?;
        let numbers: Option<Vec<u64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers {
            Some(numbers) if !numbers.is_empty() => Ok(numbers),
            _ => Err(EtcdError::program("party", format!("it answered `{}`", line.trim()))),
        }
    }

    /// Both.
    ///
    /// # Errors
    /// If the party has failed.
    pub fn ask(&mut self, order: &str) -> Result<u64, EtcdError> {
        self.tell(order)?;
        Ok(self.answer()?[0])
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // It would end by itself with its input, but not if it waits for a lock.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
