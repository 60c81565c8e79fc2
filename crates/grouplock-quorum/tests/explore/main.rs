//! Everything that can happen in small clusters.

mod model;

use std::time::Instant;

use grouplock_quorum::{Coterie, MemberId};
use model::{Scenario, at, explore};

/// Explores, demands that all properties hold, and that what makes them worth something was reached.
fn holds(what: &str, scenario: &Scenario, reaches: &[&str]) {
    let start = Instant::now();
    let verdict = explore(scenario);
    let seconds = start.elapsed().as_secs_f64();
    println!("| {what} | {} | {} | {seconds:.1} s |", verdict.states, verdict.depth);
    for (property, way) in &verdict.violated {
        panic!("{what}: not `{property}`:\n{way}");
    }
    for reached in reaches {
        assert!(verdict.reached.contains(reached), "{what}: `{reached}` was never reached");
    }
}

const ALL: &str = "all have been inside";
const YIELDS: &str = "somebody yields";
const SHARE: &str = "two share";

fn triangle() -> Coterie {
    Coterie::plane(3).unwrap()
}

fn full(members: u16) -> Coterie {
    Coterie::new(vec![(0..members).map(MemberId).collect(); members.into()]).unwrap()
}

#[test]
fn three_groups_in_order() {
    let processes = [at(0), at(1).priority(1), at(2).priority(2)];
    let scenario = Scenario { ordered: true, ..Scenario::new(triangle(), &processes) };
    holds("three groups, ordered", &scenario, &[ALL, YIELDS]);
}

#[test]
fn three_groups_reordered() {
    let scenario = Scenario::new(triangle(), &[at(0), at(1).priority(1), at(2).priority(2)]);
    holds("three groups, reordering", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario { duplicates: 1, ..scenario };
    holds("three groups, duplicating 1", &scenario, &[ALL, YIELDS]);
}

#[test]
fn equal() {
    let scenario = Scenario::new(triangle(), &[at(0), at(1), at(2)]);
    holds("three groups, equal", &scenario, &[ALL]);
    let scenario = Scenario {
        cancel: true,
        ..Scenario::new(triangle(), &[at(0), at(1).priority(1), at(2).priority(2)])
    };
    holds("three groups, cancel", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario {
        cancel: true,
        duplicates: 1,
        ..Scenario::new(triangle(), &[at(0), at(1).priority(1)])
    };
    holds("two groups, cancel, dup", &scenario, &[ALL, YIELDS]);
}
#[test]
fn procs() {
    let scenario = Scenario {
        direct: false,
        ..Scenario::new(triangle(), &[at(0), at(0).stay(1), at(1).priority(1)])
    };
    holds("process side", &scenario, &[ALL, YIELDS, SHARE]);
    let scenario = Scenario {
        direct: false,
        cancel: true,
        ..Scenario::new(triangle(), &[at(0), at(1).priority(1)])
    };
    holds("process side, cancel", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario {
        direct: false,
        ..Scenario::new(triangle(), &[at(0), at(0).session(1), at(1).priority(1)])
    };
    holds("process side, 2 sess", &scenario, &[ALL, YIELDS]);
}
#[test]
fn loss() {
    let scenario = Scenario {
        losses: 1,
        patience: 3,
        ..Scenario::new(triangle(), &[at(0), at(1).priority(1)])
    };
    holds("loss", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario {
        crashes: 1,
        patience: 4,
        ..Scenario::new(triangle(), &[at(0), at(1).priority(1)])
    };
    holds("crash", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario { hasty: 1, ..Scenario::new(triangle(), &[at(0), at(1).priority(1)]) };
    holds("hasty", &scenario, &[ALL, YIELDS]);
}
#[test]
#[ignore]
fn bigger() {
    let scenario = Scenario::new(full(3), &[at(0), at(1).priority(1), at(2).priority(2)]);
    holds("three groups, full", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario::new(
        triangle(),
        &[at(0).rounds(2), at(1).priority(1).rounds(2), at(2).priority(2)],
    );
    holds("2 rounds", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario::new(
        Coterie::majority(4).unwrap(),
        &[at(0), at(1).priority(1), at(2).priority(2)],
    );
    holds("four, 3 compete", &scenario, &[ALL, YIELDS]);
}
