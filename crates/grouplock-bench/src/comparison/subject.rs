//! All locks that compete, in a list.

use super::lock::{Kind, Lock};
use super::observed::{self, Observed, Violation};
use super::starvation::{self, Probe, Waited};
use super::throughput::{self, Counted, Round};

/// A lock, and the harness compiled for it.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// What it makes of sessions.
    pub kind: Kind,
    /// Bytes of an unlocked lock without data.
    pub size: usize,
    /// Counts entries.
    pub count: fn(&Round) -> Counted,
    /// Writes every passage down.
    pub observe: fn(&Round) -> Result<Observed, Violation>,
    /// Lets a lone request wait.
    pub probe: fn(&Probe) -> Waited,
}

/// The harness for `L`.
fn subject<L: Lock>() -> Subject {
    Subject {
        name: L::NAME,
        kind: L::KIND,
        size: size_of::<L>(),
        count: throughput::run::<L>,
        observe: observed::run::<L>,
        probe: starvation::run::<L>,
    }
}

/// What the function gives for the type of each lock.
macro_rules! every_lock {
    ($function:ident) => {{
        use $crate::comparison::{group_lock::*, peers::*};
        vec![
            $function::<GroupLockDefault>(),
            $function::<GroupLockExclusive>(),
            $function::<GroupLockReadWrite>(),
            $function::<GroupLockBatch>(),
            $function::<GroupLockFifo>(),
            $function::<GroupLockStriped>(),
            $function::<GroupLockHandover>(),
            $function::<StdMutex>(),
            $function::<StdRwLock>(),
            $function::<ParkingLotMutex>(),
            $function::<ParkingLotMutexFair>(),
            $function::<ParkingLotRwLock>(),
            $function::<ParkingLotRwLockFair>(),
            $function::<Usync>(),
            $function::<Sharded>(),
            $function::<AsyncLock>(),
            $function::<Tokio>(),
            $function::<SpinMutex>(),
            $function::<SpinRwLock>(),
            $function::<McsSpin>(),
            $function::<McsYield>(),
            $function::<ByHand<false>>(),
            $function::<ByHand<true>>(),
            $function::<FairByHand>(),
        ]
    }};
}
pub(super) use every_lock;

/// All of them.
pub fn all() -> Vec<Subject> {
    every_lock!(subject)
}
