//! Plain data behind every lock, on real threads. The thread sanitizer and miri check it for races.
//!
//! There are no monitors and no clock here: only the lock orders the accesses.

use core::cell::UnsafeCell;
use std::thread;

use grouplock_algorithms as locks;
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::reductions::AsReadersWriters;
use grouplock_algorithms::{Group, Mutual};

const THREADS: usize = if cfg!(miri) { 3 } else { 4 };
const PASSAGES: usize = if cfg!(miri) { 4 } else { 3000 };

/// A plain number that a lock protects.
#[derive(Default)]
struct Counter(UnsafeCell<usize>);

// SAFETY: the test checks that the lock under test makes this true.
unsafe impl Sync for Counter {}

impl Counter {
    /// # Safety
    /// No other thread writes meanwhile.
    unsafe fn get(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }

    /// # Safety
    /// No other thread uses the counter meanwhile.
    unsafe fn increment(&self) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() += 1 }
    }
}

/// Each thread does `work` on the counter, with a process of its own. Returns the count at the end.
fn count<P: Send>(process: impl Fn() -> P, work: impl Fn(usize, P, &Counter) + Sync) -> usize {
    let counter = Counter::default();
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (process, counter, work) = (process(), &counter, &work);
            scope.spawn(move || work(t, process, counter));
        }
    });
    // SAFETY: the threads are gone.
    unsafe { counter.get() }
}

/// Each thread increments under the lock. No increment may be lost.
fn increments<L: RawMutex<Native>>() {
    let lock = Mutual::<L>::new(THREADS).expect("a few threads are always possible");
    let process = || lock.process().expect("there is room for all threads");
    let counted = count(process, |_, mut process, counter| {
        for _ in 0..PASSAGES {
            let held = process.acquire().expect("nothing was leaked");
            // SAFETY: mutual exclusion.
            unsafe { counter.increment() };
            drop(held);
        }
    });
    assert_eq!(counted, THREADS * PASSAGES);
}

/// Every third passage writes and the others read, as with a readers-writers lock.
fn readers_and_writers<G: RawGroup<Native>>() {
    let lock = AsReadersWriters::<G>::new(THREADS).expect("a few threads are always possible");
    let process = || lock.process().expect("there is room for all threads");
    let counted = count(process, |t, mut process, counter| {
        let mut last = 0;
        for passage in 0..PASSAGES {
            if (t + passage) % 3 == 0 {
                let inside = process.write().expect("nothing was leaked");
                // SAFETY: a writer is alone.
                unsafe { counter.increment() };
                drop(inside);
            } else {
                let inside = process.read().expect("nothing was leaked");
                // SAFETY: a writer and a reader are never inside together.
                let seen = unsafe { counter.get() };
                drop(inside);
                assert!(last <= seen, "the counter went back from {last} to {seen}");
                last = seen;
            }
        }
    });
    let writes = (0..THREADS).flat_map(|t| (0..PASSAGES).filter(move |p| (t + p) % 3 == 0)).count();
    assert_eq!(counted, writes);
}

/// Each thread has its own session, and writes.
fn sessions_hand_over<G: RawGroup<Native>>() {
    let lock = Group::<G>::new(THREADS).expect("a few threads are always possible");
    let process = || lock.process().expect("there is room for all threads");
    let counted = count(process, |t, mut process, counter| {
        for _ in 0..PASSAGES {
            let inside = process.enter(t as u64 + 1).expect("nothing was leaked");
            // SAFETY: no other thread has this session.
            unsafe { counter.increment() };
            drop(inside);
        }
    });
    assert_eq!(counted, THREADS * PASSAGES);
}

macro_rules! mutex_tests {
    ($lock:ty) => {
        #[test]
        fn no_increment_is_lost() {
            increments::<$lock>();
        }
    };
}

macro_rules! group_tests {
    ($lock:ty) => {
        #[test]
        fn readers_never_see_a_writer_at_work() {
            readers_and_writers::<$lock>();
        }

        #[test]
        fn a_change_of_session_hands_the_data_over() {
            sessions_hand_over::<$lock>();
        }
    };
}

every_mutex!(Native, mutex_tests);
every_withdrawing_mutex!(Native, mutex_tests);
every_group!(Native, group_tests);
every_round!(Native, group_tests);
every_policy!(Native, group_tests);
