//! Conversions between clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::time::Time;

/// A moment on the clock of threads. A moment in the past becomes now.
pub(super) fn instant(clock: Clock, time: Time) -> Instant {
    Instant::now() + time.since(clock.now())
}

/// A moment on the clock of this client. A moment in the past becomes now.
pub(super) fn time(clock: Clock, instant: Instant) -> Time {
    clock.now() + instant.saturating_duration_since(Instant::now())
}

/// A moment of any member's clock as a time of day.
pub(super) fn system_time(time: Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(time.as_micros())
}

/// `time` earlier by `by`.
pub(super) fn before(time: Time, by: Duration) -> Time {
    let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    Time::from_micros(time.as_micros().saturating_sub(by))
}
