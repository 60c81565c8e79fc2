//! Policies, where the conformance suite has too few requests to see a difference.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use grouplock_room::{Enter, Guard, Policy, Room, RoomOptions};

use crate::process::Scratch;

fn open(scratch: &Scratch, policy: Policy) -> Room {
    let options = RoomOptions::new().policy(policy);
    Room::open_with(scratch.path(), "room", &options).expect("it can be opened")
}

/// Waits in the line.
fn wait(mut request: Enter) -> Enter {
    let polled = Pin::new(&mut request).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it has to wait");
    request
}

/// The session of a phase, and the number of its participants.
type Members = (String, usize);

/// Those inside, and the waiting phases.
fn look(room: &Room) -> (Option<Members>, Vec<Members>) {
    let seen = room.snapshot().expect("it can be looked at");
    let mut phases = seen.inside.into_iter().chain(seen.waiting);
    let mut next = || phases.next().map(|phase| (phase.session.clone(), phase.members.len()));
    (next(), std::iter::from_fn(next).collect())
}

fn phase(session: &str, members: usize) -> Members {
    (session.to_owned(), members)
}

/// Many requests can pass a waiter in one step. No more do than may.
#[test]
fn a_batch_that_enters_at_once_keeps_its_bound() {
    let scratch = Scratch::new();
    let room = open(&scratch, Policy::Batch { passes: 1 });
    let alone = room.exclusive().expect("it is empty");
    let waiting = ["a", "b", "a", "a"].map(|session| wait(room.enter_async(session)));
    alone.leave().expect("it can be left");
    assert_eq!(look(&room), (Some(phase("a", 2)), vec![phase("b", 1), phase("a", 1)]));
    drop(waiting);
}

/// A slot that was passed is used for another request, which nobody has passed yet.
#[test]
fn passes_are_those_of_a_request() {
    let scratch = Scratch::new();
    let room = open(&scratch, Policy::Batch { passes: 1 });
    let other = open(&scratch, Policy::Batch { passes: 1 });
    let _inside = room.enter("a").expect("it is empty");
    for _ in 0..3 {
        let waiting = wait(other.enter_async("b"));
        drop(room.try_enter("a").expect("the waiter may be passed once"));
        assert!(room.try_enter("a").is_err(), "it was passed");
        drop(waiting);
    }
}

/// A holder that has passed a waiter is behind it in the line. Its limit counts.
#[test]
fn a_holder_that_has_passed_a_waiter_keeps_its_limit() {
    let scratch = Scratch::new();
    let room = open(&scratch, Policy::Batch { passes: 9 });
    let _inside = room.enter("a").expect("it is empty");
    let _waiting = wait(room.enter_async("b"));
    let limited = || -> Guard<'_> {
        let three = 3.try_into().expect("not zero");
        room.request("a").at_most(three).no_wait().enter().expect("there is a place")
    };
    let (one, _other) = (limited(), limited());
    drop(one);
    let _third = room.try_enter("a").expect("there is a place");
    assert!(room.try_enter("a").is_err_and(|error| error.is_conflict()), "three are inside");
}

/// An owner of the latch has died in the middle of a change. The next builds the line anew.
#[test]
fn a_line_that_is_built_anew_is_in_the_order_of_the_policy() {
    let scratch = Scratch::new();
    let room = open(&scratch, Policy::Priority { aging: Duration::from_secs(3600) });
    let inside = room.enter("a").expect("it is empty");
    let low = wait(room.request("b").priority(0).enter_async());
    let high = wait(room.request("c").priority(5).enter_async());
    // It seems so.
    let file = File::options().write(true).open(room.file().expect("there is one"));
    file.and_then(|file| file.write_all_at(&[1], 128)).expect("it can be written");
    inside.leave().expect("it can be left");
    assert_eq!(look(&room), (Some(phase("c", 1)), vec![phase("b", 1)]));
    drop((low, high));
}
