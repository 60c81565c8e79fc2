//! For tests: a process can kill itself before the n-th change that it makes to shared state.
//!
//! Only with the feature `kill-points`. Without it the program contains no such code.

#[cfg(feature = "kill-points")]
use std::sync::atomic::{AtomicI64, Ordering};

#[cfg(feature = "kill-points")]
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// Kills this process with `SIGKILL` before the `steps`-th change from now on (1 is the next).
#[cfg(feature = "kill-points")]
pub fn arm(steps: u32) {
    LEFT.store(i64::from(steps), Ordering::SeqCst);
}

/// The number of changes since [`arm`] was called with `steps`.
#[cfg(feature = "kill-points")]
pub fn taken(steps: u32) -> i64 {
    i64::from(steps) - LEFT.load(Ordering::SeqCst)
}

/// Call it before each change to shared state.
#[cfg(target_os = "linux")]
#[inline(always)]
pub(crate) fn step() {
    #[cfg(feature = "kill-points")]
    if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }
}
