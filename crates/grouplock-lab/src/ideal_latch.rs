//! A mutex with detected deaths that is correct by definition.

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Claims, Text};
use grouplock_algorithms::latch::{Deaths, RecoverableMutex};
use grouplock_algorithms::memory::{Ordering, Register, Site};
use grouplock_algorithms::raw::RawMutex as _;

use crate::ideal::IdealLock;
use crate::memory::{SimMemory, SimRegister};

/// The names of its registers: its owner, and whether its last owner died.
pub(crate) const OWNER: &str = "ideal latch";
pub(crate) const LEFT: &str = "left";

/// A latch that is acquired in a single blocking step. When its owner dies, the exploration
/// releases it in the same step.
#[derive(Debug)]
pub struct IdealLatch {
    owner: SimRegister<u64>,
    left: SimRegister<bool>,
}

impl RecoverableMutex<SimMemory> for IdealLatch {
    fn claims() -> Claims {
        let text = Text::new(file!(), include_str!("ideal_latch.rs"));
        Claims { name: "ideal-latch", text, ..IdealLock::claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let owner = SimRegister::new(Site::shared(OWNER), 0);
        Ok(IdealLatch { owner, left: SimRegister::new(Site::shared(LEFT), false) })
    }

    #[track_caller]
    unsafe fn acquire(&self, me: u64, _: &Deaths<SimMemory>) -> bool {
        self.owner.await_cas(0, me);
        let left = self.left.read(Ordering::SeqCst);
        if left {
            self.left.write(false, Ordering::SeqCst);
        }
        left
    }

    #[track_caller]
    unsafe fn release(&self, _: u64) {
        self.owner.write(0, Ordering::SeqCst);
    }

    fn owner(&self) -> u64 {
        self.owner.read(Ordering::SeqCst)
    }
}
