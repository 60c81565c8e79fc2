//! The words of the [protocol](super::line) in the file, and the records that belong to them.

use super::clock;
use super::futex;
use super::latch::Latched;
use super::latch_word::LatchWord;
use super::layout::{self, COMMAND_MAX, SESSION_MAX, death, header, phase, slot, state};
use super::line::{ANY, At, Contradiction, Field, IN, Line, OUT, Slot, WAIT, Words};
use super::mapping::Mapping;
use crate::error::RoomError;
use crate::policy::Policy;

impl Latched<'_> {
    fn map(&self) -> &Mapping {
        &self.room.map
    }

    /// The offset of a word of eight bytes; `None` for a word of four. It is always inlined, like
    /// its callers: the compiler knows the word at each call.
    #[inline(always)]
    fn offset(at: At) -> Option<usize> {
        Some(match at {
            At::Armed => header::ARMED,
            At::First => header::FIRST,
            At::Last => header::LAST,
            At::Head => header::HEAD,
            At::Inside => header::INSIDE,
            At::Most => header::MOST,
            At::Epoch => header::EPOCH,
            At::Tickets => header::TICKETS,
            At::Deaths => header::DEATHS,
            At::Repaired => header::REPAIRED,
            At::Prepared => header::PREPARED,
            At::Buried(number) => layout::death(number) + death::TICKET,
            At::Of(number, field) => {
                layout::slot(number)
                    + match field {
                        Field::Ticket => slot::TICKET,
                        Field::Prev => slot::PREV,
                        Field::Next => slot::NEXT,
                        Field::Epoch => slot::EPOCH,
                        Field::Reported => slot::REPORTED,
                        Field::Most => slot::MOST,
                        Field::Watcher => slot::WATCHER,
                        Field::State | Field::Alone | Field::Passed => return None,
                    }
            }
        })
    }

    /// Runs a part of the protocol. If the states contradict each other, it first buries dead
    /// owners.
    pub(super) fn run(
        &mut self,
        work: impl FnOnce(&mut Line<'_, Self>) -> Result<(), Contradiction>,
    ) -> Result<(), RoomError> {
        if self.get(At::Armed) != 0 {
            // The owner that died may have admitted slots without waking their owners, and removed
            // slots without nudging their watchers.
            for slot in self.present() {
                self.nudge(slot);
                futex::wake(self.room.slot(slot).state().0, i32::MAX);
            }
        }
        if Line(self).mend().is_err() {
            self.bury_by_force()?;
        }
        if work(&mut Line(self)).is_err() {
            self.bury_by_force()?;
        }
        if self.found_invalid.get() {
            return Err(self.room.condemn("a word in it is not valid"));
        }
        Ok(())
    }

    /// Frees the slots of all dead owners, although the states contradict each other. Afterwards
    /// the states of the living must agree.
    fn bury_by_force(&mut self) -> Result<(), RoomError> {
        self.set(At::Armed, 1);
        for number in self.room.used() {
            if self.get(At::Of(number, Field::State)) != OUT && !self.room.is_alive(number)? {
                Line(self).record_death(number);
                self.room.slot(number).state().set(state::FREE);
            }
        }
        let mended = Line(self).mend();
        mended.map_err(|_| self.room.condemn("incompatible holders are inside at once"))
    }

    /// Frees the slot of a dead owner. First it frees slots of dead owners at the head of the
    /// queue, so that none of them is admitted.
    pub(super) fn bury(&mut self, number: Slot) -> Result<(), RoomError> {
        for _ in self.room.used() {
            let head = self.slot_named(self.get(At::Head));
            let Some(head) = head.filter(|head| *head != number) else { break };
            if self.room.is_alive(head)? {
                break;
            }
            self.run(|line| line.bury(head))?;
            self.room.slot(head).state().set(state::FREE);
        }
        self.run(|line| line.bury(number))?;
        self.room.slot(number).state().set(state::FREE);
        Ok(())
    }

    /// Frees slots of dead owners: those from the front of the line to the first living waiter, the
    /// last of them first; then those that `number` waits for. It is for a request that cannot wait
    /// until a waiter notices the death.
    pub(super) fn clear_the_way(&mut self, number: Slot) -> Result<(), RoomError> {
        let mut at = self.get(At::First);
        let mut dead = Vec::new();
        for _ in self.room.used() {
            let other = self.slot_named(at);
            let Some(other) = other.filter(|other| *other != number) else { break };
            if !self.room.is_alive(other)? {
                dead.push(other);
            } else if self.get(At::Of(other, Field::State)) != IN {
                break;
            }
            at = self.get(At::Of(other, Field::Next));
        }
        // In reverse order, so that no dead waiter is admitted.
        dead.into_iter().rev().try_for_each(|dead| self.bury(dead))?;
        self.bury_in_front(number).map(drop)
    }

    /// Frees the slots of dead owners that `number` waits for. Returns the slots of the living that
    /// it waits for.
    pub(super) fn bury_in_front(&mut self, number: Slot) -> Result<Vec<Slot>, RoomError> {
        for _ in 0..=2 * usize::from(self.room.used().end) {
            let targets = self.targets(number)?;
            let mut dead = None;
            for target in &targets {
                if !self.room.is_alive(*target)? {
                    dead = Some(*target);
                }
            }
            match dead {
                Some(dead) => self.bury(dead)?,
                None if targets.is_empty() && self.get(At::Of(number, Field::State)) == WAIT => {}
                None => return Ok(targets),
            }
        }
        Err(self.room.condemn("its line cannot be repaired"))
    }

    /// The slots whose owners `number` waits for.
    fn targets(&mut self, number: Slot) -> Result<Vec<Slot>, RoomError> {
        const MANY: usize = 64;
        let mut targets = Vec::new();
        self.run(|line| {
            targets = line.in_front(number, MANY)?;
            Ok(())
        })?;
        Ok(targets)
    }

    /// Whether any request waits.
    pub(super) fn contended(&self) -> bool {
        self.get(At::Head) != 0
    }

    /// The slots that are inside or wait.
    pub(super) fn present(&self) -> Vec<Slot> {
        self.room.used().filter(|slot| self.get(At::Of(*slot, Field::State)) != OUT).collect()
    }

    fn write_record(&self, record: usize, write: impl FnOnce(&Mapping)) {
        self.map().half(record + phase::SEQUENCE).odd_while(|| write(self.map()));
    }

    fn copy(&self, from: usize, to: usize, max: usize) {
        if !self.map().copy_text(from, to, max) {
            self.found_invalid.set(true);
        }
    }
}

