//! Being inside, and the fast way in and out.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::clock;
use super::gate::{Gate, MAX_EPOCH};
use super::layout::{SESSION_MAX, header, state};
use super::pool::Lease;
use super::room::{FileRoom, as_loss};
use super::settle::Probe;
use crate::backend::Watch;
use crate::error::RoomError;
use crate::guard::{Loss, Recovered, Standing};
use crate::request::Request;
use crate::snapshot::HolderId;

/// Keeps the room open: by borrowing it, which is free, or by a share of it.
pub(crate) enum Keeper<'r> {
    Borrowed(&'r Arc<FileRoom>),
    Shared(Arc<FileRoom>),
}

impl Keeper<'_> {
    #[inline]
    fn arc(&self) -> &Arc<FileRoom> {
        match self {
            Keeper::Borrowed(room) => room,
            Keeper::Shared(room) => room,
        }
    }
}

impl Deref for Keeper<'_> {
    type Target = FileRoom;

    #[inline]
    fn deref(&self) -> &FileRoom {
        self.arc()
    }
}

/// A place inside.
pub(crate) struct Holding<'r> {
    keeper: Keeper<'r>,
    /// `None` once it was given back.
    lease: Option<Box<Lease>>,
    epoch: u64,
    /// Whether someone had died before.
    told: bool,
    end: OnceLock<Arc<End>>,
}

/// Tells the watches that the holding was given back.
#[derive(Default)]
struct End {
    over: Mutex<bool>,
    news: Condvar,
}

impl FileRoom {
    /// Enters if the room is empty and nobody waits, without any system call.
    #[inline]
    pub(crate) fn enter_idle<'r>(self: &'r Arc<Self>, session: &str) -> Option<Holding<'r>> {
        if self.history || session.len() > SESSION_MAX || !self.birth.is_ours() {
            return None;
        }
        let mut lease = self.take_spare()?;
        self.inscribe(&mut lease, &Request::new(session));
        if let Some(epoch) = self.pass_gate(&lease) {
            return Some(Holding::new(Keeper::Borrowed(self), lease, epoch, false));
        }
        self.give_back(lease);
        None
    }

    /// Becomes the sole holder if the room is empty and nobody waits: the epoch.
    #[inline]
    pub(super) fn pass_gate(&self, lease: &Lease) -> Option<u64> {
        let gate = self.gate();
        let word = gate.get();
        let Some(Gate::Empty { epoch }) = Gate::unpack(word) else { return None };
        if epoch >= MAX_EPOCH {
            return None;
        }
        let (slot, epoch) = (self.slot(lease.slot), epoch + 1);
        // The claim before the gate: once the gate says that we are inside, others believe what the slot says.
        slot.since().set(clock::real());
        slot.state().set(state::CLAIM);
        if gate.swap(word, Gate::Sole { slot: lease.slot, epoch }.pack()) {
            return Some(epoch);
        }
        slot.state().set(state::IDLE);
        None
    }

    /// Leaves by the latch.
    #[cold]
    fn leave_by_latch(&self, lease: Box<Lease>, epoch: u64) -> Result<(), RoomError> {
        let leave = || {
            let mut latched = self.latch(lease.slot)?;
            latched.manage()?;
            let slot = self.slot(lease.slot);
            if slot.state().get() != state::INSIDE || slot.epoch().get() != epoch {
                return Err(self.condemn("a holder's slot does not say that it is inside"));
            }
            slot.state().set(state::IDLE);
            match latched.settle(Probe::No) {
                // That is for those who want to enter; we are out.
                Err(RoomError::EpochsExhausted { .. }) => Ok(()),
                result => result,
            }
        };
        let left = leave();
        match left {
            Ok(()) => {
                self.give_back(lease);
                Ok(())
            }
            Err(error) => {
                self.abandon(lease);
                Err(as_loss(error))
            }
        }
    }

    /// How the holding of `epoch` in `slot` stands, if it was not given back.
    fn standing(&self, slot: u16, epoch: u64) -> Standing {
        match self.still_there().and_then(|()| self.verdict()) {
            Err(RoomError::Removed { .. }) => return Standing::Lost(Loss::Removed),
            Err(_) => return Standing::Lost(Loss::Corrupt),
            Ok(()) => {}
        }
        let holds = match Gate::unpack(self.gate().get()) {
            Some(
                Gate::Sole { slot: sole, epoch: now } | Gate::Converting { slot: sole, epoch: now },
            ) => (sole, now) == (slot, epoch),
            Some(Gate::Managed { epoch: now }) => {
                let state = self.slot(slot).state().get();
                now == epoch && state == state::INSIDE
            }
            _ => false,
        };
        if holds { Standing::Held } else { Standing::Lost(Loss::Corrupt) }
    }
}

