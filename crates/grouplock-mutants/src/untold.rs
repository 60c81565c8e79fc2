//! A latch that does not report the death of its last owner.

use grouplock_lab::ideal_latch::IdealLatch;
use grouplock_lab::memory::SimMemory;

use crate::latch::{Deaths, RecoverableMutex};
use crate::prelude::*;

/// An ideal latch without that report.
#[derive(Debug)]
pub struct Untold(IdealLatch);

impl RecoverableMutex<SimMemory> for Untold {
    fn claims() -> Claims {
        IdealLatch::claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        IdealLatch::new(processes).map(Untold)
    }

    unsafe fn acquire(&self, me: u64, deaths: &Deaths<SimMemory>) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.0.acquire(me, deaths) };
        false
    }

    unsafe fn release(&self, me: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.0.release(me) };
    }

    fn owner(&self) -> u64 {
        self.0.owner()
    }
}
