//! A striped lock also promises that its favour starves no request.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::{LATE, SetWhenDropped, wait_until};
use grouplock::cores::Striped;
use grouplock::{GroupLock, Policy};

const ROUNDS: u32 = if cfg!(tsan) { 30 } else { 100 };

/// Holders of the favoured session enter and leave without end. A waiting request for another
/// session enters.
#[test]
fn the_favoured_session_starves_nobody() {
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 100 }] {
        let lock = GroupLock::over(Striped::new(policy), ());
        let stop = AtomicBool::new(false);
        let passages = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        drop(lock.enter(1));
                        passages.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let _stop = SetWhenDropped(&stop);
            for round in 0..ROUNDS {
                let entered = lock.try_enter_for(2, LATE).is_some();
                assert!(entered, "{policy:?}: starved in round {round}, {:?}", lock.snapshot());
                // Long enough for a new favour.
                let so_far = passages.load(Ordering::Relaxed);
                wait_until("the favoured session has come and gone", || {
                    passages.load(Ordering::Relaxed) >= so_far + 200
                });
            }
        });
    }
}
