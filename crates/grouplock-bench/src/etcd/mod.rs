//! Rooms on etcd next to etcd's own lock, on the same server, in turns.
//!
//! * [`server`]: starts an etcd, with its data on a disk or in memory.
//! * [`party`]: a process that enters and leaves on command, by a room or by [`rpc`], etcd's lock.
//! * [`libraries`]: measures these processes, alone and in competition.
//! * [`designs`]: measures other designs beside both.
//! * [`programs`]: measures `grouplock run` next to `etcdctl lock`.
//! * [`page`]: the page.

mod designs;
mod libraries;
mod page;
mod party;
mod programs;
mod rpc;
mod server;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use clap::{Args, Subcommand, value_parser};
use grouplock_testing::Scratch;
use grouplock_testing::overlaps::now;

use crate::report::Outcome;
use crate::statistics::Bound;
use page::{Row, Section};
use programs::Programs;
use server::Server;

/// Measures rooms on etcd next to etcd's own lock, on servers that it starts. Needs etcd and
/// etcdctl (packages etcd-server and etcd-client), and the program `grouplock` beside this one:
/// `cargo build --release -p grouplock-cli --features etcd`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many turns every lock has.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where etcd keeps its data. Each directory makes a section of the page. [default: the
    /// directory for temporary files, and /dev/shm]
    #[arg(long, value_name = "DIRECTORY")]
    data: Vec<PathBuf>,
}

/// What this program does when it has started itself again.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    Party { peer: party::Peer, endpoint: String, name: String, session: String },
    Await { go: PathBuf, inside: PathBuf },
    Clock,
}

impl Part {
    pub(crate) fn run(self) -> Outcome<()> {
        match self {
            Part::Party { peer, endpoint, name, session } => {
                party::run(peer, &endpoint, &name, &session)
            }
            Part::Await { go, inside } => programs::wait_inside(&go, &inside),
            Part::Clock => Ok(writeln!(io::stdout(), "{}", now())?),
        }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome<String> {
        let mut data = self.data;
        if data.is_empty() {
            data = vec![env::temp_dir(), PathBuf::from("/dev/shm")];
        }
        let (version, load) = (server::version()?, page::load());
        let rounds = self.rounds as usize;
        let sections = data.iter().map(|base| measure(base, rounds));
        Ok(page::text(&version, &load, &sections.collect::<Outcome<Vec<_>>>()?))
    }
}

/// How many passages a turn has.
const PASSAGES: usize = 10;

fn measure(base: &Path, rounds: usize) -> Outcome<Section> {
    let server = Server::start(base)?;
    let programs = Programs::find(&server)?;
    eprintln!("etcd: on {}: {rounds} rounds", server.file_system);
    let designs = designs::measure(&server, rounds, PASSAGES)?;
    let rows = rows(&server, &programs, rounds)?;
    let file_system = server.file_system.clone();
    Ok(Section { fsync: fsync(base)?, rows, designs, file_system })
}

fn rows(server: &Server, programs: &Programs<'_>, rounds: usize) -> Outcome<Vec<Row>> {
    let few = rounds.div_ceil(4);
    let called = |what, goal, pair| Row { what, by: ["a room", "RPC"], goal: Some(goal), pair };
    let hand_over = |rounds, waits| libraries::hand_over(server, rounds, waits);
    let by = ["`grouplock run`", "`etcdctl lock`"];
    let run = |what, pair| Row { what, by, goal: None, pair };
    Ok(vec![
        called(
            "enter and leave, alone",
            Bound::Most(1.1),
            libraries::alone(server, rounds, PASSAGES)?,
        ),
        called(
            "hand-over to a waiter of 5 to 25 ms",
            Bound::Least(10.0),
            hand_over(rounds, Waits::new(5, 20))?,
        ),
        called(
            "hand-over to a waiter of 200 to 300 ms",
            Bound::Most(1.0),
            hand_over(few, Waits::new(200, 100))?,
        ),
        called(
            "hand-over to a waiter of 10 s",
            Bound::Most(1.0),
            hand_over(rounds.div_ceil(40), Waits::new(10_000, 100))?,
        ),
        Row {
            what: "enter and leave, 300 of the session are inside",
            by: ["a room", "a room, alone"],
            goal: Some(Bound::Most(1.3)),
            pair: libraries::crowded(server, rounds, PASSAGES)?,
        },
        called(
            "four compete, per entry",
            Bound::Least(10.0),
            libraries::contended(server, rounds.div_ceil(10))?,
        ),
        run("a program that runs `true`, alone", programs.alone(rounds)?),
        run(
            "hand-over between programs, after 60 to 80 ms",
            programs.hand_over(few, Waits::new(60, 20))?,
        ),
        run(
            "hand-over between programs, after 300 to 400 ms",
            programs.hand_over(few, Waits::new(300, 100))?,
        ),
    ])
}

/// How long a write with fsync takes, in milliseconds.
fn fsync(base: &Path) -> io::Result<Vec<f64>> {
    let directory = Scratch::below(base)?;
    let mut file = fs::File::create(directory.join("file"))?;
    let times = (0..200).map(|_| {
        let start = Instant::now();
        file.write_all(&[0; 2048])?;
        file.sync_data()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    });
    times.collect()
}

/// Times of two subjects in milliseconds, a list per round.
#[derive(Clone, Debug, Default)]
struct Pair {
    ours: Vec<Vec<f64>>,
    theirs: Vec<Vec<f64>>,
}

/// Gives both subjects a turn in each round. Each round begins with the other subject. The first
/// round makes connections and fills caches, and does not count.
fn in_turns(rounds: usize, mut turn: impl FnMut(bool) -> Outcome<Vec<f64>>) -> Outcome<Pair> {
    let mut pair = Pair::default();
    for round in 0..=rounds {
        for ours in [round % 2 == 0, round % 2 == 1] {
            let times = turn(ours)?;
            if round > 0 {
                if ours { &mut pair.ours } else { &mut pair.theirs }.push(times);
            }
        }
    }
    Ok(pair)
}

/// How long a waiter waits before the holder leaves. A server does some things every 100 ms. So all
/// times in a range are equally frequent, and none of them always meets the same moment.
#[derive(Clone, Copy, Debug)]
struct Waits {
    least: Duration,
    /// How many milliseconds longer the longest wait is.
    range: u64,
    step: u64,
}

impl Waits {
    /// From `least` to `least + range` milliseconds.
    fn new(least: u64, range: u64) -> Self {
        Waits { least: Duration::from_millis(least), range, step: 0 }
    }

    fn next(&mut self) -> Duration {
        // Visits all of them if the number of steps has no divisor in common with 11.
        self.step = (self.step + 11) % (self.range + 1);
        self.least + Duration::from_millis(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_has_its_turn() {
        for range in [20, 100] {
            let mut waits = Waits::new(5, range);
            let mut seen: Vec<_> = (0..=range).map(|_| waits.next().as_millis()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (5..=5 + u128::from(range)).collect::<Vec<_>>());
        }
    }
}
