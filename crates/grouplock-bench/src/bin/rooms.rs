//! Measures what it costs to enter a room between processes, against what the system offers.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, io};

use grouplock_bench::rooms::{measure, page::Page, peers};

const USAGE: &str = "\
Measures what it costs to enter a room between processes, against what the system offers.

usage: rooms [--rounds R] [--out FILE]

  --rounds R   how often every lock has its turn (501)
  --out FILE   write the page to FILE as well
";

/// How long a turn takes, about: short enough that most turns are not interrupted by other programs.
const TURN: Duration = Duration::from_micros(500);

enum Task {
    Help,
    Measure { rounds: usize, out: Option<PathBuf> },
}

fn main() -> ExitCode {
    let task = match parse(env::args().skip(1)) {
        Ok(task) => task,
        Err(mistake) => {
            eprintln!("rooms: {mistake}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rooms: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let (mut rounds, mut out) = (501, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => {
                let text = value()?;
                let number = text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
                rounds = number.ok_or_else(|| {
                    format!("--rounds needs a whole number from 1 to 1000000, not `{text}`")
                })?;
            }
            "--out" => out = Some(PathBuf::from(value()?)),
            "--help" | "-h" => return Ok(Task::Help),
            unknown => return Err(format!("unknown argument `{unknown}`")),
        }
    }
    Ok(Task::Measure { rounds, out })
}

fn run(task: Task) -> Result<(), Box<dyn Error>> {
    let Task::Measure { rounds, out } = task else {
        write!(io::stdout(), "{USAGE}")?;
        return Ok(());
    };
    let directory = peers::Scratch::new()?;
    let mut peers = peers::all(&directory)?;
    let figures = measure(&mut peers, rounds, TURN);
    let page = Page { figures: &figures, rounds }.to_string();
    write!(io::stdout(), "{page}")?;
    if let Some(out) = out {
        fs::write(&out, page)
            .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    }
    Ok(())
}
