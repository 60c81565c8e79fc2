//! Misuse, bad input and the ends of ranges: what the documentation promises.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{LATE, pending, poll, ready, wait_until};
use grouplock::cores::Striped;
use grouplock::{GroupLock, Policy, SessionGuard};

const SOON: Duration = Duration::from_millis(5);

#[test]
fn asking_for_another_session_while_inside_is_waiting_for_oneself() {
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 9 }] {
        let lock = GroupLock::with_policy(policy, ());
        let mut inside = lock.enter(1);
        assert!(lock.try_enter(2).is_none());
        assert!(lock.try_exclusive().is_none());
        assert!(lock.try_enter_for(2, SOON).is_none());
        assert!(lock.try_exclusive_for(SOON).is_none());
        pending(&mut lock.enter_async(2));
        // Those requests have withdrawn: the session can still be shared, and `switch` can change
        // it.
        drop(lock.try_enter(1).expect("the same session"));
        SessionGuard::switch(&mut inside, 2);
        assert_eq!(*SessionGuard::session(&inside), 2);
    }
}

#[test]
fn asking_for_the_same_session_again_waits_if_another_has_come_in_between() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let _inside = lock.enter(1);
    let mut between = lock.exclusive_async();
    pending(&mut between);
    assert!(lock.try_enter(1).is_none());
    assert!(lock.try_enter_for(1, SOON).is_none());
    drop(between);
    assert!(lock.try_enter(1).is_some());
}

#[test]
fn no_time_and_no_time_left_are_trying_once() {
    let lock = GroupLock::new(());
    let now = Instant::now();
    let past = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    drop(lock.try_enter_for(1, Duration::ZERO).expect("the room is free"));
    drop(lock.try_enter_until(1, past).expect("the room is free"));
    drop(lock.try_exclusive_for(Duration::ZERO).expect("the room is free"));
    drop(lock.try_exclusive_until(past).expect("the room is free"));
    let _inside = lock.enter(1);
    drop(lock.try_enter_for(1, Duration::ZERO).expect("the same session"));
    drop(lock.try_enter_until(1, past).expect("the same session"));
    assert!(lock.try_enter_for(2, Duration::ZERO).is_none());
    assert!(lock.try_enter_until(2, past).is_none());
    assert!(lock.try_exclusive_for(Duration::ZERO).is_none());
    assert!(lock.try_exclusive_until(past).is_none());
    assert!(lock.snapshot().waiting.is_empty());
}

#[test]
fn all_the_time_there_is_is_waiting() {
    let lock = GroupLock::new(());
    drop(lock.try_enter_for(1, Duration::MAX).expect("the room is free"));
    let inside = lock.enter(1);
    thread::scope(|scope| {
        let one = scope.spawn(|| lock.try_enter_for(2, Duration::MAX).is_some());
        let two = scope.spawn(|| lock.try_exclusive_for(Duration::MAX).is_some());
        wait_until("both wait", || lock.snapshot().waiting.len() == 2);
        drop(inside);
        for waiting in [one, two] {
            assert!(waiting.join().expect("it does not panic"));
        }
    });

    // The latest time of the clock.
    let far = (0..64).fold(Instant::now(), |far, n| {
        far.checked_add(Duration::from_secs(1 << (63 - n))).unwrap_or(far)
    });
    let inside = lock.enter(1);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.try_enter_until(2, far).is_some());
        wait_until("it waits", || !lock.snapshot().waiting.is_empty());
        drop(inside);
        assert!(waiting.join().expect("it does not panic"));
    });
}

#[test]
fn a_forgotten_guard_keeps_its_session_inside_and_nothing_else_happens() {
    let lock = GroupLock::new(7);
    std::mem::forget(lock.enter(1));
    assert_eq!(*lock.enter(1), 7);
    assert!(lock.try_enter(2).is_none());
    assert!(lock.try_enter_for(2, SOON).is_none());
    assert!(lock.try_exclusive().is_none());
    assert_eq!(*lock.try_enter_for(1, SOON).expect("the session inside"), 7);
    assert_eq!(lock.snapshot().holders, 1);
    assert_eq!(lock.into_inner(), 7);

    let striped = GroupLock::striped(7);
    std::mem::forget(striped.enter(1));
    (0..200).for_each(|_| assert_eq!(*striped.enter(1), 7));
    assert!(striped.try_enter(2).is_none());
    assert!(striped.try_enter_for(2, SOON).is_none());
    assert_eq!(*striped.enter(1), 7);
    assert_eq!(striped.into_inner(), 7);

    let alone = GroupLock::<u8, _>::new(7);
    std::mem::forget(alone.exclusive());
    assert!(alone.try_enter(1).is_none());
    assert!(alone.try_exclusive_for(SOON).is_none());
}

