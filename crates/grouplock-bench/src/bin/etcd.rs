//! Measures rooms on etcd against etcd's own lock, on the same server, in turns.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use clap::{Parser, ValueEnum};
use grouplock_bench::etcd::libraries::{self, Waits};
use grouplock_bench::etcd::page::{Goal, Page, Row, Section, load};
use grouplock_bench::etcd::party::Kind;
use grouplock_bench::etcd::programs::{self, Programs};
use grouplock_bench::etcd::server::{self, Server};
use grouplock_bench::etcd::{EtcdError, now, party};
use grouplock_bench::program::{ended, save};

/// Passages in a turn.
const PASSAGES: usize = 10;

/// Measures rooms on etcd against etcd's own lock, on servers of its own, in turns. Needs etcd and etcdctl (packages etcd-server and
/// etcd-client), and the program `grouplock` beside it: `cargo build --release -p grouplock-cli --features etcd`.
#[derive(Debug, Parser)]
#[command(name = "etcd")]
struct Arguments {
    /// How often every lock has its turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where etcd keeps its data. Repeat it for a section each. [default: the directory for temporary files, and /dev/shm]
    #[arg(long, value_name = "DIRECTORY")]
    data: Vec<PathBuf>,
    /// Write the page to this file as well.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    // What this program is when it has started itself.
    #[arg(long, hide = true, num_args = 4)]
    party: Vec<String>,
    #[arg(long, hide = true, num_args = 2)]
    r#await: Vec<PathBuf>,
    #[arg(long, hide = true)]
    clock: bool,
}

fn main() -> ExitCode {
    ended("etcd", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    if let [kind, endpoint, name, session] = &arguments.party[..] {
        return Ok(party::run(Kind::from_str(kind, false)?, endpoint, name, session)?);
    }
    if let [go, inside] = &arguments.r#await[..] {
        return Ok(programs::wait_inside(go, inside)?);
    }
    if arguments.clock {
        return Ok(writeln!(io::stdout(), "{}", now()?)?);
    }
    let mut data = arguments.data;
    if data.is_empty() {
        data = vec![env::temp_dir(), PathBuf::from("/dev/shm")];
    }
    let (version, load) = (server::version()?, load());
    let rounds = arguments.rounds as usize;
    let sections = data.iter().map(|base| measure(base, rounds)).collect::<Result<_, _>>()?;
    let page = Page { version, load, sections };
    write!(io::stdout(), "{page}")?;
    if let Some(out) = &arguments.out {
        save(out, &page)?;
    }
    Ok(())
}

fn measure(base: &Path, rounds: usize) -> Result<Section, Box<dyn Error>> {
    let server = Server::start(base)?;
    let programs = Programs::find(&server)?;
    eprintln!("etcd: on {}: {rounds} rounds", server.file_system);
    let directory =
        env::temp_dir().join(format!("grouplock-bench-programs-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let rows = rows(&server, &programs, &directory, rounds);
    // Not worth failing for, and to be done whether that went well or not.
    _ = fs::remove_dir_all(&directory);
    Ok(Section { file_system: server.file_system.clone(), fsync: fsync(base)?, rows: rows? })
}

fn rows(
    server: &Server,
    programs: &Programs<'_>,
    directory: &Path,
    rounds: usize,
) -> Result<Vec<Row>, EtcdError> {
    let few = rounds.div_ceil(4);
    let called = |what, goal, pair| Row { what, by: ["a room", "RPC"], goal, pair };
    let run = |what, pair| {
        let by = ["`grouplock run`", "`etcdctl lock`"];
        Row { what, by, goal: None, pair }
    };
    Ok(vec![
        called(
            "enter and leave, alone",
            Some(Goal::AtMost(1.1)),
            libraries::alone(server, rounds, PASSAGES)?,
        ),
        called(
            "hand-over to one who waits since 5 to 25 ms",
            Some(Goal::TimesFaster(10.0)),
            libraries::hand_over(server, rounds, Waits::new(5, 20))?,
        ),
        called(
            "hand-over to one who waits since 200 to 300 ms",
            Some(Goal::AtMost(1.0)),
            libraries::hand_over(server, few, Waits::new(200, 100))?,
        ),
        called(
            "hand-over to one who waits since 10 s",
            Some(Goal::AtMost(1.0)),
            libraries::hand_over(server, rounds.div_ceil(40), Waits::new(10_000, 100))?,
        ),
        Row {
            what: "enter and leave, 300 of the session are inside",
            by: ["a room", "a room, alone"],
            goal: Some(Goal::AtMost(1.3)),
            pair: libraries::crowded(server, rounds, PASSAGES)?,
        },
        called(
            "four who compete, per entry",
            Some(Goal::TimesFaster(10.0)),
            libraries::contended(server, rounds.div_ceil(10))?,
        ),
        run("a program that runs `true`, alone", programs.alone(rounds)?),
        run(
            "hand-over between programs, after 60 to 80 ms",
            programs.hand_over(directory, few, Waits::new(60, 20))?,
        ),
        run(
            "hand-over between programs, after 300 to 400 ms",
            programs.hand_over(directory, few, Waits::new(300, 100))?,
        ),
    ])
}

/// How long it takes to have something on the disk, in milliseconds.
fn fsync(base: &Path) -> io::Result<Vec<f64>> {
    let path = base.join(format!("grouplock-bench-fsync-{}", std::process::id()));
    let mut file = fs::File::create(&path)?;
    let times = (0..200).map(|_| {
        let start = Instant::now();
        file.write_all(&[0; 2048])?;
        file.sync_data()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    });
    let times = times.collect();
    _ = fs::remove_file(&path);
    times
}
