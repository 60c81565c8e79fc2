//! No lock at all, to show what the inner lock is for.

use grouplock_lab::ideal::IdealLock;
use grouplock_lab::memory::SimMemory;

use crate::memory::Word;
use crate::prelude::*;

/// Admits every process at once.
#[derive(Debug)]
pub struct NoLock;

impl RawMutex<SimMemory> for NoLock {
    type Process = ();

    fn claims() -> Claims {
        Claims { name: "none", ..IdealLock::claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(NoLock)
    }

    fn join(&self) -> Result<(), CapacityError> {
        Ok(())
    }

    unsafe fn leave(&self, (): ()) {}

    unsafe fn acquire(&self, (): &mut ()) {}

    unsafe fn release(&self, (): &mut ()) {}

    fn inspect((): &(), _: &mut dyn FnMut(&'static str, Word)) {}
}
