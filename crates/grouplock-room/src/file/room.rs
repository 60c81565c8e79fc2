//! An open room: the mapping, the life lines, and small questions to both.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use super::fork::Birth;
use super::futex;
use super::layout::{self, Fixed, SESSION_MAX, header, slot, verdict};
use super::life::Life;
use super::mapping::{Half, Mapping, Word};
use super::pool::Lease;
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
    /// Whether the mapping is our own copy, so that nobody can enter by it.
    pub(super) look_only: bool,
    /// What is shown of us.
    pub(super) command: String,
    pub(super) host: String,
    /// How many slots the file was seen to have.
    pub(super) slots: AtomicU16,
    /// The file was cut off. From then on the mapping is not touched, since that would be a signal.
    pub(super) cut_off: AtomicBool,
    /// Slots of ours that are not in use.
    pub(super) leases: Mutex<Vec<Lease>>,
    pub(super) watchmen: Watchmen,
}

/// A slot of a room.
#[derive(Clone, Copy)]
pub(super) struct Seat<'r> {
    room: &'r FileRoom,
    number: u16,
}

impl<'r> Seat<'r> {
    fn half(self, field: usize) -> Half<'r> {
        self.room.map.half(layout::slot(self.number) + field)
    }

    fn word(self, field: usize) -> Word<'r> {
        self.room.map.word(layout::slot(self.number) + field)
    }

    pub(super) fn state(self) -> Half<'r> {
        self.half(slot::STATE)
    }

    pub(super) fn told(self) -> Word<'r> {
        self.word(slot::TOLD)
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

    /// Where the session's name is.
    pub(super) fn session(self) -> usize {
        layout::slot(self.number) + slot::SESSION
    }

    pub(super) fn host(self) -> usize {
        layout::slot(self.number) + slot::HOST
    }

    pub(super) fn command(self) -> usize {
        layout::slot(self.number) + slot::COMMAND
    }

    /// How people call its owner.
    pub(super) fn holder(self) -> HolderId {
        HolderId::new(format!("{}.{}", self.pid().get(), self.number))
    }
}

impl FileRoom {
    /// A slot, which must exist.
    pub(super) fn slot(&self, number: u16) -> Seat<'_> {
        Seat { room: self, number }
    }

    /// How many slots there are. What the header says is believed if the file has as many.
    pub(super) fn slots(&self) -> u16 {
        // Relaxed: a number that was right once stays so, as files only grow.
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

    /// The slots that were ever used.
    pub(super) fn used(&self) -> std::ops::Range<u16> {
        let high = self.map.half(header::HIGH_WATER).get();
        0..u16::try_from(high).unwrap_or(u16::MAX).min(self.slots())
    }

    /// The name of a session as text.
    pub(super) fn session_text(&self, offset: usize) -> Option<String> {
        self.map.text(offset, SESSION_MAX).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// An error if the handle was inherited from a parent, or is only for looking.
    pub(super) fn ours(&self) -> Result<(), RoomError> {
        self.whole()?;
        if self.look_only {
            return Err(RoomError::Permission { what: "write to", path: self.path.clone() });
        }
        if self.birth.is_ours() { Ok(()) } else { Err(RoomError::Forked) }
    }

    /// An error if the file was cut off.
    fn whole(&self) -> Result<(), RoomError> {
        // Relaxed: it says nothing about other memory.
        if self.cut_off.load(Ordering::Relaxed) {
            Err(self.corrupt("it was cut off"))
        } else {
            Ok(())
        }
    }

    /// An error if the room is closed for good.
    pub(super) fn verdict(&self) -> Result<(), RoomError> {
        self.whole()?;
        match self.map.half(header::VERDICT).get() {
            verdict::OPEN => Ok(()),
            verdict::REMOVED => Err(self.removed()),
            verdict::CORRUPT => Err(self.corrupt("this was found before")),
            _ => Err(self.condemn("its verdict is none")),
        }
    }

    /// Whether the file still has a name and all its bytes. Removing it by hand closes the room.
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

    /// Closes the room for good because its state contradicts itself.
    pub(super) fn condemn(&self, reason: &str) -> RoomError {
        self.close(verdict::CORRUPT);
        self.corrupt(reason)
    }

    /// Nobody enters any more, and whoever waits learns it.
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

    pub(super) fn io(&self, what: &'static str, source: std::io::Error) -> RoomError {
        RoomError::Io { what, path: self.path.clone(), source }
    }
}

/// What an error means to someone inside.
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
