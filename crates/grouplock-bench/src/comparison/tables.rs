//! The tables of the report, in Markdown.

use std::time::Duration;

use super::goals::Goal;
use super::long_queues::{FEW, MANY};
use super::run::{Match, REFERENCE, Results, Score, Season};
use super::starvation::{Waited, Way};
use super::work::Length;
use super::workload::Workload;
use crate::program::table;
use crate::statistics::Spread;

/// What stands where a figure is missing.
const NONE: &str = "–";

fn or_none<T>(value: Option<T>, told: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), told)
}

/// The goals.
pub fn goals(goals: &[Goal]) -> String {
    let row = |goal: &Goal| {
        let Goal { about, wanted, reached, verdict } = goal.clone();
        [about, wanted, reached, verdict.to_string()]
    };
    table(&["about", "goal", "reached", ""], goals.iter().map(row))
}

/// The uncontended part.
pub fn alone(results: &Results) -> String {
    let ratio = format!("× {REFERENCE} shared");
    let rows = results.alone.iter().map(|cost| {
        let instructions = or_none(cost.instructions, |count| format!("{count:.0}"));
        let (ns, ratio) = (format!("{:.1}", cost.nanoseconds), format!("{:.2}", cost.ratio));
        [cost.lock.to_owned(), cost.path.told().to_owned(), ns, ratio, instructions]
    });
    table(&["lock", "way in", "ns", &ratio, "instructions"], rows)
}

/// What is compared between a lock and the reference.
pub type Ratio = fn(&Score, &Score) -> Spread;

/// A family at a glance: a ratio to the reference, one workload per column.
pub fn summary(season: &Season, ratio: Ratio) -> String {
    let games = &season.matches;
    let mut heads = vec!["lock".to_owned(), "sessions as".to_owned()];
    heads.extend(games.iter().map(|game| head(&game.workload, games)));
    let heads: Vec<&str> = heads.iter().map(|head| &**head).collect();
    let scores = games.first().map_or(&[][..], |game| &game.scores);
    let rows = scores.iter().map(|score| {
        let mut row = vec![score.lock.to_owned(), score.kind.told().to_owned()];
        row.extend(games.iter().map(|game| {
            let pair = game.score(score.lock).zip(game.score(REFERENCE));
            let ratio = pair.map(|(score, reference)| ratio(score, reference));
            // Where nobody got in, there is nothing to compare with.
            let ratio = ratio.filter(|ratio| ratio.median.is_finite() && ratio.high.is_finite());
            or_none(ratio, |ratio| format!("{ratio:.2}"))
        }));
        row
    });
    table(&heads, rows)
}

/// What tells a workload from the others.
fn head(workload: &Workload, among: &[Match]) -> String {
    let parts = |workload: &Workload| {
        let Workload { threads, inside, outside, .. } = workload;
        let (inside, outside) = (inside.told(), outside.told());
        let [threads, inside, outside] = [
            format!("{threads} threads"),
            format!("{inside} inside"),
            format!("{outside} outside"),
        ];
        [workload.sessions_told(), threads, inside, outside]
    };
    let mine = parts(workload);
    let all: Vec<_> = among.iter().map(|game| parts(&game.workload)).collect();
    let differs = |&part: &usize| all.iter().any(|other| other[part] != mine[part]);
    let told: Vec<&str> = (0..mine.len()).filter(differs).map(|part| &*mine[part]).collect();
    if told.is_empty() { workload.to_string() } else { told.join(", ") }
}

/// Everything about one workload.
pub fn detail(game: &Match) -> String {
    let ratio = format!("× {REFERENCE}");
    let heads = [
        "lock",
        "entries/s",
        "of session 0, of others",
        &ratio,
        "Jain",
        "inside: mean, max",
        "switches/s",
        "wait p50",
        "p99",
        "max",
        "overtaken p99, max",
    ];
    let reference = game.score(REFERENCE);
    let middle = |rates: &[f64]| amount(Spread::of(rates.iter().copied()).median);
    let rows = game.scores.iter().map(|score| {
        let seen = &score.observed;
        // With nothing to do inside, the mean is that of looking at the clock.
        let mean = Some(seen.inside_mean).filter(|_| game.workload.inside != Length::Nothing);
        let apart = game.workload.is_mixed().then_some(score);
        let overtaken = [seen.overtaken_p99, seen.overtaken_max].map(|count| amount(count as f64));
        [
            score.lock.to_owned(),
            middle(&score.rates),
            or_none(apart, |of| format!("{}, {}", middle(&of.of_zero), middle(&of.of_others))),
            or_none(reference, |reference| format!("{:.2}", score.ratio(reference))),
            or_none(Some(score.fairness().median).filter(|jain| !jain.is_nan()), |jain| {
                format!("{jain:.2}")
            }),
            format!("{}, {}", or_none(mean, |mean| format!("{mean:.2}")), seen.inside_max),
            amount(seen.switches),
            time(seen.wait_p50),
            time(seen.wait_p99),
            time(seen.wait_max),
            overtaken.join(", "),
        ]
    });
    table(&heads, rows)
}

