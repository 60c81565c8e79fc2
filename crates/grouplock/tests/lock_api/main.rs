//! `Mutex` and `RwLock` through `lock_api`: what users of std and `parking_lot` rely on.
#![cfg(feature = "lock_api")]

#[path = "../common/mod.rs"]
mod common;
mod fair;
mod mutex;
mod rwlock;
mod upgradable;

use std::fmt::Debug;
use std::time::Duration;

use common::wait_until;

/// How long to wait for something that must not happen.
const SOON: Duration = Duration::from_millis(40);

/// Waits until so many requests wait for the lock `raw`.
#[track_caller]
fn so_many_wait(raw: &dyn Debug, number: usize) {
    let shown = format!("waiting: {number}, ");
    wait_until(&shown, || format!("{raw:?}").contains(&shown));
}

/// Pseudorandom numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}
