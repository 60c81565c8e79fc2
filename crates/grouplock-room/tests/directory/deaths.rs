//! Dead participants, in detail. The [suite](crate::conformance) tests the promises of all kinds of
//! rooms about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use grouplock_room::{PastPhase, Room};

use crate::process::{self, Actor, Scratch, until_waiting};

fn open(scratch: &Scratch) -> Room {
    Room::open(scratch.path(), "room").expect("it can be opened")
}

#[test]
fn the_dead_inside_and_in_the_queue_are_passed_over_at_once() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let mut holder = process::guest_inside(&scratch, "room", "s");
    let mut waiter = process::start_guest(&scratch, "room", "t");
    until_waiting(&room, 1);
    let epoch = room.snapshot().expect("it can be looked at").epoch;
    // This order matters: a live waiter would bury the holder and enter.
    waiter.kill();
    holder.kill();
    let guard = room.try_enter("u").expect("the dead neither hold nor wait");
    assert_eq!(guard.epoch(), epoch + 1, "nobody else has entered");
    let told = guard.recovered().expect("it is the first after a death");
    assert_eq!((told.session.as_str(), told.pid), ("s", holder.pid()));
    assert_eq!(room.snapshot().expect("it can be looked at").deaths, 1, "only one died inside");
}

#[test]
fn a_phase_is_remembered_with_the_deaths_in_it() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let mut guests = ["s"; 2].map(|session| process::guest_inside(&scratch, "room", session));
    let epoch = room.snapshot().expect("it can be looked at").epoch;
    guests.iter_mut().for_each(Actor::kill);
    for session in ["t", "u"] {
        room.try_enter(session).expect("the dead do not hold").leave().expect("it can be left");
    }
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!(seen.deaths, 2);
    let facts = |past: &PastPhase| (past.session.clone(), past.epoch, past.entries, past.died);
    let recent: Vec<_> = seen.recent.iter().map(facts).collect();
    assert_eq!(recent[0], ("s".to_owned(), epoch, 2, true), "{recent:?}");
    assert_eq!(recent[1], ("t".to_owned(), epoch + 1, 1, false), "{recent:?}");
}

#[test]
fn a_holder_that_joins_a_phase_after_a_death_in_it_learns_of_it() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let inside = room.enter("s").expect("it is empty");
    let mut guest = process::guest_inside(&scratch, "room", "s");
    assert_eq!(room.try_enter("s").expect("it is shared").recovered(), None, "nobody has died");
    guest.kill();
    // It may not enter, so it checks for dead participants.
    assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()));
    let joined = room.try_enter("s").expect("it is shared");
    let told = joined.recovered().expect("somebody died in this phase");
    assert_eq!((told.epoch, told.pid), (inside.epoch(), guest.pid()));
    assert_eq!(inside.recovered(), None, "it was inside before");
    drop((inside, joined));
    let next = room.try_enter("t").expect("it is empty");
    assert!(next.recovered().is_some(), "the next phase is told as well");
}

#[test]
fn all_deaths_are_reported_until_they_are_acknowledged_and_no_later_one_with_them() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let mut dead = Vec::new();
    for session in ["s", "t"] {
        let mut guest = process::guest_inside(&scratch, "room", session);
        guest.kill();
        dead.push(guest.pid());
        drop(room.try_enter("u").expect("the dead do not hold"));
    }
    let told = room.try_enter("u").expect("it is empty");
    let names: Vec<_> =
        told.deaths().iter().map(|death| (death.session.clone(), death.pid)).collect();
    assert_eq!(names, [("s".to_owned(), dead[0]), ("t".to_owned(), dead[1])]);
    assert!(told.deaths()[1].command.contains("guest"), "{:?}", told.deaths());
    // The process does not know this death.
    let mut guest = process::guest_inside(&scratch, "room", "u");
    guest.kill();
    assert!(room.try_enter("v").is_err(), "one is still inside");
    told.acknowledge().expect("it can be said");
    drop(told);
    let next = room.try_enter("u").expect("it is empty");
    let pids: Vec<_> = next.deaths().iter().map(|death| death.pid).collect();
    assert_eq!(pids, [guest.pid()]);
    next.acknowledge().expect("it can be said");
    assert!(room.try_enter("u").expect("it is shared").deaths().is_empty());
}

#[test]
fn the_last_four_deaths_are_remembered() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let mut dead = Vec::new();
    for _ in 0..5 {
        let mut guest = process::guest_inside(&scratch, "room", "s");
        guest.kill();
        dead.push(guest.pid());
        drop(room.try_enter("t").expect("the dead do not hold"));
    }
    let told = room.try_enter("t").expect("it is empty").deaths();
    assert_eq!(told.iter().map(|death| death.pid).collect::<Vec<_>>(), dead[1..]);
}

/// The last holder tears down, although a fellow has not left but died.
#[test]
fn a_dead_fellow_does_not_prevent_the_tear_down() {
    let scratch = Scratch::new();
    let room = open(&scratch);
    let torn_down = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&torn_down);
    let tear_down = move || {
        tell.store(true, SeqCst);
        Ok(())
    };
    let inside = room.request("s").tear_down(tear_down).enter().expect("it is empty");
    let mut guest = process::guest_inside(&scratch, "room", "s");
    guest.kill();
    inside.leave().expect("it can be left");
    assert!(torn_down.load(SeqCst));
}

#[test]
fn a_room_whose_participants_are_dead_is_removed() {
    let scratch = Scratch::new();
    drop(open(&scratch));
    let mut holder = process::guest_inside(&scratch, "room", "s");
    let mut waiter = process::start_guest(&scratch, "room", "t");
    until_waiting(&open(&scratch), 1);
    waiter.kill();
    holder.kill();
    Room::remove(scratch.path(), "room").expect("nobody lives in it");
}
