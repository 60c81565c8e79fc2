//! A clock that all processes of the machine share.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use grouplock_testing::overlaps::{Nanos, now};

/// When an instant is. The standard library uses the same clock, but does not tell.
pub(crate) fn at(instant: Instant) -> Nanos {
    static ORIGIN: OnceLock<(Instant, Nanos)> = OnceLock::new();
    let (origin, nanos) = *ORIGIN.get_or_init(|| {
        loop {
            let (before, nanos) = (Instant::now(), now());
            // Not if the process was held up in between.
            if before.elapsed() < Duration::from_micros(20) {
                return (before, nanos);
            }
        }
    });
    match instant.checked_duration_since(origin) {
        Some(later) => nanos + later.as_nanos() as Nanos,
        None => nanos - origin.duration_since(instant).as_nanos() as Nanos,
    }
}

/// A stretch of time in nanoseconds.
pub(crate) fn nanos(time: Duration) -> Nanos {
    time.as_nanos() as Nanos
}
