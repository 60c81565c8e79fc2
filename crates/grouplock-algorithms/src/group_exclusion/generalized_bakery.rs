//! The generalized Lamport bakery (GLB).
//!
//! Y. He, K. Gopalakrishnan and E. Gafni, "Group mutual exclusion in linear time and space",
//! Theoretical Computer Science 709, 2018, Figure 1. The line numbers are the figure's.
//!
//! * **Promises** mutual exclusion, starvation freedom, first-come-first-served, concurrent
//!   entering and bounded exit, by reads and writes.
//! * **Costs** O(N) remote references with coherent caches and O(N) space, but tickets grow without
//!   bound.
//! * **Does not promise** first-in-first-enabled.
//!
//! It is Lamport's bakery with one addition: a process does not wait for processes of its session.
//!
//! Tickets are 64 bits wide. They start again from one whenever no process holds one; otherwise
//! they grow by at most one per passage. At a billion passages a second they last five centuries.
//!
//! # Orderings
//! Processes announce themselves and then read what others announced: every access is sequentially
//! consistent.

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct GeneralizedBakery<M: Memory = Native> {
    processes: Box<[Announced<M>]>,
    slots: Slots<Process>,
}

/// What a process announces to the others.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory> {
    session: M::Register<u64>,
    token: M::Register<u64>,
    choosing: M::Register<bool>,
}

/// A process: its number.
#[derive(Debug)]
pub struct Process {
    i: usize,
}

impl<M: Memory> Announced<M> {
    /// Whether this process requests another session than `mysession`.
    #[track_caller]
    fn conflicts(&self, mysession: u64) -> bool {
        let session = self.session.read(SeqCst);
        session != 0 && session != mysession
    }
}

impl<M: Memory> RawGroup<M> for GeneralizedBakery<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "generalized-bakery",
            source: "He, Gopalakrishnan and Gafni 2018, Figure 1 (GLB)",
            text: text!("generalized_bakery.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            fife: Claim::No,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Linear),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::None,
            bounded_registers: Claim::No,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i })?;
        let announced = |i| Announced {
            session: M::Register::new(Site::per_process("Session", i), 0),
            token: M::Register::new(Site::per_process("Token", i), 0),
            choosing: M::Register::new(Site::per_process("Choosing", i), false),
        };
        Ok(GeneralizedBakery { processes: (0..processes).map(announced).collect(), slots })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Process, session: Session) {
        let (i, mysession) = (me.i, session.get());
        let mine = &self.processes[i];
        mine.choosing.write(true, SeqCst); // 3
        mine.session.write(mysession, SeqCst); // 4
        let mut token = 0;
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [token.word(), j.word()]);
            token = token.max(other.token.read(SeqCst)); // 5
        }
        token += 1;
        mine.token.write(token, SeqCst); // 5
        mine.choosing.write(false, SeqCst); // 6
        M::doorway_end();
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [token.word(), j.word()]);
            M::await_until(|| !other.choosing.read(SeqCst) || !other.conflicts(mysession)); // 8
            M::await_until(|| {
                let theirs = other.token.read(SeqCst); // 9
                (token, i) < (theirs, j) || theirs == 0 || !other.conflicts(mysession) // 9
            });
        }
    }

    unsafe fn exit(&self, me: &mut Process) {
        self.processes[me.i].token.write(0, SeqCst); // 12
        self.processes[me.i].session.write(0, SeqCst); // 13
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
