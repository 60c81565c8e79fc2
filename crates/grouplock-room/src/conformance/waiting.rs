//! Waiting and withdrawing.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Subject, assert_empty, open, snapshot, until_waiting};
use crate::error::RoomError;

pub(super) fn a_waiter_is_admitted_when_the_room_empties(subject: &dyn Subject) {
    let (one, other) = (open(subject, "admission"), open(subject, "admission"));
    let inside = one.enter("s").expect("it is empty");
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| other.request("t").timeout(subject.soon()).enter_owned()))
            .collect();
        until_waiting(subject, &one, 3);
        assert_eq!(snapshot(&one).session(), Some("s"));
        let epoch = inside.epoch();
        inside.leave().expect("it can be left");
        let guards: Vec<_> = waiters
            .into_iter()
            .map(|waiter| waiter.join().expect("no panic").expect("it is admitted in time"))
            .collect();
        assert!(guards.iter().all(|guard| guard.epoch() == guards[0].epoch()), "one phase");
        assert!(guards[0].epoch() > epoch);
    });
    assert_empty(subject, &one);
}

pub(super) fn a_timeout_leaves_no_trace(subject: &dyn Subject) {
    let room = open(subject, "timeout");
    let inside = room.enter("s").expect("it is empty");
    let time = Duration::from_millis(80);
    let started = Instant::now();
    let error = room.request("t").timeout(time).enter().expect_err("nobody leaves");
    assert!(matches!(error, RoomError::TimedOut { .. }), "{error}");
    assert!(started.elapsed() >= time, "after {:?}", started.elapsed());
    assert!(started.elapsed() < time + subject.soon());
    assert_eq!(snapshot(&room).waiters(), 0);
    room.try_enter("s").expect("nobody waits any more").leave().expect("it can be left");
    inside.leave().expect("it can be left");
    assert_empty(subject, &room);
}

pub(super) fn no_patience_leaves_no_trace(subject: &dyn Subject) {
    let room = open(subject, "no patience");
    let inside = room.enter("s").expect("it is empty");
    for _ in 0..10 {
        let error = room.try_enter("t").expect_err("another session is inside");
        assert!(matches!(error, RoomError::Occupied { .. }), "{error}");
    }
    assert_eq!(snapshot(&room).waiters(), 0);
    inside.leave().expect("it can be left");
    assert_empty(subject, &room);
}

pub(super) fn a_moment_in_the_past_is_no_patience(subject: &dyn Subject) {
    let room = open(subject, "past");
    let past = Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    let inside = room.request("s").deadline(past).enter().expect("it need not wait");
    for request in [room.request("t").deadline(past), room.request("t").timeout(Duration::ZERO)] {
        let error = request.enter().expect_err("it would have to wait");
        assert!(matches!(error, RoomError::TimedOut { .. }), "{error}");
    }
    assert_eq!(snapshot(&room).waiters(), 0);
    inside.leave().expect("it can be left");
    // Up to the largest time of the clock, and beyond.
    room.request("t").timeout(Duration::MAX).enter().expect("it is empty").leave().expect("left");
}

pub(super) fn progress_is_reported_and_can_end_the_wait(subject: &dyn Subject) {
    let room = open(subject, "progress");
    let inside = room.enter("s").expect("it is empty");
    let mut calls = 0;
    let request = room.request("t").progress(Duration::from_millis(10), |progress| {
        calls += 1;
        assert_eq!(progress.snapshot.session(), Some("s"));
        assert_eq!(progress.snapshot.phases_before(progress.holder), Some(0));
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let error = request.enter().expect_err("it was ended");
    assert!(matches!(error, RoomError::Withdrawn), "{error}");
    assert_eq!(calls, 3);
    assert_eq!(snapshot(&room).waiters(), 0);
    inside.leave().expect("it can be left");
    // A request that need not wait makes no calls.
    let silent = |_: &crate::Progress<'_>| -> ControlFlow<()> { panic!("nothing to wait for") };
    room.request("t")
        .progress(Duration::ZERO, silent)
        .enter()
        .expect("it is empty")
        .leave()
        .expect("left");
    assert_empty(subject, &room);
}

pub(super) fn a_withdrawal_admits_the_requests_behind(subject: &dyn Subject) {
    let room = open(subject, "withdrawal");
    let inside = room.enter("s").expect("it is empty");
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let gives_up = scope.spawn(|| {
            let request = room.request("t").timeout(subject.soon());
            let request = request.progress(Duration::from_millis(5), |_| {
                if enough.load(Ordering::SeqCst) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            request.enter().map(drop)
        });
        until_waiting(subject, &room, 1);
        // It waits behind "t", and could enter if "t" did not wait.
        let behind = scope.spawn(|| room.request("s").timeout(subject.soon()).enter());
        until_waiting(subject, &room, 2);
        enough.store(true, Ordering::SeqCst);
        let error = gives_up.join().expect("no panic").expect_err("nobody left");
        assert!(matches!(error, RoomError::Withdrawn), "{error}");
        let behind = behind.join().expect("no panic").expect("it is let in");
        assert_eq!(behind.epoch(), inside.epoch());
    });
    drop(inside);
    assert_empty(subject, &room);
}
