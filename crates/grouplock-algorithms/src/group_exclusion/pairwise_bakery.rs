//! The pairwise bakery: a bakery for groups in which every process waits in its own memory.
//!
//! Ours, with the profile of R. Danek and V. Hadzilacos' algorithm of 2004, as Maor and Taubenfeld
//! describe it (2021, section 1.4 and Table 1): O(N) remote references on both machine models,
//! first-come-first-served, concurrent entering and a bounded exit. **The text is not theirs**,
//! which we have not seen, and it lacks one thing of that profile: first-in-first-enabled.
//!
//! * **Promises** mutual exclusion, starvation freedom, first-come-first-served, concurrent
//!   entering and bounded exit.
//! * **Costs** O(N) remote references on both machine models, and O(N²) space. Maor and Taubenfeld
//!   cite a lower bound of Danek and Hadzilacos: O(N) is optimal on distributed memory.
//! * **Does not promise** first-in-first-enabled: see `docs/algorithms/pairwise_bakery.md`.
//!
//! Tickets come from one counter. A process announces its session, draws a ticket, and waits for
//! every process of another session that has a smaller ticket or is about to draw one. Each pair
//! has a bit in the memory of the process that waits. A process that changes what others may wait
//! for clears its bit at all of them.
//!
//! The line numbers are ours:
//!
//! ```text
//! shared: Ticket (1), for each process i: R_i = (session, ticket) in one word (0), wait[i][j] (false)
//!
//! enter(s)                                                         exit
//!  1  R_i := (s, PENDING)                                           8  R_i := 0
//!  2  t := FAA(Ticket, 1)                                           9  for k ≠ i: wait[k][i] := false
//!  3  R_i := (s, t)                          doorway ends
//!  4  for k ≠ i: wait[k][i] := false
//!  5  for j ≠ i: while conflict(j):
//!  6      wait[i][j] := true
//!  7      if conflict(j): await not wait[i][j]
//!
//! conflict(j): R_j has another session than s, and is PENDING or has a ticket smaller than t
//! ```
//!
//! No wake-up is lost: a process that changes `R_j` so that a wait may end (lines 3 and 8) clears
//! the bits afterwards (lines 4 and 9), and a process that sets its bit (line 6) reads `R_j` once
//! more afterwards (line 7).
//!
//! # One register for session and ticket
//! They share 64 bits, so both are limited: sessions up to 2¹² − 1, and 2⁵² − 1 tickets, which last
//! for 142 years at a million passages a second.
//!
//! # Orderings
//! Processes announce themselves and then read what others announced: every access is sequentially
//! consistent. That is why the bits are plain registers: a [`Flag`](crate::memory::Flag) would not
//! order lines 6 and 7.

use crate::memory::Ordering::SeqCst;
use crate::memory::{Home, Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct PairwiseBakery<M: Memory = Native> {
    ticket: M::Register<u64>,
    processes: Box<[Announced<M>]>,
    slots: Slots<Process>,
}

/// What a process announces to the others, and where it waits for each of them.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory> {
    r: M::Register<u64>,
    wait: Box<[M::Register<bool>]>,
}

/// A process: its number.
#[derive(Debug)]
pub struct Process {
    i: usize,
}

const SESSION_BITS: u32 = 12;
const LARGEST_SESSION: u64 = (1 << SESSION_BITS) - 1;
/// In place of a ticket: the process is about to draw one. It is smaller than all tickets.
const PENDING: u64 = 0;

/// Session and ticket in one word.
fn pack(session: u64, ticket: u64) -> u64 {
    ticket << SESSION_BITS | session
}

impl<M: Memory> PairwiseBakery<M> {
    /// All processes but `i`.
    fn others(&self, i: usize) -> impl Iterator<Item = (usize, &Announced<M>)> {
        self.processes.iter().enumerate().filter(move |&(k, _)| k != i)
    }

    /// Whether process `j` keeps out a process that requested session `s` with ticket `t`.
    #[track_caller]
    fn conflict(&self, j: usize, s: u64, t: u64) -> bool {
        let r = self.processes[j].r.read(SeqCst);
        let (session, ticket) = (r & LARGEST_SESSION, r >> SESSION_BITS);
        session != 0 && session != s && ticket < t
    }
}

impl<M: Memory> RawGroup<M> for PairwiseBakery<M> {
    const LARGEST_SESSION: u64 = LARGEST_SESSION;

    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "pairwise-bakery",
            source: "ours, the profile of Danek and Hadzilacos 2004 but for FIFE",
            text: text!("pairwise_bakery.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            fife: Claim::No,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Linear),
            rmr_dsm: Bound::of(Growth::Linear),
            space: Growth::Quadratic,
            primitives: &[Primitive::Read, Primitive::Write, Primitive::FetchAndAdd],
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::Fixed(LARGEST_SESSION),
            bounded_registers: Claim::No,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i })?;
        // `wait[2][1]` is called `wait[2001]`: the index of the process itself would say that no
        // other process writes it.
        let wait = |i: usize, j: usize| Site {
            name: "wait",
            index: Some(i * 1000 + j),
            home: Home::Process(i),
        };
        let announced = |i| Announced {
            r: M::Register::new(Site::per_process("R", i), 0),
            wait: (0..processes).map(|j| M::Register::new(wait(i, j), false)).collect(),
        };
        Ok(PairwiseBakery {
            ticket: M::Register::new(Site::shared("Ticket"), PENDING + 1),
            processes: (0..processes).map(announced).collect(),
            slots,
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Process, session: Session) {
        let (i, s) = (me.i, session.get());
        let mine = &self.processes[i];
        mine.r.write(pack(s, PENDING), SeqCst); // 1
        let t = self.ticket.faa(1, SeqCst); // 2
        mine.r.write(pack(s, t), SeqCst); // 3
        M::doorway_end();
        for (k, other) in self.others(i) {
            M::live(|| [t.word(), k.word()]);
            other.wait[i].write(false, SeqCst); // 4
        }
        for (j, _) in self.others(i) {
            loop {
                M::live(|| [t.word(), j.word()]);
                let first = self.conflict(j, s, t); // 5
                if !first {
                    break;
                }
                mine.wait[j].write(true, SeqCst); // 6
                let second = self.conflict(j, s, t); // 7
                if second {
                    M::await_until(|| !mine.wait[j].read(SeqCst)); // 7
                }
            }
        }
    }

    unsafe fn exit(&self, me: &mut Process) {
        let i = me.i;
        self.processes[i].r.write(0, SeqCst); // 8
        for (k, other) in self.others(i) {
            M::live(|| [k.word()]);
            other.wait[i].write(false, SeqCst); // 9
        }
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
