//! `cargo xtask test`: runs the steps, and sums up.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use crate::run::root;
use crate::setup::Need;
use crate::steps::{STEPS, Step, Tests};

/// How a step ended.
#[derive(Clone)]
enum Outcome {
    Passed,
    Failed(String),
    /// The machine lacks a requirement. The text is the reason.
    Skipped(String),
}

/// Whether everything has to run: in CI, a check that cannot run is a failure.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value))
}

/// Requirements of single tests beyond those of their steps. Without one, a test skips itself.
const OF_TESTS: [Need; 4] = [Need::Chromium, Need::Etcd, Need::Shells, Need::Spin];

/// Runs `steps`, all of them even if one fails, and sums up. If `required`, nothing may be skipped.
pub(crate) fn run(steps: &[&'static Step], required: bool) -> ExitCode {
    let start = Instant::now();
    let wanted = |need: &Need| steps.iter().any(|step| needs(step).any(|it| it == *need));
    let wanted: Vec<_> = Need::ALL.into_iter().filter(wanted).collect();
    let skipped = root().join("target/xtask/skipped");
    // It exists only if an earlier run was interrupted.
    _ = std::fs::remove_file(&skipped);
    let mut variables = vec![("GROUPLOCK_SKIPPED", skipped.display().to_string())];
    if required {
        variables.push(("GROUPLOCK_REQUIRED", "1".to_owned()));
    }
    let tests = Tests { variables };
    let (waiting, ended) = (Mutex::new(steps.to_vec()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        // The first steps need little. They run while the rest is being installed.
        scope.spawn(|| wanted.iter().for_each(|need| drop(need.meet())));
        let lanes = 1 + STEPS.iter().map(|step| step.lane).max().unwrap_or(0);
        for lane in 0..lanes {
            let (tests, waiting, ended) = (&tests, &waiting, &ended);
            scope.spawn(move || {
                loop {
                    let step = next(&mut waiting.lock().expect("nobody panics with it"), lane);
                    let Some(step) = step else { return };
                    println!("== {}: {}", step.name, step.what);
                    let start = Instant::now();
                    let outcome = outcome(step, tests, required);
                    let took = start.elapsed().as_secs_f64();
                    let line = line(step.name, took, &outcome);
                    println!("== {line}");
                    ended.lock().expect("nobody panics with it").push((step.name, line, outcome));
                }
            });
        }
    });
    let ended = ended.into_inner().expect("as above");
    let mut skips = std::fs::read_to_string(&skipped).unwrap_or_default();
    for need in wanted {
        if let Err(reason) = need.meet() {
            _ = writeln!(skips, "LACKING {}: {reason}", need.shown());
        }
    }
    println!("\n== summary");
    for step in steps {
        let lines = ended.iter().filter(|(name, ..)| *name == step.name);
        lines.for_each(|(_, line, _)| println!("{line}"));
    }
    print!("{skips}");
    let count = |which: fn(&Outcome) -> bool| ended.iter().filter(|(.., it)| which(it)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let not_run = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    println!("steps: {passed} passed, {failed} failed, {not_run} skipped, in {minutes:.1} minutes");
    let complete = skips.is_empty() && not_run == 0;
    if required && !complete {
        println!("FAILED: what is named above could not run, and everything is required");
    }
    if failed == 0 && (complete || !required) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The first step of a lane; or the last step of another, if its own steps are over.
fn next(waiting: &mut Vec<&'static Step>, lane: usize) -> Option<&'static Step> {
    let own = waiting.iter().position(|step| step.lane == lane);
    let place = own.or_else(|| waiting.len().checked_sub(1))?;
    Some(waiting.remove(place))
}

/// All requirements of a step: its own, and those of single tests.
fn needs(step: &Step) -> impl Iterator<Item = Need> {
    let of_tests = if step.name == "tests" { &OF_TESTS[..] } else { &[] };
    step.needs.iter().chain(of_tests).copied()
}

fn outcome(step: &Step, tests: &Tests, required: bool) -> Outcome {
    for need in needs(step) {
        if let Err(reason) = need.meet()
            && step.needs.contains(&need)
        {
            let reason = format!("{} cannot be had: {reason}", need.shown());
            return if required { Outcome::Failed(reason) } else { Outcome::Skipped(reason) };
        }
    }
    (step.check)(tests).map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

fn line(name: &str, took: f64, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => format!("{name:8} {took:6.1} s  passed"),
        Outcome::Failed(reason) => format!("{name:8} {took:6.1} s  FAILED: {reason}"),
        Outcome::Skipped(reason) => format!("{name:8} {took:6.1} s  SKIPPED: {reason}"),
    }
}
