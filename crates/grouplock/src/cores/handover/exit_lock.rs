//! The exit lock: those who are running go before those who sleep, a bounded number of times.
//!
//! Handover asks for a mutual exclusion lock in which nobody starves, of constant cost. Its papers' choice hands the lock over in strict order. On a machine
//! with more threads than processors that makes a convoy: once a thread has had to sleep for the lock, everyone who comes queues behind it, and from then on
//! every exit takes a thread's waking up. So here the lock is a word that whoever finds it free may take. Who does not get it joins a queue in strict order,
//! and only the first of that waits for the word. When the first has been woken in vain [`PATIENCE`] times, the word is kept for it.
//!
//! So an exit costs a constant number of remote references, as with the papers' choice: a bounded number of looks, the queue's constant, and at most
//! `PATIENCE` times a constant for the first.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use grouplock_algorithms::dvir_taubenfeld_1_swap::{DvirTaubenfeld1Swap, Process};
use grouplock_algorithms::memory::Word as Seen;
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::{CapacityError, Claims};

use super::memory::Park;
use crate::sync::{self, Word};

/// The word is taken.
const HELD: u32 = 1;
/// The first of the queue sleeps.
const ASLEEP: u32 = 2;
/// The word is for the first of the queue.
const KEPT: u32 = 4;

/// So often the first is woken in vain.
const PATIENCE: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// So many looks before a thread sleeps; the pauses between them are some microseconds in all.
const ROUNDS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 10 };

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

    /// Looks for a while whether the word is free for one who is not the first. Each pause is twice as long as the one before: the less it looks, the
    /// longer the cache line stays with those who are at work.
    fn look(&self) -> bool {
        (0..ROUNDS).any(|round| {
            (0..1 << round).for_each(|_| sync::relax());
            // Relaxed: `take` decides.
            self.word.load(Relaxed) == 0 && self.take(0)
        })
    }

    #[cold]
    fn wait(&self, me: &mut Process<Park>) {
        if self.look() {
            return;
        }
        // SAFETY: the process joined the queue when it joined this lock, and is idle outside this function.
        unsafe { self.queue.acquire(me) };
        self.wait_first();
        // SAFETY: acquired above.
        unsafe { self.queue.release(me) };
    }

    /// The first of the queue waits. Nobody else sleeps on the word.
    fn wait_first(&self) {
        let (mut round, mut vain) = (0, 0);
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
            } else {
                let kept = if vain < PATIENCE { 0 } else { KEPT };
                let asleep = word | ASLEEP | kept;
                // Relaxed: it publishes nothing.
                if self.word.compare_exchange(word, asleep, Relaxed, Relaxed).is_ok() {
                    // Relaxed: `take` acquires.
                    while self.word.load(Relaxed) & ASLEEP != 0 {
                        sync::wait(&self.word, asleep);
                    }
                    (round, vain) = (0, vain + 1);
                }
            }
        }
    }
}

impl RawMutex<Park> for ExitLock {
    type Process = Process<Park>;

    fn claims() -> Claims {
        Claims { name: "exit-lock", ..DvirTaubenfeld1Swap::<Park>::claims() }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(ExitLock { word: Word::new(0), queue: DvirTaubenfeld1Swap::new(processes)? })
    }

    fn join(&self) -> Result<Process<Park>, CapacityError> {
        self.queue.join()
    }

    unsafe fn leave(&self, me: Process<Park>) {
        // SAFETY: it joined the queue when it joined, and is idle as we are.
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
        if self.word.fetch_and(KEPT, Release) & ASLEEP != 0 {
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
