//! Taubenfeld's Black-White Bakery.
//!
//! G. Taubenfeld, "The black-white bakery algorithm and related bounded-space, adaptive, local-spinning and
//! FIFO algorithms", DISC 2004. The line numbers are those of Figure 3 in He, Gopalakrishnan and Gafni,
//! "Group mutual exclusion in linear time and space", 2018.
//!
//! * **Promises** mutual exclusion and first-come-first-served, by reads and writes.
//! * **Costs** O(N) remote references with coherent caches.
//!
//! Lamport's bakery with coloured tickets. Tickets of the colour that is not being handed out go first;
//! whoever leaves changes the colour handed out to the opposite of its own, so numbers start again
//! from one.
//!
//! # Tickets are not bounded by N
//! The figure keeps colour and number in two variables. A process that looks at another's colour and then at its number may
//! combine the old colour with the new number, and take a ticket above all others of its own colour. Exploration shows
//! number 3 with two processes; with three, numbers grow with the number of passages. Nothing else depends on it: here
//! tickets have 64 bits. (The [group version](crate::black_white_bakery_gme) reads both at once, and is bounded.)
//!
//! # What the figure leaves out
//! As printed, Figure 3 makes a process wait only for tickets of its *own* colour (lines 9-14). A process
//! with a fresh colour then walks in beside one that holds an old ticket: two processes are enough to
//! break mutual exclusion (the test `the_printed_figure_lets_two_in`). The words around the figure, and Taubenfeld's
//! paper, have the other branch, marked `14` below: wait for a ticket of the other colour while the colour handed out is
//! one's own. And as the loop includes j = i, line 11 must let equal tickets pass, or everyone would wait for themselves.
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
pub struct BlackWhiteBakery<M: Memory = Native> {
    global_color: M::Register<bool>,
    processes: Box<[Announced<M>]>,
    slots: Slots<Process>,
}

/// What a process tells the others; a colour is `true` for black.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory> {
    choosing: M::Register<bool>,
    color: M::Register<bool>,
    number: M::Register<u64>,
}

/// A process: its number, and its ticket while it is inside.
#[derive(Debug)]
pub struct Process {
    i: usize,
    color: bool,
}

impl<M: Memory> RawMutex<M> for BlackWhiteBakery<M> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "black-white-bakery",
            source: "Taubenfeld 2004; He, Gopalakrishnan and Gafni 2018, Figure 3",
            text: text!("black_white_bakery.rs"),
            kind: Kind::Mutual,
            mutual_exclusion: Claim::Yes,
            deadlock_freedom: Claim::Yes,
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::No,
            fife: Claim::NotApplicable,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Linear),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::NotApplicable,
            bounded_registers: Claim::Refuted("docs/algorithms/black_white_bakery.md"),
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i, color: false })?;
        let announced = |i| Announced {
            choosing: M::Register::new(Site::per_process("Choosing", i), false),
            color: M::Register::new(Site::per_process("Token.color", i), false),
            number: M::Register::new(Site::per_process("Token.number", i), 0),
        };
        Ok(BlackWhiteBakery {
            global_color: M::Register::new(Site::shared("GlobalColor"), false),
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

    unsafe fn acquire(&self, me: &mut Process) {
        let i = me.i;
        let mine = &self.processes[i];
        mine.choosing.write(true, SeqCst); // 3
        let color = self.global_color.read(SeqCst); // 4
        mine.color.write(color, SeqCst); // 4
        me.color = color;
        let mut number = 0;
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [color.word(), number.word(), j.word()]);
            let same = other.color.read(SeqCst) == color; // 5
            if same {
                number = number.max(other.number.read(SeqCst)); // 5
            }
        }
        number += 1;
        mine.number.write(number, SeqCst); // 5
        mine.choosing.write(false, SeqCst); // 6
        M::doorway_end();
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [color.word(), number.word(), j.word()]);
            M::await_until(|| !other.choosing.read(SeqCst)); // 8
            let same = other.color.read(SeqCst) == color; // 9
            if same {
                M::await_until(|| {
                    let theirs = other.number.read(SeqCst); // 11
                    theirs == 0 || (number, i) <= (theirs, j) || other.color.read(SeqCst) != color // 12
                });
            } else {
                M::await_until(|| {
                    other.number.read(SeqCst) == 0 // 14
                        || self.global_color.read(SeqCst) != color // 14
                        || other.color.read(SeqCst) == color // 14
                });
            }
        }
    }

    unsafe fn release(&self, me: &mut Process) {
        self.global_color.write(!me.color, SeqCst); // 17-21
        self.processes[me.i].number.write(0, SeqCst); // 22
    }

    /// "The token numbers used can only grow up to N": it is not so.
    fn in_range(register: &str, number: u64, processes: usize) -> bool {
        register != "Token.number" || number <= processes as u64
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
