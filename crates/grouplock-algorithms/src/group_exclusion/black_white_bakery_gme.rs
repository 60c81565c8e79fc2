//! The Black-White Bakery for groups (BWBGME).
//!
//! Y. He, K. Gopalakrishnan and E. Gafni, "Group mutual exclusion in linear time and space",
//! Theoretical Computer Science 709, 2018, Figures 5 and 6. The line numbers are those of Figure 5.
//!
//! * **Promises** mutual exclusion, starvation freedom, first-come-first-served, concurrent
//!   entering and bounded exit, by reads and writes of *bounded* registers: no ticket passes N + 1.
//! * **Costs** O(N) remote references with coherent caches and O(N) space.
//! * **Does not promise** first-in-first-enabled.
//!
//! [Taubenfeld's coloured tickets](crate::black_white_bakery) with sessions. The difficult part is
//! when to change the colour handed out: only a process whose ticket is not number one does so, and
//! only if no process holds a ticket of the other colour. Otherwise the colour could change twice
//! during one passage.
//!
//! # One register for the token
//! The figure reads and writes session, colour and number in one step. Here they share a 64-bit
//! register, so both are limited: sessions up to 2⁴⁸ − 1 and [`MOST_PROCESSES`] processes.
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
pub struct BlackWhiteBakeryGme<M: Memory = Native> {
    global_color: M::Register<u64>,
    processes: Box<[Announced<M>]>,
    slots: Slots<Process>,
}

/// What a process announces to the others.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory> {
    token: M::Register<u64>,
    choosing: M::Register<bool>,
}

/// A process: its number, and its ticket while it is inside.
#[derive(Debug)]
pub struct Process {
    i: usize,
    mycolor: Color,
    mynumber: u64,
}

/// The largest number of processes of a lock: numbers up to one more fit beside session and colour.
pub const MOST_PROCESSES: usize = (1 << NUMBER_BITS) - 2;

const NUMBER_BITS: u32 = 14;
const COLOR_BITS: u32 = 2;
const LARGEST_SESSION: u64 = u64::MAX >> (NUMBER_BITS + COLOR_BITS);

/// A ticket's colour; `Bottom` until it is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Color {
    Bottom = 0,
    Black = 1,
    White = 2,
}

impl Color {
    fn from_bits(bits: u64) -> Self {
        match bits {
            1 => Color::Black,
            2 => Color::White,
            _ => Color::Bottom,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Color::Black => Color::White,
            Color::White => Color::Black,
            Color::Bottom => Color::Bottom,
        }
    }
}

/// The three parts of `Token[i]`, which a register holds as one word: session, number, colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    session: u64,
    color: Color,
    number: u64,
}

impl Token {
    const NONE: Token = Token { session: 0, color: Color::Bottom, number: 0 };

    fn pack(self) -> u64 {
        self.session << (NUMBER_BITS + COLOR_BITS) | self.number << COLOR_BITS | self.color as u64
    }

    fn unpack(bits: u64) -> Self {
        Token {
            session: bits >> (NUMBER_BITS + COLOR_BITS),
            color: Color::from_bits(bits & ((1 << COLOR_BITS) - 1)),
            number: bits >> COLOR_BITS & ((1 << NUMBER_BITS) - 1),
        }
    }

    /// Whether it requests another session than `mysession`.
    fn conflicts(self, mysession: u64) -> bool {
        self.session != 0 && self.session != mysession
    }
}

impl<M: Memory> Announced<M> {
    #[track_caller]
    fn token(&self) -> Token {
        Token::unpack(self.token.read(SeqCst))
    }
}

impl<M: Memory> BlackWhiteBakeryGme<M> {
    #[track_caller]
    fn color(&self) -> Color {
        Color::from_bits(self.global_color.read(SeqCst))
    }

