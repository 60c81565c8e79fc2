//! What a user of the lock cannot reach or see: a room with as many holders as the word can count,
//! and whether new requests must ask before they enter.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::waiter::{Kind, WaiterState};
use super::word::{FULL, MOST_HOLDERS, MUST_LOCK, ONE_HOLDER, RESERVED};
use super::{Core, Phases, QueuedThread};
use crate::Policy;

/// A lock with `holders` holders of session 1.
fn crowded(holders: usize) -> Phases<u8> {
    let lock = Phases::new();
    lock.enter(Some(1));
    lock.word.fetch_add((holders as u32 - 1) * ONE_HOLDER, SeqCst);
    lock
}

/// All but one of the holders of a [`crowded`] lock leave.
fn leave_one(lock: &Phases<u8>, holders: usize) {
    lock.word.fetch_sub((holders as u32 - 1) * ONE_HOLDER, SeqCst);
}

#[test]
fn a_snapshot_of_an_empty_room_names_no_session() {
    let lock = patient();
    assert_eq!(lock.snapshot().session, Some(1));
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(lock.snapshot().session, None);
}

#[test]
fn a_room_has_at_most_4_194_304_holders() {
    assert_eq!(MOST_HOLDERS, 4_194_304);
    let lock = crowded(MOST_HOLDERS - 1);
    assert!(lock.try_enter(Some(1)).is_some(), "the last one that fits");
    assert_eq!(lock.snapshot().holders, MOST_HOLDERS);
    assert!(lock.try_enter(Some(1)).is_none(), "one too many");
    assert!(lock.try_enter(None).is_none());
    let soon = Instant::now() + Duration::from_millis(2);
    assert!(lock.enter_until(Some(1), soon).is_none());
    assert_eq!(lock.snapshot().holders, MOST_HOLDERS, "a request that failed is not counted");
    // SAFETY: there are holders, and one of them leaves. So another may enter.
    unsafe { lock.leave(&mut ()) };
    assert!(lock.try_enter(Some(1)).is_some());
}

#[test]
fn one_too_many_waits_until_the_room_has_been_empty() {
    let lock = crowded(MOST_HOLDERS);
    let mut waiting = None;
    let mut cx = Context::from_waker(Waker::noop());
    assert!(lock.poll_enter(Some(&1), &mut waiting, &mut cx).is_pending());
    leave_one(&lock, MOST_HOLDERS);
    // SAFETY: the last holder leaves.
    unsafe { lock.leave(&mut ()) };
    assert!(lock.poll_enter(Some(&1), &mut waiting, &mut cx).is_ready());
    assert_eq!(lock.snapshot().holders, 1);
}

/// A request that finds a full room is counted for a moment. The word has space for that.
#[test]
fn the_count_does_not_overflow() {
    let word = (MOST_HOLDERS as u32 - 1).wrapping_mul(ONE_HOLDER) | (ONE_HOLDER - 1);
    assert_eq!(word.checked_add(ONE_HOLDER).map(|word| word & FULL), Some(FULL));
    let visitors = (u32::MAX - FULL) / ONE_HOLDER;
    assert!(visitors as usize >= MOST_HOLDERS - 1, "only {visitors} may come at once");
}

/// A lock with a holder of session 1. New requests may enter before waiting threads.
fn patient() -> Phases<u8> {
    let lock = Phases::with_policy(Policy::Eventual { patience: Duration::MAX });
    lock.enter(Some(1));
    lock
}

/// A thread joins the queue for session 2. (It is the calling thread, and it does not sleep.)
fn join_queue(lock: &Phases<u8>) -> QueuedThread {
    join_queue_for(lock, 2)
}

fn join_queue_for(lock: &Phases<u8>, session: u8) -> QueuedThread {
    lock.lock().push_thread(Some(Cow::Owned(session)), Instant::now(), Kind::Thread)
}

/// Returns whether new requests must ask while a thread waits for session 2.
fn must_ask_past_a_thread(lock: &Phases<u8>) -> bool {
    let queued = join_queue(lock);
    let asked = lock.word.load(SeqCst) & MUST_LOCK != 0;
    lock.lock().remove(queued.id);
    asked
}

#[test]
fn requests_do_not_ask_because_of_a_task_that_no_longer_waits() {
    let lock = patient();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(!must_ask_past_a_thread(&lock));

    // A task withdraws …
    let mut waiting = None;
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_pending());
    assert!(must_ask_past_a_thread(&lock), "a task is overtaken only under the internal lock");
    lock.cancel(waiting.take().expect("it waits"), false);
    assert!(!must_ask_past_a_thread(&lock), "after a task withdrew");

    // … and another one enters.
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_pending());
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_ready());
    // SAFETY: the task leaves.
    unsafe { lock.leave(&mut ()) };
    lock.enter(Some(1));
    assert!(!must_ask_past_a_thread(&lock), "after a task was admitted");
}

