//! Concurrent occupancy: all processes that request one session enter, although none of them
//! leaves.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use grouplock_algorithms as locks;
use grouplock_algorithms::Group;
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::raw::RawGroup;

/// All threads meet inside, again and again. If one of them did not enter, the others would wait
/// forever.
fn all_meet_inside<G: RawGroup<Native> + 'static>(threads: usize, rounds: u64) {
    let lock = Arc::new(Group::<G>::new(threads).expect("this many are possible"));
    let meeting = Arc::new(Barrier::new(threads));
    let (tell, told) = mpsc::channel();
    for _ in 0..threads {
        let (lock, meeting, tell) = (Arc::clone(&lock), Arc::clone(&meeting), tell.clone());
        thread::spawn(move || {
            let mut process = lock.process().expect("there is room for all threads");
            for round in 0..rounds {
                let inside = process.enter(round % 3 + 1).expect("nothing was leaked");
                meeting.wait();
                drop(inside);
                // All threads request the same session next.
                meeting.wait();
            }
            tell.send(()).expect("the test waits for all threads");
        });
    }
    for _ in 0..threads {
        told.recv_timeout(Duration::from_secs(60)).expect("everyone gets in");
    }
}

macro_rules! tests {
    ($lock:ty) => {
        #[test]
        fn two_meet_inside() {
            all_meet_inside::<$lock>(2, 100);
        }

        #[test]
        fn sixteen_meet_inside() {
            all_meet_inside::<$lock>(16, 20);
        }
    };
}

every_group!(Native, tests);
every_policy!(Native, tests);