impl<'r> Holding<'r> {
    #[inline]
    pub(super) fn new(keeper: Keeper<'r>, lease: Box<Lease>, epoch: u64, told: bool) -> Self {
        Holding { keeper, lease: Some(lease), epoch, told, end: OnceLock::new() }
    }

    pub(crate) fn session(&self) -> &str {
        self.lease.as_ref().map_or("", |lease| &lease.session)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.lease.as_ref().map_or_else(
            || HolderId::new(""),
            |lease| HolderId::new(format!("{}.{}", std::process::id(), lease.slot)),
        )
    }

    pub(crate) fn recovered(&self) -> Option<Recovered> {
        self.told.then(|| {
            let map = &self.keeper.map;
            // A later death may have been noted in the meantime; then that is the one to know about.
            Recovered::new(
                map.word(header::DEATH_EPOCH).get(),
                self.keeper.session_text(header::DEATH_SESSION).unwrap_or_default(),
                map.half(header::DEATH_PID).get(),
                clock::system_time(map.word(header::DEATH_NOTICED).get()),
            )
        })
    }

    pub(crate) fn standing(&self) -> Standing {
        match &self.lease {
            Some(lease) => self.keeper.standing(lease.slot, self.epoch),
            None => Standing::Left,
        }
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        let end = self.end.get_or_init(Arc::default);
        Box::new(FileWatch {
            room: Arc::clone(self.keeper.arc()),
            slot: self.lease.as_ref().map_or(0, |lease| lease.slot),
            epoch: self.epoch,
            end: Arc::clone(end),
        })
    }

    pub(crate) fn leave(mut self) -> Result<(), RoomError> {
        self.leave_once()
    }

    #[inline]
    fn leave_once(&mut self) -> Result<(), RoomError> {
        let Some(lease) = self.lease.take() else { return Ok(()) };
        if let Some(end) = self.end.get() {
            *end.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            end.news.notify_all();
        }
        let room = &*self.keeper;
        room.ours()?;
        let (slot, epoch) = (lease.slot, self.epoch);
        if room.gate().swap(Gate::Sole { slot, epoch }.pack(), Gate::Empty { epoch }.pack()) {
            room.slot(slot).state().set(state::IDLE);
            room.give_back(lease);
            return Ok(());
        }
        room.leave_by_latch(lease, epoch)
    }
}

impl Drop for Holding<'_> {
    #[inline]
    fn drop(&mut self) {
        // Whoever wants to know calls `leave`.
        let _ = self.leave_once();
    }
}

/// How a holding stands.
struct FileWatch {
    room: Arc<FileRoom>,
    slot: u16,
    epoch: u64,
    end: Arc<End>,
}

/// How often to look whether the file is still there.
const LOOK: Duration = Duration::from_millis(100);

impl Watch for FileWatch {
    fn standing(&self) -> Standing {
        let over = self.end.over.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: a holding that is being given back is not lost.
        if *over { Standing::Left } else { self.room.standing(self.slot, self.epoch) }
    }

    fn wait(&self, until: Option<Instant>) -> Standing {
        loop {
            let standing = self.standing();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if standing != Standing::Held || left.is_some_and(|left| left.is_zero()) {
                return standing;
            }
            let over = self.end.over.lock().unwrap_or_else(PoisonError::into_inner);
            if !*over {
                let time = left.map_or(LOOK, |left| left.min(LOOK));
                drop(self.end.news.wait_timeout(over, time));
            }
        }
    }
}
