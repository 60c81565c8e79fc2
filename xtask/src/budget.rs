//! Parts that run one after the other, each with a share of the time, and all even if one fails.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The result of one run, for the report.
pub(crate) enum Reached {
    /// It ran to its end. The text says what was checked.
    Ended(String),
    /// Its time was over before its end. The text says its progress.
    CutOff(String),
    Failed(String),
}

/// A part: its name, its share of the time, and the function that runs it within a time. It may run
/// several programs.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Relative to the shares of the other parts.
    pub(crate) share: u32,
    pub(crate) run: fn(&Given) -> Vec<(String, Reached)>,
}

/// The input of a part.
pub(crate) struct Given {
    /// The end of its time.
    pub(crate) end: Instant,
    /// How much to do.
    pub(crate) minutes: u32,
    /// The plan of measurements; empty for tests.
    pub(crate) plan: String,
}

impl Given {
    /// The same, with the end later by the time since `start`. So building takes time from the
    /// later parts, not from the built part.
    pub(crate) fn after_building(&self, start: Instant) -> Self {
        Given { end: self.end + start.elapsed(), minutes: self.minutes, plan: self.plan.clone() }
    }

    /// The remaining time; a little, even if none is left.
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).max(Duration::from_secs(10))
    }
}

/// The parsed arguments.
pub(crate) struct Order {
    pub(crate) parts: Vec<&'static Part>,
    pub(crate) minutes: u32,
    pub(crate) plan: String,
}

/// Runs the parts. Unused time of a part goes to the parts after it. A part that has no time left
/// does not begin: what it must build could take long.
pub(crate) fn run(order: &Order) -> ExitCode {
    let end = Instant::now() + Duration::from_secs(60) * order.minutes;
    let mut report = String::new();
    let (mut ended, mut cut_off, mut failed) = (0, 0, 0);
    for (at, part) in order.parts.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            cut_off += 1;
            _ = writeln!(report, "{} (0 s)\n  cut off: no time was left for it", part.name);
            continue;
        }
        let shares: u32 = order.parts[at..].iter().map(|part| part.share).sum();
        let budget = left * part.share / shares.max(1);
        println!("\n== {}: {} seconds", part.name, budget.as_secs());
        let start = Instant::now();
        let given = Given { end: start + budget, minutes: order.minutes, plan: order.plan.clone() };
        let reached = (part.run)(&given);
        let took = start.elapsed().as_secs();
        _ = writeln!(report, "{} ({took} s)", part.name);
        for (what, how) in reached {
            let told = match how {
                Reached::Ended(seen) => {
                    ended += 1;
                    format!("ended: {seen}")
                }
                Reached::CutOff(seen) => {
                    cut_off += 1;
                    format!("cut off at {seen}")
                }
                Reached::Failed(why) => {
                    failed += 1;
                    format!("FAILED: {why}")
                }
            };
            let line = format!("  {what}: {told}\n");
            print!("{line}");
            report.push_str(&line);
        }
    }
    println!(
        "\n== summary\n{report}{ended} ended, {cut_off} cut off by their time, {failed} failed"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The parts called `names`, or all if there are none.
pub(crate) fn named(
    parts: &'static [Part],
    names: &[String],
) -> Result<Vec<&'static Part>, String> {
    if names.is_empty() {
        return Ok(parts.iter().collect());
    }
    let find = |name: &String| {
        let found = parts.iter().find(|part| part.name == name);
        found.ok_or_else(|| format!("there is no part `{name}`"))
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_time_does_not_begin() {
        const PART: Part = Part { name: "part", share: 1, run: |_| panic!("it began") };
        run(&Order { parts: vec![&PART], minutes: 0, plan: String::new() });
    }
}
