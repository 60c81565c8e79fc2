//! Features that not every backend has: alone, at most, switch, set-up and tear-down.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Subject, assert_empty, eventually, open, snapshot, until_waiting};
use crate::error::RoomError;
use crate::room::Room;

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

fn assert_refused<T>(result: Result<T, RoomError>) {
    let error = result.err().expect("what it cannot do it must refuse");
    assert!(matches!(error, RoomError::Unsupported { .. }), "{error}");
}

pub(super) fn what_cannot_be_done_is_refused_at_once(subject: &dyn Subject) {
    let room = open(subject, "refused");
    let can = room.capabilities();
    let guard = || room.request("s").timeout(subject.soon()).enter().expect("it is empty");
    if !can.alone {
        assert_refused(room.exclusive());
        assert_refused(room.try_exclusive());
    }
    if !can.at_most {
        assert_refused(room.request("s").at_most(TWO).enter());
    }
    if !can.switch {
        assert_refused(guard().switch("t"));
    }
    if !can.set_up {
        assert_refused(room.request("s").set_up(|| Ok(())).enter());
        assert_refused(room.request("s").tear_down(|| Ok(())).enter());
        assert_refused(guard().downgrade("t"));
    }
    if !can.acknowledge {
        assert_refused(guard().acknowledge());
    }
    assert_empty(subject, &room);
}

pub(super) fn a_set_up_for_a_name_too_long_is_refused(subject: &dyn Subject) {
    let room = open(subject, "too long");
    if !room.capabilities().set_up {
        return;
    }
    let before = snapshot(&room);
    let alone = room.request("s").alone().enter().expect("it is empty");
    // Long enough for everything that could stand behind the name.
    let long = "x".repeat(room.capabilities().longest_session + 4096);
    let refused = alone.set_prepared(Some(&long));
    assert!(matches!(refused, Err(RoomError::SessionTooLong { .. })), "{refused:?}");
    alone.leave().expect("it can be left");
    let after = snapshot(&room);
    assert_eq!((before.recent.len(), after.recent.len()), (0, 1), "{after:?}");
    assert_empty(subject, &room);
}

pub(super) fn alone_excludes_its_own_name(subject: &dyn Subject) {
    let (room, other) = (open(subject, "alone"), open(subject, "alone"));
    if !room.capabilities().alone {
        return;
    }
    let alone = room.request("s").alone().enter().expect("it is empty");
    assert_eq!(alone.session(), "s");
    let seen = snapshot(&room).inside.expect("one is inside");
    assert!(seen.members[0].alone, "{seen:?}");
    for refused in [other.try_enter("s"), other.try_enter("t"), other.try_exclusive()] {
        assert!(refused.is_err_and(|error| error.is_conflict()));
    }
    let epoch = alone.epoch();
    alone.leave().expect("it can be left");
    let shared = other.request("s").timeout(subject.soon()).enter().expect("it is empty");
    assert!(shared.epoch() > epoch);
    assert!(room.request("s").alone().no_wait().enter().is_err_and(|error| error.is_conflict()));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let alone = room.request("s").alone().timeout(subject.soon()).enter();
            let alone = alone.expect("the holder leaves");
            assert_eq!(snapshot(&room).holders(), 1);
            drop(alone);
        });
        until_waiting(subject, &room, 1);
        assert!(other.try_enter("s").is_err(), "nobody passes one who wants to be alone");
        shared.leave().expect("it can be left");
        waiter.join().expect("no panic");
    });
    assert_empty(subject, &room);
}

pub(super) fn at_most_so_many_are_inside(subject: &dyn Subject) {
    let room = open(subject, "at most");
    if !room.capabilities().at_most {
        return;
    }
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let own = open(subject, "at most");
                for _ in 0..10 {
                    let request = own.request("build").at_most(TWO).timeout(subject.soon());
                    let guard = request.enter().expect("the others leave");
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(1));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.leave().expect("it can be left");
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 2, "two are inside together, and never more");
    // A request without a limit respects the limits of the others.
    let one = room.request("build").at_most(TWO).enter().expect("it is empty");
    let other = room.try_enter("build").expect("two may be inside");
    assert!(room.try_enter("build").is_err_and(|error| error.is_conflict()));
    drop(one);
    room.try_enter("build").expect("the limit has left").leave().expect("it can be left");
    drop(other);
    assert_empty(subject, &room);
}

