//! The program `grouplock`.

mod exit;
mod lab;
mod place;
mod report;
mod rmr;
mod run;
mod signals;
mod span;
mod table;
mod waiting;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Locks with sessions: commands in rooms, and the lab.
#[derive(Debug, Parser)]
#[command(name = "grouplock", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a command inside a room.
    Run(run::Arguments),
    /// The published algorithms: what they claim, and whether it is true.
    #[command(subcommand)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Lab(command) => lab::run(&command),
    }
}
