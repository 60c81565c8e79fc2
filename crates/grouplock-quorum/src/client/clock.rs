//! The clock of a client.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::Time;

/// Starts as the wall clock and goes on evenly: a wall clock that is set while we run changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Time,
    start: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { began: Time::ZERO + wall, start: Instant::now() }
    }

    pub(super) fn now(&self) -> Time {
        self.began + self.start.elapsed()
    }

    /// The same moment on the clock that threads sleep by.
    pub(super) fn instant(&self, time: Time) -> Instant {
        self.start + time.since(self.began)
    }

    pub(super) fn time(&self, instant: Instant) -> Time {
        self.began + instant.saturating_duration_since(self.start)
    }
}

/// A moment of any member's clock, as people tell it.
pub(super) fn system_time(time: Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(time.as_micros())
}

/// `time` earlier by `by`.
pub(super) fn before(time: Time, by: Duration) -> Time {
    let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    Time::from_micros(time.as_micros().saturating_sub(by))
}
