//! The exit lock. Running threads may pass threads that wait, but no thread starves.
//!
//! Handover needs a mutual exclusion lock of constant cost in which no thread starves. The papers
//! use a lock that serves threads in strict order. If there are more threads than processors, that
//! makes a convoy: once a thread sleeps for the lock, all later threads queue behind it, and every
//! exit waits until a thread has woken up. So here the lock is a word that any thread may take
//! while it is free. A thread that does not get the word joins a queue with strict order. Only the
//! first thread of the queue waits for the word. Any number of threads may pass between two of its
//! attempts. After [`MAX_FAILURES`] failed attempts, the word is reserved for it.
//!
//! So an exit costs a constant number of remote references, as in the papers: a bounded number of
//! looks, the constant of the queue, and a constant for each of at most `MAX_FAILURES` attempts.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grouplock_algorithms::claims::Claim;
use grouplock_algorithms::dvir_taubenfeld_1_swap::{DvirTaubenfeld1Swap, Process};
use grouplock_algorithms::memory::Word as Seen;
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::{CapacityError, Claims};

use super::memory::Park;
use crate::sync::{self, Word};

/// A thread holds the lock.
const HELD: u32 = 1;
/// The first thread of the queue sleeps.
const FIRST_ASLEEP: u32 = 2;
/// Only the first thread of the queue may take the word.
const RESERVED: u32 = 4;

/// Few looks and attempts: each takes long there.
const MODELLED: bool = cfg!(any(loom, shuttle, miri));

/// After so many failed attempts, the word is reserved for the first thread.
const MAX_FAILURES: u32 = if MODELLED { 1 } else { 16 };

/// A thread looks so often before it sleeps, with pauses of some microseconds in all.
const ROUNDS: u32 = if MODELLED { 1 } else { 10 };

pub(super) struct ExitLock {
    word: Word,
    queue: DvirTaubenfeld1Swap<Park>,
}

impl ExitLock {
    #[inline]
    fn take(&self, from: u32) -> bool {
        // Acquire: pairs with the release in `release`. Relaxed on failure: nothing is read then.
        self.word.compare_exchange(from, HELD, Acquire, Relaxed).is_ok()
    }

    /// Looks at the word for a while and takes it if it is free. The caller is not the first of the
    /// queue. Each pause is twice as long as the one before: a thread that looks less leaves the
    /// cache line longer to the threads that work.
    fn spin(&self) -> bool {
        (0..ROUNDS).any(|round| {
            (0..1 << round).for_each(|_| sync::relax());
            // Relaxed: `take` decides.
            self.word.load(Relaxed) == 0 && self.take(0)
        })
    }

    #[cold]
    fn wait(&self, me: &mut Process<Park>) {
        if self.spin() {
            return;
        }
        // SAFETY: the process joined the queue with this lock. It is idle outside this function.
        unsafe { self.queue.acquire(me) };
        self.wait_first();
        // SAFETY: acquired above.
        unsafe { self.queue.release(me) };
    }

    /// The first thread of the queue waits. Only it sleeps on the word. Each round of the loop is
    /// one of a bounded number of looks, or it counts as a failure.
    fn wait_first(&self) {
        let (mut round, mut failures) = (0, 0);
        loop {
            // Relaxed: `take` decides.
            let word = self.word.load(Relaxed);
            if word & HELD == 0 {
                if self.take(word) {
                    return;
                }
            } else if round < ROUNDS {
                (0..1 << round).for_each(|_| sync::relax());
                round += 1;
                continue;
            } else {
                let asleep = word | FIRST_ASLEEP;
                // Relaxed: it publishes nothing.
                if self.word.compare_exchange(word, asleep, Relaxed, Relaxed).is_ok() {
                    // Relaxed: `take` acquires.
                    while self.word.load(Relaxed) & FIRST_ASLEEP != 0 {
                        sync::wait(&self.word, asleep);
                    }
                    round = 0;
                }
            }
            failures += 1;
            if failures == MAX_FAILURES {
                // Relaxed: it publishes nothing. From now on no other thread takes a free word.
                self.word.fetch_or(RESERVED, Relaxed);
            }
        }
    }
}

impl RawMutex<Park> for ExitLock {
    type Process = Process<Park>;

    fn claims() -> Claims {
        // Running threads pass threads that wait.
        let (fcfs, strong_fifo) = (Claim::No, Claim::No);
        Claims { name: "exit-lock", fcfs, strong_fifo, ..DvirTaubenfeld1Swap::<Park>::claims() }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(ExitLock { word: Word::new(0), queue: DvirTaubenfeld1Swap::new(processes)? })
    }

    fn join(&self) -> Result<Process<Park>, CapacityError> {
        self.queue.join()
    }

    unsafe fn leave(&self, me: Process<Park>) {
        // SAFETY: the process joined the queue with this lock. It is idle, as the caller promises.
        unsafe { self.queue.leave(me) };
    }

    #[inline]
    unsafe fn acquire(&self, me: &mut Process<Park>) {
        if !self.take(0) {
            self.wait(me);
        }
    }

    #[inline]
    unsafe fn release(&self, _: &mut Process<Park>) {
        // Release: pairs with the acquire in `take`.
        if self.word.fetch_and(RESERVED, Release) & FIRST_ASLEEP != 0 {
            sync::wake_all(&self.word);
        }
    }

    fn inspect(me: &Process<Park>, see: &mut dyn FnMut(&'static str, Seen)) {
        DvirTaubenfeld1Swap::inspect(me, see);
    }
}

impl fmt::Debug for ExitLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExitLock").field("word", &self.word.load(Relaxed)).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_lock_is_reserved_for_a_thread_that_others_have_passed() {
        let end = Instant::now() + Duration::from_secs(60);
        let lock = &ExitLock::new(2).expect("any number of processes");
        let mut me = lock.join().expect("any number of processes");
        assert!(lock.take(0), "no thread is here");
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut me = lock.join().expect("any number of processes");
                // SAFETY: it joined this lock, and is idle.
                unsafe { lock.acquire(&mut me) };
                // SAFETY: it has acquired the lock.
                unsafe { lock.release(&mut me) };
                // SAFETY: it is idle again.
                unsafe { lock.leave(me) };
            });
            let mut passed = 0;
            loop {
                let word = lock.word.load(Relaxed);
                if word & RESERVED != 0 || passed > MAX_FAILURES || Instant::now() > end {
                    break;
                }
                if word & FIRST_ASLEEP == 0 {
                    thread::yield_now();
                    continue;
                }
                // A release, and a thread that takes the lock before the sleeping one runs.
                lock.word.fetch_and(!FIRST_ASLEEP, Relaxed);
                sync::wake_all(&lock.word);
                passed += 1;
            }
            // SAFETY: this thread joined the lock and holds it.
            unsafe { lock.release(&mut me) };
            assert_eq!(passed, MAX_FAILURES, "each wake-up without success is a failure");
        });
        assert_eq!(lock.word.load(Relaxed), 0, "all have left");
        // SAFETY: it is idle.
        unsafe { lock.leave(me) };
    }
}
