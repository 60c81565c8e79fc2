//! Measures what it costs to enter a room between processes, against what the system offers.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use grouplock_bench::program::{ended, save};
use grouplock_bench::rooms::{measure, page::Page, peers};
use grouplock_testing::Scratch;

/// Measures what it costs to enter a room between processes, against what the system offers.
#[derive(Debug, Parser)]
#[command(name = "rooms")]
struct Arguments {
    /// How often every lock has its turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 501, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write the page to this file as well.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// How long a turn takes, about: short enough that most turns are not interrupted by other programs.
const TURN: Duration = Duration::from_micros(500);

fn main() -> ExitCode {
    ended("rooms", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let directory = Scratch::new();
    let mut peers = peers::all(directory.path())?;
    let times = measure(&mut peers, arguments.rounds, TURN);
    let page = Page { peers: &peers, times: &times, rounds: arguments.rounds };
    write!(io::stdout(), "{page}")?;
    if let Some(out) = &arguments.out {
        save(out, &page)?;
    }
    Ok(())
}