/// A reservation delays a request of the session inside, and keeps nobody out: that asks, and ends
/// the reservation.
#[test]
fn a_request_that_finds_a_room_reserved_asks() {
    let lock = patient();
    lock.word.fetch_or(RESERVED, SeqCst);
    assert!(!lock.fast(&mut Some(Cow::Owned(1))), "the door is shut");
    assert!(lock.try_enter(Some(1)).is_some());
    assert_eq!(lock.word.load(SeqCst) & RESERVED, 0);
    assert!(lock.fast(&mut Some(Cow::Owned(1))), "the door is open");
    // As if the thread that reserved the room had lost its processor.
    lock.word.fetch_or(RESERVED, SeqCst);
    lock.enter(Some(1));
    assert_eq!(lock.word.load(SeqCst) & RESERVED, 0, "after it had finished spinning");
    assert_eq!(lock.snapshot().holders, 4);
}

#[test]
fn a_reservation_ends() {
    let lock = patient();
    assert!(!lock.reserve(), "a holder of session 1 stays inside");
    assert_eq!(lock.word.load(SeqCst), ONE_HOLDER);
    lock.word.fetch_or(RESERVED, SeqCst);
    assert!(!lock.reserve(), "another has reserved the room");
    assert_eq!(lock.word.load(SeqCst), ONE_HOLDER | RESERVED, "its reservation stays");
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert!(lock.try_enter(None).is_some(), "a reservation keeps nobody out");
    // SAFETY: the one alone leaves.
    unsafe { lock.leave_exclusive(&mut ()) };
    assert!(lock.reserve(), "the room is empty");
    assert!(lock.try_enter(Some(1)).is_none());
}

/// Holders of session 1 overlap: the room becomes empty only if the door is shut to new ones.
#[test]
fn a_reservation_enters_where_holders_overlap() {
    let (lock, stop) = (patient(), AtomicBool::new(false));
    let inside = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) && lock.fast(&mut Some(Cow::Owned(1))) {
                // SAFETY: one of two holders leaves.
                unsafe { lock.leave(&mut ()) };
            }
            // SAFETY: the last holder leaves.
            unsafe { lock.leave(&mut ()) };
        });
        // So many looks that the other thread runs during one of the reservations, also on the
        // same processor.
        let late = Instant::now() + Duration::from_secs(60);
        let mut inside = false;
        while !inside && Instant::now() < late {
            inside = lock.reserve_within(5_000_000);
        }
        stop.store(true, SeqCst);
        inside
    });
    assert!(inside);
}

#[test]
fn a_thread_is_invited_although_a_task_of_its_phase_has_withdrawn() {
    let lock = patient();
    let mut waiting = None;
    let mut cx = Context::from_waker(Waker::noop());
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_pending());
    let queued = join_queue(&lock);
    lock.cancel(waiting.take().expect("it waits"), false);
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(queued.signal.state(), WaiterState::Invited);
    lock.lock().remove(queued.id);
    assert_eq!((lock.snapshot().holders, lock.snapshot().waiting.len()), (0, 0));
}

/// A request takes the empty room for session 2, before the thread that was invited has tried. A
/// thread waits for that session in a later phase.
#[test]
fn a_waiter_joins_its_session_past_another_phase() {
    let lock = patient();
    let (other, same) = (join_queue_for(&lock, 3), join_queue(&lock));
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(other.signal.state(), WaiterState::Invited);
    lock.enter(Some(2));
    {
        // As in `sleep`.
        let mut locked = lock.lock();
        other.signal.set(WaiterState::Waiting);
        locked.accept(other.id);
    }
    assert_eq!(same.signal.state(), WaiterState::Granted);
    assert_eq!((lock.snapshot().holders, lock.snapshot().waiting.len()), (2, 1));
    lock.lock().remove(other.id);
    for _ in 0..2 {
        // SAFETY: the request and the waiter leave.
        unsafe { lock.leave(&mut ()) };
    }
    assert_eq!(lock.snapshot().holders, 0);
}

/// A holder that was alone leaves while a thread that found the door shut is still counted. The
/// room's name is the session of a waiter.
#[test]
fn waiters_enter_after_a_holder_that_was_alone_beside_a_visitor() {
    let lock = Phases::with_policy(Policy::Eventual { patience: Duration::MAX });
    lock.enter(Some(2));
    // SAFETY: the holder of session 2 leaves.
    unsafe { lock.leave(&mut ()) };
    lock.enter(None);
    let queued = join_queue(&lock);
    // The visitor adds its count, and finds the door shut.
    lock.word.fetch_add(ONE_HOLDER, SeqCst);
    // SAFETY: the holder that is alone leaves.
    unsafe { lock.leave_exclusive(&mut ()) };
    // The visitor enters in its second try, so nobody else admits the waiter.
    lock.enter(Some(2));
    lock.give_back(ONE_HOLDER);
    assert_eq!(queued.signal.state(), WaiterState::Granted);
    for _ in 0..2 {
        // SAFETY: the visitor and the waiter leave.
        unsafe { lock.leave(&mut ()) };
    }
    assert_eq!((lock.snapshot().holders, lock.snapshot().waiting.len()), (0, 0));
}