    /// Figure 6: whether a process holds a ticket of the other colour.
    fn opposite_color(&self, color: Color) -> bool {
        self.processes.iter().enumerate().any(|(j, other)| {
            M::live(|| [j.word()]);
            let other = other.token(); // 26
            other.session != 0 && other.color == color.opposite()
        })
    }
}

impl<M: Memory> RawGroup<M> for BlackWhiteBakeryGme<M> {
    const LARGEST_SESSION: u64 = LARGEST_SESSION;

    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "black-white-bakery-gme",
            source: "He, Gopalakrishnan and Gafni 2018, Figure 5 (BWBGME)",
            text: text!("black_white_bakery_gme.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            fife: Claim::No,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Linear),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(MOST_PROCESSES as u64),
            sessions: Limit::Fixed(LARGEST_SESSION),
            bounded_registers: Claim::Yes,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let slots = Slots::new(processes, MOST_PROCESSES, |i| Process {
            i,
            mycolor: Color::Bottom,
            mynumber: 0,
        })?;
        let announced = |i| Announced {
            token: M::Register::new(Site::per_process("Token", i), Token::NONE.pack()),
            choosing: M::Register::new(Site::per_process("Choosing", i), false),
        };
        Ok(BlackWhiteBakeryGme {
            global_color: M::Register::new(Site::shared("GlobalColor"), Color::Black as u64),
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
        let (i, mysession) = (me.i, session.get());
        let mine = &self.processes[i];
        let asking = Token { session: mysession, ..Token::NONE };
        mine.token.write(asking.pack(), SeqCst); // 3
        mine.choosing.write(true, SeqCst); // 4
        let mycolor = self.color(); // 5
        let mut mynumber = 0; // 6
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [(mycolor as u64).word(), mynumber.word(), j.word()]);
            let other = other.token(); // 8
            if other.color == mycolor && other.conflicts(mysession) {
                mynumber = mynumber.max(other.number); // 10
            }
        }
        mynumber += 1; // 13
        let token = Token { session: mysession, color: mycolor, number: mynumber };
        mine.token.write(token.pack(), SeqCst); // 14
        mine.choosing.write(false, SeqCst); // 15
        M::doorway_end();
        (me.mycolor, me.mynumber) = (mycolor, mynumber);
        for (j, other) in self.processes.iter().enumerate() {
            M::live(|| [(mycolor as u64).word(), mynumber.word(), j.word()]);
            M::await_until(|| {
                !other.choosing.read(SeqCst) || !other.token().conflicts(mysession) // 17
            });
            let same = other.token().color == mycolor; // 18
            if same {
                M::await_until(|| {
                    let theirs = other.token(); // 19
                    (mynumber, i) < (theirs.number, j)
                        || theirs.color != mycolor
                        || !theirs.conflicts(mysession)
                });
            } else {
                M::await_until(|| {
                    let turned = self.color() != mycolor; // 21
                    turned || {
                        let theirs = other.token(); // 21
                        theirs.color == mycolor || !theirs.conflicts(mysession)
                    }
                });
            }
        }
    }

    unsafe fn exit(&self, me: &mut Process) {
        // 25-26
        if me.mynumber != 1 && !self.opposite_color(me.mycolor) {
            self.global_color.write(me.mycolor.opposite() as u64, SeqCst); // 27-31
        }
        self.processes[me.i].token.write(Token::NONE.pack(), SeqCst); // 34
        (me.mycolor, me.mynumber) = (Color::Bottom, 0);
    }

    /// The bound that the paper is about: no ticket passes N + 1.
    fn in_range(register: &str, number: u64, processes: usize) -> bool {
        register != "Token" || Token::unpack(number).number <= processes as u64 + 1
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_out_of_its_register_as_it_went_in() {
        for session in [0, 1, LARGEST_SESSION] {
            for color in [Color::Bottom, Color::Black, Color::White] {
                for number in [0, 1, MOST_PROCESSES as u64 + 1] {
                    let token = Token { session, color, number };
                    assert_eq!(Token::unpack(token.pack()), token);
                }
            }
        }
    }
}