pub(super) fn a_downgrade_lets_others_join_at_once(subject: &dyn Subject) {
    let room = open(subject, "downgrade");
    if !room.capabilities().set_up {
        return;
    }
    let alone = room.exclusive().expect("it is empty");
    let epoch = alone.epoch();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = room.request("s").timeout(subject.soon()).enter();
            guard.expect("it may join").epoch()
        });
        until_waiting(subject, &room, 1);
        let shared = alone.downgrade("s").expect("it is alone");
        assert_eq!((shared.session(), shared.epoch()), ("s", epoch));
        assert_eq!(waiter.join().expect("no panic"), epoch);
        assert_eq!(snapshot(&room).session(), Some("s"));
        assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()));
        let joined = room.try_enter("s").expect("it is shared");
        drop(shared);
        assert!(joined.downgrade("t").is_err(), "only one that is alone can be");
    });
    assert_empty(subject, &room);
}

pub(super) fn a_downgrade_to_another_name_is_a_change_of_session(subject: &dyn Subject) {
    let room = open(subject, "downgrade to another");
    if !room.capabilities().set_up {
        return;
    }
    let alone = room.request("s").alone().enter().expect("it is empty");
    alone.set_prepared(Some("s")).expect("it can be recorded");
    let shared = alone.downgrade("t").expect("it is alone");
    assert_eq!(shared.prepared().expect("it can be asked"), None, "`t` is inside");
    assert_eq!(shared.previous().expect("it can be asked").as_deref(), Some("s"));
    shared.leave().expect("it can be left");
    let past = snapshot(&room).recent;
    assert_eq!(past.last().map(|past| past.session.as_str()), Some("t"), "{past:?}");
    // What the holder changed its session to does not stick to the handle.
    let next = room.enter("s").expect("it is empty");
    assert_eq!(snapshot(&room).session(), Some("s"));
    assert!(room.try_enter("t").is_err_and(|error| error.is_conflict()));
    assert_eq!(next.prepared().expect("it can be asked"), None, "`t` was inside");
    next.leave().expect("it can be left");
    assert_empty(subject, &room);
}

pub(super) fn a_switch_overtakes_nobody(subject: &dyn Subject) {
    let room = open(subject, "switch");
    if !room.capabilities().switch {
        return;
    }
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    let first = inside.epoch();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = room.request("b").timeout(subject.soon()).enter().expect("admitted");
            log.lock().expect("no panic").push("b");
            drop(guard);
        });
        until_waiting(subject, &room, 1);
        let switched = inside.switch("c").expect("it is admitted");
        assert!(switched.epoch() > first);
        log.lock().expect("no panic").push("c");
        waiter.join().expect("no panic");
        // The room is free: the request enters at once, also with further options.
        let again = room.request("d").no_wait().switch(switched).expect("nobody else is here");
        assert_eq!(again.session(), "d");
        assert!(room.try_enter("c").is_err());
    });
    assert_eq!(log.into_inner().expect("no panic"), ["b", "c"]);
    assert_empty(subject, &room);
}

/// Enters with a set-up that counts its calls.
fn set_up<'r>(
    subject: &dyn Subject,
    room: &'r Room,
    session: &str,
    count: &AtomicUsize,
) -> crate::Guard<'r> {
    let set_up = || {
        assert_eq!(snapshot(room).holders(), 1, "nobody else is inside");
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let entered = room.request(session).set_up(set_up).timeout(subject.soon()).enter();
    entered.expect("it is admitted")
}

pub(super) fn a_set_up_runs_once_and_before_others(subject: &dyn Subject) {
    let room = open(subject, "set up");
    if !room.capabilities().set_up {
        return;
    }
    let count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = open(subject, "set up");
                let guard = set_up(subject, &own, "model A", &count);
                assert_eq!(count.load(Ordering::SeqCst), 1, "it is set up, once");
                assert_eq!(guard.prepared().expect("it can be asked").as_deref(), Some("model A"));
            });
        }
    });
    // It stays set up while the room is empty, and until another session has been inside.
    drop(set_up(subject, &room, "model A", &count));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let other = room.enter("model B").expect("it is empty");
    assert_eq!(other.prepared().expect("it can be asked"), None);
    assert_eq!(other.previous().expect("it can be asked").as_deref(), Some("model A"));
    drop(other);
    drop(set_up(subject, &room, "model A", &count));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_empty(subject, &room);
}

