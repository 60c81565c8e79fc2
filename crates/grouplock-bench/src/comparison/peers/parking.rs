//! `parking_lot`, as it is and with every release fair, and usync.

use crate::comparison::lock::{Kind, Lock};

/// [`parking_lot::Mutex`].
#[derive(Debug)]
pub struct ParkingLotMutex(parking_lot::Mutex<()>);

impl Lock for ParkingLotMutex {
    const NAME: &'static str = "parking_lot Mutex";
    const KIND: Kind = Kind::Mutual;
    type Local = ();

    fn new() -> Self {
        ParkingLotMutex(parking_lot::Mutex::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), _: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        inside()
    }
}

/// [`parking_lot::Mutex`] that is always left by `unlock_fair`: handed to whoever waits longest.
#[derive(Debug)]
pub struct ParkingLotMutexFair(parking_lot::Mutex<()>);

impl Lock for ParkingLotMutexFair {
    const NAME: &'static str = "parking_lot Mutex, unlock_fair";
    const KIND: Kind = Kind::Mutual;
    type Local = ();

    fn new() -> Self {
        ParkingLotMutexFair(parking_lot::Mutex::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), _: u64, inside: impl FnOnce() -> R) -> R {
        let held = self.0.lock();
        let result = inside();
        parking_lot::MutexGuard::unlock_fair(held);
        result
    }
}

/// [`parking_lot::RwLock`].
#[derive(Debug)]
pub struct ParkingLotRwLock(parking_lot::RwLock<()>);

impl Lock for ParkingLotRwLock {
    const NAME: &'static str = "parking_lot RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        ParkingLotRwLock(parking_lot::RwLock::new(()))
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

/// [`parking_lot::RwLock`] that is always left by `unlock_fair`.
#[derive(Debug)]
pub struct ParkingLotRwLockFair(parking_lot::RwLock<()>);

impl Lock for ParkingLotRwLockFair {
    const NAME: &'static str = "parking_lot RwLock, unlock_fair";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        ParkingLotRwLockFair(parking_lot::RwLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let held = self.0.read();
            let result = inside();
            parking_lot::RwLockReadGuard::unlock_fair(held);
            result
        } else {
            let held = self.0.write();
            let result = inside();
            parking_lot::RwLockWriteGuard::unlock_fair(held);
            result
        }
    }
}

/// [`usync::RwLock`].
pub struct Usync(usync::RwLock<()>);

impl Lock for Usync {
    const NAME: &'static str = "usync RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        Usync(usync::RwLock::new(()))
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
