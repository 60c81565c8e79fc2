//! The slots a handle owns.
//!
//! A slot is claimed when the first entry needs it and kept for the next, since claiming takes system calls. So a handle
//! has as many slots as it ever had entries at the same time.

use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};

use super::holding::End;
use super::layout::{SESSION_MAX, header, state};
use super::room::FileRoom;
use super::settle::Probe;
use crate::error::RoomError;
use crate::policy::Priority;
use crate::request::Request;

/// A slot that is ours, and what we know is written in it.
pub(crate) struct Lease {
    pub(super) slot: u16,
    pub(super) session: String,
    priority: Priority,
    /// In nanoseconds; all ones if unknown.
    expected: u64,
    /// Of the present holding: its epoch, whether someone had died before, and who wants to know of its end. They are here
    /// to keep the guard small, which is moved about.
    pub(super) epoch: u64,
    pub(super) told: bool,
    pub(super) end: OnceLock<Arc<End>>,
}

const UNKNOWN: u64 = u64::MAX;

impl Lease {
    /// Whether nothing but a session is written in it.
    pub(super) fn is_plain(&self) -> bool {
        (self.priority, self.expected) == (Priority::default(), UNKNOWN)
    }
}

impl FileRoom {
    /// The lease in front, if it is there.
    #[inline]
    pub(super) fn take_spare(&self) -> Option<Box<Lease>> {
        // Acquire: pairs with the release in `give_back`, so that we see what the last user wrote in the lease.
        let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: what is not null was put there by `give_back` from a box, and the swap makes us its only owner.
        (!spare.is_null()).then(|| unsafe { Box::from_raw(spare) })
    }

    /// Any slot of ours that is not in use, or a new one.
    pub(super) fn lease(&self) -> Result<Box<Lease>, RoomError> {
        self.ours()?;
        if let Some(lease) = self.take_spare() {
            return Ok(lease);
        }
        let lease = self.leases.lock().unwrap_or_else(PoisonError::into_inner).pop();
        lease.map_or_else(|| self.claim_slot(), Ok)
    }

    /// For the next entry. The slot is idle.
    #[inline]
    pub(super) fn give_back(&self, lease: Box<Lease>) {
        let lease = Box::into_raw(lease);
        // Release: pairs with the acquire in `take_spare`. A failure teaches nothing that is used.
        let put = self.spare.compare_exchange(
            ptr::null_mut(),
            lease,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if put.is_err() {
            // SAFETY: it was a box a moment ago and nobody else has seen it.
            let lease = unsafe { Box::from_raw(lease) };
            self.leases.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        }
    }

    /// Gives a slot up whose state could not be put in order. To others its owner is dead.
    pub(super) fn abandon(&self, lease: Box<Lease>) {
        self.life.release(lease.slot);
        drop(lease);
    }

    /// Claims a slot: a free one, else one of a dead owner.
    fn claim_slot(&self) -> Result<Box<Lease>, RoomError> {
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
        self.map.set_text(mine.host(), self.host.as_bytes());
        self.map.set_text(mine.command(), self.command.as_bytes());
        self.map.set_text(mine.session(), b"");
        sequence.set(sequence.get().wrapping_add(1) & !1);
        mine.priority().set(0);
        mine.expected().set(UNKNOWN);
        mine.state().set(state::IDLE);
        let (session, priority) = (String::new(), Priority::default());
        let (epoch, told, end) = (0, false, OnceLock::new());
        Ok(Box::new(Lease { slot, session, priority, expected: UNKNOWN, epoch, told, end }))
    }

    /// Under the reclaim byte: a slot that is ours now, and whether the latch came with it.
    fn claim_some(&self) -> Result<(u16, bool), RoomError> {
        let free = |slot: &u16| self.slot(*slot).state().get() == state::FREE;
        let all = || 0..self.fixed.capacity;
        let dead_ones = all().filter(|slot| !free(slot));
        for slot in all().filter(free).chain(dead_ones) {
            if self.life.claim(slot).map_err(|error| self.io("lock", error))? {
                // Before anybody can find something in it that must not be overlooked.
                let high = self.map.half(header::HIGH_WATER);
                if high.get() <= slot.into() {
                    high.set(u32::from(slot) + 1);
                }
                return Ok((slot, self.inherited_latch(slot)));
            }
        }
        Err(RoomError::Full { path: self.path.clone(), capacity: self.fixed.capacity.into() })
    }

    /// Puts in order what the dead owner of a slot left.
    fn succeed(&self, slot: u16, inherited: bool) -> Result<(), RoomError> {
        let mut latched = if inherited { self.accept_latch() } else { self.latch(slot)? };
        let epoch = latched.manage()?;
        latched.bury(slot, epoch)?;
        latched.settle(Probe::No)
    }

    /// Writes a request into our slot, which is idle: what is there already need not be written again.
    #[inline]
    pub(super) fn inscribe(&self, lease: &mut Lease, request: &Request<'_>) {
        if lease.session != request.session {
            self.inscribe_session(lease, request.session);
        }
        let expected = request.expected.map_or(UNKNOWN, |time| {
            u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN - 1).min(UNKNOWN - 1)
        });
        if (lease.priority, lease.expected) != (request.priority, expected) {
            (lease.priority, lease.expected) = (request.priority, expected);
            let slot = self.slot(lease.slot);
            slot.priority().set(request.priority.0.cast_unsigned());
            slot.expected().set(expected);
        }
    }

    fn inscribe_session(&self, lease: &mut Lease, session: &str) {
        debug_assert!(session.len() <= SESSION_MAX);
        let slot = self.slot(lease.slot);
        let sequence = slot.sequence();
        sequence.set(sequence.get() | 1);
        self.map.set_text(slot.session(), session.as_bytes());
        sequence.set(sequence.get().wrapping_add(1) & !1);
        session.clone_into(&mut lease.session);
    }

    /// Gives all slots up, when the handle goes.
    pub(super) fn drain(&self) {
        if self.birth.is_ours() {
            self.clear_gate();
        }
        let spare = self.take_spare();
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = self.claim.get().map(|claim| claim.slot);
        let leases = leases.drain(..).chain(spare).map(|lease| lease.slot);
        for slot in leases.chain(claim).filter(|slot| self.life.is_ours(*slot)) {
            // In a child they are still the parent's, and so are the locks.
            if self.birth.is_ours() {
                self.slot(slot).state().set(state::FREE);
                self.life.release(slot);
            }
        }
    }
}
