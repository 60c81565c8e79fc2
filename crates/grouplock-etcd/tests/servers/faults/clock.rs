//! A clock that all processes of the machine share.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) use grouplock_testing::overlaps::{Nanos, now};

/// The time of an instant on the shared clock. The standard library uses the same clock, but does
/// not show its value.
pub(crate) fn at(instant: Instant) -> Nanos {
    static ORIGIN: OnceLock<(Instant, Nanos)> = OnceLock::new();
    let (origin, nanos) = *ORIGIN.get_or_init(|| {
        // Again if the process was suspended in between.
        let mut pairs = (0..100_000).map(|_| (Instant::now(), now()));
        let near = pairs.find(|(before, _)| before.elapsed() < Duration::from_micros(20));
        near.expect("two clocks can be read within 20 µs")
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
