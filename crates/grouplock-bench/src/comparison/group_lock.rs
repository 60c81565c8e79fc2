//! `GroupLock`, as the harness sees it: its policies and cores.

use core::hint::black_box;

use grouplock::cores::{Handover, Striped};
use grouplock::{GroupLock, Policy};

use super::alone::{Alone, Path};
use super::lock::{Kind, Lock};
use crate::uncontended::subjects::{critical_section, keep};

/// How many may overtake a waiter under [`GroupLockBatch`].
const PASSES: u32 = 100;

/// With the default policy.
#[derive(Debug)]
pub struct GroupLockDefault(GroupLock<u64, ()>);

impl Lock for GroupLockDefault {
    const NAME: &'static str = "GroupLock";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        GroupLockDefault(GroupLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.enter(session);
        inside()
    }
}

/// With the default policy, as a lock with readers and writers: session 0 is entered, others are exclusive.
#[derive(Debug)]
pub struct GroupLockExclusive(GroupLock<u64, ()>);

impl Lock for GroupLockExclusive {
    const NAME: &'static str = "GroupLock, exclusive";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        GroupLockExclusive(GroupLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let _held = self.0.enter(0);
            inside()
        } else {
            let _held = self.0.exclusive();
            inside()
        }
    }
}

/// In strict order.
#[derive(Debug)]
pub struct GroupLockFifo(GroupLock<u64, ()>);

impl Lock for GroupLockFifo {
    const NAME: &'static str = "GroupLock, Fifo";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        GroupLockFifo(GroupLock::with_policy(Policy::Fifo, ()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.enter(session);
        inside()
    }
}

/// With capturing.
#[derive(Debug)]
pub struct GroupLockBatch(GroupLock<u64, ()>);

impl Lock for GroupLockBatch {
    const NAME: &'static str = "GroupLock, Batch";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        GroupLockBatch(GroupLock::with_policy(Policy::Batch { passes: PASSES }, ()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.enter(session);
        inside()
    }
}

/// With a counter per stripe, and the default policy.
#[derive(Debug)]
pub struct GroupLockStriped(GroupLock<u64, (), Striped<u64>>);

impl Lock for GroupLockStriped {
    const NAME: &'static str = "GroupLock, striped";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        GroupLockStriped(GroupLock::striped(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.enter(session);
        inside()
    }
}

/// Over the algorithm with constant remote references.
#[derive(Debug)]
pub struct GroupLockHandover(GroupLock<u32, (), Handover<u32>>);

impl Lock for GroupLockHandover {
    const NAME: &'static str = "GroupLock, handover";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        GroupLockHandover(GroupLock::over(Handover::new(), ()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        // The core takes numbers of 32 bits; the harness has no larger ones.
        let _held = self.0.enter(session as u32);
        inside()
    }
}

/// The ways in that are not the harness's own.
pub(super) fn other_ways() -> Vec<Alone> {
    let lock = keep(GroupLock::<u64, ()>::new(()));
    vec![
        Alone::new(GroupLockDefault::NAME, Path::Exclusive, move || {
            let held = black_box(lock).exclusive();
            critical_section();
            drop(held);
        }),
        Alone::new(GroupLockDefault::NAME, Path::Try, move || {
            let held = black_box(lock).try_enter(black_box(0));
            critical_section();
            drop(held);
        }),
        Alone::task(GroupLockDefault::NAME, move || black_box(lock).enter_async(black_box(0))),
    ]
}
