//! Times in the file: nanoseconds in a word.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::libc;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written to. The clocks used here exist, so that the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = time.tv_sec.cast_unsigned();
    seconds.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// The real-time clock. Cheap, and up to a few milliseconds late.
#[inline]
pub(super) fn real() -> u64 {
    read(libc::CLOCK_REALTIME_COARSE)
}

/// The real-time clock, exact.
pub(super) fn exact() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// The monotonic clock, the same for all processes of the machine.
pub(super) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The time for snapshots.
pub(super) fn system_time(nanoseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanoseconds)
}
