//! The program `grouplock-lab`.

mod check;
mod evidence;
mod export;
mod list;
mod report;
mod rmr;

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, Parser};
use grouplock_lab::Options;
use serde::de::DeserializeOwned;

/// Checks published algorithms, and some of ours: what is claimed for them, and whether it is true.
#[derive(Debug, Parser)]
#[command(name = "grouplock-lab", version)]
enum Command {
    /// Lists the algorithms and their claims.
    List(list::Arguments),
    /// Explores every interleaving of a few processes. Exits with 0 if all checked properties hold,
    /// 1 if one is violated, 3 if a limit ended the exploration or draws found nothing, 2 if an
    /// argument is wrong.
    Check(check::Arguments),
    /// Writes the automaton of an algorithm and its properties as a model for another checker.
    /// Exits with 3 if a limit ended the search, 2 if an argument is wrong.
    Export(export::Arguments),
    /// Counts remote memory references per passage. Exits with 1 if an algorithm breaks meanwhile,
    /// 2 if an argument is wrong.
    Rmr(rmr::Arguments),
    /// Prints the tables of two papers, measured.
    Table(report::TableArguments),
    /// Writes one self-contained HTML page: the tables, plots, and counterexamples to step through.
    Report(report::Arguments),
    /// Explores by a plan, counts references, and keeps the results in a file.
    Evidence(evidence::Arguments),
    /// Makes the tables of pages from a file of evidence.
    Pages(evidence::PagesArguments),
}

/// The exit code, or why there is no result.
type Answer = Result<ExitCode, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let answer = match Command::parse() {
        Command::List(arguments) => Ok(list::run(&arguments)),
        Command::Check(arguments) => check::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Rmr(arguments) => rmr::run(&arguments),
        Command::Table(arguments) => report::table(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Evidence(arguments) => evidence::run(&arguments),
        Command::Pages(arguments) => evidence::pages(&arguments),
    };
    answer.unwrap_or_else(|why| {
        eprintln!("grouplock-lab: {why}");
        // Clap uses the same code for wrong arguments.
        ExitCode::from(2)
    })
}

/// The size of an exploration.
#[derive(Clone, Copy, Debug, Args)]
struct Size {
    /// How many processes.
    #[arg(long, short = 'p', default_value_t = 2)]
    processes: usize,
    /// How many sessions, for a group lock.
    #[arg(long, short = 's', default_value_t = 2)]
    sessions: u64,
    /// How many passages each process makes at most; any number if not given.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    passages: Option<u8>,
}

/// Lets Ctrl-C end the search, so that the results so far are printed. If it cannot be caught, it
/// ends the program.
fn stop_on_ctrl_c(options: &Options) {
    let stop = Arc::clone(&options.stop);
    _ = ctrlc::set_handler(move || stop.store(true, Ordering::Relaxed));
}

/// Reads a file of the kind `what`.
fn read<T: DeserializeOwned>(file: &Path, what: &str) -> Result<T, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} is not a {what}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Shows the progress if standard error is a terminal.
fn show(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Prints, and ignores a closed pipe.
fn say(text: &str) {
    _ = std::io::stdout().write_all(text.as_bytes());
}
