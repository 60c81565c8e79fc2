//! An open room: the mapping, the life locks, and checks on both.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use super::fork::Birth;
use super::futex;
use super::layout::{self, Fixed, SESSION_MAX, header, slot, verdict};
use super::life::Life;
use super::mapping::{Half, Mapping, Word};
use super::pool::OwnedSlot;
use super::watchman::Watchmen;
use crate::error::RoomError;
use crate::guard::Loss;
use crate::name::RoomName;
use crate::snapshot::HolderId;

/// A handle of a room in a directory.
pub(super) struct FileRoom {
    pub(super) map: Mapping,
    pub(super) life: Life,
    pub(super) fixed: Fixed,
    pub(super) name: RoomName,
    pub(super) path: PathBuf,
    pub(super) birth: Birth,
    /// Whether the mapping is a private copy. Then the room cannot be entered.
    pub(super) look_only: bool,
    /// What snapshots show of this process.
    pub(super) command: String,
    pub(super) host: String,
    /// The number of slots that the file is known to have.
    pub(super) slots: AtomicU16,
    /// Whether the file was truncated. Then the mapping must not be touched: that would raise
    /// SIGBUS.
    pub(super) cut_off: AtomicBool,
    /// Slots of ours that no entry uses.
    pub(super) idle_slots: Mutex<Vec<OwnedSlot>>,
    pub(super) watchmen: Watchmen,
}

/// The words of one slot.
#[derive(Clone, Copy)]
pub(super) struct SlotView<'r> {
    room: &'r FileRoom,
    number: u16,
}

impl<'r> SlotView<'r> {
    fn half(self, field: usize) -> Half<'r> {
        self.room.map.half(layout::slot(self.number) + field)
    }

    fn word(self, field: usize) -> Word<'r> {
        self.room.map.word(layout::slot(self.number) + field)
    }

    pub(super) fn state(self) -> Half<'r> {
        self.half(slot::STATE)
    }

    pub(super) fn reported(self) -> Word<'r> {
        self.word(slot::REPORTED)
    }

    pub(super) fn ticket(self) -> Word<'r> {
        self.word(slot::TICKET)
    }

    pub(super) fn epoch(self) -> Word<'r> {
        self.word(slot::EPOCH)
    }

    pub(super) fn since(self) -> Word<'r> {
        self.word(slot::SINCE)
    }

    pub(super) fn arrival(self) -> Word<'r> {
        self.word(slot::ARRIVAL)
    }

    pub(super) fn expected(self) -> Word<'r> {
        self.word(slot::EXPECTED)
    }

    pub(super) fn most(self) -> Word<'r> {
        self.word(slot::MOST)
    }

    pub(super) fn alone(self) -> Half<'r> {
        self.half(slot::ALONE)
    }

    pub(super) fn priority(self) -> Half<'r> {
        self.half(slot::PRIORITY)
    }

    pub(super) fn sequence(self) -> Half<'r> {
        self.half(slot::SEQUENCE)
    }

    pub(super) fn pid(self) -> Half<'r> {
        self.half(slot::PID)
    }

    pub(super) fn uid(self) -> Half<'r> {
        self.half(slot::UID)
    }

    pub(super) fn kept(self) -> Half<'r> {
        self.half(slot::KEPT)
    }

    /// The offset of the session's name.
    pub(super) fn session(self) -> usize {
        layout::slot(self.number) + slot::SESSION
    }

    pub(super) fn host(self) -> usize {
        layout::slot(self.number) + slot::HOST
    }

    pub(super) fn command(self) -> usize {
        layout::slot(self.number) + slot::COMMAND
    }

    /// The identifier of its owner.
    pub(super) fn holder(self) -> HolderId {
        HolderId::new(format!("{}.{}", self.pid().get(), self.number))
    }
}

