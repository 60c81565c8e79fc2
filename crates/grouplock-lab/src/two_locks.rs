//! Two locks of Dvir and Taubenfeld's second algorithm that share their nodes.
//!
//! The algorithm moves nodes from lock to lock, and one lock does not show that. Here a process
//! goes through two locks in alternation and carries its node along. Processes get out of step, so
//! any two of them may meet at either lock.

use grouplock_algorithms::claims::{Claim, Claims, Entering, Exit, Kind, Limit, Text};
use grouplock_algorithms::dvir_taubenfeld_2::{self, Domain, DvirTaubenfeld2};
use grouplock_algorithms::memory::{Ordering::SeqCst, Register, Site, Value, Word};
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{CapacityError, Session};

use crate::memory::{SimMemory as M, SimRegister};

/// The two locks.
///
/// To the explorer all processes are of one session, because holders of different locks may be
/// inside together. The entry checks that no other process holds the *same* lock; a breach is a
/// panic.
#[derive(Debug)]
pub(crate) struct TwoLocks {
    locks: [DvirTaubenfeld2<M>; 2],
    held: [SimRegister<bool>; 2],
}

/// A process and the lock it goes through next, or holds.
#[derive(Debug)]
pub(crate) struct Process {
    process: dvir_taubenfeld_2::Process<M>,
    which: usize,
}

impl RawGroup<M> for TwoLocks {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "dvir-taubenfeld-2-two-locks",
            text: Text::new(file!(), include_str!("two_locks.rs")),
            kind: Kind::Group,
            // The sources claim no order for the two locks together.
            fcfs: Claim::No,
            fife: Claim::No,
            entering: Entering { concurrent_occupancy: Claim::No, ..Entering::OCCUPANCY },
            exit: Exit::BOUNDED,
            sessions: Limit::Fixed(1),
            ..DvirTaubenfeld2::<M>::claims()
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let domain = Domain::with_memory();
        Ok(TwoLocks {
            locks: [domain.lock(), domain.lock()],
            held: [0, 1].map(|which| SimRegister::new(Site::element("held", which), false)),
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        Ok(Process { process: self.locks[0].join()?, which: 0 })
    }

    unsafe fn leave(&self, me: Process) {
        // SAFETY: it joined this lock, and is idle as we are.
        unsafe { self.locks[0].leave(me.process) };
    }

    unsafe fn enter(&self, me: &mut Process, _: Session) {
        // SAFETY: our part joined a lock of the same domain, which is equivalent, and is idle as we
        // are.
        unsafe { self.locks[me.which].acquire(&mut me.process) };
        let alone = !self.held[me.which].fas(true, SeqCst);
        assert!(alone, "two processes hold lock {}", me.which);
    }

    unsafe fn exit(&self, me: &mut Process) {
        self.held[me.which].write(false, SeqCst);
        // SAFETY: our part is inside as we are.
        unsafe { self.locks[me.which].release(&mut me.process) };
        me.which = 1 - me.which;
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("which", me.which.word());
        DvirTaubenfeld2::<M>::inspect(&me.process, see);
    }
}
