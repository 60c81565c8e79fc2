//! Petrovic's space-efficient first-come-first-served group lock, reconstructed.
//!
//! S. Petrovic, "Space-efficient FCFS group mutual exclusion", Information Processing Letters
//! 95(2), 2005. **The program text is a reconstruction**: our source, C. Chu's lecture notes
//! (2009), names the variables and their ranges, the properties and the structure ("FCFS part + ME
//! part", after Lycklama and Hadzilacos), but its figures are lost. In the notes line 1 is the
//! remainder section; all other line numbers are ours. The lab explored whether the rebuilt text
//! has the stated properties, as far as `docs/algorithms/petrovic.md` shows; that is not taken from
//! the paper.
//!
//! * **Promises** mutual exclusion, lockout freedom, first-come-first-served, concurrent entering
//!   and bounded exit, by reads and writes of single-writer registers.
//! * **Costs** O(N) space. Remote references: the notes say O(N) with coherent caches, but the ME
//!   part, as rebuilt here, is the Burns-Lamport lock, whose worst case is Ω(N²) (He,
//!   Gopalakrishnan and Gafni 2018, section 4).
//!
//! ```text
//! process i, session s; session_j = 0 means "not requesting"
//!  2  session_i := s                                                   doorway begins
//!  3  competing_i := true                                              doorway flag, bounded turns only
//!  4  for j ≠ i: turn_snap[j] := turn_j
//!  5  turn_i := next_turn(s)
//!  6  competing_i := false                                             bounded turns only; doorway ends
//!  7  for j ≠ i: await session_j ∈ {0, s} or turn_j ≠ turn_snap[j]     FCFS part
//!  8  L: competing_i := true                                           ME part: Burns-Lamport,
//!  9  for j < i: if competing_j and session_j ∉ {0, s}:                with a test for the session
//!         competing_i := false; await not competing_j or session_j ∈ {0, s}; goto L
//! 10  for j > i: await not competing_j or session_j ∈ {0, s}
//!     critical section
//! 12  competing_i := false; session_i := 0
//! ```
//!
//! # Turns
//! A process waits in line 7 for every process whose turn has not changed since it was read. The
//! trait [`Turns`] says how turns change: [`Unbounded`] counts; [`Bounded`] uses twelve values. A
//! counter modulo any number is not enough: while j waits on its snapshot, i may pass any number of
//! times in j's own session and so return to the value that j saw; then the two wait for each
//! other. Twelve values in four classes of three are enough as far as that was explored, provided
//! that a process raises its `competing` flag during the doorway (lines 3 and 6).
//!
//! # Orderings
//! Processes announce themselves and then read what others announced: every access is sequentially
//! consistent.

use core::fmt;

use crate::memory::Ordering::SeqCst;
use crate::memory::{Memory, Native, Register, Site, Value, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Petrovic<M: Memory = Native, T: Turns = Bounded> {
    processes: Box<[Announced<M, T>]>,
    slots: Slots<Process<T>>,
}

/// What a process announces to the others.
#[derive(Debug)]
#[repr(align(128))]
struct Announced<M: Memory, T: Turns> {
    session: M::Register<u64>,
    turn: M::Register<T::Turn>,
    competing: M::Register<bool>,
}

/// A process: its number, what it last saw of the others' turns, and its own.
#[derive(Debug)]
pub struct Process<T: Turns> {
    i: usize,
    turn_snap: Box<[T::Turn]>,
    turns: T,
}

/// A way of choosing the next turn.
pub trait Turns: fmt::Debug + Send + Sync + 'static {
    /// A turn. Turns are only ever compared for equality.
    type Turn: Value;
    /// The value if no turn is remembered.
    const NONE: Self::Turn;
    /// The name of the lock that uses it.
    const NAME: &'static str;
    /// Whether turns stay within a set that is known in advance.
    const BOUNDED: bool;
    /// Whether a process raises its flag during the doorway (lines 3 and 6).
    const DOORWAY_FLAG: bool;

    /// The turns of a process that has made no request.
    fn new() -> Self;

    /// The first contents of its register.
    fn first(&self) -> Self::Turn;

    /// The turn of this process's next request, which is for `session`.
    fn next_turn(&mut self, session: u64) -> Self::Turn;

    /// The private variables that later turns depend on.
    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word));
}

/// Turns that count up forever.
#[derive(Debug, Default)]
pub struct Unbounded {
    turn: u64,
}

impl Turns for Unbounded {
    type Turn = u64;
    const NONE: u64 = 0;
    const NAME: &'static str = "petrovic-unbounded";
    const BOUNDED: bool = false;
    const DOORWAY_FLAG: bool = false;

    fn new() -> Self {
        Self::default()
    }

    fn first(&self) -> u64 {
        0
    }

    fn next_turn(&mut self, _: u64) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        see("turn", self.turn.word());
    }
}

/// Turns from 0 to 11: a new class of the four for a new session, and within it one of three in
/// rotation.
#[derive(Debug, Default)]
pub struct Bounded {
    cls: usize,
    sub: [u64; 4],
    last_s: u64,
}

