//! The time as members and clients tell it.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// A clock that is set once, to the time of day, and then runs on by itself: also while the machine sleeps, and
/// whatever is done to the time of day meanwhile.
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
    /// What to add to the time since the machine was started.
    offset: u64,
}

impl Clock {
    /// Sets it.
    pub fn start() -> Self {
        Clock { offset: time_of_day().saturating_sub(since_boot()) }
    }

    /// Sets it wrong by so many seconds.
    #[cfg(feature = "test-hooks")]
    #[must_use]
    pub fn shifted(self, seconds: i64) -> Self {
        Clock { offset: self.offset.saturating_add_signed(seconds.saturating_mul(1_000_000)) }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::from_micros(self.offset.saturating_add(since_boot()))
    }

    /// How far the time of day has moved away from this since it was set.
    pub fn drift(&self) -> Duration {
        Duration::from_micros(self.now().as_micros().abs_diff(time_of_day()))
    }
}

fn since_boot() -> u64 {
    // It exists on every Linux; without it there is no time and nothing would ever be late.
    let Ok(time) = clock_gettime(ClockId::CLOCK_BOOTTIME) else { return 0 };
    let (seconds, nanos) = (time.tv_sec().unsigned_abs(), time.tv_nsec().unsigned_abs());
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
