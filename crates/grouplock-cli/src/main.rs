//! The program `grouplock`.

mod lab;
mod report;
mod rmr;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Locks with sessions: tools around the grouplock libraries.
#[derive(Debug, Parser)]
#[command(name = "grouplock", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The published algorithms: what they claim, and whether it is true.
    #[command(subcommand)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Lab(command) => lab::run(&command),
    }
}
