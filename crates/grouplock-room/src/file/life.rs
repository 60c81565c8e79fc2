//! Life locks: kernel locks that prove that the owners of slots live. They are locks on single
//! bytes of the file, and belong to an open file description. The kernel drops them when the last
//! descriptor is closed: at the latest when the process, and all processes that inherited the
//! descriptor, have ended, however they end.
//!
//! The owner of a slot locks the slot's byte for writing. Other processes test it for reading, so
//! that they do not disturb each other.

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

/// The descriptor of a handle, and its locks.
pub(crate) struct Life {
    pub(crate) file: File,
    /// The slots whose bytes this descriptor has locked or is about to lock. The kernel does not
    /// report its own locks to a description.
    ours: Mutex<HashSet<u16>>,
    /// Locked together with the reclaim byte, which does not exclude threads of one process.
    reclaim: Mutex<()>,
    /// Another description of the same file. Threads use it to wait for the end of other owners.
    pub(super) watch: Arc<File>,
}

/// Blocks until the owner of a slot has released it or died.
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
    // It needs no memory: it removes whole locks and splits none.
    _ = fcntl(file, FcntlArg::F_OFD_SETLK(&byte(start, 1, libc::F_UNLCK)));
}

/// Whether another description has locked one of these bytes.
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

    /// Tries to become the owner of a slot. Returns whether it did.
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

    /// Releases a slot. Other processes treat its owner as dead.
    pub(super) fn release(&self, slot: u16) {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        unlock(&self.file, slot_byte(slot));
        ours.remove(&slot);
    }

    /// Releases all locks. Other processes treat the owner of this descriptor as dead.
    pub(crate) fn abandon(&self) {
        // Length 0 means all bytes from there on.
        _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&byte(0, 0, libc::F_UNLCK)));
    }

    /// Whether the owner of a slot lives.
    pub(super) fn is_alive(&self, slot: u16) -> io::Result<bool> {
        // Hold the mutex during the test: another thread of ours may be about to claim the slot.
        let ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ours.contains(&slot) || locked_by_others(&self.file, slot_byte(slot), 1)?)
    }

    /// Whether the description of `descriptor`, which is not ours, has locked a slot's byte. Call
    /// it while no slot can change its owner.
    pub(super) fn is_locked_through(
        &self,
        descriptor: BorrowedFd<'_>,
        slot: u16,
    ) -> io::Result<bool> {
        let start = slot_byte(slot);
        // The kernel does not report its own locks to a description, but it reports them to others.
        Ok(!locked_by_others(descriptor, start, 1)? && locked_by_others(&*self.watch, start, 1)?)
    }

    /// Locks a slot's byte for another description. Returns `false` if it is locked already.
    pub(super) fn lock_through(&self, descriptor: BorrowedFd<'_>, slot: u16) -> io::Result<bool> {
        try_lock(descriptor, slot_byte(slot))
    }

    pub(super) fn unlock_through(&self, descriptor: BorrowedFd<'_>, slot: u16) {
        unlock(descriptor, slot_byte(slot));
    }

    /// Whether any other description uses the file.
    pub(super) fn others(&self) -> io::Result<bool> {
        locked_by_others(&self.file, lock_byte::SLOTS, i64::from(super::layout::MAX_CAPACITY))
    }

    /// Runs `work` while no slot can change its owner. `None` if the lock for it is not free.
    pub(super) fn try_reclaiming<T>(&self, work: impl FnOnce() -> T) -> io::Result<Option<T>> {
        let Ok(_ours) = self.reclaim.try_lock() else { return Ok(None) };
        // Not through `file`: processes that inherited that description would not be excluded.
        if !try_lock(&*self.watch, lock_byte::RECLAIM)? {
            return Ok(None);
        }
        let result = work();
        unlock(&*self.watch, lock_byte::RECLAIM);
        Ok(Some(result))
    }
}
