//! Parts that run one after the other, each with a share of the time, and all even if one fails.
//! What they need is built first. They share the time that is left then.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::programs::TestProgram;

/// The result of one run, for the report.
pub(crate) enum Reached {
    /// It ran to its end. The text says what was checked.
    Ended(String),
    /// Its time was over before its end. The text says its progress.
    CutOff(String),
    Failed(String),
}

pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Its share of the time, relative to the shares of the other parts.
    pub(crate) share: u32,
    /// Builds what takes long, and returns the test programs, if it runs any.
    pub(crate) build: fn() -> Result<Vec<TestProgram>, String>,
    pub(crate) run: fn(&Given) -> Vec<(String, Reached)>,
}

/// The input of a part.
#[derive(Clone)]
pub(crate) struct Given {
    /// The end of its time.
    pub(crate) end: Instant,
    /// How much to do.
    pub(crate) minutes: u32,
    /// The plan of measurements; empty for tests.
    pub(crate) plan: String,
    /// What the part has built.
    pub(crate) programs: Vec<TestProgram>,
}

impl Given {
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

/// Builds for all parts, then runs them. Unused time of a part goes to the parts after it.
pub(crate) fn run(order: &Order) -> ExitCode {
    let end = Instant::now() + Duration::from_secs(60) * order.minutes;
    let built: Vec<_> = order.parts.iter().map(|part| (part.build)()).collect();
    let mut report = String::new();
    let (mut ended, mut cut_off, mut failed) = (0, 0, 0);
    for (at, (part, built)) in order.parts.iter().zip(built).enumerate() {
        let start = Instant::now();
        let left = end.saturating_duration_since(start);
        let shares: u32 = order.parts[at..].iter().map(|part| part.share).sum();
        let budget = left * part.share / shares.max(1);
        println!("\n== {}: {} seconds", part.name, budget.as_secs());
        let reached = match built {
            Err(why) => vec![("build".to_owned(), Reached::Failed(why))],
            // It would build too, and take longer than nothing.
            Ok(_) if left.is_zero() => {
                vec![(
                    "all".to_owned(),
                    Reached::CutOff("its beginning: no time is left".to_owned()),
                )]
            }
            Ok(programs) => (part.run)(&Given {
                end: start + budget,
                minutes: order.minutes,
                plan: order.plan.clone(),
                programs,
            }),
        };
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_part_without_time_does_not_begin() {
        const PART: Part =
            Part { name: "part", share: 1, build: || Ok(vec![]), run: |_| panic!("it began") };
        run(&Order { parts: vec![&PART], minutes: 0, plan: String::new() });
    }

    #[test]
    fn all_is_built_before_any_part_runs_and_a_failed_build_ends_its_part_alone() {
        static BUILT: AtomicBool = AtomicBool::new(false);
        static RAN: AtomicBool = AtomicBool::new(false);
        const FIRST: Part = Part {
            name: "first",
            share: 1,
            build: || Ok(vec![]),
            run: |_| {
                RAN.store(BUILT.load(Ordering::SeqCst), Ordering::SeqCst);
                vec![]
            },
        };
        const SECOND: Part = Part {
            name: "second",
            share: 1,
            build: || {
                BUILT.store(true, Ordering::SeqCst);
                Err("no compiler".to_owned())
            },
            run: |_| panic!("it began"),
        };
        run(&Order { parts: vec![&FIRST, &SECOND], minutes: 1, plan: String::new() });
        assert!(RAN.load(Ordering::SeqCst), "the first part ran after the second was built");
    }
}
