//! `GroupLock` in the harness: its policies and cores.

use core::hint::black_box;

use grouplock::cores::{Handover, Striped};
use grouplock::{GroupLock, Policy};

use super::alone::{Alone, WayIn};
use super::lock::{Kind, Lock, hold, lock};
use crate::rounds::{critical_section, keep};

/// How many requests may overtake a waiter under [`batch`].
pub(super) const PASSES: u32 = 100;

/// The policy with few changes of session.
pub(super) fn batch() -> Policy {
    Policy::Batch { passes: PASSES }
}

lock!(
    /// With the default policy.
    GroupLockDefault(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock",
    group |lock, session| lock.enter(session)
);
lock!(
    /// As a mutex.
    GroupLockExclusive(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock, all exclusive",
    mutex |lock| lock.exclusive()
);
lock!(
    /// As a lock with readers and writers.
    GroupLockReadWrite(GroupLock<u64, ()>) = GroupLock::new(()), "GroupLock, enter / exclusive",
    read_write |lock| lock.enter(0), lock.exclusive()
);
lock!(
    GroupLockFifo(GroupLock<u64, ()>) = GroupLock::with_policy(Policy::Fifo, ()), "GroupLock, Fifo",
    group |lock, session| lock.enter(session)
);
lock!(
    GroupLockBatch(GroupLock<u64, ()>) = GroupLock::with_policy(batch(), ()), "GroupLock, Batch",
    group |lock, session| lock.enter(session)
);
lock!(
    /// With a counter per stripe, and the default policy.
    GroupLockStriped(GroupLock<u64, (), Striped<u64>>) = GroupLock::striped(()), "GroupLock, striped",
    group |lock, session| lock.enter(session)
);
lock!(
    /// Over the algorithm with constant remote references. It takes numbers of 32 bits; the harness
    /// has no larger ones.
    GroupLockHandover(GroupLock<u32, (), Handover<u32>>) = GroupLock::over(Handover::new(), ()),
    "GroupLock, handover", group |lock, session| lock.enter(session as u32)
);

/// The ways in that the harness does not use.
pub(super) fn other_ways() -> Vec<Alone> {
    let name = GroupLockDefault::NAME;
    let fresh = keep(GroupLock::<u64, ()>::new(()));
    let lock = keep(GroupLock::<u64, ()>::new(()));
    // From now on a session has been inside.
    drop(lock.enter(0));
    let occupied = keep(GroupLock::<u64, ()>::new(()));
    core::mem::forget(occupied.enter(1));
    vec![
        Alone::new(name, WayIn::Exclusive, move || {
            hold(black_box(lock).exclusive(), critical_section);
        }),
        Alone::new(name, WayIn::FirstExclusive, move || {
            hold(black_box(fresh).exclusive(), critical_section);
        }),
        Alone::new(name, WayIn::Try, move || {
            hold(black_box(lock).try_enter(black_box(0)), critical_section);
        }),
        Alone::new(name, WayIn::FailingTry, move || {
            assert!(black_box(occupied).try_enter(black_box(0)).is_none());
        }),
        Alone::new(name, WayIn::FailingTryExclusive, move || {
            assert!(black_box(occupied).try_exclusive().is_none());
        }),
        Alone::task(name, move || black_box(lock).enter_async(black_box(0))),
    ]
}
