//! Measures what the locks of grouplock cost, next to other locks.
//!
//! Machines differ and are noisy. So a figure is a ratio to a peer that ran in the same rounds, and
//! it has its spread. The pages also have a [count of instructions](instructions), which no clock
//! disturbs.
//!
//! Each command measures one page of `docs/benchmarks`:
//! * `compare`: [`comparison`], `GroupLock` and other locks, with threads that compete.
//! * `uncontended`: [`uncontended`], a passage through each algorithm, alone. Its peer
//!   [`handover_by_hand`] shows what the trait `Memory` costs.
//! * `rooms`: [`rooms`], rooms between processes and the locks of the system.
//! * `run`: [`run`], `grouplock run` and flock(1).
//! * `etcd`: [`etcd`], rooms on etcd and etcd's own lock.

mod allocations;
mod comparison;
mod etcd;
mod handover_by_hand;
mod instructions;
mod machine;
mod report;
mod rooms;
mod rounds;
mod run;
mod statistics;
mod uncontended;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use report::{Outcome, save};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Measures what the locks of grouplock cost, next to other locks.
#[derive(Debug, Parser)]
#[command(name = "grouplock-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Also write the page to this file. `compare` needs a directory: it also writes pictures and
    /// figures.
    #[arg(long, global = true, value_name = "PATH")]
    out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(comparison::command::Arguments),
    Uncontended(uncontended::Arguments),
    Rooms(rooms::Arguments),
    Run(run::Arguments),
    Etcd(etcd::Arguments),
    /// What this program does when `etcd` starts it again.
    #[command(hide = true, subcommand)]
    Part(etcd::Part),
}

fn main() -> ExitCode {
    status(measure(Arguments::parse()))
}

fn measure(Arguments { command, out }: Arguments) -> Outcome<()> {
    let page = match command {
        Command::Compare(arguments) => return arguments.run(out.as_deref()),
        Command::Part(part) => return part.run(),
        Command::Uncontended(arguments) => arguments.run()?,
        Command::Rooms(arguments) => arguments.run()?,
        Command::Run(arguments) => arguments.run()?,
        Command::Etcd(arguments) => arguments.run()?,
    };
    write!(io::stdout(), "{page}")?;
    out.map_or(Ok(()), |out| save(&out, &page))
}

/// Prints an error. The status is 2 for a wrong argument and 1 for a failure.
fn status(result: Outcome<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // If standard error is closed, the status is all that is left.
    _ = writeln!(io::stderr(), "grouplock-bench: {error}");
    ExitCode::from(if error.is::<report::UnknownName>() { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_and_a_failure_have_different_statuses() {
        let unknown = report::UnknownName("no such lock".to_owned());
        assert_eq!(status(Err(unknown.into())), ExitCode::from(2));
        assert_eq!(status(Err("broken".into())), ExitCode::from(1));
        assert_eq!(status(Ok(())), ExitCode::SUCCESS);
    }

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