impl FileRoom {
    /// The words of a slot. The slot must exist.
    pub(super) fn slot(&self, number: u16) -> SlotView<'_> {
        SlotView { room: self, number }
    }

    /// The number of slots. The number in the header counts only if the file is long enough.
    pub(super) fn slots(&self) -> u16 {
        // Relaxed: a number that was right stays right, because files only grow.
        let known = self.slots.load(Ordering::Relaxed);
        let said = self.map.half(header::SLOTS).get();
        let Ok(said) = u16::try_from(said) else { return known };
        if said > known && said <= self.fixed.capacity {
            let length = self.life.file.metadata().map_or(0, |facts| facts.len());
            if length >= layout::size(said) as u64 {
                self.slots.fetch_max(said, Ordering::Relaxed);
                return said;
            }
        }
        known
    }

    /// All slots that were ever used.
    pub(super) fn used(&self) -> std::ops::Range<u16> {
        let high = self.map.half(header::HIGH_WATER).get();
        0..u16::try_from(high).unwrap_or(u16::MAX).min(self.slots())
    }

    /// The name of a session as text.
    pub(super) fn session_text(&self, offset: usize) -> Option<String> {
        self.map.text(offset, SESSION_MAX).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// An error if this handle cannot enter: it is a parent's, or only for snapshots.
    pub(super) fn ours(&self) -> Result<(), RoomError> {
        self.whole()?;
        if self.look_only {
            return Err(RoomError::Permission { what: "write to", path: self.path.clone() });
        }
        if self.birth.is_ours() { Ok(()) } else { Err(RoomError::Forked) }
    }

    /// An error if the file was truncated.
    fn whole(&self) -> Result<(), RoomError> {
        // Relaxed: it says nothing about other memory.
        if self.cut_off.load(Ordering::Relaxed) {
            Err(self.corrupt("it was truncated"))
        } else {
            Ok(())
        }
    }

    /// An error if the room is closed forever.
    pub(super) fn verdict(&self) -> Result<(), RoomError> {
        self.whole()?;
        match self.map.half(header::VERDICT).get() {
            verdict::OPEN => Ok(()),
            verdict::REMOVED => Err(self.removed()),
            verdict::CORRUPT => Err(self.corrupt("another process has found it corrupt")),
            _ => Err(self.condemn("its verdict is not valid")),
        }
    }

    /// An error if the file has lost its name or bytes. A file that was removed by hand closes the
    /// room.
    pub(super) fn still_there(&self) -> Result<(), RoomError> {
        use std::os::unix::fs::MetadataExt;
        let facts = self.life.file.metadata().map_err(|error| self.io("look at", error))?;
        if facts.len() < layout::size(self.slots.load(Ordering::Relaxed)) as u64 {
            self.cut_off.store(true, Ordering::Relaxed);
        }
        self.whole()?;
        if facts.nlink() == 0 {
            self.close(verdict::REMOVED);
            return Err(self.removed());
        }
        Ok(())
    }

    /// Closes the room forever, because its state is contradictory.
    pub(super) fn condemn(&self, reason: &str) -> RoomError {
        self.close(verdict::CORRUPT);
        self.corrupt(reason)
    }

    /// Closes the room forever, and wakes all waiters to report it.
    pub(super) fn close(&self, verdict: u32) {
        self.map.half(header::VERDICT).set(verdict);
        for slot in self.used() {
            futex::wake(self.slot(slot).state().0, i32::MAX);
        }
    }

    pub(super) fn corrupt(&self, reason: &str) -> RoomError {
        RoomError::Corrupt { path: self.path.clone(), reason: reason.to_owned() }
    }

    pub(super) fn removed(&self) -> RoomError {
        RoomError::Removed { path: self.path.clone() }
    }

    pub(super) fn stalled(&self, who: String, waited: Duration) -> RoomError {
        RoomError::Stalled { path: self.path.clone(), who, waited }
    }

    pub(super) fn io(&self, what: &'static str, source: std::io::Error) -> RoomError {
        RoomError::Io { what, path: self.path.clone(), source }
    }
}

/// The error as a holder sees it.
pub(super) fn as_loss(error: RoomError) -> RoomError {
    match error {
        RoomError::Corrupt { .. } => Loss::Corrupt.into(),
        RoomError::Removed { .. } => Loss::Removed.into(),
        error => error,
    }
}

impl Drop for FileRoom {
    fn drop(&mut self) {
        self.drain();
    }
}
