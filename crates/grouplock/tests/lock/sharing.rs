//! Requests of one session do not wait for each other: if they can be inside together, they are.

use std::future::Future;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use grouplock::{ExclusiveGuard, GroupLock, Policy, SessionGuard};

/// All policies. The default policy has both ends of its patience.
fn policies() -> [Policy; 6] {
    [
        Policy::EVENTUAL,
        Policy::Eventual { patience: Duration::ZERO },
        Policy::Eventual { patience: Duration::MAX },
        Policy::Fifo,
        Policy::Batch { passes: 3 },
        Policy::BatchFor { wait: Duration::from_millis(1) },
    ]
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn those_behind_a_request_that_is_given_up_join_the_session_inside() {
    for policy in policies() {
        let lock = GroupLock::with_policy(policy, ());
        let inside = lock.enter('a');
        let mut conflict = Box::pin(lock.enter_async('b'));
        assert!(poll(conflict.as_mut()).is_pending());
        let mut fellow = pin!(lock.enter_async('a'));
        if poll(fellow.as_mut()).is_pending() {
            drop(conflict);
            assert!(
                poll(fellow.as_mut()).is_ready(),
                "{policy:?}: only a holder of the same session is inside, and no request waits"
            );
        }
        drop(inside);
    }
}

#[test]
fn phases_that_become_neighbours_enter_together() {
    for policy in policies() {
        let lock = GroupLock::with_policy(policy, ());
        let alone = lock.exclusive();
        let mut first = pin!(lock.enter_async('a'));
        assert!(poll(first.as_mut()).is_pending());
        let mut between = Box::pin(lock.enter_async('b'));
        assert!(poll(between.as_mut()).is_pending());
        let mut second = pin!(lock.enter_async('a'));
        assert!(poll(second.as_mut()).is_pending());
        drop(between);
        drop(alone);
        let (Poll::Ready(_one), Poll::Ready(_other)) =
            (poll(first.as_mut()), poll(second.as_mut()))
        else {
            panic!("{policy:?}: two of the same session, and only one is inside");
        };
    }
}

#[test]
fn two_holders_that_switch_to_the_same_session_meet_there() {
    for policy in policies() {
        let lock = GroupLock::with_policy(policy, ());
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut guard = lock.enter('a');
                    together.wait();
                    SessionGuard::switch(&mut guard, 'b');
                    // Both must be inside 'b' at once, or this waits forever.
                    together.wait();
                });
            }
        });
    }
}

#[test]
fn waiters_join_a_room_that_was_downgraded_to_their_session() {
    for policy in policies() {
        let lock = GroupLock::with_policy(policy, ());
        let alone = lock.exclusive();
        let mut fellow = pin!(lock.enter_async('a'));
        assert!(poll(fellow.as_mut()).is_pending());
        let inside = ExclusiveGuard::downgrade(alone, 'a');
        assert!(poll(fellow.as_mut()).is_ready(), "{policy:?}");
        drop(inside);
    }
}