/// The starvation probe.
pub fn starvation(results: &Results) -> String {
    let heads = [&["lock"], &Way::ALL.map(Way::told)[..]].concat();
    let locks = results.starvation.iter().filter(|probed| probed.way == Way::ALL[0]);
    let rows = locks.map(|probed| {
        let told = |way| or_none(results.probed(probed.lock, way), waited);
        [&[probed.lock.to_owned()], &Way::ALL.map(told)[..]].concat()
    });
    table(&heads, rows)
}

fn waited(waited: &Waited) -> String {
    let Waited { served, median, max, gave_up_after, .. } = waited;
    match (gave_up_after, median, max) {
        (None, Some(median), Some(max)) => format!("{median:.2}, {max:.2}"),
        (Some(after), Some(median), _) => {
            format!("**> {after} s**, after {served} with a median of {median:.2}")
        }
        (Some(after), ..) => format!("**> {after} s**"),
        (None, ..) => NONE.to_owned(),
    }
}

/// Long queues.
pub fn queues(results: &Results) -> String {
    let [few, many] = [FEW, MANY].map(|length| format!("ns, {length} waiters"));
    let rows = results.queues.iter().map(|queue| {
        let figures = [format!("{:.0}", queue.few), format!("{:.0}", queue.many)];
        let [few, many] = figures;
        [
            queue.operation.told().to_owned(),
            queue.lock.to_owned(),
            few,
            many,
            format!("{:.2}", queue.ratio),
        ]
    });
    table(&["what", "lock", &few, &many, "ratio"], rows)
}

/// Expensive changes of session.
pub fn changes(results: &Results) -> String {
    let spread = |sample: &[f64]| format!("{:.1}", Spread::of(sample.iter().copied()));
    let rows = results.changes.iter().map(|changes| {
        let longest = format!("{:.0}", changes.longest());
        let (rates, changed) = (spread(&changes.rates), spread(&changes.per_thousand));
        [changes.lock.to_owned(), changed, rates, longest]
    });
    table(&["lock", "changes in 1000 holds", "holds/s", "longest wait, in holds"], rows)
}

/// Allocations.
pub fn memory(results: &Results) -> String {
    let rows = results.memory.iter().map(|memory| {
        let figures = [memory.thread, memory.task, memory.name].map(|count| format!("{count:.2}"));
        [&[memory.policy.to_owned()], &figures[..]].concat()
    });
    table(&["policy", "wait of a thread", "wait of a task", "entry under another name"], rows)
}

/// Bytes of unlocked locks.
pub fn sizes(results: &Results) -> String {
    let rows = results.sizes.iter().map(|(lock, bytes)| [(*lock).to_owned(), bytes.to_string()]);
    table(&["lock", "bytes"], rows)
}

/// Remote references.
pub fn remote(results: &Results) -> String {
    let rows = results.remote.iter().map(|remote| {
        let bound = or_none(remote.bound, |bound| bound.to_string());
        [remote.model.clone(), remote.max.to_string(), remote.processes.to_string(), bound]
    });
    table(&["memory", "largest found", "for processes", "proven for any number"], rows)
}

/// A count with three digits.
fn amount(count: f64) -> String {
    match count {
        ..1e3 => format!("{count:.0}"),
        ..1e4 => format!("{:.2} k", count / 1e3),
        ..1e5 => format!("{:.1} k", count / 1e3),
        ..1e6 => format!("{:.0} k", count / 1e3),
        ..1e7 => format!("{:.2} M", count / 1e6),
        ..1e8 => format!("{:.1} M", count / 1e6),
        _ => format!("{:.0} M", count / 1e6),
    }
}

/// A time with few digits.
fn time(nanoseconds: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(nanoseconds)).replace(".0", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_short() {
        let amounts = [7.0, 1234.0, 12_345.0, 123_456.0, 1.234e6, 12.34e6, 123.4e6].map(amount);
        assert_eq!(amounts, ["7", "1.23 k", "12.3 k", "123 k", "1.23 M", "12.3 M", "123 M"]);
        assert_eq!([17, 1_500, 2_000_000].map(time), ["17ns", "1.5µs", "2ms"]);
    }

    #[test]
    fn a_request_that_starved_is_not_told_as_a_figure() {
        let starved =
            Waited { served: 0, median: None, max: None, gave_up_after: Some(1.5), hold_ms: 2.0 };
        assert_eq!(waited(&starved), "**> 1.5 s**");
        let late = Waited { served: 2, median: Some(1.0), max: Some(3.0), ..starved };
        assert_eq!(waited(&late), "**> 1.5 s**, after 2 with a median of 1.00");
        assert_eq!(waited(&Waited { gave_up_after: None, ..late }), "1.00, 3.00");
    }
}
