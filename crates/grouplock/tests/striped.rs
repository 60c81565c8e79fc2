//! What a striped lock promises beyond what every lock does: its favour holds nobody up.
#![cfg(not(any(loom, shuttle)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use grouplock::cores::Striped;
use grouplock::{GroupLock, Policy};

/// The favoured session comes and goes without end, and a request for another that waits once gets in.
#[test]
fn the_favoured_session_starves_nobody() {
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 100 }] {
        let lock = GroupLock::over(Striped::new(policy), ());
        let stop = AtomicBool::new(false);
        let passages = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop(lock.enter(1));
                        passages.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut starved = None;
            for round in 0..200 {
                if lock.try_enter_for(2, Duration::from_secs(5)).is_none() {
                    starved = Some(round);
                    break;
                }
                // Long enough for the favour to come back.
                let so_far = passages.load(Ordering::Relaxed);
                while passages.load(Ordering::Relaxed) < so_far + 200 {
                    thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(starved, None, "{policy:?}: waited for five seconds, {:?}", lock.snapshot());
        });
    }
}
