//! Which sessions are inside together, and what snapshots show.

use super::{Subject, assert_empty, open, snapshot};
use crate::error::RoomError;
use crate::guard::Standing;
use crate::policy::{Policy, Priority};
use crate::room::RoomOptions;
use std::time::{Duration, Instant, SystemTime};

pub(super) fn same_session_shares(subject: &dyn Subject) {
    let (one, other) = (open(subject, "shares"), open(subject, "shares"));
    let first = one.enter("s").expect("it is empty");
    let second = other.request("s").timeout(subject.soon()).enter().expect("it is shared");
    let third = one.try_enter("s").expect("also within a handle");
    assert_eq!(first.epoch(), second.epoch());
    assert_eq!(first.epoch(), third.epoch());
    assert_eq!(second.session(), "s");
    let ids = [first.holder(), second.holder(), third.holder()];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    drop((first, second, third));
    assert_empty(subject, &one);
}

pub(super) fn different_sessions_exclude(subject: &dyn Subject) {
    let (one, other) = (open(subject, "excludes"), open(subject, "excludes"));
    let first = one.enter("s").expect("it is empty");
    for room in [&one, &other] {
        let error = room.try_enter("t").expect_err("another session is inside");
        assert!(matches!(error, RoomError::Occupied { .. }), "{error}");
    }
    let second = other.request("s").timeout(subject.soon()).enter().expect("it is shared");
    first.leave().expect("it can be left");
    assert!(other.try_enter("t").is_err(), "one is still inside");
    second.leave().expect("it can be left");
    let third = other.request("t").timeout(subject.soon()).enter().expect("it is empty");
    assert!(one.try_enter("s").is_err_and(|error| error.is_conflict()));
    drop(third);
    assert_empty(subject, &one);
}

pub(super) fn names_are_compared_exactly(subject: &dyn Subject) {
    let room = open(subject, "names exactly");
    let long = "x".repeat(200);
    let names = ["", " ", "s", "S", "s ", "s\0", "ß", "é", "e\u{301}", "/", "%2F", "s/t"];
    let almost = long.clone() + "y";
    let names = names.iter().copied().chain([long.as_str(), &almost]);
    for (at, inside) in names.clone().enumerate() {
        let guard = room.request(inside).timeout(subject.soon()).enter().expect("it is empty");
        assert_eq!(guard.session(), inside);
        assert_eq!(snapshot(&room).session(), Some(inside));
        for (other_at, other) in names.clone().enumerate() {
            let entered = room.try_enter(other);
            assert_eq!(entered.is_ok(), at == other_at, "{other:?} while {inside:?} is inside");
        }
        guard.leave().expect("it can be left");
    }
}

pub(super) fn the_longest_name_works_and_a_longer_one_is_refused(subject: &dyn Subject) {
    let room = open(subject, "long names");
    let max = room.capabilities().longest_session;
    let (longest, longer) = ("n".repeat(max), "n".repeat(max + 1));
    let guard = room.enter(&longest).expect("the longest name is possible");
    assert_eq!(guard.session(), longest);
    drop(guard);
    for entered in [room.enter(&longer), room.try_enter(&longer)] {
        let message = entered.expect_err("it is too long").to_string();
        assert!(message.contains(&format!("{} bytes; at most {max}", max + 1)), "{message}");
    }
    assert_empty(subject, &room);
}

pub(super) fn epochs_grow_with_every_phase(subject: &dyn Subject) {
    let (one, other) = (open(subject, "epochs"), open(subject, "epochs"));
    let mut last = 0;
    for turn in 0..20 {
        let (room, session) = if turn % 2 == 0 { (&one, "s") } else { (&other, "t") };
        let guard = room.request(session).timeout(subject.soon()).enter().expect("it is empty");
        assert!(guard.epoch() > last, "epoch {} after {last}", guard.epoch());
        assert_eq!(snapshot(room).epoch, guard.epoch());
        let joined = other.request(session).timeout(subject.soon()).enter().expect("it is shared");
        assert_eq!(joined.epoch(), guard.epoch(), "holders of a phase share its epoch");
        last = guard.epoch();
        guard.leave().expect("it can be left");
        assert_eq!(joined.epoch(), last, "an epoch does not change");
        // The phase lasts while any holder is inside.
        let again = room.request(session).timeout(subject.soon()).enter().expect("it is shared");
        assert_eq!(again.epoch(), last);
    }
    // Also for a handle that is opened later.
    drop((one, other));
    let late = open(subject, "epochs");
    assert!(late.enter("s").expect("it is empty").epoch() > last);
}

