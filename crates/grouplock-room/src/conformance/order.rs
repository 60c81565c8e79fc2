//! The order of admission.

use std::sync::Mutex;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use super::{Subject, open, until_waiting};
use crate::policy::Policy;
use crate::room::{Room, RoomOptions};

/// Lets a request wait on a thread of its own, and returns when it has the `place`-th position in
/// the queue. When it is admitted, it records its name, stays a little, and leaves.
fn queue<'s>(
    scope: &'s Scope<'s, '_>,
    subject: &'s dyn Subject,
    room: &'s Room,
    (session, priority): (&'static str, i32),
    place: usize,
    log: &'s Mutex<Vec<(&'static str, i32, u64)>>,
) -> ScopedJoinHandle<'s, ()> {
    let thread = scope.spawn(move || {
        let request = room.request(session).priority(priority).timeout(subject.soon());
        let guard = request.enter().expect("it is admitted in time");
        log.lock().expect("no panic").push((session, priority, guard.epoch()));
        std::thread::sleep(Duration::from_millis(20));
    });
    until_waiting(subject, room, place);
    thread
}

pub(super) fn fifo_serves_conflicting_requests_in_order(subject: &dyn Subject) {
    let room = open(subject, "fifo order");
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    std::thread::scope(|scope| {
        let requests = ["b", "b", "c", "a", "b", "a"].into_iter().enumerate();
        let threads: Vec<_> = requests
            .map(|(at, session)| queue(scope, subject, &room, (session, 0), at + 1, &log))
            .collect();
        let phases = room.snapshot().expect("it can be looked at").waiting;
        let seen: Vec<_> = phases.iter().map(|p| (p.session.as_str(), p.members.len())).collect();
        assert_eq!(seen, [("b", 2), ("c", 1), ("a", 1), ("b", 1), ("a", 1)]);
        inside.leave().expect("it can be left");
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    let log = log.into_inner().expect("no panic");
    let order: Vec<_> = log.iter().map(|(session, ..)| *session).collect();
    assert_eq!(order, ["b", "b", "c", "a", "b", "a"]);
    assert!(log.windows(2).all(|pair| pair[0].2 <= pair[1].2), "epochs in order: {log:?}");
    assert_eq!(log[0].2, log[1].2, "both were one phase");
}

pub(super) fn fifo_admits_no_request_before_a_waiter(subject: &dyn Subject) {
    let room = open(subject, "fifo passing");
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    room.try_enter("a").expect("nobody waits, so it can be joined").leave().expect("left");
    std::thread::scope(|scope| {
        let waiter = queue(scope, subject, &room, ("b", 0), 1, &log);
        let error = room.try_enter("a").expect_err("someone of another session waits");
        assert!(error.is_conflict(), "{error}");
        inside.leave().expect("it can be left");
        waiter.join().expect("no panic");
    });
}

pub(super) fn batch_joins_within_its_bound(subject: &dyn Subject) {
    let options = RoomOptions::new().policy(Policy::Batch { passes: 2 });
    if !open(subject, "batch or not").capabilities().batch {
        assert!(subject.open("batch", &options).is_err(), "what it cannot do it must not promise");
        return;
    }
    let room = subject.open("batch", &options).expect("the capabilities promise it");
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    std::thread::scope(|scope| {
        let waiter = queue(scope, subject, &room, ("b", 0), 1, &log);
        for _ in 0..2 {
            let joined = room.try_enter("a").expect("the waiter may be passed twice");
            assert_eq!(joined.epoch(), inside.epoch());
        }
        let error = room.try_enter("a").expect_err("it was passed twice");
        assert!(error.is_conflict(), "{error}");
        inside.leave().expect("it can be left");
        waiter.join().expect("no panic");
    });
}

pub(super) fn priority_is_a_head_start(subject: &dyn Subject) {
    let options = RoomOptions::new().policy(Policy::Priority { aging: Duration::from_secs(60) });
    if !open(subject, "priority or not").capabilities().priority {
        assert!(
            subject.open("priority", &options).is_err(),
            "what it cannot do it must not promise"
        );
        return;
    }
    let room = subject.open("priority", &options).expect("the capabilities promise it");
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    std::thread::scope(|scope| {
        let requests = [("b", 0), ("c", 5), ("d", -3), ("c", 1), ("e", 5)].into_iter().enumerate();
        let threads: Vec<_> = requests
            .map(|(at, request)| queue(scope, subject, &room, request, at + 1, &log))
            .collect();
        assert!(room.try_enter("a").is_err(), "it ranks behind those who wait");
        let joined = room.request("a").priority(9).no_wait().enter();
        joined.expect("it ranks before all who wait").leave().expect("it can be left");
        inside.leave().expect("it can be left");
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    let log = log.into_inner().expect("no panic");
    let order: Vec<_> = log.iter().map(|(session, priority, _)| (*session, *priority)).collect();
    assert_eq!(order, [("c", 5), ("e", 5), ("c", 1), ("b", 0), ("d", -3)]);
    // Aging: between requests that arrived long apart, the time decides.
    let options = RoomOptions::new().policy(Policy::Priority { aging: Duration::from_millis(20) });
    let room = subject.open("aging", &options).expect("the capabilities promise it");
    let log = Mutex::new(Vec::new());
    let inside = room.enter("a").expect("it is empty");
    std::thread::scope(|scope| {
        let early = queue(scope, subject, &room, ("b", 0), 1, &log);
        std::thread::sleep(Duration::from_millis(200));
        let late = queue(scope, subject, &room, ("c", 5), 2, &log);
        inside.leave().expect("it can be left");
        early.join().expect("no panic");
        late.join().expect("no panic");
    });
    assert_eq!(log.into_inner().expect("no panic")[0].0, "b", "waiting outweighs priority");
}
