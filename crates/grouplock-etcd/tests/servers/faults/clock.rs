//! A clock that all processes of the machine share.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use grouplock_testing::overlaps::{Nanos, now};

/// The time of an instant on the shared clock. The standard library uses the same clock, but does
/// not show its value.
pub(crate) fn at(instant: Instant) -> Nanos {
    static ORIGIN: OnceLock<(Instant, Nanos)> = OnceLock::new();
    let (origin, nanos) = *ORIGIN.get_or_init(|| {
        loop {
            let (before, nanos) = (Instant::now(), now());
            // Try again if the process was suspended in between.
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

/// A duration in nanoseconds.
pub(crate) fn nanos(time: Duration) -> Nanos {
    time.as_nanos() as Nanos
}
