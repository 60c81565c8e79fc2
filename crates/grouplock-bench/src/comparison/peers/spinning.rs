//! Locks whose waiters never sleep.

use mcslock::raw::{MutexNode, spins, yields};

use crate::comparison::lock::{Kind, Lock};

/// [`spin::Mutex`].
#[derive(Debug)]
pub struct SpinMutex(spin::Mutex<()>);

impl Lock for SpinMutex {
    const NAME: &'static str = "spin Mutex";
    const KIND: Kind = Kind::Mutual;
    type Local = ();

    fn new() -> Self {
        SpinMutex(spin::Mutex::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), _: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        inside()
    }
}

/// [`spin::RwLock`].
#[derive(Debug)]
pub struct SpinRwLock(spin::RwLock<()>);

impl Lock for SpinRwLock {
    const NAME: &'static str = "spin RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        SpinRwLock(spin::RwLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let _held = self.0.read();
            inside()
        } else {
            let _held = self.0.write();
            inside()
        }
    }
}

/// mcslock's queue, waiters spin.
#[derive(Debug)]
pub struct McsSpin(spins::Mutex<()>);

impl Lock for McsSpin {
    const NAME: &'static str = "mcslock, spins";
    const KIND: Kind = Kind::Mutual;
    type Local = MutexNode;

    fn new() -> Self {
        McsSpin(spins::Mutex::new(()))
    }

    fn local() -> MutexNode {
        MutexNode::new()
    }

    #[inline(always)]
    fn pass<R>(&self, node: &mut MutexNode, _: u64, inside: impl FnOnce() -> R) -> R {
        self.0.lock_with_then(node, |()| inside())
    }
}

/// mcslock's queue, waiters give their core away.
#[derive(Debug)]
pub struct McsYield(yields::Mutex<()>);

impl Lock for McsYield {
    const NAME: &'static str = "mcslock, yields";
    const KIND: Kind = Kind::Mutual;
    type Local = MutexNode;

    fn new() -> Self {
        McsYield(yields::Mutex::new(()))
    }

    fn local() -> MutexNode {
        MutexNode::new()
    }

    #[inline(always)]
    fn pass<R>(&self, node: &mut MutexNode, _: u64, inside: impl FnOnce() -> R) -> R {
        self.0.lock_with_then(node, |()| inside())
    }
}
