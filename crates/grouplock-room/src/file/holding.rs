//! Being inside, and the fast way in and out.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::clock;
use super::gate::{Gate, MAX_EPOCH};
use super::layout::{header, state};
use super::pool::Lease;
use super::room::{FileRoom, as_loss};
use super::settle::Probe;
use super::standing::Claim;
use crate::backend::{self, Watch};
use crate::error::RoomError;
use crate::guard::{Loss, Recovered, Standing};
use crate::snapshot::HolderId;

/// Inside in whatever way.
pub(crate) struct Inside {
    keeper: Arc<FileRoom>,
    seat: Seat,
}

/// The slot that says so.
enum Seat {
    /// The standing claim of the room.
    Claim,
    /// One of its own.
    Lease(Box<Lease>),
    /// It was given back.
    Left,
}

/// What there is to ask of those who are inside.
pub(crate) struct Place<'h> {
    room: &'h Arc<FileRoom>,
    /// Without one it is the standing claim.
    lease: Option<&'h Lease>,
}

/// Tells the watches that the holding was given back.
#[derive(Default)]
pub(super) struct End {
    over: Mutex<bool>,
    news: Condvar,
}

impl End {
    pub(super) fn tell(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.news.notify_all();
    }
}

impl FileRoom {
    /// Becomes the sole holder by a lease if the room is empty and nobody waits: the epoch.
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
        slot.state().set(state::HELD);
        if gate.swap(word, Gate::Sole { slot: lease.slot, epoch }.pack()) {
            return Some(epoch);
        }
        slot.state().set(state::IDLE);
        None
    }

    /// Leaves by the latch.
    fn leave_by_latch(&self, number: u16, epoch: u64) -> Result<(), RoomError> {
        let mut latched = self.latch(number)?;
        latched.manage()?;
        let slot = self.slot(number);
        if slot.state().get() != state::INSIDE || slot.epoch().get() != epoch {
            return Err(self.condemn("a holder's slot does not say that it is inside"));
        }
        slot.state().set(state::IDLE);
        match latched.settle(Probe::No) {
            // That is for those who want to enter; we are out.
            Err(RoomError::EpochsExhausted { .. }) => Ok(()),
            result => result,
        }
    }

    #[inline(never)]
    fn leave_lease(&self, mut lease: Box<Lease>) -> Result<(), RoomError> {
        if let Some(end) = lease.end.take() {
            end.tell();
        }
        let (slot, epoch, gate) = (lease.slot, lease.epoch, self.gate());
        if gate.swap(Gate::Sole { slot, epoch }.pack(), Gate::Empty { epoch }.pack()) {
            self.slot(slot).state().set(state::IDLE);
            self.give_back(lease);
            return Ok(());
        }
        match self.leave_by_latch(slot, epoch) {
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
    fn standing_of(&self, slot: u16, epoch: u64) -> Standing {
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

impl Inside {
    /// By a lease.
    pub(super) fn new(keeper: Arc<FileRoom>, mut lease: Box<Lease>, epoch: u64) -> Self {
        lease.epoch = epoch;
        Inside { keeper, seat: Seat::Lease(lease) }
    }

    /// By the standing claim.
    pub(super) fn by_claim(keeper: Arc<FileRoom>) -> Self {
        Inside { keeper, seat: Seat::Claim }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        let lease = match &self.seat {
            Seat::Lease(lease) => Some(&**lease),
            Seat::Claim | Seat::Left => None,
        };
        Place { room: &self.keeper, lease }
    }

    fn leave_once(&mut self) -> Result<(), RoomError> {
        let room = &*self.keeper;
        match std::mem::replace(&mut self.seat, Seat::Left) {
            _ if !room.birth.is_ours() => Err(RoomError::Forked),
            Seat::Claim => room.leave_by_claim(),
            Seat::Lease(lease) => room.leave_lease(lease),
            Seat::Left => Ok(()),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Whoever wants to know calls `leave`.
        let _ = self.leave_once();
    }
}

impl<'h> Place<'h> {
    fn claim(&self) -> Option<&'h Claim> {
        self.room.claim.get()
    }

    fn slot(&self) -> Option<u16> {
        self.lease.map_or_else(|| self.claim().map(|claim| claim.slot), |lease| Some(lease.slot))
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.lease.map_or_else(|| self.claim().map_or(0, Claim::epoch), |lease| lease.epoch)
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.slot().map_or_else(
            || HolderId::new(""),
            |slot| HolderId::new(format!("{}.{slot}", std::process::id())),
        )
    }

    pub(crate) fn recovered(&self) -> Option<Recovered> {
        // Who entered by the gate has found no death untold.
        let told = self.lease.is_some_and(|lease| lease.told);
        told.then(|| {
            let map = &self.room.map;
            // A later death may have been noted in the meantime; then that is the one to know about.
            Recovered::new(
                map.word(header::DEATH_EPOCH).get(),
                self.room.session_text(header::DEATH_SESSION).unwrap_or_default(),
                map.half(header::DEATH_PID).get(),
                clock::system_time(map.word(header::DEATH_NOTICED).get()),
            )
        })
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        let end = match self.lease {
            Some(lease) => Some(Arc::clone(lease.end.get_or_init(Arc::default))),
            None => self.claim().map(Claim::watch),
        };
        let slot = self.slot().unwrap_or_default();
        let end = end.unwrap_or_default();
        Box::new(FileWatch { room: Arc::clone(self.room), slot, epoch: self.epoch(), end })
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
        if *over { Standing::Left } else { self.room.standing_of(self.slot, self.epoch) }
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

impl backend::Holding for Inside {
    fn epoch(&self) -> u64 {
        self.place().epoch()
    }

    fn holder(&self) -> HolderId {
        self.place().holder()
    }

    fn recovered(&self) -> Option<Recovered> {
        self.place().recovered()
    }

    fn watch(&self) -> Box<dyn Watch> {
        self.place().watch()
    }

    fn leave(mut self: Box<Self>) -> Result<(), RoomError> {
        self.leave_once()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.keeper.life.file.as_fd())
    }

    fn abandon(&self) {
        self.keeper.life.abandon();
    }
}
