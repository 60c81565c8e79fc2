//! The locks people use otherwise, as the harness sees them: each as it is meant to be used, none through anything in between.

mod by_hand;

use std::sync::{Mutex, PoisonError, RwLock};

use crossbeam_utils::sync::ShardedLock;
use mcslock::raw::{MutexNode, spins, yields};
use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use super::lock::{Kind, Lock, hold, lock};

pub use by_hand::{ByHand, FairByHand};

lock!(
    /// [`std::sync::Mutex`].
    StdMutex(Mutex<()>) = Mutex::new(()), "std Mutex", Mutual,
    |lock, _, inside| hold(lock.lock().unwrap_or_else(PoisonError::into_inner), inside)
);

lock!(
    /// [`std::sync::RwLock`].
    StdRwLock(RwLock<()>) = RwLock::new(()), "std RwLock", ReadWrite,
    |lock, session, inside| if session == 0 {
        hold(lock.read().unwrap_or_else(PoisonError::into_inner), inside)
    } else {
        hold(lock.write().unwrap_or_else(PoisonError::into_inner), inside)
    }
);

lock!(
    /// [`parking_lot::Mutex`].
    ParkingLotMutex(parking_lot::Mutex<()>) = parking_lot::Mutex::new(()), "parking_lot Mutex", Mutual,
    |lock, _, inside| hold(lock.lock(), inside)
);

lock!(
    /// [`parking_lot::Mutex`] that is always left by `unlock_fair`: handed to the thread that has waited longest.
    ParkingLotMutexFair(parking_lot::Mutex<()>) = parking_lot::Mutex::new(()), "parking_lot Mutex, unlock_fair", Mutual,
    |lock, _, inside| {
        let held = lock.lock();
        let result = inside();
        MutexGuard::unlock_fair(held);
        result
    }
);

lock!(
    /// [`parking_lot::RwLock`].
    ParkingLotRwLock(parking_lot::RwLock<()>) = parking_lot::RwLock::new(()), "parking_lot RwLock", ReadWrite,
    |lock, session, inside| if session == 0 { hold(lock.read(), inside) } else { hold(lock.write(), inside) }
);

lock!(
    /// [`parking_lot::RwLock`] that is always left by `unlock_fair`.
    ParkingLotRwLockFair(parking_lot::RwLock<()>) = parking_lot::RwLock::new(()), "parking_lot RwLock, unlock_fair", ReadWrite,
    |lock, session, inside| if session == 0 {
        let held = lock.read();
        let result = inside();
        RwLockReadGuard::unlock_fair(held);
        result
    } else {
        let held = lock.write();
        let result = inside();
        RwLockWriteGuard::unlock_fair(held);
        result
    }
);

lock!(
    /// [`usync::RwLock`].
    Usync(usync::RwLock<()>) = usync::RwLock::new(()), "usync RwLock", ReadWrite,
    |lock, session, inside| if session == 0 { hold(lock.read(), inside) } else { hold(lock.write(), inside) }
);

lock!(
    /// [`crossbeam_utils::sync::ShardedLock`]: readers count on a stripe of their own, a writer takes all stripes.
    Sharded(ShardedLock<()>) = ShardedLock::new(()), "crossbeam ShardedLock", ReadWrite,
    |lock, session, inside| if session == 0 {
        hold(lock.read().unwrap_or_else(PoisonError::into_inner), inside)
    } else {
        hold(lock.write().unwrap_or_else(PoisonError::into_inner), inside)
    }
);

lock!(
    /// [`async_lock::RwLock`], by its calls for threads.
    AsyncLock(async_lock::RwLock<()>) = async_lock::RwLock::new(()), "async-lock RwLock", ReadWrite,
    |lock, session, inside| if session == 0 {
        hold(lock.read_blocking(), inside)
    } else {
        hold(lock.write_blocking(), inside)
    }
);

lock!(
    /// [`tokio::sync::RwLock`], by its calls for threads.
    Tokio(tokio::sync::RwLock<()>) = tokio::sync::RwLock::new(()), "tokio RwLock", ReadWrite,
    |lock, session, inside| if session == 0 {
        hold(lock.blocking_read(), inside)
    } else {
        hold(lock.blocking_write(), inside)
    }
);

lock!(
    /// [`spin::Mutex`].
    SpinMutex(spin::Mutex<()>) = spin::Mutex::new(()), "spin Mutex", Mutual,
    |lock, _, inside| hold(lock.lock(), inside)
);

lock!(
    /// [`spin::RwLock`].
    SpinRwLock(spin::RwLock<()>) = spin::RwLock::new(()), "spin RwLock", ReadWrite,
    |lock, session, inside| if session == 0 { hold(lock.read(), inside) } else { hold(lock.write(), inside) }
);

lock!(
    /// mcslock's queue, waiters spin.
    McsSpin(spins::Mutex<()>) = spins::Mutex::new(()), "mcslock, spins", Mutual, MutexNode = MutexNode::new(),
    |lock, node, _, inside| lock.lock_with_then(node, |()| inside())
);

lock!(
    /// mcslock's queue, waiters yield their core.
    McsYield(yields::Mutex<()>) = yields::Mutex::new(()), "mcslock, yields", Mutual, MutexNode = MutexNode::new(),
    |lock, node, _, inside| lock.lock_with_then(node, |()| inside())
);
