//! Holdings in a directory.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::clock;
use super::futex;
use super::latch::Latched;
use super::latch_word::LatchWord as _;
use super::layout::{self, COMMAND_MAX, DEATHS, SESSION_MAX, death, header, phase, state};
use super::line::{self, Line};
use super::pool::OwnedSlot;
use super::queue::{self, HEARTBEAT};
use super::room::{FileRoom, as_loss};
use crate::backend::{Holding, Submitted, Watch};
use crate::error::RoomError;
use crate::guard::{Loss, Recovered, Standing};
use crate::request::Request;
use crate::snapshot::HolderId;

impl FileRoom {
    /// Leaves the line, from inside or from the queue.
    pub(super) fn leave(&self, owned: OwnedSlot) -> Result<(), RoomError> {
        let left = self.latch(owned.number).and_then(|mut latched| {
            let state = self.slot(owned.number).state().get();
            if !matches!(state, state::INSIDE | state::WAITING | state::NUDGED) {
                return Err(self.condemn("the slot of a participant is marked as unused"));
            }
            latched.run(|line| line.remove(owned.number))?;
            Ok(latched.contended())
        });
        match left {
            // The threads that watch the slot must find another slot to watch.
            Ok(true) => self.release_slot(&owned),
            Ok(false) => self.return_slot(owned),
            Err(error) => {
                self.release_slot(&owned);
                return Err(as_loss(error));
            }
        }
        Ok(())
    }

    /// The record of a death.
    fn death(&self, number: u64) -> Recovered {
        let record = layout::death(number);
        let word = |field| self.map.word(record + field).get();
        let session = self.session_text(record + death::SESSION).unwrap_or_default();
        let command = self.map.text(record + death::COMMAND, COMMAND_MAX).unwrap_or_default();
        Recovered {
            command: String::from_utf8_lossy(&command).into_owned(),
            ..Recovered::new(
                word(death::EPOCH),
                session,
                word(death::PID) as u32,
                clock::system_time(word(death::NOTICED)),
            )
        }
    }

    /// The session that the room is or was set up for, if the mark has this value.
    fn prepared_for(&self, mark: u64) -> Option<String> {
        let marked = self.map.word(header::PREPARED).get() == mark;
        marked.then(|| self.session_text(header::PREPARED_FOR)).flatten()
    }
}

/// A holding in a directory.
pub(super) struct FileHolding {
    room: Arc<FileRoom>,
    /// `None` after leaving.
    owned: Option<OwnedSlot>,
    slot: u16,
    epoch: u64,
    deaths: Vec<Recovered>,
    /// Whether the holder has left, for watches.
    over: Arc<AtomicBool>,
}

impl FileHolding {
    /// Makes the holding of a slot that is inside.
    pub(super) fn new(room: &Arc<FileRoom>, owned: OwnedSlot) -> Self {
        let slot = room.slot(owned.number);
        let (epoch, reported) = (slot.epoch().get(), slot.reported().get());
        let repaired = room.map.word(header::REPAIRED).get();
        let remembered = reported.saturating_sub(DEATHS - 1);
        let first = repaired.saturating_add(1).max(remembered).min(reported);
        let deaths = if reported == 0 {
            Vec::new()
        } else {
            (first..=reported).map(|n| room.death(n)).collect()
        };
        FileHolding {
            room: Arc::clone(room),
            slot: owned.number,
            owned: Some(owned),
            epoch,
            deaths,
            over: Arc::default(),
        }
    }

    fn leave_once(&mut self) -> Result<(), RoomError> {
        let Some(owned) = self.owned.take() else { return Ok(()) };
        if !self.room.birth.is_ours() {
            return Err(RoomError::Forked);
        }
        // SeqCst: watches are rare.
        self.over.store(true, Ordering::SeqCst);
        let left = self.room.leave(owned);
        if Arc::strong_count(&self.over) > 1 && self.room.verdict().is_ok() {
            futex::wake(self.room.slot(self.slot).state().0, i32::MAX);
        }
        left
    }

    /// Runs `work` under the latch.
    fn latched<T>(
        &self,
        work: impl FnOnce(&mut Latched<'_>) -> Result<T, RoomError>,
    ) -> Result<T, RoomError> {
        let done = self.room.latch(self.slot).and_then(|mut latched| work(&mut latched));
        done.map_err(as_loss)
    }
}

impl Holding for FileHolding {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn holder(&self) -> HolderId {
        HolderId::new(format!("{}.{}", std::process::id(), self.slot))
    }

    fn deaths(&self) -> Vec<Recovered> {
        self.deaths.clone()
    }

    fn watch(&self) -> Box<dyn Watch> {
        let (room, over) = (Arc::clone(&self.room), Arc::clone(&self.over));
        Box::new(FileWatch { room, slot: self.slot, epoch: self.epoch, over })
    }

    fn leave(mut self: Box<Self>) -> Result<(), RoomError> {
        self.leave_once()
    }

    fn acknowledge(&self) -> Result<(), RoomError> {
        self.latched(|latched| {
            latched.run(|line| {
                line.acknowledge(self.slot);
                Ok(())
            })
        })
    }

