//! Waiting allocates nothing for a thread and once for a task, however often it is repeated.
//! Sessions are moved into the lock, not cloned.
//!
//! A separate program, because it counts the allocations of each thread. Deadlock detection
//! allocates memory for every entry.
#![cfg(not(any(loom, shuttle, miri, feature = "deadlock_detection")))]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::{pending, ready, wait_until, waiters};
use grouplock::{GroupLock, Policy, SessionGuard};

/// Counts the allocations of the calling thread.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the allocator of the system, with the caller's promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) };
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often this thread allocates in `deed`, and the result of `deed`.
fn count<R>(deed: impl FnOnce() -> R) -> (u64, R) {
    let before = ALLOCATED.get();
    let result = deed();
    (ALLOCATED.get() - before, result)
}

/// Vectors grow in the first rounds.
const ROUNDS: usize = 60;
const WARM_UP: usize = 10;

const POLICIES: [Policy; 5] = [
    Policy::EVENTUAL,
    Policy::Eventual { patience: Duration::MAX },
    Policy::Fifo,
    Policy::Batch { passes: 8 },
    Policy::BatchFor { wait: Duration::from_millis(1) },
];

/// The allocator of this program notices an allocation.
#[test]
fn the_counter_counts() {
    assert_eq!(count(|| drop(Box::new(5))).0, 1);
    assert_eq!(count(|| ()).0, 0);
}

/// A thread that wakes another for the first time allocates memory that it uses again. The
/// scheduler decides when that is.
fn wake_a_task() {
    let lock = GroupLock::new(());
    let inside = lock.exclusive();
    let mut waiting = lock.enter_async(1);
    pending(&mut waiting);
    drop(inside);
    drop(ready(&mut waiting));
}

/// Two threads wait, each for its own session, round after round. Returns what they allocated after
/// the warm-up, and what the holder that admitted them allocated.
fn allocated_by_threads(policy: Policy) -> (u64, u64) {
    let lock = GroupLock::with_policy(policy, ());
    let (waited, round) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut let_in = 0;
    thread::scope(|scope| {
        for session in [1, 2] {
            let (lock, waited, round) = (&lock, &waited, &round);
            scope.spawn(move || {
                wake_a_task();
                for number in 0..ROUNDS {
                    wait_until("the next round begins", || {
                        round.load(Ordering::SeqCst) > number as u64
                    });
                    let (allocated, ()) = count(|| drop(lock.enter(session)));
                    if number >= WARM_UP {
                        waited.fetch_add(allocated, Ordering::SeqCst);
                    }
                }
            });
        }
        for number in 0..ROUNDS {
            let inside = lock.enter(0);
            round.fetch_add(1, Ordering::SeqCst);
            wait_until("both threads wait", || waiters(&lock.snapshot()) == 2);
            let (allocated, ()) = count(|| drop(inside));
            let_in += if number < WARM_UP { 0 } else { allocated };
            wait_until("both threads have passed", || {
                let seen = lock.snapshot();
                seen.holders == 0 && seen.waiting.is_empty()
            });
        }
    });
    (waited.into_inner(), let_in)
}

#[test]
fn a_thread_that_waits_allocates_nothing() {
    for policy in POLICIES {
        assert_eq!(allocated_by_threads(policy), (0, 0), "{policy:?}");
    }
}

#[test]
fn a_task_that_waits_allocates_once() {
    for policy in POLICIES {
        let lock = GroupLock::with_policy(policy, ());
        for round in 0..ROUNDS {
            let inside = lock.enter(0);
            let (mut one, mut two) = (lock.enter_async(1), lock.enter_async(2));
            let (waiting, ()) = count(|| {
                pending(&mut one);
                pending(&mut two);
            });
            let (letting_in, ()) = count(|| {
                drop(inside);
                drop(ready(&mut one));
                drop(ready(&mut two));
            });
            if round >= WARM_UP {
                assert_eq!((waiting, letting_in), (2, 0), "{policy:?}");
            }
        }
    }
}

#[test]
fn names_are_moved_into_the_lock() {
    for policy in POLICIES {
        let lock = GroupLock::with_policy(policy, ());
        for round in 0..ROUNDS {
            let (one, two) = (format!("one {round}"), format!("two {round}"));
            let (allocated, mut inside) = count(|| {
                drop(lock.enter(one));
                lock.enter(two)
            });
            assert_eq!(allocated, 0, "{policy:?}");
            let three = format!("three {round}");
            assert_eq!(count(|| SessionGuard::switch(&mut inside, three)).0, 0, "{policy:?}");
            let four = format!("four {round}");
            let refused = count(|| lock.try_enter(four).is_none());
            assert_eq!(refused, (0, true), "{policy:?}");
        }
    }
}