#[test]
fn a_forgotten_future_is_a_request_that_nobody_answers_for() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let inside = lock.enter(1);
    let mut future = lock.enter_async(2);
    pending(&mut future);
    std::mem::forget(future);
    drop(inside);
    // The request was admitted, and holds the room as a guard does.
    assert!(lock.try_enter(1).is_none());
    drop(lock.try_enter(2).expect("the session inside"));
}

#[test]
fn a_panic_inside_leaves_the_session() {
    let lock = GroupLock::new(0);
    for session in 0..3 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _inside = lock.enter(session);
            panic!("inside, as planned");
        }));
        assert!(panicked.is_err());
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        *lock.exclusive() += 1;
        let mut alone = lock.exclusive();
        *alone += 1;
        panic!("inside, as planned");
    }));
    assert!(panicked.is_err());
    // There is no poisoning.
    assert_eq!(*lock.try_exclusive().expect("the room is empty"), 2);
}

#[test]
fn polling_after_the_end_panics_and_says_so() {
    fn says_so<F: Future + Unpin>(mut future: F) {
        drop(ready(&mut future));
        let payload = catch_unwind(AssertUnwindSafe(|| drop(poll(&mut future))))
            .expect_err("polling a finished future is a mistake");
        let message = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
        assert_eq!(message.as_deref(), Some("the future was polled after it was ready"));
    }
    let lock = Arc::new(GroupLock::new(()));
    says_so(lock.enter_async(1));
    says_so(lock.exclusive_async());
    says_so(lock.enter_arc_async(1));
    drop(lock.try_exclusive().expect("the room is empty"));
}

#[test]
fn a_guard_may_be_dropped_on_another_thread() {
    let lock = Arc::new(GroupLock::new(1));
    let striped = Arc::new(GroupLock::striped(1));
    for round in 0..100 {
        thread::scope(|scope| {
            let (one, two) = (lock.enter(round), lock.enter_arc(round));
            let (three, four) = (striped.enter(1), striped.enter_arc(1));
            scope.spawn(move || assert_eq!(*one + *two + *three + *four, 4));
        });
        thread::scope(|scope| {
            let (mut one, mut two) = (lock.exclusive(), striped.exclusive());
            scope.spawn(move || {
                *one += 1;
                *two += 1;
                *one -= 1;
                *two -= 1;
            });
        });
    }
    drop(lock.try_exclusive().expect("everyone has left"));
    drop(striped.try_exclusive().expect("everyone has left"));
}

/// Enters, and must wait, when the thread-local values of its thread are destroyed.
struct Parting(Arc<GroupLock<u8, AtomicUsize>>);

impl Drop for Parting {
    fn drop(&mut self) {
        self.0.enter(2).fetch_add(1, Ordering::SeqCst);
        self.0.exclusive().fetch_add(1, Ordering::SeqCst);
        assert!(self.0.try_enter_for(1, LATE).is_some());
    }
}

thread_local! {
    static PARTING: RefCell<Option<Parting>> = const { RefCell::new(None) };
}

#[test]
fn destructors_of_thread_locals_may_lock() {
    let lock = Arc::new(GroupLock::with_policy(Policy::Fifo, AtomicUsize::new(0)));
    for round in 1..=20 {
        let inside = lock.enter(1);
        let leaving = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                // Sometimes the lock's own thread-local value is created first, and so destroyed
                // last. Sometimes it is the other way round.
                if round % 2 == 0 {
                    assert!(lock.try_enter_for(3, Duration::from_micros(1)).is_none());
                }
                PARTING.set(Some(Parting(Arc::clone(&lock))));
                if round % 3 == 0 {
                    assert!(lock.try_enter_for(3, Duration::from_micros(1)).is_none());
                }
            }
        });
        wait_until("the destructor waits", || {
            lock.snapshot().waiting.iter().any(|phase| phase.session == Some(2))
        });
        drop(inside);
        leaving.join().expect("it does not panic");
        assert_eq!(lock.enter(1).load(Ordering::SeqCst), 2 * round);
    }
}

#[cfg(feature = "handover")]
mod handover {
    use super::*;
    use grouplock::cores::Handover;

