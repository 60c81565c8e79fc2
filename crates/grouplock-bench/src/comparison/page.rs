//! The page.

use core::fmt::Write as _;

use super::expensive_changes::{COST, THREADS};
use super::goals::Goal;
use super::group_lock::PASSES;
use super::plots::Plot;
use super::remote::ALGORITHM;
use super::run::{QUIET, REFERENCE, Results, Score};
use super::starvation::HOLDERS;
use super::tables::{self, Ratio};
use crate::machine;

/// The page. The pictures lie next to it.
pub(super) fn text(results: &Results, goals: &[Goal], plots: &[Plot]) -> String {
    let Results { plan, rounds, seconds, foreign, .. } = results;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let warning = foreign.filter(|foreign| *foreign > QUIET).map_or_else(String::new, |share| {
        format!(
            "**The machine was not quiet: other programs used {} of the cores. Do not rely on the contended figures of this run.**\n\n",
            percent(share)
        )
    });
    format!(
        "\
# GroupLock next to other locks

*For people who choose a lock for threads or tasks.*

[README.md](README.md) says how to read this page, and how to make it again.

{warning}## Goals

{goals}
## The run

* {machine}.
* Plan `{plan}`: {rounds} rounds of every workload, {seconds:.0} s in all. Every ratio is taken within a round, where all locks have
  their turn one after the other.
* Other programs used {foreign} of the cores' time meanwhile. The more that is, the less the contended figures say: threads that seldom
  run at the same time seldom meet.
* A figure is the median over the rounds, with the quartiles in parentheses.

## Alone

No other thread uses the lock. The request of a task is polled once, which is enough.

{alone}
{contended}## Starvation

{HOLDERS} threads hold for 2 ms, asleep, and then request again at once. One other thread makes a request now and then. How long it waits, in holds: median,
longest. If it had not entered after the time in bold, the holders stopped.

{starvation_plot}{starvation}
## Long queues

Every waiter has a session of its own. The queue keeps its length.

{queues}
## Expensive changes of session

{THREADS} threads, half of them for each of two sessions. A change of session takes as long as {COST} holds. `Batch` lets {PASSES} requests
overtake a waiter.

{changes}
## Allocations

Of `GroupLock`, by the waiter and by the holder that admits it, from the ninth time on. A name is the caller's own and does not count.

{memory}
## Size

Of an unlocked lock without data, in bytes.

{sizes}
## Remote references

The largest cost of one passage through `{ALGORITHM}` that the lab's meter found by trying schedules, and the bound that the lab
proves from the algorithm's automaton. Both are from the lab's [evidence](../lab/evidence.json).

{remote}",
        goals = tables::goals(goals),
        machine = machine::description(),
        plan = format!("{plan:?}").to_lowercase(),
        foreign = foreign.map_or_else(|| "an unknown share".to_owned(), percent),
        alone = tables::alone(results),
        contended = contended(results, plots),
        starvation_plot = images(plots, "starvation.svg"),
        starvation = tables::starvation(results),
        queues = tables::queues(results),
        changes = tables::changes(results),
        memory = tables::memory(results),
        sizes = tables::sizes(results),
        remote = tables::remote(results),
    )
}

/// The plots whose file's name contains `name`.
fn images(plots: &[Plot], name: &str) -> String {
    let plots = plots.iter().filter(|plot| plot.file.contains(name));
    let images: Vec<_> =
        plots.map(|plot| format!("![{}]({})\n\n", plot.caption, plot.file)).collect();
    images.concat()
}

fn contended(results: &Results, plots: &[Plot]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for season in &results.seasons {
        let plots = images(plots, &season.title.to_lowercase().replace(' ', "-"));
        _ = write!(text, "## {}\n\n{}\n\n{plots}", season.title, season.note);
        let mixed = season.matches.iter().any(|game| game.workload.is_mixed());
        let ratios: [(&str, Ratio); 3] = [
            ("", Score::ratio),
            (" of session 0 (the readers)", Score::ratio_of_zero),
            (" of all other sessions (the writers)", Score::ratio_of_others),
        ];
        for (of, ratio) in ratios.into_iter().take(if mixed { 3 } else { 1 }) {
            let summary = tables::summary(season, ratio);
            _ = writeln!(text, "Entries per second{of}, {REFERENCE} = 1:\n\n{summary}");
        }
        for game in &season.matches {
            let (workload, detail) = (&game.workload, tables::detail(game));
            _ = writeln!(text, "<details><summary>{workload}</summary>\n\n{detail}\n</details>\n");
        }
    }
    let waits = images(plots, "waits.svg");
    if !waits.is_empty() {
        _ = write!(text, "## Waits\n\n{waits}");
    }
    text
}
