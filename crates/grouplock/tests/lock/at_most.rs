//! `at_most`: a limited number of holders of a session are inside together.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use crate::common::{Woken, pending, poll_with, ready};
use grouplock::{GroupLock, Policy, SessionGuard};

const POLICIES: [Policy; 3] = [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 10 }];

/// The limits: two for session 1, three for session 2, one for all others.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is what `at_most` takes")]
fn most(session: &u8) -> usize {
    match session {
        1 => 2,
        2 => 3,
        _ => 0,
    }
}

fn assert_free<T>(lock: &GroupLock<u8, T>) {
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0), "{seen:?}");
    drop(lock.try_exclusive().expect("the room is empty"));
}

#[test]
fn one_too_many_waits_until_one_leaves() {
    for policy in POLICIES {
        let lock = GroupLock::with_policy(policy, ()).at_most(most);
        let (one, two) = (lock.enter(1), lock.enter(1));
        assert!(lock.try_enter(1).is_none());
        let mut third = lock.enter_async(1);
        let (woken, waker) = Woken::new();
        assert!(poll_with(&mut third, &waker).is_pending());
        drop(one);
        assert_eq!(woken.times(), 1, "there is place, though the room is not empty");
        let three = ready(&mut third);
        assert!(lock.try_enter(1).is_none());
        // A second guard does not wait, and counts.
        let again = SessionGuard::again(&three);
        drop(two);
        assert!(lock.try_enter(1).is_none());
        drop((three, again));
        // A limit of zero would be useless: it is one.
        let alone = lock.enter(7);
        assert!(lock.try_enter(7).is_none());
        drop(alone);
        assert_free(&lock);
    }
}

/// A phase of five requests for a session with the limit three: the others enter one by one, and
/// then the next session enters.
#[test]
fn a_large_phase_enters_in_parts() {
    for policy in POLICIES {
        let lock = GroupLock::with_policy(policy, ()).at_most(most);
        let alone = lock.exclusive();
        let mut waiting: Vec<_> = (0..5).map(|_| lock.enter_async(2)).collect();
        waiting.iter_mut().for_each(pending);
        let mut next = lock.enter_async(1);
        pending(&mut next);
        drop(alone);
        let mut inside: Vec<_> = waiting.drain(..3).map(|mut it| ready(&mut it)).collect();
        for mut later in waiting {
            pending(&mut later);
            drop(inside.pop());
            inside.push(ready(&mut later));
        }
        pending(&mut next);
        drop(inside);
        drop(ready(&mut next));
        assert_free(&lock);
    }
}

#[test]
fn waiters_for_a_set_up_enter_within_the_limit() {
    let lock = GroupLock::new(0).at_most(most);
    let alone = lock.exclusive();
    let mut set_up = Box::pin(lock.enter_with_async(1, async |data: &mut i32| *data += 1));
    pending(&mut set_up);
    let mut others: Vec<_> = (0..2).map(|_| lock.enter_async(1)).collect();
    others.iter_mut().for_each(pending);
    drop(alone);
    let first = ready(&mut set_up);
    let mut others = others.into_iter();
    let (mut second, mut third) = (others.next().unwrap(), others.next().unwrap());
    let second = ready(&mut second);
    pending(&mut third);
    drop(first);
    assert_eq!(*ready(&mut third), 1);
    drop(second);
    assert_free(&lock);
}

#[cfg(not(miri))]
#[test]
fn never_more_and_sometimes_as_many() {
    for policy in POLICIES {
        let inside: [AtomicUsize; 4] = Default::default();
        let largest: [AtomicUsize; 4] = Default::default();
        let lock = GroupLock::with_policy(policy, ()).at_most(most);
        thread::scope(|scope| {
            for seed in 0..8 {
                let (lock, inside, largest) = (&lock, &inside, &largest);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..400 {
                        let session = random.u8(..4);
                        let visit = || {
                            let here = &inside[usize::from(session)];
                            let now = here.fetch_add(1, SeqCst) + 1;
                            largest[usize::from(session)].fetch_max(now, SeqCst);
                            thread::yield_now();
                            let of_others = (0..4).filter(|it| *it != usize::from(session));
                            let meet = of_others.map(|it| inside[it].load(SeqCst)).sum::<usize>();
                            assert_eq!(meet, 0, "two sessions meet");
                            here.fetch_sub(1, SeqCst);
                        };
                        match random.u8(..4) {
                            0 => {
                                let future = &mut lock.enter_async(session);
                                if let std::task::Poll::Ready(_guard) = crate::common::poll(future)
                                {
                                    visit();
                                }
                            }
                            1 => {
                                let _alone = lock.exclusive();
                                assert!(inside.iter().all(|it| it.load(SeqCst) == 0));
                            }
                            _ => {
                                let _guard = lock.enter(session);
                                visit();
                            }
                        }
                    }
                });
            }
        });
        let largest = largest.map(AtomicUsize::into_inner);
        println!("{policy:?}: at most {largest:?} inside");
        for (session, largest) in (0..).zip(largest) {
            assert!(largest <= most(&session).max(1), "{largest} of session {session}");
        }
        assert!(largest[2] > 1, "no holders shared: {largest:?}");
        assert_free(&lock);
    }
}
