//! Asking to enter, and waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::clock;
use super::futex;
use super::holding::Inside;
use super::layout::{SESSION_MAX, header, state};
use super::pool::Lease;
use super::room::FileRoom;
use super::settle::Probe;
use crate::backend::{self, Holding, Submitted};
use crate::error::RoomError;
use crate::policy::Policy;
use crate::request::{Patience, Request};
use crate::snapshot::HolderId;

/// The longest anybody sleeps before looking whether those in front still live.
const NAP: Duration = Duration::from_millis(50);

/// Asks for entry.
pub(crate) fn submit(keeper: Arc<FileRoom>, request: &Request<'_>) -> Result<Submitted, RoomError> {
    let length = request.session.len();
    if length > SESSION_MAX {
        return Err(RoomError::SessionTooLong { length, max: SESSION_MAX });
    }
    let mut lease = keeper.lease_for(request)?;
    if !keeper.history {
        // The first time it is made, and tried at once.
        lease = match keeper.establish(lease) {
            Some(lease) => lease,
            None if keeper.pass_by_claim(request.session) => {
                return Ok(Submitted::Granted(Box::new(Inside::by_claim(keeper))));
            }
            None => keeper.lease_for(request)?,
        };
        if let Some(epoch) = keeper.pass_gate(&lease) {
            return Ok(Submitted::Granted(Box::new(Inside::new(keeper, lease, epoch))));
        }
    }
    match keeper.enqueue(&lease, request.patience) {
        Ok(true) => Ok(Submitted::Granted(Box::new(granted(keeper, lease)))),
        Ok(false) => {
            let deadline = request.patience.deadline();
            Ok(Submitted::Waiting(Box::new(Queued {
                keeper: Some(keeper),
                lease: Some(lease),
                deadline,
                started: Instant::now(),
                watcher: None,
            })))
        }
        Err(error) => {
            if error.is_conflict() {
                keeper.give_back(lease);
            } else {
                keeper.abandon(lease);
            }
            Err(error)
        }
    }
}

/// The holding of a slot that says it is inside.
fn granted(keeper: Arc<FileRoom>, mut lease: Box<Lease>) -> Inside {
    let slot = keeper.slot(lease.slot);
    lease.told = slot.told().get() != 0;
    let epoch = slot.epoch().get();
    Inside::new(keeper, lease, epoch)
}

impl FileRoom {
    /// A slot of ours with the request written in it.
    fn lease_for(&self, request: &Request<'_>) -> Result<Box<Lease>, RoomError> {
        let mut lease = self.lease()?;
        lease.told = false;
        self.inscribe(&mut lease, request);
        Ok(lease)
    }

    /// Stands in the queue. True if it was admitted at once; an error if not and there is no patience: then it is not in
    /// the queue any more.
    fn enqueue(&self, lease: &Lease, patience: Patience) -> Result<bool, RoomError> {
        let mut latched = self.latch(lease.slot)?;
        self.verdict()?;
        latched.manage()?;
        // It is ours, and we look at it before we sleep: waking ourselves would be a system call for nothing.
        latched.awake = Some(lease.slot);
        let slot = self.slot(lease.slot);
        let tickets = self.map.word(header::TICKETS);
        slot.ticket().set(tickets.get());
        tickets.set(tickets.get().wrapping_add(1));
        if let Policy::Priority { .. } = self.fixed.policy {
            slot.arrival().set(clock::monotonic());
        }
        slot.since().set(clock::real());
        slot.passed().set(0);
        slot.state().set(state::WAITING);
        let exhausted = patience.exhausted();
        latched.settle(Probe::No)?;
        if slot.state().get() == state::WAITING {
            // Those in our way may be dead. Who cannot wait has to know now.
            latched.settle(if exhausted { Probe::Yes } else { Probe::IfDue })?;
        }
        if slot.state().get() == state::INSIDE {
            return Ok(true);
        }
        if !exhausted {
            return Ok(false);
        }
        slot.state().set(state::IDLE);
        // Somebody may have been behind us only because of our priority.
        latched.settle(Probe::No)?;
        Err(match patience {
            Patience::Until(_) => RoomError::TimedOut { waited: Duration::ZERO },
            _ => RoomError::Occupied {
                inside: latched
                    .someone_inside()
                    .and_then(|slot| self.session_text(self.slot(slot).session())),
            },
        })
    }

    /// Whether a waiting slot has been admitted.
    fn admitted(&self, slot: u16) -> Result<bool, RoomError> {
        match self.slot(slot).state().get() {
            state::WAITING => Ok(false),
            state::INSIDE => Ok(true),
            _ => {
                self.verdict()?;
                Err(self.condemn("a waiter's slot does not say that it waits"))
            }
        }
    }

    /// Sleeps until the slot is admitted, but not for long and not beyond `until`. Whether it is.
    fn nap(&self, slot: u16, until: Option<Instant>) -> Result<bool, RoomError> {
        if self.admitted(slot)? {
            return Ok(true);
        }
        let left = until.map_or(NAP, |until| until.saturating_duration_since(Instant::now()));
        if futex::wait(self.slot(slot).state().0, state::WAITING, left.min(NAP)) {
            self.tend(slot)?;
        }
        self.verdict()?;
        self.admitted(slot)
    }

