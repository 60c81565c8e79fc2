//! The transactions, explored. Requests may be late, lost or repeated, and leases may expire: no
//! two sessions are inside at once. This program also tests the parts that need no server.

mod asks;
mod keys;
mod lease;
mod settings;
mod store;
mod truth;
mod view;
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
        mirrors: 0,
        knocks: true,
        withdrawals: false,
        delay: false,
        mutant: Mutant::None,
    }
}

/// Explores everything. All properties must hold. Returns the number of states.
fn holds(world: World) -> usize {
    let name = format!("{world:?}");
    let checker = world.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states: {name}");
    assert!(states > 100, "something was explored");
    states
}

/// Explores until the property is violated. It must be violated.
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
    holds(World { expiries: 1, ..world(&["a", "b", "a"]) });
    holds(World { expiries: 1, delay: true, knocks: false, ..world(&["a", "a", "b"]) });
}

#[test]
fn three_who_leave_to_those_who_wait() {
    holds(World { mirrors: 2, ..world(&["a", "b", "a"]) });
    holds(World { mirrors: 1, expiries: 1, ..world(&["a", "b", "b"]) });
}

#[test]
fn three_with_repeated_requests() {
    holds(World { resends: 1, ..world(&["a", "b", "a"]) });
    holds(World { resends: 1, knocks: false, ..world(&["a", "b", "a"]) });
}

#[test]
fn three_of_a_session_who_join_by_their_mirrors() {
    holds(World { mirrors: 1, ..world(&["a", "a", "a"]) });
}

#[test]
fn two_that_withdraw_on_a_bad_network_with_expiring_leases() {
    let bad = World { resends: 1, expiries: 1, withdrawals: true, ..world(&["a", "a"]) };
    holds(bad.clone());
    // Clients of different sessions are never inside together. `holds` demands that some are.
    let world = World { mirrors: 1, sessions: vec!["a", "b"], ..bad };
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{} states: {world:?}", checker.unique_state_count(), world = checker.model());
    for property in [EXCLUSION, EPOCHS, ORDER, DEATHS, LEAVING, TRACE, REST] {
        checker.assert_no_discovery(property);
    }
}

/// The faults together, and clients that enter twice, so that old requests meet new ones. For
/// `cargo xtask soak`.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_three_with_everything() {
    let bad = World { resends: 1, expiries: 1, withdrawals: true, ..world(&["a", "b", "a"]) };
    holds(World { mirrors: 1, delay: true, ..bad });
    holds(World { expiries: 2, mirrors: 2, ..world(&["a", "b", "a"]) });
    holds(World { resends: 2, mirrors: 1, ..world(&["a", "b", "a"]) });
    holds(World { resends: 2, expiries: 1, withdrawals: true, ..world(&["a", "a"]) });
    holds(World { rounds: 2, resends: 1, expiries: 1, mirrors: 1, ..world(&["a", "a"]) });
}

/// For `cargo xtask soak`.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_four_with_mirrors() {
    holds(World { expiries: 1, knocks: false, ..world(&["a", "a", "a", "a"]) });
    holds(World { withdrawals: true, mirrors: 1, ..world(&["a", "b", "a", "b"]) });
    holds(World { expiries: 1, mirrors: 1, ..world(&["a", "b", "b", "a"]) });
}

/// The bug of etcd's own Lock: it admits a waiter whose lease has expired.
#[test]
fn who_comes_in_without_looking_for_its_own_key_is_convicted() {
    let bug = World { expiries: 1, mutant: Mutant::ClaimUnchecked, ..world(&["a", "b", "a"]) };
    convicted(bug.clone(), TRACE);
    convicted(bug, EXCLUSION);
}

/// Each mutant, where it is convicted, and the property that it violates.
#[test]
fn whoever_does_one_thing_wrong_is_convicted() {
    let two = world(&["a", "b"]);
    let fellows = world(&["a", "a"]);
    let three = world(&["a", "b", "a"]);
    let died = World { expiries: 1, ..world(&["a", "a", "a"]) };
    // A client that asks twice writes its phase down although it is alone.
    let stale = World { resends: 1, ..world(&["b", "a", "b"]) };
    let again = World { rounds: 2, ..fellows.clone() };
    for (mutant, world, property) in [
        (Mutant::ClaimOpens, World { withdrawals: true, ..three.clone() }, EPOCHS),
        (Mutant::ClaimKeepsPhase, stale, EPOCHS),
        (Mutant::NoTombstone, World { resends: 1, ..two.clone() }, REST),
        (Mutant::Impatient, two.clone(), EXCLUSION),
        (Mutant::Blind, World { knocks: false, ..two.clone() }, EXCLUSION),
        (Mutant::BlindKnock, two.clone(), EXCLUSION),
        (Mutant::UndeadKnock, World { resends: 1, ..two.clone() }, REST),
        (Mutant::KnockKeepsPhase, World { rounds: 2, ..fellows.clone() }, EPOCHS),
        (Mutant::Trusting, World { expiries: 1, ..two.clone() }, EXCLUSION),
        (Mutant::JoinsAlone, World { knocks: false, ..again.clone() }, EPOCHS),
        (Mutant::NoWitness, World { mirrors: 2, ..again }, EPOCHS),
        (Mutant::BlindJoin, World { mirrors: 1, ..world(&["a", "a", "b", "a"]) }, ORDER),
        (Mutant::SettlesTwice, world(&["a", "a", "a"]), EPOCHS),
        (Mutant::SettlesOwn, fellows.clone(), EPOCHS),
        (Mutant::HeirsUnchecked, World { mirrors: 1, expiries: 1, ..three.clone() }, DEATHS),
        (Mutant::HandsOverEarly, World { mirrors: 1, ..world(&["a", "a", "b"]) }, EXCLUSION),
        (Mutant::Silent, World { expiries: 1, ..world(&["a", "b", "b"]) }, DEATHS),
        (Mutant::BuriesLate, died, DEATHS),
        (Mutant::KeepsMark, World { withdrawals: true, ..fellows }, DEATHS),
        (Mutant::TrustsTheWatch, World { mirrors: 1, expiries: 1, ..three.clone() }, EXCLUSION),
        (Mutant::HandOverKeepsPhase, World { resends: 1, mirrors: 1, ..three }, REST),
    ] {
        convicted(World { mutant, ..world }, property);
    }
}
