//! How a thread of real memory waits: spin, then sleep.
//!
//! It does not yield in between. A thread that yields lets every other busy thread of the core run for a whole slice, some
//! milliseconds; one that sleeps for microseconds is let run again as soon as it wakes.

use core::hint;
use core::time::Duration;
use std::thread;

/// Rounds of spinning; round `k` pauses `2^k` times. About a microsecond in all, which is less than a
/// sleep costs and more than a hand-over between two running threads takes.
const SPIN_ROUNDS: u32 = 6;
/// The first sleep of a thread that nobody will wake.
const SHORTEST_NAP: Duration = Duration::from_micros(20);
/// Its longest: what a waiter costs when the wait is long is one look at memory in this time.
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// One wait, from its first failed look at memory on.
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

    /// Passes some time when nobody will wake us: longer each time, up to a limit.
    pub(super) fn pause_or_nap(&mut self) {
        if !self.pause() {
            thread::sleep(self.nap);
            self.nap = (self.nap * 2).min(LONGEST_NAP);
        }
    }
}
