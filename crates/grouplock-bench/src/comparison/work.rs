//! The work of a thread inside and outside.

use core::hint::black_box;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::report::labels;
use crate::rounds::critical_section;

labels!(
    /// How long some work takes.
    Length {
        Nothing = "0",
        Ns100 = "100 ns",
        Us1 = "1 µs",
        Us100 = "100 µs",
        /// Asleep, as if it waited for a disk: so more threads can be inside than there are cores.
        Ms2 = "2 ms",
    }
);

impl Length {
    pub(super) fn duration(self) -> Duration {
        match self {
            Length::Nothing => Duration::ZERO,
            Length::Ns100 => Duration::from_nanos(100),
            Length::Us1 => Duration::from_micros(1),
            Length::Us100 => Duration::from_micros(100),
            Length::Ms2 => Duration::from_millis(2),
        }
    }

    pub(super) fn work(self) -> Work {
        match self {
            Length::Nothing => Work::Busy(0),
            Length::Ms2 => Work::Sleep(self.duration()),
            Length::Ns100 | Length::Us1 | Length::Us100 => {
                let steps = self.duration().as_nanos() as f64 * steps_per_nanosecond();
                #[expect(clippy::cast_sign_loss, reason = "a product of positive numbers")]
                Work::Busy(steps as u64)
            }
        }
    }
}

/// Work. Its unit is a step of the processor: to read the clock would take longer than the shortest
/// work, and would count time in which another thread has the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// So many steps.
    Busy(u64),
    Sleep(Duration),
}

impl Work {
    #[inline(always)]
    pub(super) fn perform(self) {
        match self {
            Work::Busy(0) => critical_section(),
            Work::Busy(steps) => busy(steps),
            Work::Sleep(duration) => thread::sleep(duration),
        }
    }
}

/// A chain of steps. Each needs the result of the one before.
#[inline(never)]
fn busy(steps: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// How fast [`busy`] is here: the fastest of some trials, as other programs disturb some of them.
fn steps_per_nanosecond() -> f64 {
    static FOUND: OnceLock<f64> = OnceLock::new();
    const STEPS: u64 = 100_000;
    *FOUND.get_or_init(|| {
        let trial = || {
            let start = Instant::now();
            busy(STEPS);
            start.elapsed()
        };
        let fastest = (0..20).map(|_| trial()).min().unwrap_or_default();
        // Not by zero: the clock may be coarse.
        STEPS as f64 / fastest.as_nanos().max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_about_its_length() {
        let work = Length::Us100.work();
        let fastest = (0..50).map(|_| {
            let start = Instant::now();
            work.perform();
            start.elapsed()
        });
        // Other programs may slow the processor down, hence the tolerance.
        let fastest = fastest.min().unwrap();
        assert!(
            (Duration::from_micros(50)..Duration::from_micros(400)).contains(&fastest),
            "{fastest:?}"
        );
    }

    #[test]
    fn nothing_is_nothing_and_long_work_sleeps() {
        assert_eq!(Length::Nothing.work(), Work::Busy(0));
        assert_eq!(Length::Ms2.work(), Work::Sleep(Duration::from_millis(2)));
    }
}