impl Turns for Bounded {
    type Turn = u64;
    const NONE: u64 = 0;
    const NAME: &'static str = "petrovic";
    const BOUNDED: bool = true;
    const DOORWAY_FLAG: bool = true;

    fn new() -> Self {
        Self::default()
    }

    fn first(&self) -> u64 {
        0
    }

    fn next_turn(&mut self, session: u64) -> u64 {
        if session != self.last_s {
            self.cls = (self.cls + 1) % 4;
        }
        self.last_s = session;
        self.sub[self.cls] = (self.sub[self.cls] + 1) % 3;
        3 * self.cls as u64 + self.sub[self.cls]
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, Word)) {
        see("cls", self.cls.word());
        self.sub.iter().for_each(|sub| see("sub", sub.word()));
        see("last_s", self.last_s.word());
    }
}

impl<M: Memory, T: Turns> Announced<M, T> {
    /// Whether this process requests another session than `s`.
    #[track_caller]
    fn conflicts(&self, s: u64) -> bool {
        let session = self.session.read(SeqCst);
        session != 0 && session != s
    }

    /// Whether this process competes for another session than `s`.
    #[track_caller]
    fn competes(&self, s: u64) -> bool {
        self.competing.read(SeqCst) && self.conflicts(s)
    }
}

impl<M: Memory, T: Turns> RawGroup<M> for Petrovic<M, T> {
    type Process = Process<T>;

    fn claims() -> Claims {
        Claims {
            name: T::NAME,
            source: "Petrovic 2005, reconstructed",
            text: text!("petrovic.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            fife: Claim::No,
            entering: Entering::CONCURRENT,
            exit: Exit::BOUNDED,
            // This is for the rebuilt text, because of the lock in its ME part. The notes say O(N)
            // about a text that we do not have.
            rmr_cc: Bound::of(Growth::Quadratic),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::None,
            bounded_registers: if T::BOUNDED { Claim::Yes } else { Claim::No },
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let mut first = vec![T::NONE; processes];
        let slots = Slots::new(processes, usize::MAX, |i| {
            let turns = T::new();
            first[i] = turns.first();
            Process { i, turn_snap: vec![T::NONE; processes].into(), turns }
        })?;
        let announced = |i: usize| Announced {
            session: M::Register::new(Site::per_process("session", i), 0),
            turn: M::Register::new(Site::per_process("turn", i), first[i]),
            competing: M::Register::new(Site::per_process("competing", i), false),
        };
        Ok(Petrovic { processes: (0..processes).map(announced).collect(), slots })
    }

    fn join(&self) -> Result<Process<T>, CapacityError> {
        // The next user of a place continues with its turns. If they started anew, they could
        // return to a value that another process has seen and waits on, and the two would wait for
        // each other.
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process<T>) {
        self.slots.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Process<T>, session: Session) {
        let (i, s) = (me.i, session.get());
        let mine = &self.processes[i];
        mine.session.write(s, SeqCst); // 2
        if T::DOORWAY_FLAG {
            mine.competing.write(true, SeqCst); // 3
        }
        for (j, other) in self.processes.iter().enumerate() {
            if j != i {
                me.turn_snap[j] = other.turn.read(SeqCst); // 4
            }
        }
        mine.turn.write(me.turns.next_turn(s), SeqCst); // 5
        if T::DOORWAY_FLAG {
            mine.competing.write(false, SeqCst); // 6
        }
        M::doorway_end();
        for (j, other) in self.processes.iter().enumerate() {
            let snap = me.turn_snap[j];
            if j != i {
                M::live(|| [j.word()]);
                M::await_until(|| !other.conflicts(s) || other.turn.read(SeqCst) != snap); // 7
                me.turn_snap[j] = T::NONE; // of no more use
            }
        }
        let (before, after) = (&self.processes[..i], &self.processes[i + 1..]);
        'l: loop {
            M::live(|| []);
            mine.competing.write(true, SeqCst); // 8
            for (j, other) in before.iter().enumerate() {
                M::live(|| [j.word()]);
                let blocked = other.competes(s); // 9
                if blocked {
                    mine.competing.write(false, SeqCst); // 9
                    M::await_until(|| !other.competes(s)); // 9
                    continue 'l;
                }
            }
            break;
        }
        for (j, other) in after.iter().enumerate() {
            M::live(|| [j.word()]);
            M::await_until(|| !other.competes(s)); // 10
        }
    }

    unsafe fn exit(&self, me: &mut Process<T>) {
        self.processes[me.i].competing.write(false, SeqCst); // 12
        self.processes[me.i].session.write(0, SeqCst); // 12
    }

    fn in_range(register: &str, number: u64, _: usize) -> bool {
        register != "turn" || !T::BOUNDED || number < 12
    }

    fn inspect(me: &Process<T>, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
        me.turns.inspect(see);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_session_takes_a_new_class_and_the_same_one_stays() {
        let mut turns = Bounded::default();
        let taken: Vec<_> = [7, 7, 7, 7, 8, 7, 8, 7, 7].map(|s| turns.next_turn(s)).into();
        assert_eq!(taken, [4, 5, 3, 4, 7, 10, 1, 5, 3]);
    }
}
