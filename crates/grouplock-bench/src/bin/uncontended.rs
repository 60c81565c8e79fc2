//! Measures what an uncontended passage through each lock costs. See `--help`.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::{env, fs, io, iter};

use grouplock_bench::instructions;
use grouplock_bench::uncontended::arguments::{self, ArgumentError, Task, USAGE};
use grouplock_bench::uncontended::page::Page;
use grouplock_bench::uncontended::subjects;

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    let causes = iter::successors(Some(&*error), |&error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr(), "uncontended: {}", causes.join(": "));
    ExitCode::from(if error.is::<ArgumentError>() { 2 } else { 1 })
}

fn run() -> Result<(), Box<dyn Error>> {
    match arguments::parse(env::args_os().skip(1))? {
        Task::Help => write!(io::stdout(), "{USAGE}")?,
        Task::List => {
            for subject in subjects::all()? {
                writeln!(io::stdout(), "{}", subject.name)?;
            }
        }
        Task::Only { name, passages } => {
            let mut subjects = subjects::all()?;
            match subjects.iter_mut().find(|subject| subject.name == name) {
                Some(subject) => subject.run(passages),
                None => return Err(ArgumentError::NoSuchLock(name).into()),
            }
        }
        Task::Measure { plan, instructions, out } => {
            let mut subjects = subjects::all()?;
            // Counted first: if that fails, no time was lost.
            let counts = if instructions { Some(count(&subjects)?) } else { None };
            let times = plan.run(&mut subjects);
            let page = Page { plan, subjects: &subjects, times: &times, counts: counts.as_deref() };
            write!(io::stdout(), "{}", page.table())?;
            if let Some(out) = out {
                fs::write(&out, page.to_string())
                    .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
            }
        }
    }
    Ok(())
}

/// Instructions per passage of each subject.
fn count(subjects: &[subjects::Subject]) -> Result<Vec<f64>, Box<dyn Error>> {
    let program = env::current_exe()?;
    let counts = subjects.iter().map(|subject| instructions::per_passage(&program, &subject.name));
    Ok(counts.collect::<Result<_, _>>()?)
}
