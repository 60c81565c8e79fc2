//! The transactions, explored: whatever is late, lost, repeated or expired, no two sessions are inside at once.
//! Beside them the parts that need no server.

mod asks;
mod keys;
mod line;
mod settings;
mod store;
mod truth;
mod world;

use asks::Mutant;
use stateright::{Checker, HasDiscoveries, Model};
use world::{DEATHS, EPOCHS, EXCLUSION, LEAVING, ORDER, REST, TRACE, World};

fn world(sessions: &[&'static str]) -> World {
    World {
        sessions: sessions.to_vec(),
        rounds: 1,
        resends: 0,
        expiries: 0,
        knocks: true,
        withdrawals: false,
        mutant: Mutant::None,
    }
}

/// Explores everything, and all must hold. The number of states.
fn holds(world: World) -> usize {
    let name = format!("{world:?}");
    let checker = world.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states: {name}");
    assert!(states > 100, "something was explored");
    states
}

/// Explores until the property is violated, and it must be.
fn convicted(world: World, property: &'static str) {
    let name = format!("{world:?}");
    let until = HasDiscoveries::AnyOf([property].into());
    let checker = world.checker().threads(2).finish_when(until).spawn_bfs().join();
    let path = checker.discovery(property);
    let path = path.unwrap_or_else(|| panic!("not convicted of {property}: {name}"));
    println!("{} steps: {name}", path.into_actions().len());
}

#[test]
fn three_with_expiring_leases() {
    holds(World { expiries: 2, ..world(&["a", "b", "a"]) });
    holds(World { expiries: 2, knocks: false, ..world(&["a", "b", "a"]) });
}

#[test]
fn three_with_repeated_requests() {
    holds(World { resends: 1, ..world(&["a", "b", "a"]) });
    holds(World { resends: 1, knocks: false, ..world(&["a", "b", "a"]) });
}

#[test]
fn two_that_withdraw_on_a_bad_network_with_expiring_leases() {
    let knocking = World { resends: 1, expiries: 1, withdrawals: true, ..world(&["a", "b"]) };
    holds(World { sessions: vec!["a", "a"], ..knocking.clone() });
    let bad = World { knocks: false, ..knocking.clone() };
    holds(World { sessions: vec!["a", "a"], ..bad.clone() });
    // Two of different sessions are never inside together, which else is asked for.
    for world in [knocking, bad] {
        let checker = world.checker().threads(2).spawn_bfs().join();
        for property in [EXCLUSION, EPOCHS, ORDER, DEATHS, LEAVING, TRACE, REST] {
            checker.assert_no_discovery(property);
        }
    }
}

/// Everybody twice, so that old requests meet new ones. For `cargo xtask soak`.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_three_with_everything() {
    let bad = World { resends: 1, expiries: 1, withdrawals: true, ..world(&["a", "b", "a"]) };
    holds(bad);
    for knocks in [false, true] {
        holds(World { resends: 2, knocks, ..world(&["a", "b", "a"]) });
        holds(World { resends: 2, expiries: 1, withdrawals: true, knocks, ..world(&["a", "a"]) });
    }
    holds(World { rounds: 2, resends: 1, expiries: 1, ..world(&["a", "a"]) });
}

/// One dies, and those after it write that down; too late, some of them. About a million states. For `cargo xtask soak`.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_four_of_whom_one_dies() {
    holds(World { expiries: 1, knocks: false, ..world(&["a", "a", "a", "a"]) });
}

/// The bug of etcd's own Lock: one whose lease ran out while it waited is let in.
#[test]
fn who_comes_in_without_looking_for_its_own_key_is_convicted() {
    let bug = World { expiries: 1, mutant: Mutant::ClaimUnchecked, ..world(&["a", "b", "a"]) };
    convicted(bug.clone(), EXCLUSION);
    convicted(bug, TRACE);
}

#[test]
fn who_opens_a_phase_that_is_open_is_convicted() {
    convicted(World { mutant: Mutant::ClaimOpens, ..world(&["a", "b", "b"]) }, EPOCHS);
}

#[test]
fn who_asks_twice_and_leaves_no_tombstone_is_convicted() {
    let bug = World { resends: 1, mutant: Mutant::NoTombstone, ..world(&["a", "b"]) };
    convicted(bug, REST);
}

#[test]
fn who_does_not_wait_for_its_turn_is_convicted() {
    convicted(World { mutant: Mutant::Impatient, ..world(&["a", "b"]) }, EXCLUSION);
}

#[test]
fn who_enters_without_looking_is_convicted() {
    convicted(World { mutant: Mutant::Blind, ..world(&["a", "b"]) }, EXCLUSION);
}

#[test]
fn who_knocks_without_looking_is_convicted() {
    convicted(World { mutant: Mutant::BlindKnock, ..world(&["a", "b"]) }, EXCLUSION);
}

#[test]
fn who_knocks_after_its_end_is_convicted() {
    let bug = World { resends: 1, mutant: Mutant::UndeadKnock, ..world(&["a", "b"]) };
    convicted(bug, REST);
}

#[test]
fn who_trusts_a_lease_for_too_long_is_convicted() {
    convicted(World { expiries: 1, mutant: Mutant::Trusting, ..world(&["a", "b"]) }, EXCLUSION);
}

#[test]
fn who_joins_a_phase_that_is_over_is_convicted() {
    let bug = World { knocks: false, mutant: Mutant::JoinsAlone, ..world(&["a", "a"]) };
    convicted(bug, EPOCHS);
}

#[test]
fn who_writes_down_the_dead_too_late_is_convicted() {
    let two = world(&["a", "a"]);
    convicted(World { expiries: 1, mutant: Mutant::BuriesLate, ..two }, DEATHS);
}

#[test]
fn who_takes_the_dead_of_its_own_phase_for_told_of_is_convicted() {
    let two = World { expiries: 1, resends: 1, ..world(&["a", "a"]) };
    convicted(World { mutant: Mutant::BuriesAll, ..two }, DEATHS);
}

#[test]
fn who_gives_up_and_leaves_its_mark_is_convicted() {
    let bug = World { withdrawals: true, mutant: Mutant::KeepsMark, ..world(&["a", "a"]) };
    convicted(bug, DEATHS);
}

#[test]
fn who_leaves_without_looking_is_convicted() {
    let bug = World { expiries: 1, mutant: Mutant::LeavesBlindly, ..world(&["a", "a"]) };
    convicted(bug, LEAVING);
}
