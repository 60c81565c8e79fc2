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

use clap::Parser;
use serde::de::DeserializeOwned;

/// The published algorithms: what they claim, and whether it is true.
#[derive(Debug, Parser)]
#[command(name = "grouplock-lab", version)]
enum Command {
    /// Lists the algorithms and their claims.
    List(list::Arguments),
    /// Explores every interleaving of a few processes. Exits with 0 if what was looked at holds, 1 if something is
    /// violated, 3 if a limit came first, 2 if it was asked wrongly.
    Check(check::Arguments),
    /// Writes the automaton of an algorithm and its properties as a model for another checker. Exits with 3 if a limit came
    /// first, 2 if it was asked wrongly.
    Export(export::Arguments),
    /// Counts remote memory references per passage. Exits with 1 if an algorithm breaks meanwhile, 2 if it was
    /// asked wrongly.
    Rmr(rmr::Arguments),
    /// Prints the tables of two papers, measured.
    Table(report::TableArguments),
    /// Writes one self-contained HTML page: the tables, plots, and counterexamples to step through.
    Report(report::Arguments),
    /// Explores by a plan and counts references, and keeps what was found in a file.
    Evidence(evidence::Arguments),
    /// Makes the tables of pages anew, from a file of evidence.
    Pages(evidence::PagesArguments),
}

/// The exit code, or why the question cannot be answered.
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
        // Clap's own for wrong questions is the same.
        ExitCode::from(2)
    })
}

/// Reads a file; `what` it is no sample of, if it cannot be understood.
fn read<T: DeserializeOwned>(file: &Path, what: &str) -> Result<T, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is no {what}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Shows on a terminal what is being done; nothing when there is nobody to look.
fn show(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Prints, and lets a closed pipe be: whoever reads no further has seen enough.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
