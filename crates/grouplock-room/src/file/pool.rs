//! The slots that a handle owns.
//!
//! The handle claims a slot when an entry needs it, and keeps it for the next entry, because a
//! claim takes system calls. So a handle has as many slots as it had entries at the same time.

use std::sync::{Mutex, PoisonError};

use nix::fcntl::posix_fallocate;
use nix::libc;

use super::latch_word;
use super::layout::{self, SESSION_MAX, header, state};
use super::line::ANY;
use super::room::FileRoom;
use crate::error::RoomError;
use crate::request::Request;

/// A slot that this handle owns, and the session that is written in it.
pub(super) struct OwnedSlot {
    pub(super) number: u16,
    session: Mutex<String>,
}

const UNKNOWN: u64 = u64::MAX;

impl FileRoom {
    /// Takes a slot and writes a request into it.
    pub(super) fn take_slot(&self, request: &Request<'_>) -> Result<OwnedSlot, RoomError> {
        let length = request.session.len();
        if length > SESSION_MAX {
            return Err(RoomError::SessionTooLong { length, max: SESSION_MAX });
        }
        self.ours()?;
        self.verdict()?;
        let idle = self.idle_slots.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let owned = idle.map_or_else(|| self.claim_slot(), Ok)?;
        let slot = self.slot(owned.number);
        self.write_session(&owned, request.session);
        let expected = request.expected.map_or(UNKNOWN, |time| {
            u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN - 1).min(UNKNOWN - 1)
        });
        slot.priority().set(request.priority.0.cast_unsigned());
        slot.expected().set(expected);
        slot.alone().set(request.alone.into());
        slot.most().set(request.at_most.map_or(ANY, |most| most.get().into()));
        Ok(owned)
    }

    /// Writes the session into a slot of ours, unless it is there. The slot must be outside, or the
    /// caller must own the latch: then no process compares the session.
    pub(super) fn write_session(&self, owned: &OwnedSlot, session: &str) {
        let mut written = owned.session.lock().unwrap_or_else(PoisonError::into_inner);
        if *written != session {
            let slot = self.slot(owned.number);
            slot.sequence().odd_while(|| self.map.set_text(slot.session(), session.as_bytes()));
            session.clone_into(&mut written);
        }
    }

    /// Keeps an idle slot for the next entry.
    pub(super) fn return_slot(&self, owned: OwnedSlot) {
        self.idle_slots.lock().unwrap_or_else(PoisonError::into_inner).push(owned);
    }

    /// Gives up the ownership of a slot. If the slot is idle, the threads that watch it learn that
    /// its owner left. If its state could not be repaired, other processes treat its owner as dead.
    pub(super) fn release_slot(&self, owned: &OwnedSlot) {
        if self.verdict().is_ok() && self.slot(owned.number).state().get() == state::IDLE {
            self.slot(owned.number).state().set(state::FREE);
        }
        self.life.release(owned.number);
    }

    /// Claims a slot: a free one, or one of a dead owner, or a new one.
    fn claim_slot(&self) -> Result<OwnedSlot, RoomError> {
        let (slot, inherited) = self.reclaiming(|| self.claim_some())??;
        let mine = self.slot(slot);
        if inherited || mine.state().get() != state::FREE {
            let claimed = self.succeed(slot, inherited);
            if let Err(error) = claimed {
                self.life.release(slot);
                return Err(error);
            }
        }
        mine.sequence().odd_while(|| {
            mine.pid().set(std::process::id());
            mine.uid().set(nix::unistd::geteuid().as_raw());
            mine.kept().set(0);
            self.map.set_text(mine.host(), self.host.as_bytes());
            self.map.set_text(mine.command(), self.command.as_bytes());
            self.map.set_text(mine.session(), b"");
        });
        mine.state().set(state::IDLE);
        Ok(OwnedSlot { number: slot, session: Mutex::default() })
    }

    /// Claims a slot under the reclaim byte. Also returns whether the latch came with it.
    fn claim_some(&self) -> Result<(u16, bool), RoomError> {
        let free = |slot: &u16| self.slot(*slot).state().get() == state::FREE;
        let all = || 0..self.slots();
        let dead_ones = all().filter(|slot| !free(slot));
        for slot in all().filter(free).chain(dead_ones) {
            if self.claim(slot)? {
                return Ok((slot, latch_word::is_left_to(self, slot)?));
            }
        }
        let slot = self.grow()?;
        if self.claim(slot)? { Ok((slot, false)) } else { Err(self.full()) }
    }

    fn claim(&self, slot: u16) -> Result<bool, RoomError> {
        let claimed = self.life.claim(slot).map_err(|error| self.io("lock", error))?;
        let high = self.map.half(header::HIGH_WATER);
        // First: other processes must not overlook a slot that is in use.
        if claimed && high.get() <= slot.into() {
            high.set(u32::from(slot) + 1);
        }
        Ok(claimed)
    }

    /// Doubles the number of slots. Returns the first new one.
    fn grow(&self) -> Result<u16, RoomError> {
        let now = self.slots();
        let more = now.saturating_mul(2).min(self.fixed.capacity);
        if more <= now {
            return Err(self.full());
        }
        let no_space =
            || RoomError::NoSpace { path: self.path.clone(), bytes: layout::size(more) as u64 };
        let size = libc::off_t::try_from(layout::size(more)).map_err(|_| no_space())?;
        // Allocate every page now. A write to a page without space on the disk would end the
        // process by a signal.
        posix_fallocate(&self.life.file, 0, size).map_err(|_| no_space())?;
        self.map.half(header::SLOTS).set(more.into());
        Ok(now)
    }

    fn full(&self) -> RoomError {
        RoomError::Full { path: self.path.clone(), capacity: self.slots().into() }
    }

    /// Repairs the slot of a dead owner.
    fn succeed(&self, slot: u16, inherited: bool) -> Result<(), RoomError> {
        let mut latched = if inherited { self.latched() } else { self.latch(slot)? };
        latched.bury(slot)
    }

    /// Gives up all slots when the handle is dropped. In a forked child the slots and the locks are
    /// still the parent's.
    pub(super) fn drain(&self) {
        if self.birth.is_ours() {
            let mut idle = self.idle_slots.lock().unwrap_or_else(PoisonError::into_inner);
            idle.drain(..).for_each(|owned| self.release_slot(&owned));
        }
    }
}
