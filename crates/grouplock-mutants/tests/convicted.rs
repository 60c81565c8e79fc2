//! Every mutant breaks the property that it is known to break, at the size that it is known to
//! need. A mutant that is known to hold does hold.

use grouplock_lab::{Options, Properties, Sampling, Schedule, Verdict, sample};
use grouplock_mutants::list::{Case, all};

fn convict(cases: impl Iterator<Item = Case>) {
    let mut wrong = Vec::new();
    for case in cases {
        let outcome = case.explore();
        let found = case.record(&outcome);
        let (of, what) = (case.of, case.what);
        println!(
            "{of}, {what}: {:?}, {} states, {:?}",
            found.property, found.states, outcome.elapsed
        );
        if found.property != case.breaks || outcome.verdict == Verdict::Limit {
            wrong.push(format!("{of}, {what}: {:?}, expected {:?}", found.property, case.breaks));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Several tests, because several run at a time. Every mutant is in one of them.
const NAMES: [&str; 5] =
    ["maor-taubenfeld", "black-white-bakery-gme", "phases", "handover-withdraw", "recoverable"];

fn convict_those_of(name: &str) {
    convict(all().into_iter().filter(|case| !case.long && case.of.starts_with(name)));
}

#[test]
fn mutants_of_maor_taubenfeld_are_convicted() {
    convict_those_of(NAMES[0]);
}

#[test]
fn mutants_of_black_white_bakery_gme_are_convicted() {
    convict_those_of(NAMES[1]);
}

#[test]
fn mutants_of_phases_are_convicted() {
    convict_those_of(NAMES[2]);
}

#[test]
fn mutants_of_handover_withdraw_are_convicted() {
    convict_those_of(NAMES[3]);
}

#[test]
fn mutants_of_recoverable_are_convicted() {
    convict_those_of(NAMES[4]);
}

#[test]
fn mutants_of_all_others_are_convicted() {
    let other = |of: &str| !NAMES.iter().any(|name| of.starts_with(name));
    convict(all().into_iter().filter(|case| !case.long && other(case.of)));
}

#[test]
#[ignore = "minutes; `cargo xtask soak` runs it"]
fn mutants_that_take_minutes_are_convicted() {
    convict(all().into_iter().filter(|case| case.long));
}

/// Random executions from a seed find in seconds what an exploration finds among millions of
/// states.
#[test]
fn mutants_that_take_minutes_are_convicted_by_draws() {
    let of_bakery = |case: &Case| case.long && case.of == NAMES[1];
    for case in all().into_iter().filter(of_bakery) {
        let Some(property) = case.breaks else { continue };
        let mut options = Options::new(&case.subject, case.processes, case.sessions);
        options.properties = Properties::only(property);
        let sampling =
            Sampling { schedule: Schedule::Pct { changes: 6 }, runs: 400_000, steps: 200, seed: 1 };
        let outcome = sample(&case.subject, &options, &sampling).expect("the sizes are right");
        let found = case.record(&outcome);
        let (of, what) = (case.of, case.what);
        println!(
            "{of}, {what}: {:?}, {} steps, {:?}",
            found.property, found.states, outcome.elapsed
        );
        assert_eq!(found.property, Some(property), "{of}, {what}");
    }
}
