//! The slots a handle owns.
//!
//! A slot is claimed when the first entry needs it and kept for the next, since claiming takes system calls. So a handle
//! has as many slots as it ever had entries at the same time.

use std::sync::PoisonError;

use nix::fcntl::posix_fallocate;
use nix::libc;

use super::gate;
use super::layout::{self, SESSION_MAX, header, state};
use super::line::ANY;
use super::room::FileRoom;
use crate::error::RoomError;
use crate::request::Request;

/// A slot that is ours, and the session that is written in it.
pub(super) struct Lease {
    pub(super) slot: u16,
    session: String,
}

const UNKNOWN: u64 = u64::MAX;

impl FileRoom {
    /// A slot of ours with a request written in it.
    pub(super) fn lease(&self, request: &Request<'_>) -> Result<Lease, RoomError> {
        let length = request.session.len();
        if length > SESSION_MAX {
            return Err(RoomError::SessionTooLong { length, max: SESSION_MAX });
        }
        self.ours()?;
        self.verdict()?;
        let idle = self.leases.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut lease = idle.map_or_else(|| self.claim_slot(), Ok)?;
        let slot = self.slot(lease.slot);
        if lease.session != request.session {
            self.write_session(lease.slot, request.session);
            request.session.clone_into(&mut lease.session);
        }
        let expected = request.expected.map_or(UNKNOWN, |time| {
            u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN - 1).min(UNKNOWN - 1)
        });
        slot.priority().set(request.priority.0.cast_unsigned());
        slot.expected().set(expected);
        slot.alone().set(request.alone.into());
        slot.most().set(request.at_most.map_or(ANY, |most| most.get().into()));
        Ok(lease)
    }

    /// Writes the session into a slot of ours that nobody compares with others: it is outside, or alone.
    pub(super) fn write_session(&self, number: u16, session: &str) {
        let slot = self.slot(number);
        let sequence = slot.sequence();
        sequence.set(sequence.get() | 1);
        self.map.set_text(slot.session(), session.as_bytes());
        sequence.set(sequence.get().wrapping_add(1) & !1);
    }

    /// For the next entry. The slot is idle.
    pub(super) fn give_back(&self, lease: Lease) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
    }

    /// Gives a slot up: one that is idle, so that those who watch it learn that its owner left; or one whose state could not
    /// be put in order, whose owner is dead to others then.
    pub(super) fn give_up(&self, lease: &Lease) {
        if self.verdict().is_ok() && self.slot(lease.slot).state().get() == state::IDLE {
            self.slot(lease.slot).state().set(state::FREE);
        }
        self.life.release(lease.slot);
    }

    /// Claims a slot: a free one, else one of a dead owner, else a new one.
    fn claim_slot(&self) -> Result<Lease, RoomError> {
        let (slot, inherited) = self.reclaiming(|| self.claim_some())??;
        let mine = self.slot(slot);
        if inherited || mine.state().get() != state::FREE {
            let claimed = self.succeed(slot, inherited);
            if let Err(error) = claimed {
                self.life.release(slot);
                return Err(error);
            }
        }
        let sequence = mine.sequence();
        sequence.set(sequence.get() | 1);
        mine.pid().set(std::process::id());
        mine.uid().set(nix::unistd::getuid().as_raw());
        mine.kept().set(0);
        self.map.set_text(mine.host(), self.host.as_bytes());
        self.map.set_text(mine.command(), self.command.as_bytes());
        self.map.set_text(mine.session(), b"");
        sequence.set(sequence.get().wrapping_add(1) & !1);
        mine.state().set(state::IDLE);
        Ok(Lease { slot, session: String::new() })
    }

    /// Under the reclaim byte: a slot that is ours now, and whether the latch came with it.
    fn claim_some(&self) -> Result<(u16, bool), RoomError> {
        let free = |slot: &u16| self.slot(*slot).state().get() == state::FREE;
        let all = || 0..self.slots();
        let dead_ones = all().filter(|slot| !free(slot));
        for slot in all().filter(free).chain(dead_ones) {
            if self.claim(slot)? {
                return Ok((slot, gate::is_left_to(self, slot)?));
            }
        }
        let slot = self.grow()?;
        if self.claim(slot)? { Ok((slot, false)) } else { Err(self.full()) }
    }

    fn claim(&self, slot: u16) -> Result<bool, RoomError> {
        let claimed = self.life.claim(slot).map_err(|error| self.io("lock", error))?;
        let high = self.map.half(header::HIGH_WATER);
        // Before anybody can find something in it that must not be overlooked.
        if claimed && high.get() <= slot.into() {
            high.set(u32::from(slot) + 1);
        }
        Ok(claimed)
    }

    /// Doubles the number of slots. The first of the new ones.
    fn grow(&self) -> Result<u16, RoomError> {
        let now = self.slots();
        let more = now.saturating_mul(2).min(self.fixed.capacity);
        if more <= now {
            return Err(self.full());
        }
        let no_space =
            || RoomError::NoSpace { path: self.path.clone(), bytes: layout::size(more) as u64 };
        let size = libc::off_t::try_from(layout::size(more)).map_err(|_| no_space())?;
        // Every page now: a write to a page that the file system has no space for later would be a signal.
        posix_fallocate(&self.life.file, 0, size).map_err(|_| no_space())?;
        self.map.half(header::SLOTS).set(more.into());
        Ok(now)
    }

    fn full(&self) -> RoomError {
        RoomError::Full { path: self.path.clone(), capacity: self.slots().into() }
    }

    /// Puts in order what the dead owner of a slot left.
    fn succeed(&self, slot: u16, inherited: bool) -> Result<(), RoomError> {
        let mut latched = if inherited { self.accept_latch() } else { self.latch(slot)? };
        latched.bury(slot)
    }

    /// Gives all slots up, when the handle goes. In a child they are still the parent's, and so are the locks.
    pub(super) fn drain(&self) {
        if self.birth.is_ours() {
            let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
            leases.drain(..).for_each(|lease| self.give_up(&lease));
        }
    }
}
