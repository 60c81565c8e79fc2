//! The list of all locks that compete.

use super::lock::{Kind, Lock};
use super::observed::{self, Observed};
use super::starvation::{self, Probe, Waited};
use super::throughput::{self, Counted, Round};

/// A lock, and the harness compiled for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competitor {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Bytes of an unlocked lock without data.
    pub(super) size: usize,
    pub(super) count: fn(&Round) -> Counted,
    pub(super) observe: fn(&Round) -> Result<Observed, String>,
    pub(super) probe: fn(&Probe) -> Waited,
}

fn competitor<L: Lock>() -> Competitor {
    Competitor {
        name: L::NAME,
        kind: L::KIND,
        size: size_of::<L>(),
        count: throughput::run::<L>,
        observe: observed::run::<L>,
        probe: starvation::run::<L>,
    }
}

/// The results of a function for the type of each lock.
macro_rules! every_lock {
    ($function:ident) => {
        every_lock!($function:
            GroupLockDefault, GroupLockExclusive, GroupLockReadWrite, GroupLockBatch, GroupLockFifo,
            GroupLockStriped, GroupLockHandover,
            StdMutex, StdRwLock,
            ParkingLotMutex, ParkingLotMutexFair, ParkingLotRwLock, ParkingLotRwLockFair,
            Usync, Sharded, AsyncLock, Tokio, SpinMutex, SpinRwLock, McsSpin, McsYield,
            ByHand, CountingByHand, FairByHand
        )
    };
    ($function:ident: $($lock:ident),*) => {{
        use $crate::comparison::{group_lock::*, peers::*};
        vec![$($function::<$lock>()),*]
    }};
}
pub(super) use every_lock;

pub(super) fn all() -> Vec<Competitor> {
    every_lock!(competitor)
}
