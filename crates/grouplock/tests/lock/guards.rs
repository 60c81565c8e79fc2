//! What guards can do besides leaving: show a part of the data, enter once more, and change the
//! session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::{FAVOURED, LATE, POLICIES, Woken, pending, poll_with, ready, wait_until};
use grouplock::cores::{Core, Striped};
use grouplock::{ExclusiveGuard, GroupLock, OwnedSessionGuard, Policy, SessionGuard};

#[track_caller]
fn assert_free<T, C: Core<Session = u8>>(lock: &GroupLock<u8, T, C>) {
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0), "{seen:?}");
    drop(lock.try_exclusive().expect("the room is empty"));
}

/// Calls `$check` with a lock of every kind. A striped lock has a favoured session then.
macro_rules! on_every_lock {
    ($check:ident) => {
        for &policy in POLICIES {
            $check(&GroupLock::with_policy(policy, (1, 2)));
            let striped = GroupLock::over(Striped::new(policy), (1, 2));
            (0..FAVOURED).for_each(|_| drop(striped.enter(1)));
            $check(&striped);
        }
        #[cfg(feature = "handover")]
        $check(&GroupLock::over(grouplock::cores::Handover::new(), (1, 2)));
    };
}

#[test]
fn a_mapped_guard_shows_a_part_and_stays_inside() {
    let lock = Arc::new(GroupLock::new((1, String::from("data"))));
    let part = SessionGuard::map(lock.enter(1), |data| data.1.as_str());
    assert_eq!(&*part, "data");
    assert_eq!(*SessionGuard::session(&part), 1);
    assert!(lock.try_exclusive().is_none());
    drop(part);
    let mut part = ExclusiveGuard::map(lock.exclusive(), |data| &mut data.0);
    *part += 1;
    assert!(lock.try_enter(1).is_none());
    drop(part);
    // A part of a part is a part.
    let part = SessionGuard::map(lock.enter(1), |data| &data.1);
    let part = SessionGuard::map(part, |text| &text[1..]);
    assert_eq!(&*part, "ata");
    drop(part);
    let part = OwnedSessionGuard::map(lock.enter_arc(3), |data| &data.0);
    drop(lock);
    assert_eq!(*part, 2);
    assert!(OwnedSessionGuard::lock(&part).try_exclusive().is_none());
}

#[test]
fn a_panic_while_a_part_is_chosen_leaves_the_room() {
    let lock = GroupLock::new(1);
    let choose = || SessionGuard::map(lock.enter(1), |_| -> &u32 { panic!("as planned") });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(choose()))).is_err());
    assert_free(&lock);
}

#[test]
fn owned_guards_come_in_every_way() {
    let lock = Arc::new(GroupLock::new(1));
    let one = lock.try_enter_arc(1).expect("the room is empty");
    assert!(lock.try_enter_arc(2).is_none());
    assert!(lock.try_exclusive_arc().is_none());
    drop(one);
    let mut alone = lock.try_exclusive_arc().expect("the room is empty");
    *alone += 1;
    let mut waiting = lock.exclusive_arc_async();
    pending(&mut waiting);
    drop(alone);
    let mut alone = ready(&mut waiting);
    *alone += 1;
    drop(alone);
    assert_eq!(*lock.exclusive_arc(), 3);
    assert_free(&lock);
}

#[test]
fn a_second_guard_of_a_stay_needs_no_place_in_the_queue() {
    fn check<C: Core<Session = u8>>(lock: &GroupLock<u8, (u32, u32), C>) {
        let one = SessionGuard::map(lock.enter(1), |data| &data.1);
        let mut between = lock.exclusive_async();
        pending(&mut between);
        let two = SessionGuard::again(&one);
        drop(one);
        assert_eq!((*two, *SessionGuard::session(&two)), (2, 1));
        pending(&mut between);
        drop(two);
        drop(ready(&mut between));
        assert_free(lock);
    }
    on_every_lock!(check);
}

#[test]
fn only_a_lone_holder_that_may_go_first_switches_at_once() {
    fn check<C: Core<Session = u8>>(lock: &GroupLock<u8, (u32, u32), C>) {
        let mut one = lock.enter(1);
        assert!(SessionGuard::try_switch(&mut one, 1), "it is the session already");
        assert!(SessionGuard::try_switch(&mut one, 2), "no other holder is inside");
        let fellow = lock.enter(2);
        assert!(!SessionGuard::try_switch(&mut one, 1));
        assert_eq!(*SessionGuard::session(&one), 2);
        drop(fellow);
        assert!(SessionGuard::try_switch(&mut one, 1));
        drop(one);
        assert_free(lock);
    }
    on_every_lock!(check);
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let mut one = lock.enter(1);
    let mut first = lock.enter_async(3);
    pending(&mut first);
    assert!(!SessionGuard::try_switch(&mut one, 2), "another waits");
    drop(one);
    drop(ready(&mut first));
}

