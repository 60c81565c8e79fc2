//! How long the machine was suspended.

use std::time::{Duration, Instant};

#[cfg(feature = "conformance")]
static PRETENDED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// How long this machine has been suspended since it was started. The difference of two values is
/// how far the clock of [`Instant`] fell behind the clocks of the servers in
/// between. Zero on systems that do not report it.
pub fn slept() -> Duration {
    let slept = suspended();
    #[cfg(feature = "conformance")]
    // Relaxed: a test that pretends waits for the effect.
    let slept = slept + Duration::from_millis(PRETENDED.load(std::sync::atomic::Ordering::Relaxed));
    slept
}

/// For tests: adds this time to [`slept`] for all holdings of this process.
#[cfg(feature = "conformance")]
pub fn pretend_to_sleep(time: Duration) {
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // Relaxed: see above.
    PRETENDED.fetch_add(time, std::sync::atomic::Ordering::Relaxed);
}

/// The end of a lease. The servers count the time for which this machine is suspended, and the
/// clock of [`Instant`] does not. So on that clock the end comes earlier with every suspend.
#[derive(Clone, Copy, Debug)]
pub struct LeaseEnd {
    without_sleep: Instant,
    slept: Duration,
}

impl LeaseEnd {
    /// The lease ends at `until`, unless the machine is suspended after it had [`slept`] that long.
    pub fn new(until: Instant, slept: Duration) -> Self {
        LeaseEnd { without_sleep: until, slept }
    }

    /// The end, unless the machine is suspended after this call.
    pub fn instant(&self) -> Instant {
        let since = slept().saturating_sub(self.slept);
        // An end before the first time of the clock has passed.
        self.without_sleep.checked_sub(since).unwrap_or_else(Instant::now)
    }

    /// Whether the lease is over.
    pub fn has_passed(&self) -> bool {
        self.instant() <= Instant::now()
    }
}

impl From<Instant> for LeaseEnd {
    /// The lease ends at `until`, unless the machine is suspended after this call.
    fn from(until: Instant) -> Self {
        LeaseEnd::new(until, slept())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn suspended() -> Duration {
    use nix::time::{ClockId, clock_gettime};

    // The order matters: a delay between the two readings makes the difference smaller, never
    // larger.
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    let boot = read(ClockId::CLOCK_BOOTTIME);
    let running = read(ClockId::CLOCK_MONOTONIC);
    boot.saturating_sub(running)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn suspended() -> Duration {
    Duration::ZERO
}
