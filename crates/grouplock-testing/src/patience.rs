//! Waits for facts.

use std::time::{Duration, Instant};

/// Longer than any operation on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until a condition is true.
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
