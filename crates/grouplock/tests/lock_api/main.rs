//! Mutex and `RwLock` through `lock_api`: what users of std's and `parking_lot`'s rely on.
#![cfg(feature = "lock_api")]

mod fair;
mod mutex;
mod rwlock;
mod upgradable;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough that a thread which has something to do has done it.
const SOON: Duration = Duration::from_millis(40);
/// Longer than any test should take.
const LATE: Duration = Duration::from_secs(20);

/// Runs `what` on another thread and gives what it returns; fails if that takes forever.
fn in_time<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = what();
        let _ = tell.send(());
        result
    });
    match told.recv_timeout(LATE) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still not done after {LATE:?}"),
    }
}

/// Waits until `what` is true; fails if that takes forever.
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < LATE, "still not so after {LATE:?}");
        thread::yield_now();
    }
}

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}
