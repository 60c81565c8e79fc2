//! The explorations that take minutes, each a test of its own: one that does not end hides no
//! other.

use grouplock_quorum::{Admission, Coterie};

use crate::scenario::{Scenario, at};
use crate::{AGED, ALL, FIRST, YIELDS, in_line, rising, triangle, two};

fn holds(what: &str, scenario: &Scenario, reaches: &[&str]) {
    crate::holds(what, &Scenario { large: true, ..scenario.clone() }, reaches);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_two_stages_each() {
    let twice = Scenario::new(triangle(), &rising().map(|plan| plan.rounds(2)));
    holds("3 groups, 2 stages each", &twice, &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_two_messages_twice() {
    let twice = Scenario { duplicates: 2, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, two messages twice", &twice, &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_a_loss() {
    let loss = Scenario { losses: 1, patience: 6, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, a loss", &loss, &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_a_restart_that_is_noticed() {
    let restart = Scenario { crashes: 1, reconnect: true, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, a restart that is noticed", &restart, &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_withdrawing_and_a_message_twice() {
    let mixed = Scenario { cancel: true, duplicates: 1, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, giving up, a message twice", &mixed, &[ALL, YIELDS]);
}

/// Two groups with leases. One message may be under way when time passes.
fn leased() -> Scenario {
    let base = Scenario { passes: 1, under_way: 1, ..Scenario::new(triangle(), &two()) };
    Scenario { ordered: true, ..base }
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_leases() {
    holds("2 groups, leases, 1 under way", &leased(), &[ALL]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_leases_and_a_death() {
    let dead = Scenario { deaths: 1, ..leased() };
    holds("2 groups, leases, a death, 1 under way", &dead, &[ALL]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_leases_and_a_lost_memory() {
    let lost = Scenario { amnesias: 1, ..leased() };
    holds("2 groups, leases, a lost memory, 1 under way", &lost, &[ALL]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_processes_that_withdraw_and_a_loss() {
    let lost = Scenario { losses: 1, patience: 6, ..Scenario::new(triangle(), &two()) };
    let lost = Scenario { cancel: true, direct: false, ..lost };
    holds("2 groups, processes, giving up, a loss", &lost, &[ALL, YIELDS]);
}

/// Four groups with quorums of three.
fn four() -> Scenario {
    let four = [at(0), at(1).priority(1), at(2).priority(2), at(3).priority(3)];
    Scenario::new(Coterie::majority(4).unwrap(), &four)
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_four_groups_ordered() {
    let four = Scenario { ordered: true, ..four() };
    holds("4 groups, q = 3, ordered", &four, &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_four_groups_reordering() {
    holds("4 groups, q = 3, reordering", &four(), &[ALL, YIELDS]);
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn larger_order_with_aged_priorities() {
    let aged = in_line(Admission::InOrder, AGED);
    holds("2 of one session, 2 others, aged, one gives up", &aged, &[ALL, YIELDS, FIRST]);
}
