//! The program `grouplock-lab`.

mod check;
mod evidence;
mod list;
mod report;
mod rmr;
mod table;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

/// The published algorithms: what they claim, and whether it is true.
#[derive(Debug, Parser)]
#[command(name = "grouplock-lab", version)]
enum Command {
    /// Lists the algorithms and their claims.
    List(list::Arguments),
    /// Explores every interleaving of a few processes. Exits with 0 if what was looked at holds, 1 if something is
    /// violated, 3 if a limit came first, 2 if it was asked wrongly.
    Check(check::Arguments),
    /// Counts remote memory references per passage. Exits with 1 if an algorithm breaks meanwhile, 2 if it was
    /// asked wrongly.
    Rmr(rmr::Arguments),
    /// Prints the tables of two papers, measured.
    Table(table::Arguments),
    /// Writes one self-contained HTML page: the tables, plots, and counterexamples to step through.
    Report(report::Arguments),
    /// Explores by a plan and counts references, and keeps what was found in a file.
    Evidence(evidence::Arguments),
    /// Makes the tables of pages anew, from a file of evidence.
    Pages(evidence::PagesArguments),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::List(arguments) => list::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Rmr(arguments) => rmr::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Evidence(arguments) => evidence::run(&arguments),
        Command::Pages(arguments) => evidence::pages(&arguments),
    }
}

/// Exit code for wrong questions; clap's own is the same.
const BAD_INPUT: u8 = 2;

fn refuse(why: &str) -> ExitCode {
    eprintln!("grouplock-lab: {why}");
    ExitCode::from(BAD_INPUT)
}

/// Prints, and lets a closed pipe be: whoever reads no further has seen enough.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
