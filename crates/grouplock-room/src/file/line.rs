//! The line of requests: the protocol, generic over its memory.
//!
//! ```text
//!  First ──▶ slot ⇄ slot ⇄ slot ⇄ slot ◀── Last        State of a slot: OUT, WAIT or IN
//!            IN     IN     WAIT   WAIT                 Inside = 2, the number of slots that are IN
//!                          ▲ Head, the first that waits
//! ```
//!
//! Only the owner of the latch changes these words. (Exceptions: while a slot is OUT, its owner
//! writes its words; a holder writes `Prepared`.) Invariants while the latch has no owner:
//!
//! 1. The slots that are IN are the longest compatible beginning of the line. (If the policy allows
//!    [passes](Words::passes), some may be further back.)
//! 2. `Armed` is 0.
//! 3. Links, `Head`, `Inside` and `Most` agree with the states.
//!
//! An owner of the latch may die before any of its writes. **The states of the slots are the
//! truth.** Links and numbers follow from the states and the tickets. An owner sets `Armed` before
//! it first changes a state or a link, and clears it after its last change. If the next owner finds
//! it set, it [rebuilds](Line::rebuild) everything else from the states. There is no rollback, and
//! no log except this bit. The order of the other writes matters in four cases:
//!
//! * `Epoch` grows before a request enters with it. An epoch may be skipped, but is never used
//!   twice.
//! * The state IN is written after the words that its owner reads as soon as it sees IN.
//! * The number of passes of a waiter grows before a request passes it.
//! * A death is recorded before the slot is freed. The record contains the ticket of the dead
//!   request, so that the next owner of the latch does not record it again.
//!
//! `tests/protocol` runs this code on a small memory, in all orders, with a death before every
//! write.

/// The number of a slot.
pub(crate) type Slot = u16;

/// The words of the protocol. A word that names a slot contains its number plus one, or 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// 1 while an owner of the latch changes the line.
    Armed,
    First,
    Last,
    /// The first slot that waits.
    Head,
    /// The number of slots that are IN.
    Inside,
    /// The smallest limit of the slots that are IN.
    Most,
    /// The epoch of the current or the last phase.
    Epoch,
    /// The last ticket.
    Tickets,
    /// The number of deaths inside.
    Deaths,
    /// The number of the last death that was acknowledged.
    Repaired,
    /// [`NOBODY`], [`READY`] or [`STALE`].
    Prepared,
    /// The ticket of the dead request in the record of death number n.
    Buried(u64),
    Of(Slot, Field),
}

/// The words of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    State,
    /// Tickets grow in the order of arrival.
    Ticket,
    Prev,
    Next,
    /// The epoch of the phase that it entered.
    Epoch,
    /// The number of the last death, if deaths are to be reported to this holder; otherwise 0.
    Reported,
    /// 1: no other slot may be IN.
    Alone,
    /// The largest number of slots that may be IN with it, itself included.
    Most,
    /// How often later requests have passed it.
    Passed,
    /// The waiter that watches this slot, plus one; 0 for none.
    Watcher,
}

pub(crate) const OUT: u64 = 0;
pub(crate) const WAIT: u64 = 1;
pub(crate) const IN: u64 = 2;

/// The room is not set up.
pub(crate) const NOBODY: u64 = 0;
/// The room is set up for the session that is recorded in the file.
pub(crate) const READY: u64 = 1;
/// It was set up for that session. Other sessions have been inside since.
pub(crate) const STALE: u64 = 2;

/// No limit.
pub(crate) const ANY: u64 = u64::MAX;

/// The memory of a room, for the owner of the latch.
pub(crate) trait Words {
    fn get(&self, at: At) -> u64;
    fn set(&mut self, at: At, value: u64);
    /// The number of the largest slot ever used, plus one.
    fn slots(&self) -> Slot;
    fn same_session(&self, one: Slot, other: Slot) -> bool;
    /// Whether the room is set up for the session of a slot.
    fn prepared_for(&self, slot: Slot) -> bool;

    /// A smaller rank is further in front. Between equal ranks the ticket decides.
    fn rank(&self, _: Slot) -> i128 {
        0
    }

