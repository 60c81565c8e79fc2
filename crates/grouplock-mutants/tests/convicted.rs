//! Every mutant breaks what it is known to break, at the size it is known to need; where it is known to hold, it does.

use grouplock_lab::Verdict;
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

#[test]
fn every_mutant_of_the_printed_locks_is_convicted() {
    convict(all().into_iter().filter(|case| !case.long && !case.of.starts_with("phases")));
}

#[test]
fn every_mutant_of_phases_is_convicted() {
    convict(all().into_iter().filter(|case| !case.long && case.of.starts_with("phases")));
}

#[test]
#[ignore = "minutes; `cargo xtask soak` runs it"]
fn mutants_that_take_minutes_are_convicted() {
    convict(all().into_iter().filter(|case| case.long));
}
