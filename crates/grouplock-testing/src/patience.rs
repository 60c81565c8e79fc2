//! Waiting for facts.

use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine, unless it hangs.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits for something that will be true.
///
/// # Panics
/// If it does not become true in a [`LONG`] time.
pub fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !true_now() {
        assert!(Instant::now() < deadline, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
