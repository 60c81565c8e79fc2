//! Measures what an uncontended passage through each lock costs. See `--help`.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use grouplock_bench::instructions;
use grouplock_bench::program::{NameError, ended, save};
use grouplock_bench::uncontended::page::Page;
use grouplock_bench::uncontended::rounds::Plan;
use grouplock_bench::uncontended::subjects;

/// Measures what an uncontended passage through each lock costs.
#[derive(Debug, Parser)]
#[command(name = "uncontended")]
struct Arguments {
    /// How often every lock has its turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 101, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many passages a turn is.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    passages: u64,
    /// Also count instructions per passage; needs valgrind.
    #[arg(long)]
    instructions: bool,
    /// Write the complete page to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Make passages through one lock and measure nothing, for use under callgrind.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rounds", "instructions", "out"])]
    only: Option<String>,
    /// Print the names for `--only`.
    #[arg(long, exclusive = true)]
    list: bool,
}

fn main() -> ExitCode {
    ended("uncontended", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut subjects = subjects::all()?;
    if arguments.list {
        for subject in subjects {
            writeln!(io::stdout(), "{}", subject.name)?;
        }
        return Ok(());
    }
    if let Some(name) = &arguments.only {
        let subject = subjects.iter_mut().find(|subject| subject.name == *name);
        let wrong = || NameError(format!("no lock is called `{name}`; --list tells the names"));
        subject.ok_or_else(wrong)?.run(arguments.passages);
        return Ok(());
    }
    // Counted first: if that fails, no time was lost.
    let names = subjects.iter().map(|subject| &*subject.name);
    let counts = arguments.instructions.then(|| instructions::count_all(names, |_| ()));
    let counts = counts.transpose()?;
    let plan = Plan { rounds: arguments.rounds, passages: arguments.passages };
    let times = plan.run(&mut subjects);
    let page = Page { plan, subjects: &subjects, times: &times, counts: counts.as_deref() };
    write!(io::stdout(), "{}", page.table())?;
    if let Some(out) = &arguments.out {
        save(out, &page)?;
    }
    Ok(())
}