    /// How often requests that can join the holders may pass a waiter.
    fn passes(&self) -> u64 {
        0
    }

    /// A phase begins with this slot.
    fn opened(&mut self, _: Slot) {}
    /// The last holder has left. May be called again for the same phase.
    fn closed(&mut self) {}
    /// The slot is about to become IN.
    fn admitted(&mut self, _: Slot) {}
    /// The owner of this waiting slot must look again for which slot it waits.
    fn nudge(&mut self, _: Slot) {}
    /// Records the death of a slot's owner under this number. May be called again for the same
    /// number.
    fn died(&mut self, _: Slot, _: u64) {}
}

/// The links contradict the states. A process has overwritten them.
struct Broken;

/// The states contradict each other: incompatible slots are IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// The operations of the owner of the latch.
pub(crate) struct Line<'w, W>(pub(crate) &'w mut W);

impl<W: Words> Line<'_, W> {
    /// Finishes the change of an owner that died.
    pub(crate) fn mend(&mut self) -> Result<(), Contradiction> {
        if self.0.get(At::Armed) == 0 { Ok(()) } else { self.redo() }
    }

    /// Rebuilds all words that follow from the states. Then it admits the requests that may enter.
    pub(crate) fn redo(&mut self) -> Result<(), Contradiction> {
        self.rebuild()?;
        self.settle().map_err(|Broken| Contradiction)?;
        self.0.set(At::Armed, 0);
        Ok(())
    }

    /// Adds a slot that is OUT to the queue. It contains the request.
    pub(crate) fn append(&mut self, slot: Slot) -> Result<(), Contradiction> {
        self.change(|line| line.link(slot))
    }

    /// Removes a slot from the line, whether it is IN or waits.
    pub(crate) fn remove(&mut self, slot: Slot) -> Result<(), Contradiction> {
        self.change(|line| line.unlink(slot))
    }

    /// `old` leaves and `new` queues in one step. Both have the same owner.
    pub(crate) fn switch(&mut self, old: Slot, new: Slot) -> Result<(), Contradiction> {
        self.change(|line| {
            line.link(new)?;
            line.unlink(old)
        })
    }

    /// Removes the slot of a dead owner from the line.
    pub(crate) fn bury(&mut self, slot: Slot) -> Result<(), Contradiction> {
        self.mend()?;
        // In an image whose pages are from several moments, the sessions may differ. If a request
        // joined one of them now, its epoch could be that of another.
        let inside = self.inside(usize::MAX);
        if inside.iter().any(|other| !self.0.same_session(inside[0], *other)) {
            return Err(Contradiction);
        }
        self.record_death(slot);
        self.remove(slot)
    }

    /// Records the death of an owner whose slot is IN, unless the last record is of that death.
    pub(crate) fn record_death(&mut self, slot: Slot) {
        let (deaths, ticket) = (self.0.get(At::Deaths), self.of(slot, Field::Ticket));
        let recorded = deaths > 0 && self.0.get(At::Buried(deaths)) == ticket;
        if self.of(slot, Field::State) != IN || recorded {
            return;
        }
        // Saturating, here and elsewhere: a faulty process may have written any number into the
        // file.
        let number = deaths.saturating_add(1);
        self.0.died(slot, number);
        self.0.set(At::Buried(number), ticket);
        self.0.set(At::Deaths, number);
    }

    /// Acknowledges the deaths that were reported to this slot.
    pub(crate) fn acknowledge(&mut self, slot: Slot) {
        let reported = self.of(slot, Field::Reported);
        if reported > self.0.get(At::Repaired) {
            self.0.set(At::Repaired, reported);
        }
    }

    /// Makes this slot alone if it is the only one that is IN. Returns whether it is.
    pub(crate) fn try_alone(&mut self, slot: Slot) -> Result<bool, Contradiction> {
        self.mend()?;
        let only = self.0.get(At::Inside) == 1 && self.of(slot, Field::State) == IN;
        if only && self.of(slot, Field::Alone) == 0 {
            self.set(slot, Field::Alone, 1);
        }
        Ok(only)
    }

    /// Lets the session of a slot that is IN and alone join it. The session may be another than the
    /// slot had when it was admitted.
    pub(crate) fn downgrade(&mut self, slot: Slot) -> Result<(), Contradiction> {
        self.change(|line| {
            line.outdate(slot);
            line.set(slot, Field::Alone, 0);
            Ok(())
        })
    }

    /// The slots that `slot` waits for: the waiter in front of it or, for the first waiter, slots
    /// that are IN, at most `many`. Empty if it does not wait.
    pub(crate) fn in_front(&mut self, slot: Slot, many: usize) -> Result<Vec<Slot>, Contradiction> {
        self.mend()?;
        if let Ok(found) = self.seek(slot, many) {
            return Ok(found);
        }
        self.redo()?;
        self.seek(slot, many).map_err(|Broken| Contradiction)
    }

    /// `slot` watches `targets`: it sleeps until one of them leaves the line. Then the protocol
    /// nudges it. The lock on the byte of a target is not enough, because the byte may have a new
    /// owner before the watcher asks for the lock.
    pub(crate) fn watch(&mut self, slot: Slot, targets: &[Slot]) {
        let me = u64::from(slot) + 1;
        for target in targets {
            let other = self.of(*target, Field::Watcher);
            if other != me {
                self.set(*target, Field::Watcher, me);
                self.nudge(other);
            }
        }
    }

    /// Nudges a watcher, if there is one.
    fn nudge(&mut self, watcher: u64) {
        if let Ok(slot) = self.number(watcher) {
            self.0.nudge(slot);
        }
    }

    fn seek(&self, slot: Slot, many: usize) -> Result<Vec<Slot>, Broken> {
        if self.of(slot, Field::State) != WAIT {
            return Ok(Vec::new());
        }
        if self.0.get(At::Head) != u64::from(slot) + 1 {
            let mut at = self.of(slot, Field::Prev);
            for _ in 0..self.0.slots() {
                let other = self.linked(at)?;
                if other == slot {
                    return Err(Broken);
                }
                if self.of(other, Field::State) == WAIT {
                    return Ok(vec![other]);
                }
                at = self.of(other, Field::Prev);
            }
            return Err(Broken);
        }
        let one = self.inside(1);
        let first = *one.first().ok_or(Broken)?;
        // If only the number of holders keeps it out, it can enter when any of them leaves.
        let shares = self.of(slot, Field::Alone) == 0 && self.0.same_session(first, slot);
        Ok(if shares { self.inside(many) } else { one })
    }

    /// At most `limit` of the slots that are IN, found by the links.
    pub(crate) fn inside(&self, limit: usize) -> Vec<Slot> {
        let mut inside = Vec::new();
        let mut at = self.0.get(At::First);
        // The loop is bounded, even if the links form a circle.
        for _ in 0..self.0.slots() {
            let Ok(slot) = self.linked(at) else { break };
            if self.of(slot, Field::State) == IN {
                inside.push(slot);
            } else if self.0.passes() == 0 {
                break;
            }
            if inside.len() == limit {
                break;
            }
            at = self.of(slot, Field::Next);
        }
        inside
    }

    /// Makes one change. Then it admits the requests that may enter.
    fn change(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Contradiction> {
        self.mend()?;
        self.0.set(At::Armed, 1);
        if work(self).and_then(|()| self.settle()).is_err() {
            return self.redo();
        }
        self.0.set(At::Armed, 0);
        Ok(())
    }

    fn link(&mut self, slot: Slot) -> Result<(), Broken> {
        let ticket = self.0.get(At::Tickets).wrapping_add(1);
        self.0.set(At::Tickets, ticket);
        self.set(slot, Field::Ticket, ticket);
        self.set(slot, Field::Passed, 0);
        self.set(slot, Field::Watcher, 0);
        self.set(slot, Field::State, WAIT);
        let (mut prev, mut next) = (self.0.get(At::Last), 0);
        // At the end, or in front of the waiters with a larger rank.
        for _ in 0..self.0.slots() {
            let Ok(other) = self.linked(prev) else { break };
            if self.of(other, Field::State) == IN || self.0.rank(other) <= self.0.rank(slot) {
                break;
            }
            (prev, next) = (self.of(other, Field::Prev), prev);
        }
        if prev != 0 && self.of(self.linked(prev)?, Field::Next) != next {
            return Err(Broken);
        }
        let me = u64::from(slot) + 1;
        self.set(slot, Field::Prev, prev);
        self.set(slot, Field::Next, next);
        self.join(prev, me)?;
        self.join(me, next)?;
        if self.0.get(At::Head) == next {
            self.0.set(At::Head, me);
        }
        Ok(())
    }

    fn unlink(&mut self, slot: Slot) -> Result<(), Broken> {
        let me = u64::from(slot) + 1;
        let (was, most) = (self.of(slot, Field::State), self.of(slot, Field::Most));
        let (prev, next) = (self.of(slot, Field::Prev), self.of(slot, Field::Next));
        if was == OUT {
            return Ok(());
        }
        self.set(slot, Field::State, OUT);
        self.nudge(self.of(slot, Field::Watcher));
        let before = if prev == 0 {
            self.0.get(At::First)
        } else {
            self.of(self.linked(prev)?, Field::Next)
        };
        let behind =
            if next == 0 { self.0.get(At::Last) } else { self.of(self.linked(next)?, Field::Prev) };
        if (before, behind) != (me, me) {
            return Err(Broken);
        }
        self.join(prev, next)?;
        if self.0.get(At::Head) == me {
            let head = self.next_waiting(next)?;
            self.0.set(At::Head, head);
        }
        if was == IN {
            let inside = self.0.get(At::Inside).checked_sub(1).ok_or(Broken)?;
            self.0.set(At::Inside, inside);
            if most != ANY && most == self.0.get(At::Most) {
                let left = self.inside(usize::MAX);
                let least = left.into_iter().map(|slot| self.of(slot, Field::Most)).min();
                self.0.set(At::Most, least.unwrap_or(ANY));
            }
            if inside == 0 {
                self.0.closed();
            }
        }
        Ok(())
    }

    /// Links two neighbours. 0 is the end of the line.
    fn join(&mut self, prev: u64, next: u64) -> Result<(), Broken> {
        match prev {
            0 => self.0.set(At::First, next),
            _ => self.set(self.number(prev)?, Field::Next, next),
        }
        match next {
            0 => self.0.set(At::Last, prev),
            _ => self.set(self.number(next)?, Field::Prev, prev),
        }
        Ok(())
    }

    /// Admits the requests that may enter.
    fn settle(&mut self) -> Result<(), Broken> {
        // The waiters that stay, and how many requests may still pass them.
        let (mut others, mut left) = (Vec::new(), u64::MAX);
        let mut at = self.0.get(At::Head);
        for _ in 0..=self.0.slots() {
            if at == 0 || left == 0 {
                return Ok(());
            }
            let slot = self.linked(at)?;
            if self.of(slot, Field::State) != WAIT {
                return Err(Broken);
            }
            let next = self.next_waiting(self.of(slot, Field::Next))?;
            if self.may_enter(slot)? {
                for other in &others {
                    let passed = self.of(*other, Field::Passed);
                    self.set(*other, Field::Passed, passed.saturating_add(1));
                }
                self.admit(slot);
                if others.is_empty() {
                    self.0.set(At::Head, next);
                } else {
                    left -= 1;
                }
            } else {
                left = left.min(self.0.passes().saturating_sub(self.of(slot, Field::Passed)));
                others.push(slot);
            }
            at = next;
        }
        Err(Broken)
    }

    /// Whether a slot is compatible with the slots that are IN.
    fn may_enter(&self, slot: Slot) -> Result<bool, Broken> {
        let (inside, one) = (self.0.get(At::Inside), self.inside(1));
        let Some(&one) = one.first() else {
            return if inside == 0 { Ok(true) } else { Err(Broken) };
        };
        let most = self.0.get(At::Most).min(self.of(slot, Field::Most));
        let alone = self.of(slot, Field::Alone) != 0 || self.of(one, Field::Alone) != 0;
        if inside == 0 {
            return Err(Broken);
        }
        Ok(!alone && inside < most && self.0.same_session(one, slot))
    }

    fn admit(&mut self, slot: Slot) {
        let inside = self.0.get(At::Inside);
        if inside == 0 {
            let epoch = self.0.get(At::Epoch).wrapping_add(1);
            self.0.set(At::Epoch, epoch);
            self.outdate(slot);
            self.0.opened(slot);
        }
        let deaths = self.0.get(At::Deaths);
        let reported = if deaths > self.0.get(At::Repaired) { deaths } else { 0 };
        self.set(slot, Field::Reported, reported);
        self.set(slot, Field::Epoch, self.0.get(At::Epoch));
        self.0.admitted(slot);
        self.set(slot, Field::State, IN);
        self.0.set(At::Inside, inside + 1);
        let most = self.0.get(At::Most).min(self.of(slot, Field::Most));
        self.0.set(At::Most, most);
    }

    /// The session of `slot` is inside from now on. If the room is set up for another, it is so no
    /// longer.
    fn outdate(&mut self, slot: Slot) {
        if self.0.get(At::Prepared) == READY && !self.0.prepared_for(slot) {
            self.0.set(At::Prepared, STALE);
        }
    }

    /// Builds links and numbers from the states and tickets.
    pub(crate) fn rebuild(&mut self) -> Result<(), Contradiction> {
        self.0.set(At::Armed, 1);
        let mut line: Vec<Slot> =
            (0..self.0.slots()).filter(|slot| self.of(*slot, Field::State) != OUT).collect();
        line.sort_by_key(|slot| {
            (self.of(*slot, Field::State) != IN, self.0.rank(*slot), self.of(*slot, Field::Ticket))
        });
        let inside = line.iter().filter(|slot| self.of(**slot, Field::State) == IN).count();
        let most =
            line[..inside].iter().map(|slot| self.of(*slot, Field::Most)).min().unwrap_or(ANY);
        for slot in &line[..inside] {
            let alone = inside > 1 && self.of(*slot, Field::Alone) != 0;
            let epoch = self.of(*slot, Field::Epoch) == self.0.get(At::Epoch);
            if alone || !epoch || !self.0.same_session(line[0], *slot) {
                return Err(Contradiction);
            }
        }
        if inside as u64 > most {
            return Err(Contradiction);
        }
        let name = |slot: Option<&Slot>| slot.map_or(0, |slot| u64::from(*slot) + 1);
        for (at, slot) in line.iter().enumerate() {
            self.set(*slot, Field::Prev, name(at.checked_sub(1).and_then(|at| line.get(at))));
            self.set(*slot, Field::Next, name(line.get(at + 1)));
        }
        self.0.set(At::First, name(line.first()));
        self.0.set(At::Last, name(line.last()));
        self.0.set(At::Head, name(line.get(inside)));
        self.0.set(At::Inside, inside as u64);
        self.0.set(At::Most, most);
        if inside == 0 {
            self.0.closed();
        }
        Ok(())
    }

    /// The first slot that waits, from `at` on.
    fn next_waiting(&self, mut at: u64) -> Result<u64, Broken> {
        for _ in 0..=self.0.slots() {
            if at == 0 || self.of(self.linked(at)?, Field::State) == WAIT {
                return Ok(at);
            }
            at = self.of(self.linked(at)?, Field::Next);
        }
        Err(Broken)
    }

    /// The slot that a word names. It must be in the line.
    fn linked(&self, word: u64) -> Result<Slot, Broken> {
        let slot = self.number(word)?;
        if self.of(slot, Field::State) == OUT { Err(Broken) } else { Ok(slot) }
    }

    fn number(&self, word: u64) -> Result<Slot, Broken> {
        let slot = word.checked_sub(1).and_then(|slot| Slot::try_from(slot).ok());
        slot.filter(|slot| *slot < self.0.slots()).ok_or(Broken)
    }

    #[inline(always)]
    fn of(&self, slot: Slot, field: Field) -> u64 {
        self.0.get(At::Of(slot, field))
    }

    #[inline(always)]
    fn set(&mut self, slot: Slot, field: Field, value: u64) {
        self.0.set(At::Of(slot, field), value);
    }
}
