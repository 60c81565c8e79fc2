//! The locks that people use otherwise. The harness calls each as its users do.

mod by_hand;

use std::sync::{Mutex, RwLock};

use crossbeam_utils::sync::ShardedLock;
use mcslock::raw::{MutexNode, spins, yields};
use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use super::lock::{Kind, Lock, held, hold, lock};

pub(crate) use by_hand::{ByHand, CountingByHand, FairByHand};

lock!(
    StdMutex(Mutex<()>) = Mutex::new(()), "std Mutex", mutex |lock| held(lock.lock())
);
lock!(
    StdRwLock(RwLock<()>) = RwLock::new(()), "std RwLock",
    read_write |lock| held(lock.read()), held(lock.write())
);
lock!(
    ParkingLotMutex(parking_lot::Mutex<()>) = parking_lot::Mutex::new(()), "parking_lot Mutex",
    mutex |lock| lock.lock()
);
lock!(
    /// Every release is an `unlock_fair`, which hands the lock to the thread that has waited
    /// longest.
    ParkingLotMutexFair(parking_lot::Mutex<()>) = parking_lot::Mutex::new(()),
    "parking_lot Mutex, unlock_fair", Mutual,
    |lock, _, inside| {
        let guard = lock.lock();
        let result = inside();
        MutexGuard::unlock_fair(guard);
        result
    }
);
lock!(
    ParkingLotRwLock(parking_lot::RwLock<()>) = parking_lot::RwLock::new(()), "parking_lot RwLock",
    read_write |lock| lock.read(), lock.write()
);
lock!(
    /// Every release is an `unlock_fair`.
    ParkingLotRwLockFair(parking_lot::RwLock<()>) = parking_lot::RwLock::new(()),
    "parking_lot RwLock, unlock_fair", ReadWrite,
    |lock, session, inside| if session == 0 {
        let guard = lock.read();
        let result = inside();
        RwLockReadGuard::unlock_fair(guard);
        result
    } else {
        let guard = lock.write();
        let result = inside();
        RwLockWriteGuard::unlock_fair(guard);
        result
    }
);
lock!(
    Usync(usync::RwLock<()>) = usync::RwLock::new(()), "usync RwLock",
    read_write |lock| lock.read(), lock.write()
);
lock!(
    /// Readers count on a stripe of their own, a writer takes all stripes.
    Sharded(ShardedLock<()>) = ShardedLock::new(()), "crossbeam ShardedLock",
    read_write |lock| held(lock.read()), held(lock.write())
);
lock!(
    /// By its calls for threads.
    AsyncLock(async_lock::RwLock<()>) = async_lock::RwLock::new(()), "async-lock RwLock",
    read_write |lock| lock.read_blocking(), lock.write_blocking()
);
lock!(
    /// By its calls for threads.
    Tokio(tokio::sync::RwLock<()>) = tokio::sync::RwLock::new(()), "tokio RwLock",
    read_write |lock| lock.blocking_read(), lock.blocking_write()
);
lock!(
    SpinMutex(spin::Mutex<()>) = spin::Mutex::new(()), "spin Mutex", mutex |lock| lock.lock()
);
lock!(
    SpinRwLock(spin::RwLock<()>) = spin::RwLock::new(()), "spin RwLock",
    read_write |lock| lock.read(), lock.write()
);
lock!(
    McsSpin(spins::Mutex<()>) = spins::Mutex::new(()), "mcslock, spins", Mutual,
    MutexNode = MutexNode::new(), |lock, node, _, inside| lock.lock_with_then(node, |()| inside())
);
lock!(
    McsYield(yields::Mutex<()>) = yields::Mutex::new(()), "mcslock, yields", Mutual,
    MutexNode = MutexNode::new(), |lock, node, _, inside| lock.lock_with_then(node, |()| inside())
);
