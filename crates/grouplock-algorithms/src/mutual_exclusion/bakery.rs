//! Lamport's Bakery.
//!
//! L. Lamport, "A new solution of Dijkstra's concurrent programming problem", Communications of the
//! ACM 17(8), 1974. The [generalized bakery](crate::generalized_bakery) and the [Black-White
//! Bakery](crate::black_white_bakery) start from it.
//!
//! * **Promises** mutual exclusion and first-come-first-served, by reads and writes.
//! * **Costs** O(N) remote references with coherent caches and O(N) space, but tickets grow without
//!   bound.
//!
//! The paper labels three places and numbers no line. The numbers are ours:
//!
//! ```text
//! acquire (process i)                                          release
//!  1  choosing[i] := true                                       7  number[i] := 0
//!  2  number[i] := 1 + max{ number[j] }
//!  3  choosing[i] := false                  (doorway ends)
//!  4  for every j:
//!  5      await not choosing[j]                                 (L2)
//!  6      await number[j] = 0 or (number[j], j) ≥ (number[i], i) (L3)
//! ```
//!
//! Tickets are 64 bits wide. They start again from one whenever no process holds one; otherwise
//! they grow by at most one per passage. At a billion passages a second they last five centuries.
//!
//! # Orderings
//! Processes announce themselves and then read what others announced: every access is sequentially
//! consistent. (The paper requires less: a read that overlaps a write may return anything. Rust has
//! no such registers.)

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Bakery<M: Memory = Native> {
    processes: Box<[Announced<M>]>,
    slots: Slots<Process>,
}

/// What a process announces to the others.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory> {
    choosing: M::Register<bool>,
    number: M::Register<u64>,
}

/// A process: its number.
#[derive(Debug)]
pub struct Process {
    i: usize,
}

impl<M: Memory> RawMutex<M> for Bakery<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "bakery",
            source: "Lamport 1974",
            text: text!("bakery.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Linear),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(u64::MAX),
            bounded_registers: Claim::No,
            ..Claims::MUTEX
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i })?;
        let announced = |i| Announced {
            choosing: M::Register::new(Site::per_process("choosing", i), false),
            number: M::Register::new(Site::per_process("number", i), 0),
        };
        Ok(Bakery { processes: (0..processes).map(announced).collect(), slots })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process) {
        let i = me.i;
        let mine = &self.processes[i];
        mine.choosing.write(true, SeqCst); // 1
        let mut number = 0;
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [number.word(), j.word()]);
            number = number.max(other.number.read(SeqCst)); // 2
        }
        number += 1;
        mine.number.write(number, SeqCst); // 2
        mine.choosing.write(false, SeqCst); // 3
        M::doorway_end();
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [number.word(), j.word()]);
            M::await_until(|| !other.choosing.read(SeqCst)); // 5
            M::await_until(|| {
                let theirs = other.number.read(SeqCst); // 6
                theirs == 0 || (theirs, j) >= (number, i)
            });
        }
    }

    unsafe fn release(&self, me: &mut Process) {
        self.processes[me.i].number.write(0, SeqCst); // 7
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
