//! Waits for facts.

use std::time::{Duration, Instant};

/// Longer than any operation on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until a condition is true.
///
/// # Panics
/// If it does not become true in a [`LONG`] time.
pub fn until(what: &str, true_now: impl FnMut() -> bool) {
    until_else(true_now, || what.to_owned());
}

/// Waits until a condition is true. `what` describes it after a failure.
///
/// # Panics
/// If it does not become true in a [`LONG`] time.
pub fn until_else(mut true_now: impl FnMut() -> bool, what: impl Fn() -> String) {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !true_now() {
        assert!(start.elapsed() < LONG, "it never came true that {}", what());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Waits until an exploration is done. Prints its progress every ten seconds.
pub fn explored(done: impl Fn() -> bool, states: impl Fn() -> usize) {
    let mut told = Instant::now();
    while !done() {
        std::thread::sleep(Duration::from_millis(10));
        if told.elapsed() >= Duration::from_secs(10) {
            told = Instant::now();
            println!("{} states so far", states());
        }
    }
}
