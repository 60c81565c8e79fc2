//! The transactions, explored. Requests may be late, lost or repeated, and leases may expire: no
//! two sessions are inside at once. This program also tests the parts that need no server.

mod asks;
mod clients;
mod keys;
mod lease;
mod limits;
mod mutants;
mod runner;
mod server;
mod settings;
mod store;
mod truth;
mod view;
mod watch;
mod world;

use mutants::Mutant;
use stateright::{Checker, HasDiscoveries, Model};
use world::Action::{self, Ask, AskAgain, Doubt, Enter, Expire, Hear, Serve, Tick, Watch};
use world::{ALL, DEATHS, DELAY, EPOCHS, EXCLUSION, NOTICE, ORDER, REST, TRACE, WATCH, World};

fn world(sessions: &[&'static str]) -> World {
    World {
        sessions: sessions.to_vec(),
        rounds: 1,
        resends: 0,
        expiries: 0,
        robberies: 0,
        mirrors: 0,
        streams: false,
        breaks: 0,
        knocks: true,
        patient: true,
        withdrawals: false,
        gives_up: false,
        delay: 0,
        mutant: Mutant::None,
    }
}

/// Explores everything. All properties must hold, and some clients are inside together.
fn holds(world: World) {
    explored(world).assert_properties();
}

/// The same for clients that are never inside together.
fn holds_apart(world: World) {
    let checker = explored(world);
    for property in ALL {
        checker.assert_no_discovery(property);
    }
}

/// Depth first: fewer states wait in memory.
fn explored(world: World) -> impl Checker<World> {
    let name = format!("{world:?}");
    let checker = world.checker().threads(2).spawn_dfs();
    grouplock_testing::explored(|| checker.is_done(), || checker.unique_state_count());
    let checker = checker.join();
    println!("{} states: {name}", checker.unique_state_count());
    assert!(checker.unique_state_count() > 100, "something was explored");
    checker
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

/// Does what is known. Then the last client does what it can, and reads its mirror first if that
/// would help. All properties must hold, and all clients but the dead one are inside.
fn play(world: &World, known: &[Action]) {
    let mut state = world.init_states().remove(0);
    let last = world.sessions.len() - 1;
    let own = |it: &&Action| match it {
        Watch(who) | Ask(who) | Serve(who, _) | Hear(who, _) => *who == last,
        _ => false,
    };
    for n in 0.. {
        let mut actions = Vec::new();
        world.actions(&state, &mut actions);
        let Some(action) = known.get(n).or_else(|| actions.iter().find(own)) else { break };
        assert!(actions.contains(action), "{action:?} of {actions:?}");
        state = world.next_state(&state, action.clone()).expect("it can be done");
    }
    assert_eq!(state.inside(), last);
    assert!(state.wrong.is_empty(), "{:?}", state.wrong);
}

const DIES: [Action; 5] = [Ask(0), Serve(0, 0), Hear(0, 0), Doubt(0), Expire(100)];

/// A phase that is written after a burial does not say that there was a death. A client must not
/// join it by its mirror: it would not read the record.
#[test]
fn a_request_that_joins_after_a_burial_learns_of_the_death() {
    let answered = |who| [Serve(who, 0), Hear(who, 0)];
    let opens = [Ask(1), Serve(1, 0), Hear(1, 0), Serve(1, 0)];
    let settles = [&[Ask(2)][..], &answered(2), &answered(2), &answered(2)].concat();
    let world = World { expiries: 1, mirrors: 1, ..world(&["a", "a", "a", "a"]) };
    play(&world, &[&DIES[..], &opens, &settles].concat());
}

/// The notice was sent twice, and its copy arrives before or after the burial.
#[test]
fn a_late_notice_does_not_hide_a_death() {
    let world = World { expiries: 1, resends: 1, delay: 1, ..world(&["a", "a", "a"]) };
    let opens = [Ask(1), Serve(1, 0), Hear(1, 0), AskAgain(1), Serve(1, 0), Hear(1, 0)];
    for first in [0, 1] {
        let buries = [Tick, Enter(1), Serve(1, first), Serve(1, 0)];
        play(&world, &[&DIES[..], &opens, &buries].concat());
    }
}

#[test]
fn three_with_expiring_leases() {
    holds(World { expiries: 1, ..world(&["a", "b", "a"]) });
    holds(World { expiries: 1, knocks: false, ..world(&["a", "a", "b"]) });
}

/// Each comes twice, also after a loss and with another lease.
#[test]
fn two_that_wait_after_a_death() {
    let two = World { rounds: 2, expiries: 1, delay: 2, knocks: false, ..world(&["a", "b"]) };
    holds_apart(two);
    holds(World { expiries: 1, delay: 1, withdrawals: true, ..world(&["a", "a", "a"]) });
}

#[test]
fn two_with_watches_that_break() {
    let two = World { streams: true, breaks: 1, ..world(&["a", "b"]) };
    holds_apart(World { robberies: 1, breaks: 0, ..two.clone() });
    holds_apart(two);
}

#[test]
fn two_that_may_not_wait() {
    holds_apart(World { resends: 1, patient: false, ..world(&["a", "b"]) });
}

#[test]
fn three_that_leave_to_waiters() {
    holds(World { mirrors: 2, ..world(&["a", "b", "a"]) });
    holds(World { mirrors: 1, expiries: 1, ..world(&["a", "b", "b"]) });
}

#[test]
fn three_with_repeated_requests() {
    holds(World { resends: 1, ..world(&["a", "b", "a"]) });
    holds(World { resends: 1, knocks: false, ..world(&["a", "b", "a"]) });
}

#[test]
fn three_of_a_session_that_join_by_their_mirrors() {
    holds(World { mirrors: 1, ..world(&["a", "a", "a"]) });
}

#[test]
fn two_that_withdraw_on_a_bad_network_with_expiring_leases() {
    let two = World { withdrawals: true, ..world(&["a", "a"]) };
    holds(World { resends: 1, gives_up: true, ..two.clone() });
    holds(World { expiries: 1, gives_up: true, ..two.clone() });
    holds(World { resends: 1, expiries: 1, ..two.clone() });
    holds_apart(World { resends: 1, mirrors: 1, sessions: vec!["a", "b"], ..two });
}

/// The holder that opens the phase may share its phase, while it waits and later.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_three_that_wait_after_a_death() {
    let three = World { expiries: 1, delay: 2, mirrors: 1, ..world(&["a", "b", "b"]) };
    holds(World { withdrawals: true, ..three });
}

/// The holder that waits after a death may die too.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_two_that_wait_after_two_deaths() {
    let two = World { rounds: 2, expiries: 2, delay: 2, knocks: false, ..world(&["a", "b"]) };
    holds_apart(two);
}

