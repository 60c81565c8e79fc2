//! The plans and the registry name the same algorithms.

use grouplock_lab::registry;
use grouplock_lab::report::{Dossier, Exploration, Plan};

#[test]
fn plans_name_algorithms_that_exist() {
    for task in Plan::Full.tasks() {
        assert!(registry::find(&task.algorithm).is_ok(), "{}", task.algorithm);
    }
}

#[test]
fn the_full_plan_leaves_nobody_out() {
    let tasks = Plan::Full.tasks();
    for subject in registry::all() {
        assert!(tasks.iter().any(|task| task.algorithm == subject.name), "{}", subject.name);
    }
}

#[test]
fn the_full_plan_holds_the_quick_one() {
    let full = Plan::Full.tasks();
    assert!(Plan::Quick.tasks().iter().all(|task| full.contains(task)));
}

/// An exploration that only checked the basic properties is not told apart from one of all claims.
#[test]
fn the_evidence_is_that_of_the_full_plan() {
    let evidence = include_str!("../../../../docs/lab/evidence.json");
    let evidence: Dossier = serde_json::from_str(evidence).expect("the lab wrote it");
    let mut explored: Vec<_> = (evidence.explorations.into_iter())
        .map(|e| (e.algorithm, e.processes, e.sessions, e.passages, e.deaths, e.only))
        .collect();
    for t in Plan::Full.tasks() {
        let task = (t.algorithm, t.processes, t.sessions, t.passages, t.deaths, t.property);
        let at = explored.iter().position(|explored| *explored == task);
        explored.swap_remove(at.unwrap_or_else(|| panic!("there is no evidence of {task:?}")));
    }
    assert!(explored.is_empty(), "in no plan: {explored:?}");
}

/// The evidence is that of this code: its explorations that take a moment have the same result.
#[test]
fn small_explorations_of_the_evidence_are_repeated() {
    let evidence = include_str!("../../../../docs/lab/evidence.json");
    let evidence: Dossier = serde_json::from_str(evidence).expect("the lab wrote it");
    let mut repeated = 0;
    for task in Plan::Full.tasks() {
        let same = |e: &&Exploration| {
            (&e.algorithm, e.processes, e.sessions, e.passages, e.deaths, e.only)
                == (
                    &task.algorithm,
                    task.processes,
                    task.sessions,
                    task.passages,
                    task.deaths,
                    task.property,
                )
        };
        let known = evidence.explorations.iter().find(same).expect("every task was explored");
        if known.seconds > 3.0 {
            continue;
        }
        let now = Dossier::collect(std::slice::from_ref(&task), &mut |_, _| ()).expect("it exists");
        let now = &now.explorations[0];
        let size = |e: &Exploration| {
            // A violation ends the search in the middle of a level.
            (e.violated.is_none()).then(|| (e.states, e.depth, e.bounds.clone(), e.in_part))
        };
        assert_eq!((now.verdict, now.violated), (known.verdict, known.violated), "{task:?}");
        assert_eq!(size(now), size(known), "{task:?}: `cargo xtask evidence` explores again");
        repeated += 1;
    }
    assert!(repeated > 30, "only {repeated} are small");
}

#[test]
fn a_name_finds_its_algorithm() {
    for subject in registry::all() {
        assert_eq!(registry::find(subject.name).map(|found| found.name), Ok(subject.name));
    }
}

#[test]
fn a_misspelt_name_finds_the_nearest() {
    assert_eq!(registry::find("handver").unwrap_err().nearest, "handover");
    assert_eq!(registry::find("petrovich").unwrap_err().nearest, "petrovic");
    assert_eq!(registry::find("maor").unwrap_err().nearest, "maor-taubenfeld");
}

#[test]
fn names_are_those_of_the_claims() {
    for subject in registry::all() {
        assert!(subject.name.starts_with(subject.claims.name), "{}", subject.name);
    }
}
