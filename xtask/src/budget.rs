//! Parts that run one after the other, each with a share of the time, and all even if one fails.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How one thing ended, for the report.
pub(crate) enum Reached {
    /// It ran to its end: what was looked at.
    Ended(String),
    /// Its time was over before: how far it came.
    CutOff(String),
    Failed(String),
}

/// What is run, what its share of the time is, and how it is done within a time. It may run several
/// things.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// In minutes of an hour.
    pub(crate) share: u32,
    pub(crate) run: fn(&Given) -> Vec<(String, Reached)>,
}

/// What a part is given.
pub(crate) struct Given {
    /// When its time is over.
    pub(crate) end: Instant,
    /// How much of everything is wanted: 60 is the usual.
    pub(crate) minutes: u32,
    /// The plan of measurements; empty for tests.
    pub(crate) plan: String,
}

impl Given {
    /// The same, later by what has gone since `start`: building is not taken from what is built,
    /// but from the parts after it.
    pub(crate) fn after_building(&self, start: Instant) -> Self {
        Given { end: self.end + start.elapsed(), minutes: self.minutes, plan: self.plan.clone() }
    }

    /// How much time is left; a little, even if there is none.
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).max(Duration::from_secs(10))
    }
}

/// What was asked for.
pub(crate) struct Order {
    pub(crate) parts: Vec<&'static Part>,
    pub(crate) minutes: u32,
    pub(crate) plan: String,
}

/// Runs the parts. Time that one does not need goes to those after it.
pub(crate) fn run(order: &Order) -> ExitCode {
    let end = Instant::now() + Duration::from_secs(60) * order.minutes;
    let mut report = String::new();
    let (mut ended, mut cut_off, mut failed) = (0, 0, 0);
    for (at, part) in order.parts.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
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