impl Words for Latched<'_> {
    #[inline(always)]
    fn get(&self, at: At) -> u64 {
        if let Some(offset) = Self::offset(at) {
            return self.map().word(offset).get();
        }
        let At::Of(number, field) = at else { return 0 };
        let half = |field| self.map().half(layout::slot(number) + field).get();
        match field {
            Field::State => match half(slot::STATE) {
                state::FREE | state::IDLE => OUT,
                state::WAITING | state::NUDGED => WAIT,
                state::INSIDE => IN,
                _ => {
                    self.found_invalid.set(true);
                    OUT
                }
            },
            Field::Alone => half(slot::ALONE).into(),
            _ => half(slot::PASSED).into(),
        }
    }

    #[inline(always)]
    fn set(&mut self, at: At, value: u64) {
        if let Some(offset) = Self::offset(at) {
            return self.map().word(offset).set(value);
        }
        let At::Of(number, field) = at else { return };
        let half = |field| self.map().half(layout::slot(number) + field);
        match (field, value) {
            (Field::State, OUT) => half(slot::STATE).set(state::IDLE),
            (Field::State, WAIT) => half(slot::STATE).set(state::WAITING),
            (Field::State, _) => half(slot::STATE).set(state::INSIDE),
            (Field::Alone, value) => half(slot::ALONE).set(value as u32),
            (_, value) => half(slot::PASSED).set(value as u32),
        }
    }

    fn slots(&self) -> Slot {
        self.room.used().end
    }

    fn same_session(&self, one: Slot, other: Slot) -> bool {
        let (one, other) = (self.room.slot(one).session(), self.room.slot(other).session());
        self.map().same_text(one, other, SESSION_MAX).unwrap_or_else(|| {
            self.found_invalid.set(true);
            false
        })
    }

    fn prepared_for(&self, number: Slot) -> bool {
        let session = self.room.slot(number).session();
        self.map().same_text(header::PREPARED_FOR, session, SESSION_MAX) == Some(true)
    }

    fn rank(&self, number: Slot) -> i128 {
        let Policy::Priority { aging } = self.room.fixed.policy else { return 0 };
        let slot = self.room.slot(number);
        rank(aging.as_nanos(), slot.arrival().get(), slot.priority().get().cast_signed())
    }

    fn passes(&self) -> u64 {
        if let Policy::Batch { passes } = self.room.fixed.policy { passes.into() } else { 0 }
    }

    fn opened(&mut self, number: Slot) {
        let (epoch, session) = (self.get(At::Epoch), self.room.slot(number).session());
        let record = header::PHASE;
        self.write_record(record, |map| {
            map.half(record + phase::FLAGS).set(phase::OPEN);
            map.word(record + phase::EPOCH).set(epoch);
            map.word(record + phase::BEGAN).set(clock::real());
            map.word(record + phase::ENTRIES).set(0);
            self.copy(session, record + phase::SESSION, SESSION_MAX);
        });
    }

    fn closed(&mut self) {
        let from = header::PHASE;
        let flags = self.map().half(from + phase::FLAGS);
        if flags.get() & phase::OPEN == 0 {
            return;
        }
        let word = |field| self.map().word(from + field).get();
        let (epoch, entries, next) =
            (word(phase::EPOCH), word(phase::ENTRIES), self.map().word(header::RING_NEXT));
        // If the last record has this epoch, an owner of the latch wrote it, and died before it
        // could close the phase.
        let last = layout::ring(next.get().wrapping_sub(1));
        let is_there = self.map().word(last + phase::EPOCH).get() == epoch;
        // A phase without entries was cut off by a death before it began.
        if entries > 0 && !is_there {
            let to = layout::ring(next.get());
            self.write_record(to, |map| {
                map.half(to + phase::FLAGS).set(flags.get() & phase::DIED);
                map.word(to + phase::EPOCH).set(epoch);
                map.word(to + phase::BEGAN).set(word(phase::BEGAN));
                map.word(to + phase::ENDED).set(clock::real());
                map.word(to + phase::ENTRIES).set(entries);
                self.copy(from + phase::SESSION, to + phase::SESSION, SESSION_MAX);
            });
            next.set(next.get().wrapping_add(1));
        }
        flags.set(0);
    }

    fn admitted(&mut self, number: Slot) {
        self.room.slot(number).since().set(clock::real());
        let entries = self.map().word(header::PHASE + phase::ENTRIES);
        entries.set(entries.get().wrapping_add(1));
        if self.awake != Some(number) {
            self.wake.push(number);
        }
    }

    fn nudge(&mut self, number: Slot) {
        let state = self.room.slot(number).state();
        // The nudge is in the word that the waiter sleeps on, so that the waiter does not fall
        // asleep afterwards.
        if state.get() == state::WAITING {
            state.set(state::NUDGED);
            // Wake it now: if we die later, no other process knows that it sleeps.
            futex::wake(state.0, i32::MAX);
        }
    }

    fn died(&mut self, number: Slot, death: u64) {
        let (record, slot) = (layout::death(death), self.room.slot(number));
        self.map().word(record + death::EPOCH).set(slot.epoch().get());
        self.map().word(record + death::NOTICED).set(clock::real());
        self.map().word(record + death::PID).set(slot.pid().get().into());
        self.copy(slot.session(), record + death::SESSION, SESSION_MAX);
        self.copy(slot.command(), record + death::COMMAND, COMMAND_MAX);
        let flags = self.map().half(header::PHASE + phase::FLAGS);
        flags.set(flags.get() | phase::DIED);
    }
}

impl Latched<'_> {
    /// Nudges the first waiter if requests were admitted and a limit applies inside: it must watch
    /// the new holders.
    pub(super) fn wake_head(&mut self) {
        if let Some(head) = self.slot_named(self.get(At::Head))
            && !self.wake.is_empty()
            && self.get(At::Most) != ANY
        {
            self.nudge(head);
        }
    }

    /// The slot that a word names, if it is valid.
    fn slot_named(&self, word: u64) -> Option<Slot> {
        let slot = word.checked_sub(1).and_then(|slot| Slot::try_from(slot).ok());
        slot.filter(|slot| self.room.used().contains(slot))
    }
}

/// The time of arrival minus `aging` × priority.
pub(super) fn rank(aging: u128, arrival: u64, priority: i32) -> i128 {
    let head_start = i128::try_from(aging).unwrap_or(i128::MAX).saturating_mul(priority.into());
    i128::from(arrival).saturating_sub(head_start)
}
