//! The lock by hand really is a group lock: without that, its speed would say nothing.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::handover_by_hand::{HandoverByHand, Process};

const THREADS: u64 = 4;
const PASSAGES: u64 = 20_000;

/// Makes `PASSAGES` passages, number `k` for `session(k)`, and does `inside(k, session)` in each of them.
fn passages(
    lock: &HandoverByHand,
    mut me: Process,
    session: impl Fn(u64) -> u64,
    mut inside: impl FnMut(u64, u64),
) {
    for k in 0..PASSAGES {
        // SAFETY: every caller joins this lock; the process is outside whenever the loop comes round.
        unsafe { lock.enter(&mut me, session(k)) };
        inside(k, session(k));
        // SAFETY: it entered above.
        unsafe { lock.exit(&mut me) };
    }
}

/// Lets the others run into a lock that is held, now and then: on few cores they seldom do otherwise.
fn linger(k: u64) {
    if k.is_multiple_of(64) {
        thread::yield_now();
    }
}

/// Nothing but the lock orders the accesses to this.
struct Plain(UnsafeCell<u64>);

// SAFETY: the test is about whether the lock keeps the threads apart.
unsafe impl Sync for Plain {}

#[test]
fn a_session_of_ones_own_is_a_mutex() {
    let lock = HandoverByHand::new();
    let counter = Plain(UnsafeCell::new(0));
    thread::scope(|scope| {
        for session in 1..=THREADS {
            let (lock, counter) = (&lock, &counter);
            scope.spawn(move || {
                passages(
                    lock,
                    lock.join(),
                    |_| session,
                    |k, _| {
                        let at = counter.0.get();
                        // SAFETY: nobody else is inside, and nobody outside looks.
                        let seen = unsafe { at.read_volatile() };
                        linger(k);
                        // SAFETY: as above.
                        unsafe { at.write_volatile(seen + 1) };
                    },
                );
            });
        }
    });
    assert_eq!(counter.0.into_inner(), THREADS * PASSAGES);
}

#[test]
fn two_sessions_are_never_inside_together() {
    let lock = HandoverByHand::new();
    // How many are inside, by session; each is sure of its own entry when it looks at the others.
    let inside: [AtomicU64; 3] = Default::default();
    let entries = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, inside, entries) = (&lock, &inside, &entries);
            scope.spawn(move || {
                passages(
                    lock,
                    lock.join(),
                    |k| (k / 3 + thread) % 3 + 1,
                    |k, session| {
                        let mine = session as usize - 1;
                        inside[mine].fetch_add(1, Ordering::SeqCst);
                        linger(k);
                        for (other, count) in inside.iter().enumerate() {
                            if other != mine {
                                assert_eq!(count.load(Ordering::SeqCst), 0, "{other} while {mine}");
                            }
                        }
                        inside[mine].fetch_sub(1, Ordering::SeqCst);
                        entries.fetch_add(1, Ordering::Relaxed);
                    },
                );
            });
        }
    });
    assert_eq!(entries.into_inner() as u64, THREADS * PASSAGES);
}

#[test]
fn one_session_is_shared() {
    let lock = HandoverByHand::new();
    // All must be inside at once to get past this.
    let meeting = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (lock, meeting) = (&lock, &meeting);
            scope.spawn(move || {
                let mut me = lock.join();
                // SAFETY: the process has just joined.
                unsafe { lock.enter(&mut me, 7) };
                meeting.wait();
                // SAFETY: it entered above.
                unsafe { lock.exit(&mut me) };
            });
        }
    });
}