    fn downgrade(&self, session: &str) -> Result<(), RoomError> {
        let length = session.len();
        if length > SESSION_MAX {
            return Err(RoomError::SessionTooLong { length, max: SESSION_MAX });
        }
        self.latched(|latched| {
            let slot = self.room.slot(self.slot);
            if slot.alone().get() == 0 {
                return Err(RoomError::BadOption {
                    what: "a holder that others may join",
                    value: "downgraded".to_owned(),
                    expected: "only one that is alone can be".to_owned(),
                });
            }
            // A process that compares sessions owns the latch, which is ours now.
            self.room.write_session(self.owned.as_ref().ok_or(RoomError::Withdrawn)?, session);
            self.room.map.set_text(header::PHASE + phase::SESSION, session.as_bytes());
            latched.run(|line| line.downgrade(self.slot))
        })
    }

    fn switch(mut self: Box<Self>, request: &Request<'_>) -> Result<Submitted, RoomError> {
        self.room.ours()?;
        let submitted = queue::submit(&self.room, request, Some(self.slot));
        let left =
            self.room.verdict().is_ok() && self.room.slot(self.slot).state().get() == state::IDLE;
        if let Some(owned) = self.owned.take_if(|_| left) {
            self.over.store(true, Ordering::SeqCst);
            // Do not keep it: the threads that watch the slot must find another slot to watch.
            self.room.release_slot(&owned);
            futex::wake(self.room.slot(self.slot).state().0, i32::MAX);
        }
        submitted
    }

    fn try_alone(&self) -> Result<bool, RoomError> {
        const SOME: usize = 8;
        self.latched(|latched| {
            latched.run(|_| Ok(()))?;
            for other in Line(latched).inside(SOME) {
                if other != self.slot && !self.room.is_alive(other)? {
                    latched.bury(other)?;
                }
            }
            let mut alone = false;
            latched.run(|line| {
                alone = line.try_alone(self.slot)?;
                Ok(())
            })?;
            Ok(alone)
        })
    }

    fn prepared(&self) -> Result<Option<String>, RoomError> {
        self.room.verdict().map_err(as_loss)?;
        Ok(self.room.prepared_for(line::READY))
    }

    fn previous(&self) -> Result<Option<String>, RoomError> {
        self.room.verdict().map_err(as_loss)?;
        Ok(self.room.prepared_for(line::STALE))
    }

    fn set_prepared(&self, session: Option<&str>) -> Result<(), RoomError> {
        let length = session.map_or(0, str::len);
        if length > SESSION_MAX {
            return Err(RoomError::SessionTooLong { length, max: SESSION_MAX });
        }
        self.room.ours()?;
        self.room.verdict().map_err(as_loss)?;
        let mark = self.room.map.word(header::PREPARED);
        // Set the mark last: it says that the name is complete.
        mark.set(line::NOBODY);
        if let Some(session) = session {
            self.room.map.set_text(header::PREPARED_FOR, session.as_bytes());
            mark.set(line::READY);
        }
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.room.life.file.as_fd())
    }

    fn abandon(&self) {
        self.room.life.abandon();
    }

    fn keep_by(
        mut self: Box<Self>,
        descriptor: BorrowedFd<'_>,
        pid: u32,
    ) -> Result<HolderId, RoomError> {
        let FileHolding { room, owned, .. } = &mut *self;
        room.hand_over(owned, descriptor, pid).map_err(as_loss)?;
        self.over.store(true, Ordering::SeqCst);
        Ok(self.room.slot(self.slot).holder())
    }
}

impl Drop for FileHolding {
    fn drop(&mut self) {
        // `drop` cannot report an error. `leave` can.
        _ = self.leave_once();
    }
}

/// The watch of a [`FileHolding`].
struct FileWatch {
    room: Arc<FileRoom>,
    slot: u16,
    epoch: u64,
    over: Arc<AtomicBool>,
}

impl Watch for FileWatch {
    fn standing(&self) -> Standing {
        let lost = match self.room.still_there().and_then(|()| self.room.verdict()) {
            Err(RoomError::Removed { .. }) => Some(Loss::Removed),
            Err(_) => Some(Loss::Corrupt),
            Ok(()) => {
                let slot = self.room.slot(self.slot);
                let holds = (slot.state().get(), slot.epoch().get()) == (state::INSIDE, self.epoch);
                (!holds).then_some(Loss::Corrupt)
            }
        };
        // Check it last: a holding that ends by leaving is not lost.
        match lost {
            _ if self.over.load(Ordering::SeqCst) => Standing::Left,
            Some(loss) => Standing::Lost(loss),
            None => Standing::Held,
        }
    }

    fn wait(&self, until: Option<Instant>) -> Standing {
        loop {
            let standing = self.standing();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if standing != Standing::Held || left.is_some_and(|left| left.is_zero()) {
                return standing;
            }
            let time = left.map_or(HEARTBEAT, |left| left.min(HEARTBEAT));
            futex::wait(self.room.slot(self.slot).state().0, state::INSIDE, time);
        }
    }
}
