//! Measures `GroupLock` and the locks people use otherwise, side by side. See `--help`.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use clap::Parser;
use grouplock_bench::allocations::Counting;
use grouplock_bench::comparison::alone::{self, Alone};
use grouplock_bench::comparison::goals::{self, Goal};
use grouplock_bench::comparison::page::Page;
use grouplock_bench::comparison::plan::{Plan, Size};
use grouplock_bench::comparison::run::{self, QUIET, REFERENCE, Results};
use grouplock_bench::comparison::subject::{self, Subject};
use grouplock_bench::comparison::{json, plots, tables};
use grouplock_bench::instructions;
use grouplock_bench::program::{self, NameError, ended};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures `GroupLock` and the locks people use otherwise, side by side.
#[derive(Debug, Parser)]
#[command(name = "compare")]
struct Arguments {
    /// How much to measure.
    #[arg(long, value_enum, default_value_t = Size::Standard)]
    plan: Size,
    /// Write the page, the pictures and the raw figures into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also count instructions; needs valgrind.
    #[arg(long)]
    instructions: bool,
    /// Measure only locks whose name contains one of these, and the peer of all ratios.
    #[arg(long, value_name = "NAME", value_delimiter = ';')]
    locks: Vec<String>,
    /// Run only workloads whose name contains this, for example "8 threads, 2 sessions".
    #[arg(long, value_name = "TEXT")]
    workloads: Option<String>,
    /// Make passages through one way in and measure nothing, for use under callgrind.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "instructions", "locks", "workloads"])]
    only: Option<String>,
    /// How many passages `--only` makes.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, requires = "only")]
    passages: u64,
    /// Print the names for `--locks` and for `--only`.
    #[arg(long, exclusive = true)]
    list: bool,
}

fn main() -> ExitCode {
    ended("compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if arguments.list {
        return list();
    }
    let mut ways = alone::all();
    if let Some(name) = &arguments.only {
        let way = ways.iter_mut().find(|way| way.subject.name == *name);
        let wrong = || NameError(format!("no way in is called `{name}`; --list tells the names"));
        let way = way.ok_or_else(wrong)?;
        way.subject.run(arguments.passages);
        return Ok(());
    }
    let mut subjects = subject::all();
    select_locks(&arguments.locks, &mut subjects, &mut ways)?;
    let mut plan = Plan::new(arguments.plan);
    if let Some(text) = &arguments.workloads {
        select_workloads(text, &mut plan)?;
    }
    if let Some(out) = &arguments.out {
        // Found out now, and not when everything is measured.
        fs::create_dir_all(out)
            .map_err(|error| format!("cannot make {}: {error}", out.display()))?;
    }
    watch();
    let names = ways.iter().map(|way| &*way.subject.name);
    let counts =
        arguments.instructions.then(|| instructions::count_all(names, show)).transpose()?;
    let results = run::run(&plan, &subjects, ways, counts.as_deref(), show)?;
    show("");
    let goals = goals::all(&results);
    if !arguments.locks.is_empty() || arguments.workloads.is_some() {
        show_chosen(&results)?;
    }
    write!(io::stdout(), "{}", tables::goals(&goals))?;
    if let Some(foreign) = results.foreign.filter(|foreign| *foreign > QUIET) {
        let percent = foreign * 100.0;
        writeln!(
            io::stdout(),
            "\nOther programs had {percent:.0} % of the cores: repeat this when it is quiet."
        )?;
    }
    if let Some(out) = &arguments.out { save(out, &results, &goals) } else { Ok(()) }
}

fn list() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    writeln!(out, "locks:")?;
    for subject in subject::all() {
        writeln!(out, "  {}", subject.name)?;
    }
    writeln!(out, "ways in, for --only:")?;
    for way in alone::all() {
        writeln!(out, "  {}", way.subject.name)?;
    }
    Ok(())
}

fn select_locks(
    names: &[String],
    subjects: &mut Vec<Subject>,
    ways: &mut Vec<Alone>,
) -> Result<(), NameError> {
    if let Some(unknown) =
        names.iter().find(|name| !subjects.iter().any(|subject| subject.name.contains(&***name)))
    {
        let told = format!("no lock's name contains `{unknown}`; --list tells the names");
        return Err(NameError(told));
    }
    let wanted = |lock: &str| {
        names.is_empty() || lock == REFERENCE || names.iter().any(|name| lock.contains(&**name))
    };
    subjects.retain(|subject| wanted(subject.name));
    ways.retain(|way| wanted(way.lock));
    Ok(())
}

fn select_workloads(text: &str, plan: &mut Plan) -> Result<(), NameError> {
    let all = plan.families.iter().flat_map(|family| &family.workloads);
    let names: Vec<String> = all.map(ToString::to_string).collect();
    for family in &mut plan.families {
        family.workloads.retain(|workload| workload.to_string().contains(text));
    }
    plan.families.retain(|family| !family.workloads.is_empty());
    if plan.families.is_empty() {
        let names = names.join("\n");
        return Err(NameError(format!("this plan has no workload `{text}`, but these:\n{names}")));
    }
    Ok(())
}

/// Prints the tables of what somebody chose to look at.
fn show_chosen(results: &Results) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{}", tables::alone(results))?;
    for game in results.seasons.iter().flat_map(|season| &season.matches) {
        writeln!(out, "{}\n\n{}", game.workload, tables::detail(game))?;
    }
    writeln!(out, "{}", tables::starvation(results))
}

fn save(out: &Path, results: &Results, goals: &[Goal]) -> Result<(), Box<dyn Error>> {
    let plots = plots::all(results);
    for plot in &plots {
        program::save(&out.join(&plot.file), &plot.svg)?;
    }
    program::save(&out.join("comparison.md"), &Page { results, goals, plots: &plots })?;
    program::save(&out.join("comparison.json"), &json::report(results, goals)?)?;
    Ok(())
}

/// What is being done, and since when. Empty when all is done.
static DOING: Mutex<Option<(Instant, String)>> = Mutex::new(None);

/// Nothing takes longer than this, unless a lock has lost a thread.
const PATIENCE: Duration = Duration::from_mins(3);

/// A lock that never lets a thread in would have us wait for ever: ends the program, and says where it was.
fn watch() {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            let doing = DOING.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, what)) = doing.as_ref()
                && since.elapsed() > PATIENCE
            {
                let after = PATIENCE.as_secs();
                _ = writeln!(io::stderr(), "compare: no end after {after} s: {what}");
                exit(1);
            }
        }
    });
}

/// Notes what is being measured. Shows it on a terminal; nothing when there is nobody to look.
fn show(what: &str) {
    let doing = (!what.is_empty()).then(|| (Instant::now(), what.to_owned()));
    *DOING.lock().unwrap_or_else(PoisonError::into_inner) = doing;
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // If it cannot be shown, the figures still can.
        _ = write!(stderr, "\r\x1b[K{what}");
        _ = stderr.flush();
    }
}
