//! Anderson's array lock.
//!
//! T. E. Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors",
//! IEEE Transactions on Parallel and Distributed Systems 1(1), 1990. Section 5 of Dvir's thesis
//! (2018) describes it.
//!
//! * **Promises** mutual exclusion, FIFO order and a bounded exit for a fixed number of processes.
//! * **Costs** O(1) remote references with coherent caches and N slots. On distributed memory the
//!   cost has no bound: the slot that a process waits on depends on when it arrives, not on where
//!   the slot is.
//!
//! The line numbers are ours; at first slot 0 is true and all others are false:
//!
//! ```text
//! acquire                                         release
//!  1  pos := FAA(tail, 1) mod N  (doorway ends)    4  slot[(pos + 1) mod N] := true
//!  2  await slot[pos]
//!  3  slot[pos] := false
//! ```
//!
//! The counter is 64 bits wide and only grows: at a billion passages a second it lasts five
//! centuries.
//!
//! # Orderings
//! The flag's release (line 4) and acquire (line 2) hand over the critical section. The process
//! that gets the same slot N tickets later must see line 3. Among N + 1 tickets two belong to one
//! process, which was inside in between, after line 3. So its second line 1 comes after line 3, and
//! line 1 releases and acquires.

use crate::memory::Ordering::AcqRel;
use crate::memory::{Flag, Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Anderson<M: Memory = Native> {
    tail: M::Register<u64>,
    slot: Box<[Slot<M>]>,
    processes: Slots<Process>,
}

/// A slot, on which one process at a time waits.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<M: Memory>(M::Flag);

/// A process: its slot while it is in a passage.
#[derive(Debug)]
pub struct Process {
    pos: usize,
}

impl<M: Memory> RawMutex<M> for Anderson<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "anderson",
            source: "Anderson 1990",
            text: text!("anderson.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write, Primitive::FetchAndAdd],
            processes: Limit::Fixed(u64::MAX),
            bounded_registers: Claim::No,
            ..Claims::MUTEX
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slot = |k| Slot(M::Flag::new(Site::element("slot", k), k == 0));
        Ok(Anderson {
            processes: Slots::new(processes, usize::MAX, |_| Process { pos: 0 })?,
            tail: M::Register::new(Site::shared("tail"), 0),
            slot: (0..processes).map(slot).collect(),
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.processes.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.processes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process) {
        let ticket = self.tail.faa(1, AcqRel); // 1: see the module on orderings
        me.pos = (ticket % self.slot.len() as u64) as usize;
        M::doorway_end();
        M::live(|| []);
        let Slot(mine) = &self.slot[me.pos];
        mine.wait_for(true); // 2: acquires line 4
        mine.set(false); // 3: published by line 4
    }

    unsafe fn release(&self, me: &mut Process) {
        let Slot(next) = &self.slot[(me.pos + 1) % self.slot.len()];
        next.signal(true); // 4
        me.pos = 0;
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}