    #[test]
    fn a_guard_may_be_dropped_on_another_thread() {
        let lock = GroupLock::over(Handover::<u32>::new(), 1);
        for round in 0..100 {
            thread::scope(|scope| {
                let guard = lock.enter(round);
                scope.spawn(move || assert_eq!(*guard, 1));
            });
            thread::scope(|scope| {
                let mut alone = lock.exclusive();
                scope.spawn(move || {
                    *alone += 1;
                    *alone -= 1;
                });
            });
        }
    }

    /// Reads the lock, and tries to enter it, when it is woken.
    struct Curious(Arc<GroupLock<u32, (), Handover<u32>>>, AtomicUsize);

    impl std::task::Wake for Curious {
        fn wake(self: Arc<Self>) {
            assert_eq!(self.0.snapshot().holders, 1);
            assert!(self.0.try_enter(9).is_none());
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A thread that leaves wakes others while it holds nothing: a waker may use the lock.
    #[test]
    fn a_waker_may_use_the_lock() {
        crate::common::in_time(|| {
            let lock = Arc::new(GroupLock::over(Handover::new(), ()));
            let woken = Arc::new(Curious(Arc::clone(&lock), AtomicUsize::new(0)));
            let waker = std::task::Waker::from(Arc::clone(&woken));
            let inside = lock.enter(1);
            let mut between = lock.exclusive_async();
            let mut future = lock.enter_async(2);
            pending(&mut between);
            assert!(crate::common::poll_with(&mut future, &waker).is_pending());
            drop(inside);
            drop(between);
            assert_eq!(woken.1.load(Ordering::SeqCst), 1);
            drop(ready(&mut future));
        });
    }

    /// Enters when the thread-local values of its thread are destroyed.
    struct Parting(Arc<GroupLock<u32, AtomicUsize, Handover<u32>>>);

    impl Drop for Parting {
        fn drop(&mut self) {
            self.0.enter(2).fetch_add(1, Ordering::SeqCst);
            self.0.exclusive().fetch_add(1, Ordering::SeqCst);
            let timed = self.0.try_enter_for(3, crate::common::LATE);
            timed.expect("no holder stays inside").fetch_add(1, Ordering::SeqCst);
        }
    }

    thread_local! {
        static PARTING: RefCell<Option<Parting>> = const { RefCell::new(None) };
    }

    /// In all cases: the thread has used the lock before, or not; the thread-local values of this
    /// crate are destroyed before that of the user, or after it.
    #[test]
    fn destructors_of_thread_locals_may_lock() {
        let lock = Arc::new(GroupLock::over(Handover::new(), AtomicUsize::new(0)));
        for round in 0..20 {
            let lock = Arc::clone(&lock);
            let leaving = thread::spawn(move || {
                if round % 2 == 0 {
                    drop(lock.enter(1));
                }
                PARTING.set(Some(Parting(Arc::clone(&lock))));
                if round % 3 == 0 {
                    drop(lock.enter(1));
                }
            });
            leaving.join().expect("it does not panic");
        }
        assert_eq!(lock.enter(1).load(Ordering::SeqCst), 60);
    }
}

#[test]
fn a_lock_outlived_by_an_owned_guard() {
    let lock = Arc::new(GroupLock::new(String::from("data")));
    let mut future = lock.enter_arc_async(2);
    let guard = lock.enter_arc(1);
    pending(&mut future);
    drop(lock);
    assert_eq!(*guard, "data");
    drop(guard);
    assert_eq!(*ready(&mut future), "data");
}

#[test]
fn switching_to_the_session_inside_does_nothing() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let mut guards: Vec<SessionGuard<'_, u8, ()>> = (0..3).map(|_| lock.enter(1)).collect();
    let mut waiting = lock.enter_async(2);
    pending(&mut waiting);
    // A request waits, and two other holders are inside: to leave and to enter again would take
    // long.
    SessionGuard::switch(&mut guards[0], 1);
    assert_eq!(lock.snapshot().holders, 3);
    drop(guards);
    drop(ready(&mut waiting));
}

#[test]
fn unsized_data_can_be_locked() {
    let lock: Box<GroupLock<u8, [u8]>> = Box::new(GroupLock::new([1, 2, 3]));
    assert_eq!(lock.enter(1).len(), 3);
    lock.exclusive()[0] = 9;
    assert_eq!(lock.enter(2)[0], 9);
    let striped = GroupLock::over(Striped::<String>::new(Policy::Fifo), ());
    drop(striped.enter("any name will do".to_owned()));
}
