//! How a thread of real memory waits: spin, then sleep.
//!
//! It does not yield in between. A thread that yields lets every other busy thread of the core run
//! for a whole slice of some milliseconds. A thread that sleeps for microseconds runs again as soon
//! as it wakes.

use core::hint;
use core::time::Duration;
use std::thread;

/// Rounds of spinning; round `k` pauses `2^k` times. About a microsecond in all, which is less than
/// a sleep costs and more than a hand-over between two running threads takes.
const SPIN_ROUNDS: u32 = 6;
/// The first sleep of a thread that no other thread wakes.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
/// The longest sleep: during a long wait the waiter reads memory once in this time.
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// One wait, from the first read that did not end it.
pub(super) struct Backoff {
    round: u32,
    nap: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Backoff { round: 0, nap: SHORTEST_NAP }
    }

    /// Passes a little time without sleeping. Returns false, at once, when it is time to sleep.
    pub(super) fn pause(&mut self) -> bool {
        if self.round == SPIN_ROUNDS {
            return false;
        }
        for _ in 0..1_u32 << self.round {
            hint::spin_loop();
        }
        self.round += 1;
        true
    }

    /// Sleeps when no other thread wakes us: longer each time, up to a limit.
    pub(super) fn pause_or_nap(&mut self) {
        if !self.pause() {
            thread::sleep(self.nap);
            self.nap = (self.nap * 2).min(LONGEST_NAP);
        }
    }
}