pub(super) fn a_policy_is_kept_or_refused(subject: &dyn Subject) {
    let capabilities = open(subject, "policies").capabilities();
    let policies = [
        (true, Policy::Fifo),
        (capabilities.batch, Policy::Batch { passes: 3 }),
        (capabilities.priority, Policy::Priority { aging: Duration::from_secs(1) }),
    ];
    for (at, (possible, policy)) in policies.into_iter().enumerate() {
        let name = format!("policy {at}");
        match subject.open(&name, &RoomOptions::new().policy(policy)) {
            Ok(room) => {
                assert!(possible, "{policy} is offered although the capabilities deny it");
                assert_eq!(snapshot(&room).policy, policy);
                let whatever =
                    subject.open(&name, &RoomOptions::new()).expect("any policy will do");
                assert_eq!(snapshot(&whatever).policy, policy);
                let asked =
                    if policy == Policy::Fifo { Policy::Batch { passes: 9 } } else { Policy::Fifo };
                let error = subject.open(&name, &RoomOptions::new().policy(asked));
                let message = error.expect_err("it has another policy").to_string();
                let promised = message.contains(&policy.to_string()) || message.contains("cannot");
                assert!(promised, "the message names the policy: {message}");
            }
            Err(error) => assert!(!possible, "{policy} is promised but: {error}"),
        }
    }
}

pub(super) fn an_owned_guard_outlives_its_handle(subject: &dyn Subject) {
    let other = open(subject, "owned");
    let guard = {
        let room = open(subject, "owned");
        room.request("s").enter_owned().expect("it is empty")
    };
    assert!(other.try_enter("t").is_err(), "the guard keeps the room open");
    // Another thread may leave it.
    std::thread::spawn(move || guard.leave().expect("it can be left")).join().expect("no panic");
    other.request("t").timeout(subject.soon()).enter().expect("it is empty").leave().expect("left");
}

pub(super) fn the_snapshot_shows_holders_and_waiters(subject: &dyn Subject) {
    let room = open(subject, "snapshot");
    let empty = snapshot(&room);
    assert_eq!((empty.room.as_str(), empty.holders(), empty.waiters()), ("snapshot", 0, 0));
    let before = SystemTime::now() - Duration::from_secs(1);
    let inside = room
        .request("s")
        .priority(7)
        .expected(Duration::from_secs(60))
        .enter()
        .expect("it is empty");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = room.request("t").priority(-1).timeout(subject.soon()).enter();
            drop(guard.expect("the holder leaves in time"));
        });
        super::until_waiting(subject, &room, 1);
        let seen = snapshot(&room);
        assert_eq!(seen.session(), Some("s"));
        let members = &seen.inside.as_ref().expect("someone is inside").members;
        let [holder] = &members[..] else { panic!("one holder, not {members:?}") };
        assert_eq!(holder.id, inside.holder());
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.priority, Priority(7));
        assert_eq!(holder.expected, Some(Duration::from_secs(60)));
        assert!(!holder.host.is_empty() && !holder.user.is_empty() && !holder.command.is_empty());
        let late = SystemTime::now() + Duration::from_secs(1);
        assert!(before <= holder.since && holder.since <= late, "{:?}", holder.since);
        let [phase] = &seen.waiting[..] else { panic!("one phase, not {:?}", seen.waiting) };
        assert_eq!((phase.session.as_str(), phase.members.len()), ("t", 1));
        assert_eq!(phase.members[0].priority, Priority(-1));
        assert_eq!(seen.phases_before(&phase.members[0].id), Some(0));
        inside.leave().expect("it can be left");
        waiter.join().expect("no panic");
    });
    assert_empty(subject, &room);
}

pub(super) fn the_watch_reports_the_end(subject: &dyn Subject) {
    let room = open(subject, "watch");
    let guard = room.enter("s").expect("it is empty");
    assert_eq!(guard.standing(), Standing::Held);
    let watch = guard.watch();
    assert_eq!(watch.wait_until(Instant::now() + Duration::from_millis(30)), Standing::Held);
    let joined = room.enter("s").expect("it is shared");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| watch.wait());
        guard.leave().expect("it can be left");
        assert_eq!(waiting.join().expect("no panic"), Standing::Left);
    });
    assert_eq!(watch.standing(), Standing::Left, "although the phase goes on");
    assert_eq!(joined.standing(), Standing::Held);
}

/// The signals that this thread blocks.
#[cfg(unix)]
fn signals() -> nix::sys::signal::SigSet {
    nix::sys::signal::SigSet::thread_get_mask().expect("every thread has a mask")
}

#[cfg(not(unix))]
fn signals() {}

pub(super) fn a_loss_is_reported(subject: &dyn Subject) {
    let room = open(subject, "loss");
    let guard = room.enter("s").expect("it is empty");
    let watch = guard.watch();
    let (tell, told) = std::sync::mpsc::channel();
    let callback = move |_| _ = tell.send(signals());
    guard.watch().on_loss(callback).expect("a thread can be had");
    if !subject.take_away("loss", &guard) {
        eprintln!("notice: this subject cannot take a holding away; the loss was not tried");
        return;
    }
    let standing = watch.wait_until(Instant::now() + subject.soon());
    assert!(matches!(standing, Standing::Lost(_)), "{standing:?}");
    assert!(matches!(guard.standing(), Standing::Lost(_)));
    let theirs = told.recv_timeout(subject.soon()).expect("the callback is called");
    assert_eq!(theirs, signals(), "the callback can use signals as this thread can");
    let error = guard.leave().expect_err("it was lost");
    assert!(matches!(error, RoomError::Lost(_)), "{error}");
}
