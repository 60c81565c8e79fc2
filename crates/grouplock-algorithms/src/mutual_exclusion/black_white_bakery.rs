//! Taubenfeld's Black-White Bakery.
//!
//! G. Taubenfeld, "The black-white bakery algorithm and related bounded-space, adaptive,
//! local-spinning and FIFO algorithms", DISC 2004. The line numbers are those of Figure 3 in He,
//! Gopalakrishnan and Gafni, "Group mutual exclusion in linear time and space", 2018.
//!
//! * **Promises** mutual exclusion and first-come-first-served, by reads and writes of bounded
//!   registers: no number passes N.
//! * **Costs** O(N) remote references with coherent caches.
//!
//! Lamport's bakery with coloured tickets. Tickets of the colour that is not being handed out go
//! first. A process that leaves changes the colour handed out to the opposite of its own, so
//! numbers start again from one.
//!
//! # Colour and number are one register
//! Taubenfeld's ticket is a pair, which is read and written in one step: [`Pair`]. Figure 3 writes
//! its two parts in two lines (4 and 5); each of them writes the whole pair here, and line 22 keeps
//! the colour. So no number passes N.
//!
//! It does not hold for a ticket in two registers, [`Split`]. A process that reads another's colour
//! and then its number may combine an old colour with a new number, and take a ticket above all
//! others of its own colour: number 3 with two processes. Explore `black-white-bakery-split` to see
//! it.
//!
//! # What the figure leaves out
//! In our copy of Figure 3, an extracted text, a process waits only for tickets of its *own* colour
//! (lines 9-14). A process with a new colour then enters beside one that holds an old ticket: two
//! processes are enough to break mutual exclusion (the test `our_copy_of_the_figure_lets_two_in`).
//! The text around the figure, and Taubenfeld's paper, have the other branch, marked `14` below:
//! wait for a ticket of the other colour while the colour handed out is one's own. The loop
//! includes j = i, so line 11 must let equal tickets pass; otherwise every process would wait for
//! itself.
//!
//! # Orderings
//! Processes announce themselves and then read what others announced: every access is sequentially
//! consistent.

use core::fmt;

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock, with its tickets in registers as `T` has them. See the [module](self).
#[derive(Debug)]
pub struct BlackWhiteBakery<M: Memory = Native, T: Ticket<M> = Pair<M>> {
    global_color: M::Register<bool>,
    processes: Box<[Announced<M, T>]>,
    slots: Slots<Process>,
}

/// What a process announces to the others.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory, T> {
    choosing: M::Register<bool>,
    token: T,
}

/// `Token[i]`: a colour, `true` for black, and a number, 0 for no ticket.
pub trait Ticket<M: Memory>: fmt::Debug + Send + Sync + 'static {
    /// The name of the lock that uses it.
    const NAME: &'static str;
    /// Whether the paper's bound on numbers is claimed for it.
    const BOUNDED: Claim;

    /// The ticket of process `i`.
    fn new(i: usize) -> Self;

    /// Writes the colour of a ticket that has no number yet.
    #[track_caller]
    fn set_color(&self, color: bool);

    /// Writes the number of a ticket that has this colour.
    #[track_caller]
    fn set_number(&self, color: bool, number: u64);

    /// The colour and the number.
    #[track_caller]
    fn read(&self) -> (bool, u64);
}

/// Colour and number in one register, as Taubenfeld has them.
#[derive(Debug)]
pub struct Pair<M: Memory>(M::Register<u64>);

impl<M: Memory> Ticket<M> for Pair<M> {
    const NAME: &'static str = "black-white-bakery";
    const BOUNDED: Claim = Claim::Yes;

    fn new(i: usize) -> Self {
        Pair(M::Register::new(Site::per_process("Token", i), 0))
    }

    fn set_color(&self, color: bool) {
        self.set_number(color, 0);
    }

    fn set_number(&self, color: bool, number: u64) {
        self.0.write(number << 1 | u64::from(color), SeqCst);
    }

    fn read(&self) -> (bool, u64) {
        let token = self.0.read(SeqCst);
        (token & 1 == 1, token >> 1)
    }
}

/// Colour and number in a register each: numbers pass N.
#[derive(Debug)]
pub struct Split<M: Memory> {
    color: M::Register<bool>,
    number: M::Register<u64>,
}

impl<M: Memory> Ticket<M> for Split<M> {
    const NAME: &'static str = "black-white-bakery-split";
    const BOUNDED: Claim = Claim::No;

    fn new(i: usize) -> Self {
        Split {
            color: M::Register::new(Site::per_process("Token.color", i), false),
            number: M::Register::new(Site::per_process("Token.number", i), 0),
        }
    }

    fn set_color(&self, color: bool) {
        self.color.write(color, SeqCst);
    }

    fn set_number(&self, _: bool, number: u64) {
        self.number.write(number, SeqCst);
    }

    fn read(&self) -> (bool, u64) {
        (self.color.read(SeqCst), self.number.read(SeqCst))
    }
}

/// A process: its number, and its ticket while it is inside.
#[derive(Debug)]
pub struct Process {
    i: usize,
    color: bool,
}

impl<M: Memory, T: Ticket<M>> RawMutex<M> for BlackWhiteBakery<M, T> {
    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: T::NAME,
            source: "Taubenfeld 2004; He, Gopalakrishnan and Gafni 2018, Figure 3",
            text: text!("black_white_bakery.rs"),
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
            bounded_registers: T::BOUNDED,
            ..Claims::MUTEX
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, usize::MAX, |i| Process { i, color: false })?;
        let announced = |i| Announced {
            choosing: M::Register::new(Site::per_process("Choosing", i), false),
            token: T::new(i),
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
        mine.token.set_color(color); // 4
        me.color = color;
        let mut number = 0;
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [color.word(), number.word(), j.word()]);
            let (their_color, theirs) = other.token.read(); // 5
            if their_color == color {
                number = number.max(theirs);
            }
        }
        number += 1;
        mine.token.set_number(color, number); // 5
        mine.choosing.write(false, SeqCst); // 6
        M::doorway_end();
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [color.word(), number.word(), j.word()]);
            M::await_until(|| !other.choosing.read(SeqCst)); // 8
            let (their_color, _) = other.token.read(); // 9
            if their_color == color {
                M::await_until(|| {
                    let (their_color, theirs) = other.token.read(); // 11-13
                    theirs == 0 || (number, i) <= (theirs, j) || their_color != color
                });
            } else {
                M::await_until(|| {
                    let (their_color, theirs) = other.token.read(); // 14
                    theirs == 0 || their_color == color || self.global_color.read(SeqCst) != color // 14
                });
            }
        }
    }

    unsafe fn release(&self, me: &mut Process) {
        self.global_color.write(!me.color, SeqCst); // 17-21
        self.processes[me.i].token.set_number(me.color, 0); // 22
    }

    /// "The token numbers used can only grow up to N".
    fn in_range(register: &str, value: u64, processes: usize) -> bool {
        let number = match register {
            "Token" => value >> 1,
            "Token.number" => value,
            _ => 0,
        };
        number <= processes as u64
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}
