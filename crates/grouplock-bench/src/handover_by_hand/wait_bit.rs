//! A bit on which one thread waits: spins, then yields, then sleeps.

use core::hint;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

const CLEAR: u32 = 0;
const SET: u32 = 1;
/// Clear, and the waiter sleeps or will sleep.
const ASLEEP: u32 = 2;

/// Rounds of spinning, each twice as long as the one before.
const SPIN_ROUNDS: u32 = 6;
/// Rounds of yielding the core.
const YIELD_ROUNDS: u32 = 8;

#[derive(Debug)]
pub(super) struct WaitBit(AtomicU32);

impl WaitBit {
    pub(super) const fn new() -> Self {
        WaitBit(AtomicU32::new(CLEAR))
    }

    /// Clears the bit while no thread waits on it. The caller's next release publishes it.
    #[inline(always)]
    pub(super) fn clear(&self) {
        self.0.store(CLEAR, Relaxed);
    }

    /// Sets the bit and wakes the waiter. A release, which pairs with the acquires of `wait`.
    #[inline(always)]
    pub(super) fn signal(&self) {
        if self.0.swap(SET, Release) == ASLEEP {
            atomic_wait::wake_one(&raw const self.0);
        }
    }

    /// Waits until the bit is set. An acquire.
    #[inline(always)]
    pub(super) fn wait(&self) {
        if self.0.load(Acquire) != SET {
            self.wait_in_turn();
        }
    }

    #[cold]
    fn wait_in_turn(&self) {
        for round in 0..SPIN_ROUNDS + YIELD_ROUNDS {
            if round < SPIN_ROUNDS {
                (0..1_u32 << round).for_each(|_| hint::spin_loop());
            } else {
                thread::yield_now();
            }
            if self.0.load(Acquire) == SET {
                return;
            }
        }
        // Acquire on failure: then the bit is set. On success there is nothing to acquire yet.
        if self.0.compare_exchange(CLEAR, ASLEEP, Relaxed, Acquire).is_ok() {
            while self.0.load(Acquire) == ASLEEP {
                atomic_wait::wait(&self.0, ASLEEP);
            }
        }
    }
}
