//! A mutex that is correct by definition.

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{
    Bound, Claim, Claims, Entering, Exit, Growth, Limit, Primitive, Text,
};
use grouplock_algorithms::memory::{Ordering, Register, Site, Word};
use grouplock_algorithms::raw::RawMutex;

use crate::memory::{SimMemory, SimRegister};

/// The name of its register.
pub(crate) const NAME: &str = "ideal lock";

/// A lock that is acquired in a single blocking step.
///
/// An algorithm over this lock has far fewer states than over a real lock. The real locks are
/// explored separately. So only the combination of the two is not explored.
#[derive(Debug)]
pub struct IdealLock {
    held: SimRegister<bool>,
}

/// A process: it has no private variables.
#[derive(Debug)]
pub struct Process;

impl RawMutex<SimMemory> for IdealLock {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "ideal",
            source: "none: it cannot be built",
            text: Text::new(file!(), include_str!("ideal.rs")),
            // By definition: an algorithm over it is explored as if every process acquires it in
            // the end.
            starvation_freedom: Claim::Yes,
            fcfs: Claim::No,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::Yes),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Constant),
            space: Growth::Constant,
            primitives: &[Primitive::CompareAndSwap],
            processes: Limit::None,
            bounded_registers: Claim::Yes,
            ..Claims::MUTEX
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(IdealLock { held: SimRegister::new(Site::shared(NAME), false) })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        Ok(Process)
    }

    unsafe fn leave(&self, _: Process) {}

    #[track_caller]
    unsafe fn acquire(&self, _: &mut Process) {
        self.held.await_cas(false, true);
    }

    #[track_caller]
    unsafe fn release(&self, _: &mut Process) {
        // Exactly what a lock owes its users.
        self.held.write(false, Ordering::Release);
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}
