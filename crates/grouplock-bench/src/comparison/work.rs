//! What a thread does inside and outside.

use core::hint::black_box;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// A stretch of work of a given length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// None at all.
    Nothing,
    /// 100 ns, busy.
    Ns100,
    /// 1 µs, busy.
    Us1,
    /// 100 µs, busy.
    Us100,
    /// 2 ms asleep, as somebody who waits for a disk: so that more can be inside than there are cores.
    Ms2,
}

impl Length {
    /// All of them, the shortest first.
    pub const ALL: [Length; 5] =
        [Length::Nothing, Length::Ns100, Length::Us1, Length::Us100, Length::Ms2];

    /// How long it is.
    pub fn duration(self) -> Duration {
        match self {
            Length::Nothing => Duration::ZERO,
            Length::Ns100 => Duration::from_nanos(100),
            Length::Us1 => Duration::from_micros(1),
            Length::Us100 => Duration::from_micros(100),
            Length::Ms2 => Duration::from_millis(2),
        }
    }

    /// As it stands in tables.
    pub fn told(self) -> &'static str {
        match self {
            Length::Nothing => "0",
            Length::Ns100 => "100 ns",
            Length::Us1 => "1 µs",
            Length::Us100 => "100 µs",
            Length::Ms2 => "2 ms",
        }
    }

    /// The work itself, ready to be done.
    pub fn work(self) -> Work {
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

/// Work, measured in what the processor does: looking at the clock would itself take longer than the
/// shortest of it, and would count the time when another thread has the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many steps.
    Busy(u64),
    /// Not on a core.
    Sleep(Duration),
}

impl Work {
    /// Does it.
    #[inline(always)]
    pub fn perform(self) {
        match self {
            // The compiler must have everything in memory before, and look again afterwards.
            Work::Busy(0) => black_box(()),
            Work::Busy(steps) => busy(steps),
            Work::Sleep(duration) => thread::sleep(duration),
        }
    }
}

/// A chain of steps of which each needs the one before.
#[inline(never)]
fn busy(steps: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// How fast [`busy`] is here. Found once, as the fastest of some trials: the others were disturbed.
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
        // Never zero: that many steps take a while on any machine, but a clock may be coarse.
        STEPS as f64 / fastest.as_nanos().max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_about_as_long_as_it_says() {
        let work = Length::Us100.work();
        let fastest = (0..50).map(|_| {
            let start = Instant::now();
            work.perform();
            start.elapsed()
        });
        // Others may slow the processor down, or make it wait: hence the room.
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
