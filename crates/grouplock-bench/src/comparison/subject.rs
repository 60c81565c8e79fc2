//! All locks that compete, in a list.

use super::group_lock::{
    GroupLockBatch, GroupLockDefault, GroupLockExclusive, GroupLockFifo, GroupLockHandover,
    GroupLockStriped,
};
use super::lock::{Kind, Lock};
use super::observed::{self, Observed, Violation};
use super::peers::{
    AsyncLock, ByHand, FairByHand, McsSpin, McsYield, ParkingLotMutex, ParkingLotMutexFair,
    ParkingLotRwLock, ParkingLotRwLockFair, Sharded, SpinMutex, SpinRwLock, StdMutex, StdRwLock,
    Tokio, Usync,
};
use super::starvation::{self, Probe, Waited};
use super::throughput::{self, Counted, Round};

/// A lock, and the harness compiled for it.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// What it makes of sessions.
    pub kind: Kind,
    /// Counts entries.
    pub count: fn(&Round) -> Counted,
    /// Writes every passage down.
    pub observe: fn(&Round) -> Result<Observed, Violation>,
    /// Lets a lone request wait.
    pub probe: fn(&Probe) -> Waited,
}

impl Subject {
    /// The harness for `L`.
    pub fn of<L: Lock>() -> Self {
        Subject {
            name: L::NAME,
            kind: L::KIND,
            count: throughput::run::<L>,
            observe: observed::run::<L>,
            probe: starvation::run::<L>,
        }
    }
}

/// All of them.
pub fn all() -> Vec<Subject> {
    vec![
        Subject::of::<GroupLockDefault>(),
        Subject::of::<GroupLockExclusive>(),
        Subject::of::<GroupLockBatch>(),
        Subject::of::<GroupLockFifo>(),
        Subject::of::<GroupLockStriped>(),
        Subject::of::<GroupLockHandover>(),
        Subject::of::<StdMutex>(),
        Subject::of::<StdRwLock>(),
        Subject::of::<ParkingLotMutex>(),
        Subject::of::<ParkingLotMutexFair>(),
        Subject::of::<ParkingLotRwLock>(),
        Subject::of::<ParkingLotRwLockFair>(),
        Subject::of::<Usync>(),
        Subject::of::<Sharded>(),
        Subject::of::<AsyncLock>(),
        Subject::of::<Tokio>(),
        Subject::of::<SpinMutex>(),
        Subject::of::<SpinRwLock>(),
        Subject::of::<McsSpin>(),
        Subject::of::<McsYield>(),
        Subject::of::<ByHand<false>>(),
        Subject::of::<ByHand<true>>(),
        Subject::of::<FairByHand>(),
    ]
}

/// Bytes of an unlocked lock without data. Of those that are locks by themselves, and not made of several here.
pub fn sizes() -> Vec<(&'static str, usize)> {
    fn size<L: Lock>() -> (&'static str, usize) {
        (L::NAME, size_of::<L>())
    }
    vec![
        size::<GroupLockDefault>(),
        size::<StdMutex>(),
        size::<StdRwLock>(),
        size::<ParkingLotMutex>(),
        size::<ParkingLotRwLock>(),
        size::<Usync>(),
        size::<Sharded>(),
        size::<AsyncLock>(),
        size::<Tokio>(),
        size::<SpinMutex>(),
        size::<SpinRwLock>(),
        size::<McsSpin>(),
        size::<ByHand<false>>(),
        size::<FairByHand>(),
    ]
}
