//! The one-bit lock of Burns and Lamport.
//!
//! J. E. Burns, "Complexity of communication among asynchronous parallel processes", 1981, and L.
//! Lamport, "The mutual exclusion problem, part II", Journal of the ACM 33(2), 1986, found it
//! independently. The line numbers are those of Figure 2 in Y. He, K. Gopalakrishnan and E. Gafni,
//! "Group mutual exclusion in linear time and space", Theoretical Computer Science 709, 2018, which
//! shows that its cost is not linear.
//!
//! * **Promises** mutual exclusion and freedom from deadlock with one bit per process, the least
//!   possible.
//! * **Costs** Ω(N²) remote references in the worst case with coherent caches: process N can be
//!   sent back once by each lower process, and again after each of them has left.
//! * **Does not promise** any order, or that a process with a high number ever enters.
//!
//! # Orderings
//! Each process writes its bit, then reads those of others, and of two processes one must see the
//! other: every access is sequentially consistent.

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct BurnsLamport<M: Memory = Native> {
    competing: Box<[M::Register<bool>]>,
    slots: Slots<Process>,
}

/// A process: its number.
#[derive(Debug)]
pub struct Process {
    i: usize,
}

impl<M: Memory> RawMutex<M> for BurnsLamport<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "burns-lamport",
            source: "Burns 1981, Lamport 1986; He, Gopalakrishnan and Gafni 2018, Figure 2",
            text: text!("burns_lamport.rs"),
            starvation_freedom: Claim::No,
            fcfs: Claim::No,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            // At least: a process that others overtake again and again has no bound at all.
            rmr_cc: Bound::of(Growth::Quadratic),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(u64::MAX),
            bounded_registers: Claim::Yes,
            ..Claims::MUTEX
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i })?;
        let bit = |i| M::Register::new(Site::per_process("Competing", i), false);
        Ok(BurnsLamport { competing: (0..processes).map(bit).collect(), slots })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process) {
        let (competing, i) = (&self.competing, me.i);
        M::doorway_end(); // it has none
        'l: loop {
            M::live(|| []);
            competing[i].write(true, SeqCst); // 1
            for j in 0..i {
                M::live(|| [j.word()]);
                let blocked = competing[j].read(SeqCst); // 3
                if blocked {
                    competing[i].write(false, SeqCst); // 4
                    M::await_until(|| !competing[j].read(SeqCst)); // 5
                    continue 'l; // 6
                }
            }
            break;
        }
        for j in i + 1..competing.len() {
            M::live(|| [j.word()]);
            M::await_until(|| !competing[j].read(SeqCst)); // 10
        }
    }

    unsafe fn release(&self, me: &mut Process) {
        self.competing[me.i].write(false, SeqCst); // 12: the figure ends with line 11
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
