//! Each reduction finds what a run without it finds, with fewer states.

use grouplock_lab::{Options, Outcome, Properties, Property, Reductions, Verdict, check, registry};

fn explore(name: &str, passages: u8, reductions: Reductions) -> Outcome {
    let subject = registry::find(name).expect("it is registered");
    let mut options = Options::new(&subject, 2, 2);
    options.passages = Some(passages);
    options.reductions = reductions;
    check(&subject, &options).expect("all serve two")
}

/// All reductions, and each set with one of them left out.
fn sets() -> [Reductions; 7] {
    let all = Reductions::ALL;
    [
        all,
        Reductions { forget: false, ..all },
        Reductions { scrub: false, ..all },
        Reductions { alone: false, ..all },
        Reductions { own: false, ..all },
        Reductions { symmetry: false, ..all },
        Reductions::NONE,
    ]
}

#[test]
fn verdicts_agree_and_reductions_only_save() {
    let names =
        ["mcs", "dvir-taubenfeld-1", "dvir-taubenfeld-2", "handover", "keane-moir", "petrovic"];
    for name in names {
        let outcomes = sets().map(|reductions| explore(name, 2, reductions));
        for outcome in &outcomes {
            assert_eq!(outcome.verdict, Verdict::Holds, "{name}: {:?}", outcome.violation);
        }
        // One more reduction can add a few states: the first state does not have the value "dead".
        let [all, .., none] = outcomes;
        assert!(all.states <= none.states, "{name}: {} and {}", all.states, none.states);
    }
}

#[test]
fn what_breaks_breaks_with_every_set() {
    let subject = registry::find("keane-moir").expect("it is registered");
    for reductions in sets() {
        let mut options = Options::new(&subject, 3, 2);
        options.properties = Properties::only(Property::Fcfs);
        options.reductions = reductions;
        let outcome = check(&subject, &options).expect("it serves three");
        let found = outcome.violation.map(|violation| violation.property);
        assert_eq!(found, Some(Property::Fcfs), "{reductions:?}");
    }
}

#[test]
fn one_worker_and_two_see_the_same_states() {
    let subject = registry::find("handover").expect("it is registered");
    let count = |workers| {
        let mut options = Options::new(&subject, 3, 1);
        options.workers = workers;
        check(&subject, &options).expect("it serves three").states
    };
    assert_eq!(count(1), count(2));
}
