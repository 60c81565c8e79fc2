//! The command `compare`.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::exit;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use clap::Args;

use super::alone::{self, Alone};
use super::competitor::{self, Competitor};
use super::goals::{self, Goal};
use super::plan::{Plan, Size};
use super::run::{self, QUIET, REFERENCE, Results};
use super::{json, page, plots, tables};
use crate::instructions;
use crate::report::{Cannot, Outcome, UnknownName, save};

/// Measures `GroupLock` and the locks that people use otherwise, side by side.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How much to measure.
    #[arg(long, value_enum, default_value_t = Size::Standard)]
    plan: Size,
    /// Also count instructions. This needs valgrind.
    #[arg(long)]
    instructions: bool,
    /// Measure only locks whose name contains one of these, and the peer of all ratios.
    #[arg(long, value_name = "NAME", value_delimiter = ';')]
    locks: Vec<String>,
    /// Run only workloads whose name contains this, for example "8 threads, 2 sessions".
    #[arg(long, value_name = "TEXT")]
    workloads: Option<String>,
    /// Make passages through one way in and measure nothing, for use under callgrind.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["instructions", "locks", "workloads"])]
    only: Option<String>,
    /// How many passages `--only` makes.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, requires = "only")]
    passages: u64,
    /// Print the names for `--locks` and for `--only`.
    #[arg(long, exclusive = true)]
    list: bool,
}

impl Arguments {
    pub(crate) fn run(self, out: Option<&Path>) -> Outcome<()> {
        let (mut competitors, mut ways) = (competitor::all(), alone::all());
        if self.list {
            return list(&competitors, &ways);
        }
        if let Some(name) = &self.only {
            let way = ways.iter_mut().find(|way| way.subject.name == *name);
            let unknown =
                || UnknownName(format!("no way in is called `{name}`; --list prints the names"));
            way.ok_or_else(unknown)?.subject.run(self.passages);
            return Ok(());
        }
        select_locks(&self.locks, &mut competitors, &mut ways)?;
        let mut plan = Plan::new(self.plan);
        if let Some(text) = &self.workloads {
            select_workloads(text, &mut plan)?;
        }
        if let Some(out) = out {
            // Before hours of measuring, not after.
            fs::create_dir_all(out).cannot(format_args!("make {}", out.display()))?;
        }
        watch();
        let names = ways.iter().map(|way| &*way.subject.name);
        let count = || instructions::count_all("compare", names, show);
        let counts = self.instructions.then(count).transpose()?;
        let results = run::run(&plan, &competitors, ways, counts.as_deref(), show)?;
        show("");
        let goals = goals::all(&results);
        let mut stdout = io::stdout();
        if !self.locks.is_empty() || self.workloads.is_some() {
            writeln!(stdout, "{}", tables::alone(&results))?;
            for game in results.seasons.iter().flat_map(|season| &season.matches) {
                writeln!(stdout, "{}\n\n{}", game.workload, tables::detail(game))?;
            }
            writeln!(stdout, "{}", tables::starvation(&results))?;
        }
        write!(stdout, "{}", tables::goals(&goals))?;
        if let Some(foreign) = results.foreign.filter(|foreign| *foreign > QUIET) {
            let percent = foreign * 100.0;
            writeln!(
                stdout,
                "\nOther programs used {percent:.0} % of the cores: repeat this when it is quiet."
            )?;
        }
        out.map_or(Ok(()), |out| save_all(out, &results, &goals))
    }
}

fn list(competitors: &[Competitor], ways: &[Alone]) -> Outcome<()> {
    let mut out = io::stdout();
    writeln!(out, "locks:")?;
    for competitor in competitors {
        writeln!(out, "  {}", competitor.name)?;
    }
    writeln!(out, "ways in, for --only:")?;
    for way in ways {
        writeln!(out, "  {}", way.subject.name)?;
    }
    Ok(())
}

fn select_locks(
    names: &[String],
    competitors: &mut Vec<Competitor>,
    ways: &mut Vec<Alone>,
) -> Result<(), UnknownName> {
    let known = |name: &&String| competitors.iter().any(|lock| lock.name.contains(&***name));
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let message = format!("no lock's name contains `{name}`; --list prints the names");
        return Err(UnknownName(message));
    }
    let chosen = |lock: &str| {
        names.is_empty() || lock == REFERENCE || names.iter().any(|name| lock.contains(&**name))
    };
    competitors.retain(|competitor| chosen(competitor.name));
    ways.retain(|way| chosen(way.lock));
    Ok(())
}

fn select_workloads(text: &str, plan: &mut Plan) -> Result<(), UnknownName> {
    let all = plan.families.iter().flat_map(|family| &family.workloads);
    let names: Vec<String> = all.map(ToString::to_string).collect();
    for family in &mut plan.families {
        family.workloads.retain(|workload| workload.to_string().contains(text));
    }
    plan.families.retain(|family| !family.workloads.is_empty());
    if plan.families.is_empty() {
        let names = names.join("\n");
        return Err(UnknownName(format!(
            "this plan has no workload `{text}`, but these:\n{names}"
        )));
    }
    Ok(())
}

fn save_all(out: &Path, results: &Results, goals: &[Goal]) -> Outcome<()> {
    let plots = plots::all(results);
    for plot in &plots {
        save(&out.join(&plot.file), &plot.svg)?;
    }
    save(&out.join("comparison.md"), &page::text(results, goals, &plots))?;
    save(&out.join("comparison.json"), &json::report(results, goals)?)
}

/// The current measurement, and its start. None at the end.
static CURRENT: Mutex<Option<(Instant, String)>> = Mutex::new(None);

/// Longer than any measurement, unless a lock never admits a thread.
const PATIENCE: Duration = Duration::from_mins(3);

/// Ends the program if a lock never admits a thread, and says which measurement it was.
fn watch() {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, what)) = current.as_ref()
                && since.elapsed() > PATIENCE
            {
                let after = PATIENCE.as_secs();
                _ = writeln!(io::stderr(), "grouplock-bench: no end after {after} s: {what}");
                exit(1);
            }
        }
    });
}

/// Notes the current measurement, and shows it on a terminal.
fn show(what: &str) {
    let current = (!what.is_empty()).then(|| (Instant::now(), what.to_owned()));
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = current;
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // The figures do not depend on it.
        _ = write!(stderr, "\r\x1b[K{what}");
        _ = stderr.flush();
    }
}
