//! How long the machine has slept.

use std::time::Duration;

#[cfg(feature = "conformance")]
static PRETENDED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// How long this machine has been suspended since it was started. Two values of it tell how far the clock behind
/// [`Instant`](std::time::Instant) has fallen behind the servers' in between. Always zero where that is not known.
pub fn slept() -> Duration {
    let slept = suspended();
    #[cfg(feature = "conformance")]
    // Relaxed: a test that pretends waits for what comes of it.
    let slept = slept + Duration::from_millis(PRETENDED.load(std::sync::atomic::Ordering::Relaxed));
    slept
}

/// Lets all holdings of this process believe that the machine has been suspended for so long. For tests.
#[cfg(feature = "conformance")]
pub fn pretend_to_sleep(time: Duration) {
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // Relaxed: see above.
    PRETENDED.fetch_add(time, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn suspended() -> Duration {
    use nix::time::{ClockId, clock_gettime};

    // In this order, so that a pause between the two readings makes the difference too small, never too large.
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    let boot = read(ClockId::CLOCK_BOOTTIME);
    let running = read(ClockId::CLOCK_MONOTONIC);
    boot.saturating_sub(running)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn suspended() -> Duration {
    Duration::ZERO
}
