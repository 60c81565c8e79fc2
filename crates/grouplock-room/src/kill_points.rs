//! Deaths on purpose, for tests: a process can be told to kill itself before the n-th change it makes to shared state.
//!
//! Only with the feature `kill-points`; without it nothing of this is left in the program.

#[cfg(feature = "kill-points")]
mod armed {
    use std::sync::atomic::{AtomicI64, Ordering};

    static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

    /// Lets this process die by `SIGKILL` before the `steps`-th change from now (1 is the next).
    pub fn arm(steps: u32) {
        LEFT.store(i64::from(steps), Ordering::SeqCst);
    }

    /// How many changes were made since [`arm`], which must have been given `steps`.
    pub fn taken(steps: u32) -> i64 {
        i64::from(steps) - LEFT.load(Ordering::SeqCst)
    }

    /// A change to shared state is about to be made.
    #[cfg(target_os = "linux")]
    pub(crate) fn step() {
        if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
            loop {
                std::thread::park();
            }
        }
    }
}

#[cfg(all(feature = "kill-points", target_os = "linux"))]
pub(crate) use armed::step;
#[cfg(feature = "kill-points")]
pub use armed::{arm, taken};

/// A change to shared state is about to be made.
#[cfg(all(not(feature = "kill-points"), target_os = "linux"))]
#[inline(always)]
pub(crate) fn step() {}
