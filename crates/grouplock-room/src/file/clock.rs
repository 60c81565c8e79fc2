//! Times in the file: nanoseconds in a word.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> u64 {
    // The clocks used here exist, so that the call cannot fail.
    clock_gettime(clock).map_or(0, |time| time.num_nanoseconds().cast_unsigned())
}

/// The real-time clock. Cheap, and up to a few milliseconds late.
#[inline]
pub(super) fn real() -> u64 {
    read(ClockId::CLOCK_REALTIME_COARSE)
}

/// The real-time clock, exact.
pub(super) fn exact() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// The monotonic clock, the same for all processes of the machine.
pub(super) fn monotonic() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The time for snapshots.
pub(super) fn system_time(nanoseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanoseconds)
}
