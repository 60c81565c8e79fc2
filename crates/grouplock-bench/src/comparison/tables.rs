//! The tables of the page.

use std::time::Duration;

use super::goals::Goal;
use super::long_queues::{FEW, MANY, Queue};
use super::memory::Memory;
use super::run::{Match, REFERENCE, Results, Score, Season};
use super::starvation::{Roles, Waited};
use super::work::Length;
use super::workload::Workload;
use crate::report::{NONE, or_none, row, table};
use crate::statistics::Spread;

pub(super) fn goals(goals: &[Goal]) -> String {
    let row = |goal: &Goal| row![goal.about, goal.wanted, goal.reached, goal.verdict.text()];
    table(&["about", "goal", "reached", ""], goals.iter().map(row))
}

/// The uncontended part.
pub(super) fn alone(results: &Results) -> String {
    let ratio = format!("× {REFERENCE} shared");
    let rows = results.alone.iter().map(|cost| {
        let instructions = or_none(cost.instructions, |count| format!("{count:.0}"));
        let (ns, ratio) = (format!("{:.1}", cost.nanoseconds), format!("{:.2}", cost.ratio));
        row![cost.lock, cost.path.text(), ns, ratio, instructions]
    });
    table(&["lock", "way in", "ns", &ratio, "instructions"], rows)
}

/// What is compared between a lock and the reference.
pub(super) type Ratio = fn(&Score, &Score) -> Spread;

/// A family in short: a ratio to the reference, one workload per column.
pub(super) fn summary(season: &Season, ratio: Ratio) -> String {
    let games = &season.matches;
    let mut heads = vec!["lock".to_owned(), "sessions as".to_owned()];
    heads.extend(games.iter().map(|game| head(&game.workload, games)));
    let heads: Vec<&str> = heads.iter().map(|head| &**head).collect();
    let scores = games.first().map_or(&[][..], |game| &game.scores);
    let rows = scores.iter().map(|score| {
        let mut row = row![score.lock, score.kind.text()];
        row.extend(games.iter().map(|game| {
            let pair = game.score(score.lock).zip(game.score(REFERENCE));
            or_none(pair, |(score, reference)| format!("{:.2}", ratio(score, reference)))
        }));
        row
    });
    table(&heads, rows)
}

/// The parts of a workload's name in which it differs from the others.
fn head(workload: &Workload, among: &[Match]) -> String {
    let parts = |workload: &Workload| {
        let Workload { threads, inside, outside, .. } = workload;
        [
            workload.sessions_text(),
            format!("{threads} threads"),
            format!("{} inside", inside.text()),
            format!("{} outside", outside.text()),
        ]
    };
    let mine = parts(workload);
    let all: Vec<_> = among.iter().map(|game| parts(&game.workload)).collect();
    let differs = |&part: &usize| all.iter().any(|other| other[part] != mine[part]);
    let parts: Vec<&str> = (0..mine.len()).filter(differs).map(|part| &*mine[part]).collect();
    if parts.is_empty() { workload.to_string() } else { parts.join(", ") }
}

/// Everything about one workload.
pub(super) fn detail(game: &Match) -> String {
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
    let median = |rates: &[f64]| amount(Spread::of(rates).median);
    let rows = game.scores.iter().map(|score| {
        let seen = &score.observed;
        // With no work inside, the mean is the time to read the clock.
        let mean = Some(seen.inside_mean).filter(|_| game.workload.inside != Length::Nothing);
        let apart = game.workload.is_mixed().then_some(score);
        let overtaken = [seen.overtaken_p99, seen.overtaken_max].map(|count| amount(count as f64));
        let jain = Some(Spread::of(&score.jain).median).filter(|jain| !jain.is_nan());
        row![
            score.lock,
            median(&score.rates),
            or_none(apart, |of| format!("{}, {}", median(&of.of_zero), median(&of.of_others))),
            or_none(reference, |reference| format!("{:.2}", score.ratio(reference))),
            or_none(jain, |jain| format!("{jain:.2}")),
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
pub(super) fn starvation(results: &Results) -> String {
    let heads = [&["lock"], &Roles::ALL.map(Roles::text)[..]].concat();
    let locks = results.starvation.iter().filter(|probed| probed.way == Roles::ALL[0]);
    let rows = locks.map(|probed| {
        let text = |way| or_none(results.probed(probed.lock, way), waited);
        [row![probed.lock], Roles::ALL.map(text).to_vec()].concat()
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

pub(super) fn queues(results: &Results) -> String {
    let [few, many] = [FEW, MANY].map(|length| format!("ns, {length} waiters"));
    let rows = results.queues.iter().map(|Queue { lock, operation, few, many, ratio }| {
        let [few, many] = [few, many].map(|spread| format!("{spread:.0}"));
        row![operation.text(), lock, few, many, format_args!("{ratio:.2}")]
    });
    table(&["what", "lock", &few, &many, "ratio"], rows)
}

/// Expensive changes of session.
pub(super) fn changes(results: &Results) -> String {
    let rows = results.changes.iter().map(|changes| {
        let [changed, rates] = [&changes.per_thousand, &changes.rates]
            .map(|sample| format!("{:.1}", Spread::of(sample)));
        row![changes.lock, changed, rates, format_args!("{:.0}", changes.longest())]
    });
    table(&["lock", "changes in 1000 holds", "holds/s", "longest wait, in holds"], rows)
}

/// Allocations.
pub(super) fn memory(results: &Results) -> String {
    let rows = results.memory.iter().map(|Memory { policy, thread, task, name }| {
        let [thread, task, name] = [thread, task, name].map(|count| format!("{count:.2}"));
        row![policy, thread, task, name]
    });
    table(&["policy", "wait of a thread", "wait of a task", "entry under another name"], rows)
}

/// Bytes of unlocked locks.
pub(super) fn sizes(results: &Results) -> String {
    table(&["lock", "bytes"], results.sizes.iter().map(|(lock, bytes)| row![lock, bytes]))
}

/// Remote references.
pub(super) fn remote(results: &Results) -> String {
    let rows = results.remote.iter().map(|remote| {
        let bound = or_none(remote.bound, |bound| bound.to_string());
        row![remote.model, remote.max, remote.processes, bound]
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
    fn a_request_that_starved_has_no_figure() {
        let starved =
            Waited { served: 0, median: None, max: None, gave_up_after: Some(1.5), hold_ms: 2.0 };
        assert_eq!(waited(&starved), "**> 1.5 s**");
        let late = Waited { served: 2, median: Some(1.0), max: Some(3.0), ..starved };
        assert_eq!(waited(&late), "**> 1.5 s**, after 2 with a median of 1.00");
        assert_eq!(waited(&Waited { gave_up_after: None, ..late }), "1.00, 3.00");
    }
}