    /// Looks after the room while waiting in it.
    fn tend(&self, slot: u16) -> Result<(), RoomError> {
        self.ours()?;
        self.still_there()?;
        self.verdict()?;
        if self.probe_due(clock::monotonic()) {
            self.latch(slot)?.settle(Probe::IfDue)?;
        }
        Ok(())
    }

    /// Leaves the queue, or the room if it was admitted in the meantime.
    fn withdraw(&self, slot: u16) -> Result<(), RoomError> {
        let mut latched = self.latch(slot)?;
        self.verdict()?;
        latched.manage()?;
        let state = self.slot(slot).state();
        if !matches!(state.get(), state::WAITING | state::INSIDE) {
            return Err(self.condemn("a waiter's slot does not say that it waits"));
        }
        state.set(state::IDLE);
        latched.settle(Probe::No)
    }
}

/// A request in the queue. Dropping it withdraws it.
pub(crate) struct Queued {
    /// `None` once it was granted.
    keeper: Option<Arc<FileRoom>>,
    lease: Option<Box<Lease>>,
    deadline: Option<Instant>,
    started: Instant,
    watcher: Option<Arc<Watcher>>,
}

/// What a task shares with the thread that sleeps for it.
struct Watcher {
    stop: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Why the thread gave up.
    failure: Mutex<Option<RoomError>>,
}

impl backend::Pending for Queued {
    fn holder(&self) -> HolderId {
        match (&self.keeper, &self.lease) {
            (Some(keeper), Some(lease)) => keeper.slot(lease.slot).holder(),
            _ => HolderId::new(""),
        }
    }

    /// Waits at most until `until`.
    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError> {
        let (Some(room), Some(lease)) = (&self.keeper, &self.lease) else { return Ok(None) };
        loop {
            if room.nap(lease.slot, until)? {
                return Ok(self.take());
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>> {
        let (Some(room), Some(lease)) = (&self.keeper, &self.lease) else {
            return Poll::Pending;
        };
        let slot = lease.slot;
        let watcher = if let Some(watcher) = &self.watcher {
            let mut waker = watcher.waker.lock().unwrap_or_else(PoisonError::into_inner);
            *waker = Some(context.waker().clone());
            drop(waker);
            let mut failure = watcher.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(failure) = failure.take() {
                return Poll::Ready(Err(failure));
            }
            None
        } else {
            let waker = Mutex::new(Some(context.waker().clone()));
            let (stop, failure) = (AtomicBool::new(false), Mutex::new(None));
            Some(Arc::new(Watcher { stop, waker, failure }))
        };
        // After the waker is in place, so that nothing falls in between.
        let here = room.still_there().and_then(|()| room.verdict());
        if here.and_then(|()| room.admitted(slot))? {
            return Poll::Ready(self.take().ok_or(RoomError::Withdrawn));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Poll::Ready(Err(RoomError::TimedOut { waited: self.started.elapsed() }));
        }
        if let Some(watcher) = watcher {
            let (room, theirs) = (Arc::clone(room), Arc::clone(&watcher));
            let deadline = self.deadline;
            let watch = move || theirs.watch(&room, slot, deadline);
            let thread = std::thread::Builder::new().name("grouplock-wait".to_owned());
            if let Err(error) = thread.spawn(watch) {
                return Poll::Ready(Err(RoomError::Backend(Box::new(error))));
            }
            self.watcher = Some(watcher);
        }
        Poll::Pending
    }
}

impl Queued {
    /// What was granted.
    fn take(&mut self) -> Option<Box<dyn Holding>> {
        self.stop_watcher();
        Some(Box::new(granted(self.keeper.take()?, self.lease.take()?)))
    }

    fn stop_watcher(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            // Release: pairs with the acquire in the watcher, which then touches nothing more of ours.
            watcher.stop.store(true, Ordering::Release);
        }
    }
}

impl Watcher {
    /// Sleeps in place of a task, until there is something for it to look at.
    fn watch(&self, room: &FileRoom, slot: u16, deadline: Option<Instant>) {
        loop {
            // Acquire: pairs with the release in `stop_watcher`.
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let over = deadline.is_some_and(|deadline| deadline <= Instant::now());
            if over {
                break;
            }
            match room.nap_for_task(slot, deadline) {
                Ok(false) => {}
                Ok(true) => break,
                Err(error) => {
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    break;
                }
            }
        }
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl FileRoom {
    /// As [`nap`](FileRoom::nap), for a slot whose request may be withdrawn meanwhile: then it is not its state that is
    /// wrong.
    fn nap_for_task(&self, slot: u16, until: Option<Instant>) -> Result<bool, RoomError> {
        if self.slot(slot).state().get() != state::WAITING {
            return Ok(true);
        }
        let left = until.map_or(NAP, |until| until.saturating_duration_since(Instant::now()));
        if futex::wait(self.slot(slot).state().0, state::WAITING, left.min(NAP)) {
            self.tend(slot)?;
        }
        self.verdict()?;
        Ok(self.slot(slot).state().get() != state::WAITING)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.stop_watcher();
        let (Some(room), Some(lease)) = (self.keeper.take(), self.lease.take()) else { return };
        let slot = lease.slot;
        if room.ours().is_err() {
            return;
        }
        match room.withdraw(slot) {
            Ok(()) | Err(RoomError::EpochsExhausted { .. }) => {
                room.give_back(lease);
                // The watcher sleeps there.
                futex::wake(room.slot(slot).state().0, i32::MAX);
            }
            Err(_) => room.abandon(lease),
        }
    }
}
