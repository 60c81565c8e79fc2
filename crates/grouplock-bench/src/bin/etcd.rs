//! Measures rooms on etcd against etcd's own lock, on the same server, in turns.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use grouplock_bench::etcd::libraries::{self, Waits};
use grouplock_bench::etcd::page::{Goal, Page, Row, Section, load};
use grouplock_bench::etcd::programs::{self, Programs};
use grouplock_bench::etcd::server::{self, Server};
use grouplock_bench::etcd::{EtcdError, now, party};

const USAGE: &str = "\
Measures rooms on etcd against etcd's own lock, on servers of its own, in turns. Needs etcd and etcdctl (packages etcd-server and
etcd-client), and the program `grouplock` beside it: `cargo build --release -p grouplock-cli`.

usage: etcd [--rounds R] [--data DIRECTORY]… [--out FILE]

  --rounds R         how often every lock has its turn (100)
  --data DIRECTORY   where etcd keeps its data; repeat it for a section each (the directory for temporary files, and /dev/shm)
  --out FILE         write the page to FILE as well
";

/// Passages in a turn.
const PASSAGES: usize = 10;

enum Task {
    Help,
    Measure { rounds: usize, data: Vec<PathBuf>, out: Option<PathBuf> },
    // What this program is when it has started itself.
    Party { kind: party::Kind, endpoint: String, name: String, session: String },
    Await { go: PathBuf, inside: PathBuf },
    Clock,
}

fn main() -> ExitCode {
    let task = match parse(env::args().skip(1)) {
        Ok(task) => task,
        Err(mistake) => {
            eprintln!("etcd: {mistake}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("etcd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let (mut rounds, mut data, mut out) = (100, Vec::new(), None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => {
                let text = value()?;
                let number = text.parse().ok().filter(|number| (1..=100_000).contains(number));
                rounds = number.ok_or_else(|| {
                    format!("--rounds needs a whole number from 1 to 100000, not `{text}`")
                })?;
            }
            "--data" => data.push(PathBuf::from(value()?)),
            "--out" => out = Some(PathBuf::from(value()?)),
            "--party" => {
                let kind = value()?.parse()?;
                let (endpoint, name, session) = (value()?, value()?, value()?);
                return Ok(Task::Party { kind, endpoint, name, session });
            }
            "--await" => return Ok(Task::Await { go: value()?.into(), inside: value()?.into() }),
            "--clock" => return Ok(Task::Clock),
            "--help" | "-h" => return Ok(Task::Help),
            unknown => return Err(format!("unknown argument `{unknown}`")),
        }
    }
    if data.is_empty() {
        data = vec![env::temp_dir(), PathBuf::from("/dev/shm")];
    }
    Ok(Task::Measure { rounds, data, out })
}

fn run(task: Task) -> Result<(), Box<dyn Error>> {
    match task {
        Task::Help => write!(io::stdout(), "{USAGE}")?,
        Task::Party { kind, endpoint, name, session } => {
            party::run(kind, &endpoint, &name, &session)?;
        }
        Task::Await { go, inside } => programs::wait_inside(&go, &inside)?,
        Task::Clock => writeln!(io::stdout(), "{}", now()?)?,
        Task::Measure { rounds, data, out } => {
            let (version, load) = (server::version()?, load());
            let sections =
                data.iter().map(|base| measure(base, rounds)).collect::<Result<_, _>>()?;
            let page = Page { version, load, sections }.to_string();
            write!(io::stdout(), "{page}")?;
            if let Some(out) = out {
                fs::write(&out, page)
                    .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
            }
        }
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
    let called = |what, goal, pair| Row { what, programs: false, goal, pair };
    let run = |what, pair| Row { what, programs: true, goal: None, pair };
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
            None,
            libraries::hand_over(server, few, Waits::new(200, 100))?,
        ),
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
