//! Holdings that an open file keeps instead of a process.
//!
//! The lock on a slot's byte belongs to an open file description, and several processes can have it
//! open. So a holder can move its holding to a description that another process has opened on the
//! room's file. That is typically a shell, whose children inherit the description. The holding
//! lasts until the last of them has closed it.
//!
//! In between, the byte has no owner for a moment. Other processes act on a dead slot only under
//! the latch (burying) or the reclaim byte (claiming, and taking the latch). So both are held
//! during the move. The latch is held for another slot of this process: if this process dies,
//! others find that slot dead.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;

use super::layout::state;
use super::pool::OwnedSlot;
use super::room::FileRoom;
use crate::error::RoomError;
use crate::guard::Kept;
use crate::request::Request;

/// How long a process that watched the byte may take to release it again.
const PATIENCE: Duration = Duration::from_secs(10);

impl FileRoom {
    /// Moves the holding of a slot of ours to `descriptor`. Snapshots show `pid` as its process.
    /// `owned` is taken when the slot is no longer ours.
    pub(super) fn hand_over(
        &self,
        owned: &mut Option<OwnedSlot>,
        descriptor: BorrowedFd<'_>,
        pid: u32,
    ) -> Result<(), RoomError> {
        self.fits(descriptor)?;
        self.with_another_slot(|own| {
            let _latched = self.latch(own)?;
            self.reclaiming(|| {
                if let Some(taken) = self.slot_locked_through(descriptor)? {
                    let session = self.session_text(self.slot(taken).session()).unwrap_or_default();
                    let reason = format!("it already keeps a holding, in the session `{session}`");
                    return Err(bad(descriptor, reason));
                }
                let slot = owned.take().ok_or(RoomError::Withdrawn)?.number;
                self.write_keeper(slot, pid);
                self.life.release(slot);
                let started = Instant::now();
                while !self.life.lock_through(descriptor, slot).map_err(|e| self.io("lock", e))? {
                    if started.elapsed() > PATIENCE {
                        return Err(self.stalled("a process".to_owned(), PATIENCE));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            })?
        })
    }

    /// The holding that a descriptor keeps.
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

    /// Leaves the holding that a descriptor keeps. With `repaired`, it first acknowledges the
    /// deaths that were reported to it. Returns `false` if it keeps none.
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

    /// An error unless the descriptor is open for writing on the room's file.
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

    /// The slot that is inside and that a descriptor keeps. A slot whose owner lives does not
    /// count: the command of `grouplock run` only inherits the descriptor. Call it under the
    /// reclaim byte.
    fn slot_kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<u16>, RoomError> {
        let locked = self.slot_locked_through(descriptor)?;
        Ok(locked.filter(|slot| self.slot(*slot).kept().get() != 0))
    }

    /// The slot that is inside and that a description has locked. Call it under the reclaim byte.
    fn slot_locked_through(&self, descriptor: BorrowedFd<'_>) -> Result<Option<u16>, RoomError> {
        for slot in self.used().filter(|slot| self.slot(*slot).state().get() == state::INSIDE) {
            let kept = self.life.is_locked_through(descriptor, slot);
            if kept.map_err(|error| self.io("probe", error))? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Runs `work` for another slot of ours, which is outside.
    fn with_another_slot<T>(
        &self,
        work: impl FnOnce(u16) -> Result<T, RoomError>,
    ) -> Result<T, RoomError> {
        let owned = self.take_slot(&Request::new(""))?;
        let done = work(owned.number);
        self.release_slot(&owned);
        done
    }

    /// Records that an open file keeps a slot, and which process snapshots show.
    fn write_keeper(&self, number: u16, pid: u32) {
        let slot = self.slot(number);
        slot.sequence().odd_while(|| {
            slot.pid().set(pid);
            slot.kept().set(1);
        });
    }
}

fn bad(descriptor: BorrowedFd<'_>, expected: String) -> RoomError {
    let value = descriptor.as_raw_fd().to_string();
    RoomError::BadOption { what: "the descriptor of a holding", value, expected }
}
