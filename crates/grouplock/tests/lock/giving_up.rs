//! A withdrawn request leaves nothing behind. Requests behind it continue as if it had never
//! arrived. If it was admitted, the room passes to others.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{LATE, Woken, pending, poll_with, ready, try_again, wait_until};
use grouplock::cores::{Core, Striped};
use grouplock::{ExclusiveGuard, GroupLock, Policy};

const POLICIES: [Policy; 6] = [
    Policy::EVENTUAL,
    Policy::Eventual { patience: Duration::ZERO },
    Policy::Eventual { patience: Duration::MAX },
    Policy::Fifo,
    Policy::Batch { passes: 3 },
    Policy::BatchFor { wait: Duration::from_secs(1) },
];

/// Makes a test for every policy on every core.
macro_rules! for_every_lock {
    ($($(#[$meta:meta])* fn $name:ident($lock:ident) $body:block)*) => {
        $(
            $(#[$meta])*
            #[test]
            fn $name() {
                fn check<C: Core<Session = u8> + Sync>($lock: &GroupLock<u8, (), C>) $body
                for policy in POLICIES {
                    println!("{policy:?}");
                    check(&GroupLock::with_policy(policy, ()));
                    println!("striped, {policy:?}");
                    check(&GroupLock::over(Striped::new(policy), ()));
                }
                println!("priorities");
                check(&GroupLock::with_priorities(Duration::from_secs(1), |_| 0, ()));
                #[cfg(feature = "handover")]
                {
                    println!("handover");
                    check(&GroupLock::over(grouplock::cores::Handover::new(), ()));
                }
            }
        )*
    };
}

/// Checks that there are no holders and no waiters.
#[track_caller]
fn assert_free<C: Core<Session = u8>>(lock: &GroupLock<u8, (), C>) {
    let seen = lock.snapshot();
    assert_eq!((seen.session, seen.holders, seen.waiting.len()), (None, 0, 0));
    drop(lock.try_exclusive().expect("the room is empty"));
}

for_every_lock! {
    /// A is inside, B waits, and another A waits behind B if the policy says so. When B withdraws,
    /// nothing is between the two A's.
    fn a_request_behind_only_a_withdrawn_one_enters(lock) {
        let inside = lock.enter(1);
        let mut other = lock.enter_async(2);
        pending(&mut other);
        let (woken, waker) = Woken::new();
        let mut fellow = lock.enter_async(1);
        let fellow_inside = poll_with(&mut fellow, &waker);
        if fellow_inside.is_pending() {
            drop(other);
            assert_eq!(woken.times(), 1, "it can enter, and must be told");
            drop(ready(&mut fellow));
        } else {
            drop(other);
        }
        drop(fellow_inside);
        drop(fellow);
        drop(inside);
        assert_free(lock);
    }

    /// The same, if the request between them withdraws because of a timeout.
    fn a_request_behind_only_one_that_timed_out_enters(lock) {
        let inside = lock.enter(1);
        let mut time = Duration::from_millis(30);
        try_again("a request to be alone was seen before its time was over", || {
            time *= 2;
            thread::scope(|scope| {
                let alone = scope.spawn(|| lock.try_exclusive_for(time).is_none());
                let mut seen = false;
                wait_until("the request to be alone waits, or did", || {
                    seen = !lock.snapshot().waiting.is_empty();
                    seen || alone.is_finished()
                });
                // It waits at most for the request to be alone, and never for `inside`.
                let fellow = lock.try_enter_for(1, LATE);
                assert!(fellow.is_some(), "{:?}", lock.snapshot());
                assert!(alone.join().expect("it does not panic"), "alone beside a holder");
                seen.then_some(())
            })
        });
        drop(inside);
        assert_free(lock);
    }

    /// Two phases of a session become one when the phase between them withdraws.
    fn phases_that_nothing_separates_go_together(lock) {
        let alone = lock.exclusive();
        let mut one = lock.enter_async(1);
        let mut between = lock.exclusive_async();
        let mut two = lock.enter_async(1);
        pending(&mut one);
        pending(&mut between);
        pending(&mut two);
        drop(between);
        drop(alone);
        let one = ready(&mut one);
        let two = ready(&mut two);
        drop((one, two));
        assert_free(lock);
    }

    fn a_grant_that_nobody_polls_for_is_passed_on(lock) {
        let inside = lock.enter(1);
        let mut second = lock.exclusive_async();
        let mut third = lock.enter_async(2);
        let (woken, waker) = Woken::new();
        pending(&mut second);
        assert!(poll_with(&mut third, &waker).is_pending());
        drop(inside);
        // The second request is already admitted, and does not know it.
        assert_eq!(woken.times(), 0);
        drop(second);
        assert_eq!(woken.times(), 1);
        drop(ready(&mut third));
        assert_free(lock);
    }

    fn a_future_that_was_never_polled_has_asked_for_nothing(lock) {
        let inside = lock.enter(1);
        let future = lock.enter_async(2);
        assert!(lock.snapshot().waiting.is_empty());
        drop(future);
        drop(inside);
        assert_free(lock);
    }

    fn the_last_waker_counts(lock) {
        let inside = lock.enter(1);
        let mut future = lock.enter_async(2);
        let (old, old_waker) = Woken::new();
        let (new, new_waker) = Woken::new();
        assert!(poll_with(&mut future, &old_waker).is_pending());
        assert!(poll_with(&mut future, &new_waker).is_pending());
        drop(inside);
        assert_eq!((old.times(), new.times()), (0, 1));
        drop(ready(&mut future));
        assert_free(lock);
    }

    fn time_over_leaves_no_trace(lock) {
        let inside = lock.enter(1);
        let start = Instant::now();
        assert!(lock.try_enter_for(2, Duration::from_millis(5)).is_none());
        assert!(lock.try_exclusive_until(start + Duration::from_millis(10)).is_none());
        assert!(start.elapsed() >= Duration::from_millis(10));
        assert!(lock.snapshot().waiting.is_empty());
        // No request waits any more, so the session inside can be joined.
        drop(lock.try_enter(1).expect("the same session"));
        drop(inside);
        assert_free(lock);
    }

    /// A holder that opens the room to a session admits waiting requests of that session first.
    fn downgrading_admits_the_waiters_of_the_session(lock) {
        let alone = lock.exclusive();
        let mut first = lock.enter_async(1);
        let mut other = lock.enter_async(2);
        let (woken, waker) = Woken::new();
        assert!(poll_with(&mut first, &waker).is_pending());
        pending(&mut other);
        let open = ExclusiveGuard::downgrade(alone, 1);
        assert_eq!(woken.times(), 1);
        let first = ready(&mut first);
        pending(&mut other);
        drop((open, first));
        drop(ready(&mut other));
        assert_free(lock);
    }
}
