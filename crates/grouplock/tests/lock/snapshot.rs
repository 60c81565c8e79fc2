//! What a snapshot shows.

use crate::common::{pending, ready};
use grouplock::cores::{Core, Striped};
use grouplock::{GroupLock, Policy};

/// The session inside, whether a holder is alone, the number of holders, and the waiters.
type Seen = (Option<u8>, bool, usize, Vec<(Option<u8>, usize)>);

fn seen<C: Core<Session = u8>>(lock: &GroupLock<u8, (), C>) -> Seen {
    let seen = lock.snapshot();
    let waiting = seen.waiting.iter().map(|phase| (phase.session, phase.waiters)).collect();
    (seen.session, seen.exclusive, seen.holders, waiting)
}

fn tells<C: Core<Session = u8>>(lock: &GroupLock<u8, (), C>) {
    let empty = (None, false, 0, vec![]);
    assert_eq!(seen(lock), empty, "no session has been inside yet");
    let one = lock.enter(1);
    assert_eq!(seen(lock), (Some(1), false, 1, vec![]));
    let two = lock.enter(1);
    assert_eq!(seen(lock), (Some(1), false, 2, vec![]));
    drop(one);
    let (mut first, mut second) = (lock.enter_async(2), lock.enter_async(2));
    let mut third = lock.exclusive_async();
    pending(&mut first);
    pending(&mut second);
    pending(&mut third);
    assert_eq!(seen(lock), (Some(1), false, 1, vec![(Some(2), 2), (None, 1)]));
    drop(two);
    // Requests that were admitted are inside, polled or not.
    assert_eq!(seen(lock), (Some(2), false, 2, vec![(None, 1)]));
    drop((first, second));
    assert_eq!(seen(lock), (None, true, 1, vec![]));
    drop(ready(&mut third));
    assert_eq!(seen(lock), empty, "the last session is not inside any more");
    drop(lock.enter(1));
    assert_eq!(seen(lock), empty, "the last session is not inside any more");
    // Enough entries for a striped lock to favour the session.
    (0..200).for_each(|_| drop(lock.enter(1)));
    assert_eq!(seen(lock), empty, "the favoured session is not inside");
    assert_eq!(lock.try_enter(1).map(|_guard| seen(lock)), Some((Some(1), false, 1, vec![])));
}

#[test]
fn a_snapshot_shows_holders_and_waiters() {
    for policy in [Policy::EVENTUAL, Policy::Fifo] {
        tells(&GroupLock::with_policy(policy, ()));
        tells(&GroupLock::over(Striped::new(policy), ()));
    }
    #[cfg(feature = "handover")]
    tells(&GroupLock::over(grouplock::cores::Handover::new(), ()));
}
