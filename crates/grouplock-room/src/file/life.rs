//! Who is alive: locks on single bytes of the file that the kernel keeps for an open file description and drops when its
//! last descriptor is closed, by the end of the process at the latest, however it ends.
//!
//! The owner of a slot locks the slot's byte for writing. Whoever asks, asks for reading, so that those who ask do not
//! disturb each other.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::layout::lock_byte;
use crate::kill_points::step;

/// A handle's descriptor and what it has locked.
pub(crate) struct Life {
    pub(crate) file: File,
    /// The slots whose bytes this descriptor has locked or is about to. The kernel does not tell a description about its own
    /// locks.
    ours: Mutex<HashSet<u16>>,
    /// Held with the reclaim byte, which cannot tell our own threads apart.
    reclaim: Mutex<()>,
    /// Another description of the same file, through which we wait for the end of others.
    pub(super) watch: Arc<File>,
}

/// Blocks until the owner of a slot has given it up or died.
pub(super) fn await_end(watch: &File, slot: u16) -> io::Result<()> {
    let start = slot_byte(slot);
    let locked = fcntl(watch, FcntlArg::F_OFD_SETLKW(&byte(start, 1, libc::F_RDLCK)));
    fcntl(watch, FcntlArg::F_OFD_SETLK(&byte(start, 1, libc::F_UNLCK)))?;
    locked?;
    Ok(())
}

fn byte(start: i64, length: i64, kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

fn slot_byte(slot: u16) -> i64 {
    lock_byte::SLOTS + i64::from(slot)
}

fn try_lock(file: impl AsFd, start: i64) -> io::Result<bool> {
    step();
    match fcntl(file, FcntlArg::F_OFD_SETLK(&byte(start, 1, libc::F_WRLCK))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn unlock(file: impl AsFd, start: i64) {
    step();
    // Taking a lock away needs no memory here: whole locks go, none is split.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&byte(start, 1, libc::F_UNLCK)));
}

/// Whether some other description has locked one of these bytes.
fn locked_by_others(file: impl AsFd, start: i64, length: i64) -> io::Result<bool> {
    let mut probe = byte(start, length, libc::F_RDLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut probe))?;
    Ok(i32::from(probe.l_type) != libc::F_UNLCK)
}

impl Life {
    pub(super) fn new(file: File, watch: File) -> Self {
        let (ours, reclaim) = (Mutex::new(HashSet::new()), Mutex::new(()));
        Life { file, ours, reclaim, watch: Arc::new(watch) }
    }

    /// Tries to become the owner of a slot for as long as we live.
    pub(super) fn claim(&self, slot: u16) -> io::Result<bool> {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        if ours.contains(&slot) {
            return Ok(false);
        }
        let claimed = try_lock(&self.file, slot_byte(slot))?;
        if claimed {
            ours.insert(slot);
        }
        Ok(claimed)
    }

    /// Gives a slot up. To others it looks as if its owner had died.
    pub(super) fn release(&self, slot: u16) {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        unlock(&self.file, slot_byte(slot));
        ours.remove(&slot);
    }

    /// Lets go of all locks: to others the owner of this descriptor is dead.
    pub(crate) fn abandon(&self) {
        // Length 0 is everything from there on.
        _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&byte(0, 0, libc::F_UNLCK)));
    }

    /// Whether the owner of a slot lives.
    pub(super) fn is_alive(&self, slot: u16) -> io::Result<bool> {
        // The lock is held over the question: a slot that one of our threads is about to claim has its answer when it is
        // ours.
        let ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ours.contains(&slot) || locked_by_others(&self.file, slot_byte(slot), 1)?)
    }

    /// Whether the description behind `descriptor`, which is none of ours, has locked a slot's byte. To be asked while no
    /// slot changes its owner.
    pub(super) fn is_locked_through(
        &self,
        descriptor: BorrowedFd<'_>,
        slot: u16,
    ) -> io::Result<bool> {
        let start = slot_byte(slot);
        // The kernel does not tell a description about its own locks, but it tells others.
        Ok(!locked_by_others(descriptor, start, 1)? && locked_by_others(&*self.watch, start, 1)?)
    }

    /// Locks a slot's byte for another description. False if somebody else has it.
    pub(super) fn lock_through(&self, descriptor: BorrowedFd<'_>, slot: u16) -> io::Result<bool> {
        try_lock(descriptor, slot_byte(slot))
    }

    pub(super) fn unlock_through(&self, descriptor: BorrowedFd<'_>, slot: u16) {
        unlock(descriptor, slot_byte(slot));
    }

    /// Whether anybody else uses the file at all.
    pub(super) fn others(&self) -> io::Result<bool> {
        locked_by_others(&self.file, lock_byte::SLOTS, i64::from(super::layout::MAX_CAPACITY))
    }

    /// Runs `work` while no slot changes its owner, if that can be had at once.
    pub(super) fn try_reclaiming<T>(&self, work: impl FnOnce() -> T) -> io::Result<Option<T>> {
        let Ok(_ours) = self.reclaim.try_lock() else { return Ok(None) };
        // Not through `file`, which others may have open as well and so would not be kept out.
        if !try_lock(&*self.watch, lock_byte::RECLAIM)? {
            return Ok(None);
        }
        let result = work();
        unlock(&*self.watch, lock_byte::RECLAIM);
        Ok(Some(result))
    }
}