#[test]
fn a_switch_whose_time_is_over_has_left() {
    fn check<C: Core<Session = u8>>(lock: &GroupLock<u8, (u32, u32), C>) {
        let (one, two) = (lock.enter(1), lock.enter(1));
        let soon = Duration::from_millis(2);
        assert!(SessionGuard::try_switch_for(one, 2, soon).is_none());
        assert!(lock.snapshot().waiting.is_empty());
        let two = SessionGuard::try_switch_for(two, 2, soon).expect("no other holder is inside");
        assert_eq!(*SessionGuard::session(&two), 2);
        let two = SessionGuard::try_switch_for(two, 3, Duration::MAX).expect("there is time");
        drop(two);
        assert_free(lock);
    }
    on_every_lock!(check);
}

#[test]
fn a_switch_in_time_is_inside() {
    let lock = GroupLock::new(());
    let (one, two) = (lock.enter(1), lock.enter(1));
    thread::scope(|scope| {
        let switched = scope.spawn(|| {
            let two = SessionGuard::try_switch_for(one, 2, LATE).expect("there is time");
            *SessionGuard::session(&two)
        });
        wait_until("it waits", || !lock.snapshot().waiting.is_empty());
        drop(two);
        assert_eq!(switched.join().expect("it does not panic"), 2);
    });
    assert_free(&lock);
}

#[test]
fn a_task_switches_without_blocking() {
    fn check<C: Core<Session = u8>>(lock: &GroupLock<u8, (u32, u32), C>) {
        let (mut one, two) = (lock.enter(1), lock.enter(1));
        ready(&mut SessionGuard::switch_async(&mut one, 1));
        let mut switch = SessionGuard::switch_async(&mut one, 2);
        let (woken, waker) = Woken::new();
        assert!(poll_with(&mut switch, &waker).is_pending());
        pending(&mut lock.exclusive_async());
        assert!(poll_with(&mut switch, &waker).is_pending());
        drop(two);
        assert_eq!(woken.times(), 1);
        ready(&mut switch);
        drop(switch);
        assert_eq!((one.0, *SessionGuard::session(&one)), (1, 2));
        // The only holder changes its session at once.
        ready(&mut SessionGuard::switch_async(&mut one, 3));
        assert_eq!(*SessionGuard::session(&one), 3);
        drop(one);
        assert_free(lock);
    }
    on_every_lock!(check);
}

/// The request of a switch arrives before its old session is left.
#[test]
fn no_later_request_enters_before_a_switch() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let (mut one, two) = (lock.enter(1), lock.enter(1));
    let mut switch = SessionGuard::switch_async(&mut one, 2);
    pending(&mut switch);
    let mut later = lock.enter_async(3);
    pending(&mut later);
    drop(two);
    ready(&mut switch);
    drop(switch);
    pending(&mut later);
    drop(one);
    drop(ready(&mut later));
}

type Use<C> = fn(&mut SessionGuard<'_, u8, (u32, u32), C>);

#[test]
fn a_switch_that_is_given_up_leaves_the_guard_outside() {
    fn check<C: Core<Session = u8>>(lock: &GroupLock<u8, (u32, u32), C>) {
        for granted in [false, true] {
            let (mut one, two) = (lock.enter(1), lock.enter(1));
            let mut switch = SessionGuard::switch_async(&mut one, 2);
            pending(&mut switch);
            if granted {
                drop(two);
                drop(switch);
            } else {
                drop(switch);
                drop(two);
            }
            assert_free(lock);
            assert_eq!(format!("{one:?}"), "SessionGuard { .. }");
            let uses: [Use<C>; 5] = [
                |guard| assert_eq!(guard.0, 1),
                |guard| assert_eq!(*SessionGuard::session(guard), 1),
                |guard| SessionGuard::switch(guard, 1),
                |guard| drop(SessionGuard::switch_async(guard, 1)),
                |guard| drop(SessionGuard::again(guard)),
            ];
            for using in uses {
                assert!(catch_unwind(AssertUnwindSafe(|| using(&mut one))).is_err());
            }
            drop(one);
            assert_free(lock);
        }
    }
    on_every_lock!(check);
}

/// A leaked future is a request that no task answers. The guard must not reach the data meanwhile.
#[cfg(not(miri))] // which objects to what is leaked
#[test]
fn a_switch_that_is_forgotten_leaves_the_guard_outside() {
    let lock = GroupLock::new(7);
    let (mut one, two) = (lock.enter(1), lock.enter(1));
    let mut switch = SessionGuard::switch_async(&mut one, 2);
    pending(&mut switch);
    std::mem::forget(switch);
    drop(two);
    assert!(catch_unwind(AssertUnwindSafe(|| *one)).is_err());
    drop(one);
    assert_eq!(lock.snapshot().session, Some(2), "it has been granted the room");
}

/// A future that was never polled has not left and has not requested anything.
#[test]
fn a_switch_that_was_never_polled_has_not_happened() {
    let lock = GroupLock::new(7);
    let (mut one, _two) = (lock.enter(1), lock.enter(1));
    drop(SessionGuard::switch_async(&mut one, 2));
    assert_eq!((*one, *SessionGuard::session(&one)), (7, 1));
}