/// A watch stays for the next entry.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_two_that_come_twice_with_watches() {
    holds(World { rounds: 2, streams: true, ..world(&["a", "a"]) });
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_two_that_are_robbed_with_watches_that_break() {
    holds_apart(World { streams: true, robberies: 1, breaks: 1, ..world(&["a", "b"]) });
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_two_that_abandon_requests() {
    let bad = World { resends: 1, expiries: 1, gives_up: true, ..world(&["a", "a"]) };
    holds(World { mirrors: 1, withdrawals: true, ..bad });
}

/// Old requests meet new ones.
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_two_that_come_twice_with_repeated_requests() {
    holds(World { rounds: 2, resends: 1, expiries: 1, ..world(&["a", "a"]) });
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_three_with_repeated_requests_and_expiring_leases() {
    holds(World { resends: 1, expiries: 1, ..world(&["a", "b", "a"]) });
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_four_that_withdraw() {
    holds(World { withdrawals: true, mirrors: 1, ..world(&["a", "b", "a", "b"]) });
}

#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn soak_four_of_a_session_that_join_by_their_mirrors() {
    holds(World { mirrors: 1, ..world(&["a", "a", "a", "a"]) });
}

/// The bug of etcd's own Lock: it admits a waiter whose lease has expired.
#[test]
fn an_entry_without_a_check_of_its_own_key_is_convicted() {
    let bug = World { expiries: 1, mutant: Mutant::ClaimUnchecked, ..world(&["a", "b", "a"]) };
    convicted(bug.clone(), TRACE);
    convicted(bug, EXCLUSION);
}

/// Each mutant, where it is convicted, and the property that it violates.
#[test]
fn a_client_with_one_fault_is_convicted() {
    let two = world(&["a", "b"]);
    let of_one_session = world(&["a", "a"]);
    let three = world(&["a", "b", "a"]);
    let died = World { expiries: 1, ..world(&["a", "a", "a"]) };
    // A client that asks twice writes its phase down although it is alone.
    let stale = World { resends: 1, ..world(&["b", "a", "b"]) };
    let again = World { rounds: 2, ..of_one_session.clone() };
    let delayed = World { expiries: 1, delay: 2, rounds: 2, withdrawals: true, ..two.clone() };
    let broken = World { streams: true, breaks: 1, ..two.clone() };
    for (mutant, world, property) in [
        (Mutant::ClaimOpens, World { withdrawals: true, ..three.clone() }, EPOCHS),
        (Mutant::ClaimKeepsPhase, stale, EPOCHS),
        (Mutant::NoTombstone, World { resends: 1, ..two.clone() }, REST),
        (Mutant::Impatient, two.clone(), EXCLUSION),
        (Mutant::Blind, World { knocks: false, ..two.clone() }, EXCLUSION),
        (Mutant::BlindKnock, two.clone(), EXCLUSION),
        (Mutant::UndeadKnock, World { resends: 1, ..two.clone() }, REST),
        (Mutant::KnockKeepsPhase, World { rounds: 2, ..of_one_session.clone() }, EPOCHS),
        (Mutant::Trusting, World { expiries: 1, ..two.clone() }, EXCLUSION),
        (Mutant::JoinsAlone, World { knocks: false, ..again.clone() }, EPOCHS),
        (Mutant::NoWitness, World { mirrors: 2, ..again }, EPOCHS),
        (Mutant::BlindJoin, World { mirrors: 1, ..world(&["a", "a", "b", "a"]) }, ORDER),
        (Mutant::SettlesTwice, world(&["a", "a", "a"]), EPOCHS),
        (Mutant::SettlesOwn, of_one_session.clone(), EPOCHS),
        (Mutant::HeirsUnchecked, World { mirrors: 1, expiries: 1, ..three.clone() }, DEATHS),
        (Mutant::HandsOverEarly, World { mirrors: 1, ..world(&["a", "a", "b"]) }, EXCLUSION),
        (Mutant::Silent, World { expiries: 1, ..world(&["a", "b", "b"]) }, DEATHS),
        (Mutant::BuriesLate, died, DEATHS),
        (Mutant::KeepsMark, World { gives_up: true, ..of_one_session }, DEATHS),
        (Mutant::TrustsTheWatch, World { mirrors: 1, expiries: 1, ..three.clone() }, EXCLUSION),
        (Mutant::NeverForgets, World { resends: 1, patient: false, ..two.clone() }, REST),
        (Mutant::IgnoresDelay, delayed.clone(), DELAY),
        (Mutant::Unnoticed, delayed.clone(), NOTICE),
        (Mutant::BuriesEarly, delayed, DEATHS),
        (Mutant::RestartsUnread, broken.clone(), WATCH),
        (Mutant::RestartsUnread, broken.clone(), REST),
        (Mutant::ReadsFirst, broken, WATCH),
        (Mutant::HandOverKeepsPhase, World { resends: 1, mirrors: 1, ..three }, REST),
    ] {
        convicted(World { mutant, ..world }, property);
    }
}
