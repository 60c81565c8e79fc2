//! Places that an open file keeps, and no process.
//!
//! The lock on a slot's byte belongs to an open file description, whoever has it open. So a holder can hand its place to
//! a description that somebody else has opened on the room's file: that of a shell, which its children inherit. The place
//! then lasts until the last of them has closed it.
//!
//! The byte is nobody's for a moment while it changes hands. Whoever finds a slot dead acts on it only under the latch
//! (burying) or the reclaim byte (claiming, and taking the latch), so both are held meanwhile. The latch is held in the name
//! of a slot of our own: if we die with it, others find us dead.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;

use super::layout::state;
use super::pool::Lease;
use super::room::FileRoom;
use crate::error::RoomError;
use crate::guard::Kept;
use crate::request::Request;

/// How long those who were told that the byte is free may take to let go of it.
const PATIENCE: Duration = Duration::from_secs(10);

impl FileRoom {
    /// Hands the place of a slot of ours to `descriptor`, and lets `pid` be shown as its holder. The lease is taken once
    /// the slot is not ours any more.
    pub(super) fn hand_over(
        &self,
        lease: &mut Option<Lease>,
        descriptor: BorrowedFd<'_>,
        pid: u32,
    ) -> Result<(), RoomError> {
        self.fits(descriptor)?;
        self.with_another_slot(|own| {
            let _latched = self.latch(own)?;
            self.reclaiming(|| {
                if let Some(taken) = self.slot_locked_through(descriptor)? {
                    let session = self.session_text(self.slot(taken).session()).unwrap_or_default();
                    let reason = format!("it keeps a place already, in the session `{session}`");
                    return Err(bad(descriptor, reason));
                }
                let slot = lease.take().ok_or(RoomError::Withdrawn)?.slot;
                self.write_keeper(slot, pid);
                self.life.release(slot);
                let started = Instant::now();
                while !self.life.lock_through(descriptor, slot).map_err(|e| self.io("lock", e))? {
                    if started.elapsed() > PATIENCE {
                        let (path, who) = (self.path.clone(), "some process".to_owned());
                        return Err(RoomError::Stalled { path, who, waited: PATIENCE });
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            })?
        })
    }

    /// The place that a descriptor keeps.
    pub(super) fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        self.fits(descriptor)?;
        self.verdict()?;
        let slot = self.reclaiming(|| self.slot_kept_by(descriptor))??;
        Ok(slot.map(|slot| {
            let slot = self.slot(slot);
            let session = self.session_text(slot.session()).unwrap_or_default();
            Kept { session, epoch: slot.epoch().get(), holder: slot.holder() }
        }))
    }

    /// Leaves the place that a descriptor keeps, and says before that the deaths it was told of are repaired, if they are.
    /// False if it keeps none.
    pub(super) fn leave_kept(
        &self,
        descriptor: BorrowedFd<'_>,
        repaired: bool,
    ) -> Result<bool, RoomError> {
        self.fits(descriptor)?;
        self.with_another_slot(|own| {
            let mut latched = self.latch(own)?;
            let Some(slot) = self.reclaiming(|| self.slot_kept_by(descriptor))?? else {
                return Ok(false);
            };
            latched.run(|line| {
                if repaired {
                    line.acknowledge(slot);
                }
                line.remove(slot)
            })?;
            self.slot(slot).state().set(state::FREE);
            self.life.unlock_through(descriptor, slot);
            Ok(true)
        })
    }

    /// An error unless the descriptor is open on the room's file, for writing.
    fn fits(&self, descriptor: BorrowedFd<'_>) -> Result<(), RoomError> {
        self.ours()?;
        let ours = fstat(&self.life.file).map_err(|errno| self.io("look at", errno.into()))?;
        let Ok(theirs) = fstat(descriptor) else {
            return Err(bad(descriptor, "it is not open".to_owned()));
        };
        if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) {
            let reason = format!("it is not open on the room's file, {}", self.path.display());
            return Err(bad(descriptor, reason));
        }
        let mode =
            fcntl(descriptor, FcntlArg::F_GETFL).map_err(|e| self.io("look at", e.into()))?;
        if OFlag::from_bits_retain(mode) & OFlag::O_ACCMODE == OFlag::O_RDONLY {
            return Err(bad(descriptor, "it is open for reading only".to_owned()));
        }
        Ok(())
    }

    /// The slot inside that a descriptor keeps. Not one whose owner lives and has only let others inherit its descriptor, as
    /// `grouplock run` does. To be asked under the reclaim byte.
    fn slot_kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<u16>, RoomError> {
        let locked = self.slot_locked_through(descriptor)?;
        Ok(locked.filter(|slot| self.slot(*slot).kept().get() != 0))
    }

    /// The slot inside that a description has locked. To be asked under the reclaim byte.
    fn slot_locked_through(&self, descriptor: BorrowedFd<'_>) -> Result<Option<u16>, RoomError> {
        for slot in self.used().filter(|slot| self.slot(*slot).state().get() == state::INSIDE) {
            let kept = self.life.is_locked_through(descriptor, slot);
            if kept.map_err(|error| self.io("probe", error))? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Does something in the name of a slot of ours that nobody is inside by.
    fn with_another_slot<T>(
        &self,
        work: impl FnOnce(u16) -> Result<T, RoomError>,
    ) -> Result<T, RoomError> {
        let lease = self.lease(&Request::new(""))?;
        let done = work(lease.slot);
        self.give_up(&lease);
        done
    }

    /// Says that an open file keeps a slot, and whose it is.
    fn write_keeper(&self, number: u16, pid: u32) {
        let slot = self.slot(number);
        let sequence = slot.sequence();
        sequence.set(sequence.get() | 1);
        slot.pid().set(pid);
        slot.kept().set(1);
        sequence.set(sequence.get().wrapping_add(1) & !1);
    }
}

fn bad(descriptor: BorrowedFd<'_>, expected: String) -> RoomError {
    let value = descriptor.as_raw_fd().to_string();
    RoomError::BadOption { what: "the descriptor of a place", value, expected }
}