/// A thread that tries to enter is counted for a moment, as a holder is.
#[test]
fn a_try_to_switch_beside_a_visitor_fails_and_changes_nothing() {
    let lock = patient();
    lock.word.fetch_add(ONE_HOLDER, SeqCst);
    // SAFETY: the holder of session 1 asks.
    assert!(!unsafe { lock.try_switch(&mut (), 2) });
    assert_eq!(lock.snapshot().session, Some(1));
    lock.give_back(ONE_HOLDER);
    // SAFETY: as above.
    assert!(unsafe { lock.try_switch(&mut (), 2) }, "it is the only one");
    assert_eq!(lock.snapshot().session, Some(2));
}

/// An invited thread withdraws before it has tried. Another thread of its phase is invited instead.
/// It tries too late, and is invited again.
#[test]
fn an_invited_thread_that_has_withdrawn_is_replaced() {
    let lock = patient();
    let (one, two) = (join_queue(&lock), join_queue(&lock));
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    let state = || [one.signal.state(), two.signal.state()];
    assert_eq!(state(), [WaiterState::Invited, WaiterState::Waiting]);
    lock.lock().remove(one.id);
    assert_eq!(two.signal.state(), WaiterState::Invited);
    lock.enter(Some(1));
    {
        // As in `sleep`.
        let mut locked = lock.lock();
        two.signal.set(WaiterState::Waiting);
        locked.accept(two.id);
        assert_eq!(two.signal.state(), WaiterState::Waiting, "the room is taken");
    }
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(two.signal.state(), WaiterState::Invited);
    lock.lock().remove(two.id);
}

/// A thread that was invited and finds the room taken sleeps again.
#[test]
fn an_invited_thread_that_is_too_late_waits_again() {
    let (lock, late) = (&patient(), Instant::now() + Duration::from_secs(60));
    let state = thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.enter(Some(2)));
        let wait_until = |fact: &dyn Fn() -> bool| {
            while !fact() && Instant::now() < late {
                thread::yield_now();
            }
        };
        wait_until(&|| !lock.snapshot().waiting.is_empty());
        let invite = || {
            let mut locked = lock.lock();
            let signal = locked.queue().invite().expect("it waits");
            let before = signal.state();
            signal.set(WaiterState::Invited);
            before
        };
        assert_eq!(invite(), WaiterState::Waiting);
        waiter.thread().unpark();
        wait_until(&|| lock.lock().queue().demands().is_some_and(|demands| !demands.invited));
        let state = invite();
        waiter.thread().unpark();
        // SAFETY: the holder of session 1 leaves.
        unsafe { lock.leave(&mut ()) };
        state
    });
    assert_eq!(state, WaiterState::Waiting);
    // SAFETY: the thread has entered, and leaves.
    unsafe { lock.leave(&mut ()) };
}

/// A thread that has looked for a deadlock, and found none, sleeps before it looks again.
#[cfg(feature = "deadlock_detection")]
#[test]
fn a_thread_looks_for_a_deadlock_again_later() {
    use crate::watch::{self, Observer as _};

    crate::deadlock::set_grace(Duration::from_millis(1));
    let lock = patient();
    watch::about_to_wait();
    let queued = join_queue(&lock);
    let request = watch::RequestInfo::of(&lock, false);
    let mut watch = watch::Wait::begin(request, &queued.signal, true, false);
    let first = watch.next_look().expect("it will look");
    while Instant::now() < first {
        thread::yield_now();
    }
    assert!(watch.look(&|| lock.lock().crowd()).is_none(), "the owner does not wait");
    assert!(watch.next_look() > Some(first));
    watch.end(false);
    lock.lock().remove(queued.id);
}

/// A holder leaves fairly. Then another holder waits to be alone, in front of the request that the
/// room was promised to, and withdraws. The promise holds.
#[cfg(feature = "lock_api")]
#[test]
fn a_promise_outlasts_an_upgrade() {
    let lock = patient();
    lock.enter(Some(1));
    lock.enter(Some(1));
    let queued = join_queue(&lock);
    // SAFETY: one of three holders leaves.
    unsafe { lock.leave_fairly(false) };
    assert!(lock.try_enter(Some(1)).is_none(), "the room is promised to a waiter");
    let soon = Instant::now() + Duration::from_millis(1);
    // SAFETY: one of the two holders asks.
    assert!(!unsafe { lock.upgrade(Some(soon)) }, "another is inside");
    assert!(lock.try_enter(Some(1)).is_none(), "the promise is forgotten");
    lock.lock().remove(queued.id);
    assert!(lock.try_enter(Some(1)).is_some(), "no request waits");
}