pub(super) fn a_failed_set_up_is_tried_again_by_the_next(subject: &dyn Subject) {
    let room = open(subject, "failed set up");
    if !room.capabilities().set_up {
        return;
    }
    let count = AtomicUsize::new(0);
    drop(set_up(subject, &room, "s", &count));
    let failed = room.request("t").set_up(|| Err("no power".into())).enter();
    let error = failed.expect_err("the set-up fails");
    assert!(matches!(error, RoomError::SetUp(_)), "{error}");
    assert!(error.to_string().contains("no power"), "{error}");
    assert_eq!(snapshot(&room).holders(), 0);
    let next = room.enter("u").expect("it is empty");
    assert_eq!(next.previous().expect("it can be asked"), None, "it may have changed anything");
    drop(next);
    drop(set_up(subject, &room, "t", &count));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_empty(subject, &room);
}

pub(super) fn the_last_one_tears_down(subject: &dyn Subject) {
    let room = open(subject, "tear down");
    if !room.capabilities().set_up {
        return;
    }
    let (up, down) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let enter = || {
        let (counted, seen) = (Arc::clone(&down), room.clone());
        let set_up = || {
            up.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let tear_down = move || {
            assert_eq!(snapshot(&seen).holders(), 1, "it is the last");
            assert!(seen.try_enter("s").is_err(), "nobody is let in meanwhile");
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let request = room.request("s").timeout(subject.soon()).set_up(set_up);
        request.tear_down(tear_down).enter().expect("it is admitted")
    };
    let (one, other) = (enter(), enter());
    one.leave().expect("it can be left");
    assert_eq!(down.load(Ordering::SeqCst), 0, "one is still inside");
    other.leave().expect("it can be left");
    assert_eq!((up.load(Ordering::SeqCst), down.load(Ordering::SeqCst)), (1, 1));
    let next = room.enter("s").expect("it is empty");
    assert_eq!(next.prepared().expect("it can be asked"), None);
    assert_eq!(next.previous().expect("it can be asked"), None, "it was torn down");
    drop(next);
    // Dropping the guard also tears down. Leaving reports a failure.
    drop(enter());
    assert_eq!((up.load(Ordering::SeqCst), down.load(Ordering::SeqCst)), (2, 2));
    let failing = room.request("s").tear_down(|| Err("stuck".into())).enter().expect("it is empty");
    let error = failing.leave().expect_err("the tear-down fails");
    assert!(matches!(error, RoomError::TearDown(_)), "{error}");
    assert_empty(subject, &room);
}

pub(super) fn several_rooms_are_entered_in_one_order(subject: &dyn Subject) {
    let opened = || [open(subject, "several a"), open(subject, "several b")];
    let [a, b] = opened();
    if let Err(error) = Room::enter_all([a.request("s")]) {
        // `Places` did not open it, so its place is unknown.
        assert!(matches!(error, RoomError::Unsupported { .. }), "{error}");
        return;
    }
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for turn in 0..2 {
            let rounds = &rounds;
            scope.spawn(move || {
                let [a, b] = opened();
                let session = ["s", "t"][turn];
                for _ in 0..20 {
                    // Each thread in another order.
                    let mut requests = vec![a.request(session), b.request(session)];
                    if turn == 1 {
                        requests.reverse();
                    }
                    let requests = requests.into_iter().map(|r| r.timeout(subject.soon()));
                    let guards = Room::enter_all(requests).expect("nobody waits for each other");
                    assert_eq!(guards.len(), 2);
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(rounds.into_inner(), 40);
    let twice = Room::enter_all([a.request("s"), b.request("s"), a.request("s")]);
    assert_eq!(twice.expect("it is entered once").len(), 2);
    let error = Room::enter_all([a.request("s"), a.request("t")]).expect_err("nobody can be");
    assert!(matches!(error, RoomError::BadOption { .. }), "{error}");
    eventually(subject, "nobody is inside", || snapshot(&a).holders() == 0);
    assert_empty(subject, &b);
}
