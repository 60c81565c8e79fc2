//! Many participants at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Subject, assert_empty, open};
use crate::room::Room;

const SESSIONS: usize = 3;
const THREADS: usize = 8;
const TIME: Duration = Duration::from_millis(800);

/// The holders, as the holders themselves count them.
#[derive(Default)]
struct Monitor {
    inside: [AtomicU64; SESSIONS],
    /// The epoch of the last phase of each session.
    epochs: AtomicU64,
    entries: AtomicU64,
}

impl Monitor {
    fn visit(&self, session: usize, epoch: u64) {
        self.inside[session].fetch_add(1, Ordering::SeqCst);
        for (other, count) in self.inside.iter().enumerate() {
            let count = count.load(Ordering::SeqCst);
            assert!(
                other == session || count == 0,
                "sessions {session} and {other} are inside at once"
            );
        }
        let before = self.epochs.fetch_max(epoch, Ordering::SeqCst);
        assert!(before <= epoch, "epoch {epoch} after {before}");
        self.entries.fetch_add(1, Ordering::SeqCst);
        if epoch.is_multiple_of(7) {
            std::thread::yield_now();
        }
        self.inside[session].fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) fn no_two_sessions_overlap_in_a_storm(subject: &dyn Subject) {
    let monitor = Monitor::default();
    let end = Instant::now() + TIME;
    let names = ["storm of a", "storm of b", "storm of c"];
    let work = |room: &Room, number: usize| {
        let mut turn = number;
        let mut own = 0;
        // On a busy machine the loop takes longer, until it has entered.
        while Instant::now() < if own == 0 { end + subject.soon() } else { end } {
            // Not random, but different for each thread.
            turn = turn.wrapping_mul(31).wrapping_add(number + 7);
            let session = turn / 8 % SESSIONS;
            let request = room.request(names[session]);
            let request = match turn % 5 {
                0 => request.no_wait(),
                1 => request.timeout(Duration::from_micros(200)),
                _ => request.timeout(subject.soon()),
            };
            match request.enter() {
                Ok(guard) => {
                    monitor.visit(session, guard.epoch());
                    own += 1;
                    guard.leave().expect("it can be left");
                }
                Err(error) if error.is_conflict() && turn % 5 < 2 => {}
                Err(error) => panic!("thread {number}: {error}"),
            }
        }
        own
    };
    let shared = open(subject, "storm");
    std::thread::scope(|scope| {
        let (shared, work) = (&shared, &work);
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn(move || {
                    // Half of the threads share a handle.
                    if number % 2 == 0 {
                        work(shared, number)
                    } else {
                        work(&open(subject, "storm"), number)
                    }
                })
            })
            .collect();
        for (number, thread) in threads.into_iter().enumerate() {
            assert!(thread.join().expect("no panic") > 0, "thread {number} never entered");
        }
    });
    assert!(monitor.entries.load(Ordering::SeqCst) >= THREADS as u64);
    assert_empty(subject, &shared);
}
