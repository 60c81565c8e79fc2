//! The plans and the registry name the same algorithms.

use grouplock_lab::registry;
use grouplock_lab::report::Plan;

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
