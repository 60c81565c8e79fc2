//! The report.

use core::fmt;

use super::expensive_changes::{COST, THREADS};
use super::goals::Goal;
use super::group_lock::PASSES;
use super::plots::Plot;
use super::remote::ALGORITHM;
use super::run::{QUIET, REFERENCE, Results, Score};
use super::starvation::HOLDERS;
use super::tables::{self, Ratio};
use crate::machine;

/// What one run has found. Displayed, it is the complete page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'r> {
    /// The figures.
    pub results: &'r Results,
    /// What was to be reached.
    pub goals: &'r [Goal],
    /// The pictures, which lie next to the page.
    pub plots: &'r [Plot],
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Page { results, goals, .. } = self;
        writeln!(
            f,
            "# GroupLock next to other locks\n\n*For whoever chooses a lock for threads or tasks.*\n"
        )?;
        writeln!(
            f,
            "How to read this page, and how to make it anew, stands in [README.md](README.md).\n"
        )?;
        if let Some(foreign) = results.foreign.filter(|foreign| *foreign > QUIET) {
            writeln!(
                f,
                "**The machine was not quiet: other programs had {:.0} % of the cores. Do not rely on the contended figures of this run.**\n",
                foreign * 100.0
            )?;
        }
        writeln!(f, "## Goals\n\n{}", tables::goals(goals))?;
        self.how(f)?;
        writeln!(f, "## Alone\n")?;
        writeln!(
            f,
            "Nobody else wants the lock. A task's request is polled once, which is all it needs.\n"
        )?;
        writeln!(f, "{}", tables::alone(results))?;
        self.contended(f)?;
        self.starvation(f)?;
        writeln!(
            f,
            "\
## Long queues

Every waiter asks for a session of its own. The queue keeps its length.

{}
## Expensive changes of session

{THREADS} threads, half of them for each of two sessions. A change of session takes as long as {COST} holds. `Batch` lets {PASSES} requests
overtake a waiter.

{}
## Allocations

Of `GroupLock`, by the waiter and by the holder that lets it in, from the ninth time on. A name is the caller's own and does not count.

{}
## Size

Of an unlocked lock without data, in bytes.

{}
## Remote references

The most that one passage through `{ALGORITHM}` was made to cost by the lab's meter, which tries schedules, and the bound that the lab
proves from the algorithm's automaton. Both are from the lab's [evidence](../lab/evidence.json).

{}",
            tables::queues(results),
            tables::changes(results),
            tables::memory(results),
            tables::sizes(results),
            tables::remote(results)
        )
    }
}

impl Page<'_> {
    fn how(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Results { plan, rounds, seconds, foreign, .. } = self.results;
        let foreign = foreign.map_or_else(
            || "an unknown share".to_owned(),
            |share| format!("{:.0} %", share * 100.0),
        );
        let plan = format!("{plan:?}").to_lowercase();
        writeln!(
            f,
            "\
## The run

* {}.
* Plan `{plan}`: {rounds} rounds of every workload, {seconds:.0} s in all. Every ratio is taken within a round, where all locks have
  their turn one after the other.
* Other programs had {foreign} of the cores' time meanwhile. The more that is, the less the contended figures say: threads that seldom
  run at the same time seldom meet.
* A figure is the median over the rounds, with the quartiles in parentheses.
",
            machine::told(),
        )
    }

    fn contended(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for season in &self.results.seasons {
            writeln!(f, "## {}\n\n{}\n", season.title, season.note)?;
            let name = season.title.to_lowercase().replace(' ', "-");
            for plot in self.plots.iter().filter(|plot| plot.file.contains(&name)) {
                writeln!(f, "![{}]({})\n", plot.caption, plot.file)?;
            }
            let mixed = season.matches.iter().any(|game| game.workload.is_mixed());
            let ratios: [(&str, Ratio); 3] = [
                ("", Score::ratio),
                (" of session 0 (the readers)", Score::ratio_of_zero),
                (" of all other sessions (the writers)", Score::ratio_of_others),
            ];
            for (of, ratio) in ratios.into_iter().take(if mixed { 3 } else { 1 }) {
                let summary = tables::summary(season, ratio);
                writeln!(f, "Entries per second{of}, {REFERENCE} = 1:\n\n{summary}")?;
            }
            for game in &season.matches {
                let (workload, detail) = (&game.workload, tables::detail(game));
                writeln!(f, "<details><summary>{workload}</summary>\n\n{detail}\n</details>\n")?;
            }
        }
        for plot in self.plots.iter().filter(|plot| plot.file == "waits.svg") {
            writeln!(f, "## Waits\n\n![{}]({})\n", plot.caption, plot.file)?;
        }
        Ok(())
    }

    fn starvation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
## Starvation

{HOLDERS} threads hold for 2 ms, asleep, and ask again at once. One other asks now and then. How long it waits, in holds: median,
longest. Where it had not got in after the time in bold, the holders were sent away.
"
        )?;
        for plot in self.plots.iter().filter(|plot| plot.file == "starvation.svg") {
            writeln!(f, "![{}]({})\n", plot.caption, plot.file)?;
        }
        writeln!(f, "{}", tables::starvation(self.results))
    }
}
