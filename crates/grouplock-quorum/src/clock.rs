//! The clock of members and clients.

use std::time::{Duration, Instant, SystemTime};

use nix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// A clock that is set once, to the time of day, and then runs by itself. It also runs while the
/// machine is suspended. Changes of the time of day do not change it.
///
/// ```
/// use grouplock_quorum::Clock;
///
/// let clock = Clock::start();
/// let (earlier, later) = (clock.now(), clock.now());
/// assert!(earlier <= later);
/// assert!(clock.drift().as_secs() < 60);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Added to the time since the machine was started.
    offset: u64,
}

impl Clock {
    /// Starts the clock at the time of day.
    pub fn start() -> Self {
        Clock { offset: time_of_day().as_micros().saturating_sub(since_boot()) }
    }

    /// Shifts the clock by some seconds.
    pub(crate) fn shifted(self, seconds: i64) -> Self {
        Clock { offset: self.offset.saturating_add_signed(seconds.saturating_mul(1_000_000)) }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::from_micros(self.offset.saturating_add(since_boot()))
    }

    /// A moment on the clock of threads. A moment in the past becomes now.
    pub(crate) fn instant(self, time: Time) -> Instant {
        Instant::now() + time.since(self.now())
    }

    /// A moment of the clock of threads on this clock. A moment in the past becomes now.
    pub(crate) fn time(self, instant: Instant) -> Time {
        self.now() + instant.saturating_duration_since(Instant::now())
    }

    /// How far the time of day has moved away from this clock.
    pub fn drift(&self) -> Duration {
        Duration::from_micros(self.now().as_micros().abs_diff(time_of_day().as_micros()))
    }
}

fn since_boot() -> u64 {
    // Every Linux has this clock. Without it the time would stand still and no lease would end.
    let Ok(time) = clock_gettime(ClockId::CLOCK_BOOTTIME) else { return 0 };
    let (seconds, nanos) = (time.tv_sec().unsigned_abs(), time.tv_nsec().unsigned_abs());
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

/// The time of day.
pub(crate) fn time_of_day() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::ZERO + since
}
