//! `GroupLock`, as the harness sees it: its policies and cores.

use core::hint::black_box;

use grouplock::cores::{Handover, Striped};
use grouplock::{GroupLock, Policy};

use super::alone::{Alone, Path};
use super::lock::{Kind, Lock, hold, lock};
use crate::uncontended::subjects::{critical_section, keep};

/// How many requests may overtake a waiter under [`batch`].
pub const PASSES: u32 = 100;

/// The policy with few changes of session.
pub fn batch() -> Policy {
    Policy::Batch { passes: PASSES }
}

lock!(
    /// With the default policy.
    GroupLockDefault(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock", Group,
    |lock, session, inside| hold(lock.enter(session), inside)
);

lock!(
    /// As a mutex: every request is exclusive.
    GroupLockExclusive(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock, all exclusive", Mutual,
    |lock, _, inside| hold(lock.exclusive(), inside)
);

lock!(
    /// As a lock with readers and writers: session 0 is entered, all others are exclusive.
    GroupLockReadWrite(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock, enter / exclusive", ReadWrite,
    |lock, session, inside| if session == 0 { hold(lock.enter(0), inside) } else { hold(lock.exclusive(), inside) }
);

lock!(
    /// In strict order.
    GroupLockFifo(GroupLock<u64, ()>) = GroupLock::with_policy(Policy::Fifo, ()), "GroupLock, Fifo", Group,
    |lock, session, inside| hold(lock.enter(session), inside)
);

lock!(
    /// With few changes of session.
    GroupLockBatch(GroupLock<u64, ()>) = GroupLock::with_policy(batch(), ()), "GroupLock, Batch", Group,
    |lock, session, inside| hold(lock.enter(session), inside)
);

lock!(
    /// With a counter per stripe, and the default policy.
    GroupLockStriped(GroupLock<u64, (), Striped<u64>>) = GroupLock::striped(()), "GroupLock, striped", Group,
    |lock, session, inside| hold(lock.enter(session), inside)
);

lock!(
    /// Over the algorithm with constant remote references. It takes numbers of 32 bits; the harness has no larger ones.
    GroupLockHandover(GroupLock<u32, (), Handover<u32>>) = GroupLock::over(Handover::new(), ()), "GroupLock, handover", Group,
    |lock, session, inside| hold(lock.enter(session as u32), inside)
);

/// The ways in that are not the harness's own.
pub(super) fn other_ways() -> Vec<Alone> {
    let name = GroupLockDefault::NAME;
    let fresh = keep(GroupLock::<u64, ()>::new(()));
    let lock = keep(GroupLock::<u64, ()>::new(()));
    // From now on a session has been inside.
    drop(lock.enter(0));
    let held = keep(GroupLock::<u64, ()>::new(()));
    core::mem::forget(held.enter(1));
    vec![
        Alone::new(name, Path::Exclusive, move || {
            hold(black_box(lock).exclusive(), critical_section);
        }),
        Alone::new(name, Path::FirstExclusive, move || {
            hold(black_box(fresh).exclusive(), critical_section);
        }),
        Alone::new(name, Path::Try, move || {
            hold(black_box(lock).try_enter(black_box(0)), critical_section);
        }),
        Alone::new(name, Path::FailingTry, move || {
            assert!(black_box(held).try_enter(black_box(0)).is_none());
        }),
        Alone::new(name, Path::FailingTryExclusive, move || {
            assert!(black_box(held).try_exclusive().is_none());
        }),
        Alone::task(name, move || black_box(lock).enter_async(black_box(0))),
    ]
}
