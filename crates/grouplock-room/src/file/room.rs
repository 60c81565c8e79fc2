//! An open room: the mapping, the life lines, and small questions to both.

use std::path::PathBuf;
use std::sync::atomic::AtomicPtr;
use std::sync::{Mutex, OnceLock};

use super::fork::Birth;
use super::futex;
use super::gate::Gate;
use super::layout::{self, Fixed, SESSION_MAX, cold, header, hot, verdict};
use super::life::Life;
use super::mapping::{Half, Mapping, Word};
use super::pool::Lease;
use super::standing::Claim;
use crate::error::RoomError;
use crate::guard::Loss;
use crate::name::RoomName;
use crate::snapshot::HolderId;

/// A handle of a room in a directory.
pub(crate) struct FileRoom {
    pub(super) map: Mapping,
    pub(super) life: Life,
    pub(super) fixed: Fixed,
    pub(super) name: RoomName,
    pub(super) path: PathBuf,
    pub(super) birth: Birth,
    /// Whether every entry is to be remembered.
    pub(super) history: bool,
    /// Whether the mapping is our own copy, so that nobody can enter by it.
    pub(super) look_only: bool,
    /// What is shown of us.
    pub(super) command: String,
    pub(super) host: String,
    /// The fast path's slot.
    pub(super) claim: OnceLock<Claim>,
    /// One lease in front of the others, for the fast path.
    pub(super) spare: AtomicPtr<Lease>,
    /// Boxed, so that a lease moves between here and `spare` as a pointer.
    #[expect(clippy::vec_box, reason = "see above")]
    pub(super) leases: Mutex<Vec<Box<Lease>>>,
}

/// A slot of a room.
#[derive(Clone, Copy)]
pub(super) struct Slot<'r> {
    room: &'r FileRoom,
    pub(super) number: u16,
}

impl<'r> Slot<'r> {
    #[inline]
    fn hot_half(self, field: usize) -> Half<'r> {
        self.room.map.half(layout::hot(self.number) + field)
    }

    #[inline]
    fn hot_word(self, field: usize) -> Word<'r> {
        self.room.map.word(layout::hot(self.number) + field)
    }

    #[inline]
    pub(super) fn state(self) -> Half<'r> {
        self.hot_half(hot::STATE)
    }

    pub(super) fn told(self) -> Half<'r> {
        self.hot_half(hot::TOLD)
    }

    pub(super) fn ticket(self) -> Word<'r> {
        self.hot_word(hot::TICKET)
    }

    pub(super) fn epoch(self) -> Word<'r> {
        self.hot_word(hot::EPOCH)
    }

    #[inline]
    pub(super) fn since(self) -> Word<'r> {
        self.hot_word(hot::SINCE)
    }

    pub(super) fn arrival(self) -> Word<'r> {
        self.hot_word(hot::ARRIVAL)
    }

    pub(super) fn expected(self) -> Word<'r> {
        self.hot_word(hot::EXPECTED)
    }

    pub(super) fn priority(self) -> Half<'r> {
        self.hot_half(hot::PRIORITY)
    }

    pub(super) fn passed(self) -> Half<'r> {
        self.hot_half(hot::PASSED)
    }

    fn cold(self) -> usize {
        layout::cold(self.room.fixed.capacity, self.number)
    }

    pub(super) fn sequence(self) -> Half<'r> {
        self.room.map.half(self.cold() + cold::SEQUENCE)
    }

    pub(super) fn pid(self) -> Half<'r> {
        self.room.map.half(self.cold() + cold::PID)
    }

    pub(super) fn uid(self) -> Half<'r> {
        self.room.map.half(self.cold() + cold::UID)
    }

    /// Where the session's name is.
    pub(super) fn session(self) -> usize {
        self.cold() + cold::SESSION
    }

    pub(super) fn host(self) -> usize {
        self.cold() + cold::HOST
    }

    pub(super) fn command(self) -> usize {
        self.cold() + cold::COMMAND
    }

    /// How people call its owner.
    pub(super) fn holder(self) -> HolderId {
        HolderId::new(format!("{}.{}", self.pid().get(), self.number))
    }
}

impl FileRoom {
    /// A slot, which must exist.
    #[inline]
    pub(super) fn slot(&self, number: u16) -> Slot<'_> {
        Slot { room: self, number }
    }

    #[inline]
    pub(super) fn gate(&self) -> Word<'_> {
        self.map.word(header::GATE)
    }

    /// The slots that were ever used.
    pub(super) fn used(&self) -> std::ops::Range<u16> {
        let high = self.map.half(header::HIGH_WATER).get();
        0..u16::try_from(high).unwrap_or(u16::MAX).min(self.fixed.capacity)
    }

    /// The name of a session as text.
    pub(super) fn session_text(&self, offset: usize) -> Option<String> {
        self.map.text(offset, SESSION_MAX).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// An error if the handle was inherited from a parent, or is only for looking.
    pub(super) fn ours(&self) -> Result<(), RoomError> {
        if self.look_only {
            return Err(RoomError::Permission { what: "write to", path: self.path.clone() });
        }
        if self.birth.is_ours() { Ok(()) } else { Err(RoomError::Forked) }
    }

    /// An error if the room is closed for good.
    pub(super) fn verdict(&self) -> Result<(), RoomError> {
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
        if facts.len() < layout::size(self.fixed.capacity) as u64 {
            // Touching what is gone would be a signal, so this is not written down anywhere.
            return Err(self.corrupt("it was cut off"));
        }
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
        let epoch = Gate::unpack(self.gate().get()).map_or(0, Gate::epoch);
        self.gate().set(Gate::Closed { epoch }.pack());
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