/// A holder undoes its count for a request in the queue, under the internal lock. Until the release
/// of that lock hands the room over, no request finds the door open.
#[cfg(feature = "lock_api")]
#[test]
fn the_door_is_shut_where_a_holder_makes_way() {
    let lock = patient();
    lock.enter(Some(1));
    let locked = lock.lock();
    lock.leave_behind(&locked, ONE_HOLDER);
    assert!(!lock.fast(&mut Some(Cow::Owned(1))), "it enters before those that wait");
    drop(locked);
    assert!(lock.fast(&mut Some(Cow::Owned(1))), "nobody waits");
}

/// A holder makes way for a thread that has not waited long. The room is promised to that thread: it
/// is not only invited to try.
#[cfg(feature = "lock_api")]
#[test]
fn a_holder_that_makes_way_hands_the_room_over() {
    let (lock, late) = (&patient(), Instant::now() + Duration::from_secs(60));
    let queued = join_queue(lock);
    let state = thread::scope(|scope| {
        // SAFETY: the holder of session 1 asks.
        scope.spawn(|| unsafe { lock.make_way(Some(&1)) });
        while queued.signal.state() == WaiterState::Waiting && Instant::now() < late {
            thread::yield_now();
        }
        let state = queued.signal.state();
        if state == WaiterState::Granted {
            // SAFETY: the thread that was admitted leaves.
            unsafe { lock.leave(&mut ()) };
        } else {
            lock.lock().remove(queued.id);
        }
        state
    });
    assert_eq!(state, WaiterState::Granted);
    // SAFETY: the holder that made way is inside again, and leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(lock.snapshot().holders, 0);
}

/// A thread was invited and has not answered yet, and a request has taken the room meanwhile. A task
/// joins the thread's phase. The room is handed to both as soon as it is empty.
#[test]
fn a_task_does_not_wait_until_an_invited_thread_answers() {
    let lock = patient();
    let queued = join_queue(&lock);
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert_eq!(queued.signal.state(), WaiterState::Invited);
    lock.enter(Some(1));
    let mut waiting = None;
    let mut cx = Context::from_waker(Waker::noop());
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_pending());
    // SAFETY: the holder of session 1 leaves.
    unsafe { lock.leave(&mut ()) };
    assert!(lock.poll_enter(Some(&2), &mut waiting, &mut cx).is_ready());
    assert_eq!(queued.signal.state(), WaiterState::Granted);
}

/// The room of [`a_snapshot_does_not_count_one_that_only_tries`].
static VISITED: Phases<Visit> = Phases::new();

/// A session of [`VISITED`]. While a snapshot copies it, a try begins or ends to be counted.
#[derive(Debug, PartialEq, Eq)]
enum Visit {
    None,
    Begins,
    Ends,
}

impl Clone for Visit {
    fn clone(&self) -> Self {
        match self {
            Visit::None => Visit::None,
            Visit::Begins => {
                VISITED.word.fetch_add(ONE_HOLDER, SeqCst);
                Visit::Begins
            }
            Visit::Ends => {
                VISITED.give_back(ONE_HOLDER);
                Visit::Ends
            }
        }
    }
}

/// A thread that only tries is counted for a moment.
#[test]
fn a_snapshot_does_not_count_one_that_only_tries() {
    VISITED.enter(Some(Visit::None));
    // SAFETY: the holder leaves. The room keeps the name.
    unsafe { VISITED.leave(&mut ()) };
    for visit in [Visit::Begins, Visit::Ends] {
        let begins = visit == Visit::Begins;
        // All under one internal lock: the next thread that takes it might admit the waiter.
        let mut room = VISITED.lock();
        let queued = room.push_thread(Some(Cow::Owned(visit)), Instant::now(), Kind::Thread);
        if !begins {
            VISITED.word.fetch_add(ONE_HOLDER, SeqCst);
        }
        let seen = room.snapshot();
        assert_eq!((seen.session, seen.holders, seen.waiting.len()), (None, 0, 1));
        room.remove(queued.id);
        drop(room);
        if begins {
            VISITED.give_back(ONE_HOLDER);
        }
    }
}

// By the clock alone, it would end after half a millisecond.
#[test]
fn spinning_ends_at_the_deadline() {
    let mut spin = crate::sync::Spin::until(Some(Instant::now()));
    let pauses = std::iter::from_fn(|| spin.pause().then_some(())).count();
    assert_eq!(pauses, 3, "those that do not look at the clock");
}
