//! Every mutant breaks the property that it is known to break, at the size that it is known to
//! need. A mutant that is known to hold does hold.

use grouplock_lab::report::Dossier;
use grouplock_lab::{
    Options, Properties, Property, Reductions, Sampling, Schedule, Verdict, check, sample,
};
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

/// The page of the lab is made from the evidence.
#[test]
fn the_evidence_has_every_mutant_with_what_it_breaks() {
    let evidence = include_str!("../../../docs/lab/evidence.json");
    let evidence: Dossier = serde_json::from_str(evidence).expect("the lab wrote it");
    let shown = |of: &str, what: &str, size: (usize, u64), breaks: Option<Property>| {
        format!("{of}: {what}, {size:?}, {breaks:?}")
    };
    let written = evidence.mutants.iter();
    let written =
        written.map(|it| shown(&it.of, &it.what, (it.processes, it.sessions), it.property));
    let listed = all().into_iter();
    let listed = listed.map(|it| shown(it.of, it.what, (it.processes, it.sessions), it.breaks));
    assert_eq!(written.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
}

/// No reduction hides a violation, alone or with others.
#[test]
fn every_set_of_reductions_convicts() {
    let small = [("bakery", "no choosing"), ("clh", "a process keeps its own node")];
    for (of, what) in small {
        let case = all().into_iter().find(|case| case.of == of && case.what == what);
        let case = case.expect("it is in the list");
        let mut sets = vec![Reductions::ALL, Reductions::NONE];
        for (all, none) in [(Reductions::ALL, false), (Reductions::NONE, true)] {
            sets.extend([
                Reductions { forget: none, ..all },
                Reductions { scrub: none, ..all },
                Reductions { alone: none, ..all },
                Reductions { own: none, ..all },
                Reductions { symmetry: none, ..all },
            ]);
        }
        for reductions in sets {
            let mut options = Options::new(&case.subject, case.processes, case.sessions);
            options.properties = Properties::only(case.breaks.expect("it breaks something"));
            options.reductions = reductions;
            let outcome = check(&case.subject, &options).expect("the sizes are right");
            let found = outcome.violation.map(|violation| violation.property);
            assert_eq!(found, case.breaks, "{of}, {what}: {reductions:?}");
        }
    }
}

/// A test for each mutant that takes minutes, by its name.
macro_rules! long {
    ($($name:ident: $what:literal;)*) => {
        $(#[test]
        #[ignore = "minutes; `cargo xtask soak` runs it"]
        fn $name() {
            convict(all().into_iter().filter(|case| case.long && case.what == $what));
        })*

        #[test]
        fn every_mutant_that_takes_minutes_has_a_test() {
            let long = all().into_iter().filter(|case| case.long);
            assert_eq!(long.map(|case| case.what).collect::<Vec<_>>(), [$($what),*]);
        }
    };
}

long! {
    long_withdraw_without_29: "no line 29";
    long_withdraw_uses_a_forwarding_node_again: "a node marked FORWARD is used again at once";
    long_bwbgme_without_number_1: "no \"number ≠ 1\" test";
    long_bwbgme_naive: "the naive generalisation";
    long_bwbgme_without_opposite_color: "no opposite-colour test";
    long_phases_marked_though_set_up_fails: "a set-up that fails leaves the mark";
    long_phases_renamed_with_its_mark: "renamed without taking the mark away";
    long_phases_joins_a_room_that_is_not_set_up: "a request with set-up joins a room that is not set up";
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
