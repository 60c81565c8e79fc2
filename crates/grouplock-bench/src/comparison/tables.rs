//! The tables of the report, in Markdown.

use core::fmt::Write as _;
use std::time::Duration;

use super::goals::Goal;
use super::run::{Match, Probed, REFERENCE, Results, Season};
use super::starvation::{Waited, Way};
use super::work::Length;
use super::workload::Workload;

/// What stands where a figure is missing.
const NONE: &str = "–";

/// The goals.
pub fn goals(goals: &[Goal]) -> String {
    let mut table = "| about | goal | reached | |\n|---|---|---|---|\n".to_owned();
    for Goal { about, wanted, reached, verdict } in goals {
        _ = writeln!(table, "| {about} | {wanted} | {reached} | {verdict} |");
    }
    table
}

/// The uncontended part.
pub fn alone(results: &Results) -> String {
    let mut table = format!(
        "| lock | way in | ns | × {REFERENCE} shared | instructions |\n|---|---|---|---|---|\n"
    );
    for cost in &results.alone {
        let instructions = cost.instructions.map_or(NONE.to_owned(), |count| format!("{count:.0}"));
        _ = writeln!(
            table,
            "| {} | {} | {:.1} | {:.2} | {instructions} |",
            cost.lock,
            cost.path.told(),
            cost.nanoseconds,
            cost.ratio
        );
    }
    table
}

/// A family at a glance: ratios, one workload per column.
pub fn summary(season: &Season) -> String {
    let heads: Vec<String> =
        season.matches.iter().map(|game| head(&game.workload, &season.matches)).collect();
    let mut table = format!("| lock | sessions as | {} |\n", heads.join(" | "));
    _ = writeln!(table, "|---|---|{}", "---|".repeat(heads.len()));
    let Some(first) = season.matches.first() else { return table };
    for score in &first.scores {
        _ = write!(table, "| {} | {} |", score.lock, score.kind.told());
        for game in &season.matches {
            let ratio = game.score(score.lock).zip(game.score(REFERENCE));
            match ratio.map(|(score, reference)| score.ratio(reference)) {
                Some(ratio) => _ = write!(table, " {ratio:.2} |"),
                None => _ = write!(table, " {NONE} |"),
            }
        }
        table.push('\n');
    }
    table
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
    let mut table = format!(
        "| lock | entries/s | × {REFERENCE} | Jain | inside: mean, max | switches/s | wait p50 | p99 | max | overtaken p99, max |\n"
    );
    _ = writeln!(table, "{}", "|---".repeat(10) + "|");
    let reference = game.score(REFERENCE);
    for score in &game.scores {
        let ratio = reference.map_or(NONE.to_owned(), |peer| format!("{:.2}", score.ratio(peer)));
        let seen = &score.observed;
        let jain = score.fairness().median;
        let jain = if jain.is_nan() { NONE.to_owned() } else { format!("{jain:.2}") };
        // With nothing to do inside, the mean is that of looking at the clock.
        let mean = if game.workload.inside == Length::Nothing {
            NONE.to_owned()
        } else {
            format!("{:.2}", seen.inside_mean)
        };
        _ = writeln!(
            table,
            "| {} | {} | {ratio} | {jain} | {mean}, {} | {} | {} | {} | {} | {}, {} |",
            score.lock,
            amount(score.rate().median),
            seen.inside_max,
            amount(seen.switches),
            time(seen.wait_p50),
            time(seen.wait_p99),
            time(seen.wait_max),
            amount(seen.overtaken_p99 as f64),
            amount(seen.overtaken_max as f64),
        );
    }
    table
}

/// The starvation probe.
pub fn starvation(results: &Results) -> String {
    let heads = Way::ALL.map(Way::told).join(" | ");
    let mut table = format!("| lock | {heads} |\n|---|---|---|---|\n");
    let locks = results.starvation.iter().filter(|probed| probed.way == Way::ALL[0]);
    for Probed { lock, .. } in locks {
        _ = write!(table, "| {lock} |");
        for way in Way::ALL {
            let told = results.probed(lock, way).map_or(NONE.to_owned(), waited);
            _ = write!(table, " {told} |");
        }
        table.push('\n');
    }
    table
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

/// Bytes of unlocked locks.
pub fn sizes(results: &Results) -> String {
    let mut table = "| lock | bytes |\n|---|---|\n".to_owned();
    for (lock, bytes) in &results.sizes {
        _ = writeln!(table, "| {lock} | {bytes} |");
    }
    table
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
