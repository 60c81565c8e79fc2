//! Rooms that must be set up for the session. A process that finds the room not set up enters
//! alone, sets it up, and opens it to its session.
//!
//! The register `made` stands for the data: it says for which session the room is set up,
//! independently of the word. A process uses it only where its user would use the data: alone
//! during the set-up, at entry and at exit. The text asserts three things there. A failed assertion
//! is a panic.
//!
//! * A process that asked for a room that is set up finds it set up for its session.
//! * No process sets up while another is inside. So a process finds the same at entry and at exit,
//!   and what it writes during the set-up stays.
//! * No process sets up a room that is set up for its session already.

use super::{NOTHING, Phases, Process, Then, Way};
use crate::memory::Ordering::{Acquire, Relaxed, Release};
use crate::memory::{Memory, Register};
use crate::phases_word::{EXCLUSIVE, ONE_HOLDER, SET_UP, is_open};
use crate::policy::Policy;
use crate::prelude::*;

pub(super) const TEXT: Text = text!("set_up.rs");

impl<M: Memory> Process<M> {
    /// How it asks in its next passage. If requests are withdrawn, a task withdraws where it waits,
    /// and the set-up of a thread fails.
    pub(super) fn choose_way<P: Policy>(&mut self) {
        self.way = match self.way {
            Way::SetUp if P::MIXED => Way::Downgrade,
            Way::Downgrade => Way::Plain,
            Way::Plain | Way::SetUp => Way::SetUp,
        };
        self.gives_up = P::GIVES_UP && self.task;
        self.fails = P::GIVES_UP && !self.task;
    }
}

impl<M: Memory, P: Policy> Phases<M, P> {
    /// Enters if the room is set up for `s`, and that needs neither waiting nor the internal lock.
    pub(super) fn fast_set_up(&self, s: u64) -> bool {
        let before = self.word.faa(ONE_HOLDER, Acquire); // 43: as 2
        if is_open(before) && before & SET_UP != 0 {
            let same = self.name.read(Relaxed) == s; // 43: as 3
            if same {
                M::doorway_end();
                return true;
            }
        }
        M::live(|| []);
        self.give_back(ONE_HOLDER, Then::SeeToWaiters); // 43
        false
    }

    /// The process was admitted: by the fast path, or otherwise, alone or not. Returns whether it
    /// is inside the session that it asked for.
    pub(super) fn arrive(&self, me: &mut Process<M>, s: u64, fast: bool) -> bool {
        M::live(|| [fast.word()]);
        match me.way {
            Way::SetUp if !fast => {
                let alone = self.word.read(Relaxed) & EXCLUSIVE != 0; // 44: it does not change while the process is inside
                M::live(|| [alone.word()]);
                if alone && !self.set_up(me, s) {
                    return false;
                }
            }
            Way::Plain | Way::SetUp => {}
            Way::Downgrade => self.open(s, 0), // 44
        }
        me.count = ONE_HOLDER;
        self.look(me, s);
        true
    }

    /// The process is alone, and sets the room up for `s`. Returns whether that did not fail.
    fn set_up(&self, me: &Process<M>, s: u64) -> bool {
        let before = self.made.read(Relaxed); // 45: the lock orders it, as all of the data
        assert!(before != s, "the room is set up twice");
        self.made.write(NOTHING, Relaxed); // 45
        if me.fails {
            M::live(|| []);
            self.give_back(ONE_HOLDER | EXCLUSIVE, Then::Again); // 46
            return false;
        }
        M::live(|| []);
        let still = self.made.read(Relaxed); // 45
        assert!(still == NOTHING, "somebody else sets the room up");
        self.made.write(s, Relaxed); // 45
        self.open(s, SET_UP); // 47
        true
    }

    /// The process is alone, and opens the room to `s`. Sets `mark` if it has set the room up.
    fn open(&self, s: u64, mark: u32) {
        let locked = self.lock(Then::Open); // 47
        let w = self.word.read(Relaxed); // 47: only the count changes
        let same = self.name.read(Relaxed) == s; // 48
        if !same {
            self.name.write(s, Relaxed); // 48: published by line 49
        }
        let kept = if same { w & SET_UP } else { 0 };
        let bits = (kept | mark).wrapping_sub(w & SET_UP);
        self.word.faa(bits.wrapping_sub(EXCLUSIVE), Release); // 49: for 2, 43
        locked.unlock(Then::Opened); // 49
    }

    /// The count of a granted request that is withdrawn. If it is alone, the room is set up for no
    /// session.
    pub(super) fn count_of_granted(&self) -> u32 {
        let alone = self.word.read(Relaxed) & EXCLUSIVE; // 20: as 44
        if alone != 0 {
            self.made.write(NOTHING, Relaxed); // 20
        }
        ONE_HOLDER | alone
    }

    /// The process is inside, and reads the data. If it entered another session without set-up, the
    /// room is set up for no session.
    fn look(&self, me: &mut Process<M>, s: u64) {
        M::live(|| []);
        me.found = self.made.read(Relaxed) == s; // 50
        assert!(me.found || me.way != Way::SetUp, "inside a session that is not set up");
        if !me.found {
            self.made.write(NOTHING, Relaxed); // 50
        }
    }

    /// The process leaves, and finds the data as it was at entry.
    pub(super) fn look_back(&self, me: &mut Process<M>) {
        let found = self.made.read(Relaxed) != NOTHING; // 51
        assert!(found == me.found, "the room was set up while somebody was inside");
        me.found = false;
    }
}
