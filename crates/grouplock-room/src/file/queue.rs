//! Requests to enter, and waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::clock;
use super::futex;
use super::holding::FileHolding;
use super::latch::Latched;
use super::layout::state;
use super::line::Line;
use super::pool::OwnedSlot;
use super::room::FileRoom;
use super::watchman::Nudge;
use crate::backend::{Holding, Pending, Submitted};
use crate::error::RoomError;
use crate::policy::Policy;
use crate::request::{Patience, Request};
use crate::snapshot::HolderId;

/// How long a waiter sleeps before it watches the slots in front. Most waits are shorter.
const FIRST_NAP: Duration = Duration::from_millis(20);
/// How often a waiter checks whether the file still exists, and whether it watches the right slots.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Submits a request. `from` is the slot of a holder that switches; the request leaves it.
pub(super) fn submit(
    room: &Arc<FileRoom>,
    request: &Request<'_>,
    from: Option<u16>,
) -> Result<Submitted, RoomError> {
    let owned = room.take_slot(request)?;
    match room.enqueue(owned.number, request.patience, from) {
        Ok(true) => Ok(Submitted::Granted(Box::new(FileHolding::new(room, owned)))),
        Ok(false) => Ok(Submitted::Waiting(Box::new(Queued {
            waiter: Arc::new(Waiter::new(room, owned.number)),
            owned: Some(owned),
            deadline: request.patience.deadline(),
            started: Instant::now(),
            sleeper: None,
        }))),
        Err(error) => {
            if error.is_conflict() {
                room.return_slot(owned);
            } else {
                room.release_slot(&owned);
            }
            Err(error)
        }
    }
}

impl FileRoom {
    /// Joins the line. Returns `true` if it was admitted at once. If it was not and has no
    /// patience, it leaves the line and returns an error.
    fn enqueue(
        &self,
        number: u16,
        patience: Patience,
        from: Option<u16>,
    ) -> Result<bool, RoomError> {
        let mut latched = self.latch(number)?;
        // The slot is ours, and we check it before we sleep. A system call to wake ourselves would
        // be useless.
        latched.awake = Some(number);
        let slot = self.slot(number);
        if let Policy::Priority { .. } = self.fixed.policy {
            slot.arrival().set(clock::monotonic());
        }
        slot.since().set(clock::real());
        latched.run(|line| match from {
            None => line.append(number),
            Some(old) => line.switch(old, number),
        })?;
        let exhausted = patience.exhausted();
        if exhausted && slot.state().get() != state::INSIDE {
            // The owners in front may be dead. A request that cannot wait must know it now.
            latched.clear_the_way(number)?;
        }
        if slot.state().get() == state::INSIDE {
            return Ok(true);
        }
        if !exhausted {
            return Ok(false);
        }
        latched.run(|line| line.remove(number))?;
        Err(match patience {
            Patience::Until(_) => RoomError::TimedOut { waited: Duration::ZERO },
            _ => RoomError::Occupied { inside: latched.session_inside() },
        })
    }
}

/// A slot that waits, for the thread that sleeps on it.
struct Waiter {
    room: Arc<FileRoom>,
    nudge: Arc<Nudge>,
    /// Whether the slots in front are watched.
    watches: AtomicBool,
    /// Whether the wait is over. A thread holds this mutex while it uses the latch for the slot.
    /// When the value is true, the slot may belong to another request.
    over: Mutex<bool>,
}

impl Waiter {
    fn new(room: &Arc<FileRoom>, slot: u16) -> Self {
        Waiter {
            room: Arc::clone(room),
            nudge: Arc::new(Nudge { slot, gone: AtomicBool::new(false) }),
            watches: AtomicBool::new(false),
            over: Mutex::new(false),
        }
    }

    /// Whether it has been admitted.
    fn admitted(&self) -> Result<bool, RoomError> {
        self.room.verdict()?;
        match self.room.slot(self.nudge.slot).state().get() {
            state::WAITING | state::NUDGED => Ok(false),
            state::INSIDE => Ok(true),
            _ => Err(self.room.condemn("a waiter's slot does not say that it waits")),
        }
    }

    /// Sleeps until it is admitted, but not beyond `until`. May return earlier. Returns whether it
    /// is admitted or the wait is over.
    fn nap(&self, until: Option<Instant>) -> Result<bool, RoomError> {
        // SeqCst, here and for `gone`: their speed does not matter.
        let watches = self.watches.load(Ordering::SeqCst);
        let most = if watches { HEARTBEAT } else { FIRST_NAP };
        let left =
            until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let word = self.room.slot(self.nudge.slot).state();
        let mut gone = self.nudge.gone.swap(false, Ordering::SeqCst);
        if !gone {
            let timed_out = futex::wait(word.0, state::WAITING, left.min(most));
            gone = self.nudge.gone.swap(false, Ordering::SeqCst) || !timed_out || left > most;
        }
        // After a sleep there is time to check before it touches the file.
        self.room.still_there()?;
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if *over || self.admitted()? {
            return Ok(true);
        }
        if gone {
            self.attend()?;
        }
        self.admitted()
    }

    /// Buries the dead owners that it waits for, and watches the others.
    fn attend(&self) -> Result<(), RoomError> {
        let (room, slot) = (&self.room, self.nudge.slot);
        room.still_there()?;
        let mut latched = room.latch(slot)?;
        if room.slot(slot).state().get() == state::NUDGED {
            room.slot(slot).state().set(state::WAITING);
        }
        let targets = latched.bury_in_front(slot)?;
        Line(&mut latched).watch(slot, &targets);
        drop(latched);
        let watched = targets.into_iter().all(|target| room.watch(target, &self.nudge));
        // Without a thread it has to check the slots itself.
        self.watches.store(watched, Ordering::SeqCst);
        Ok(())
    }

    /// After this call, no thread uses the slot for this wait.
    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// A request in the line. Dropping it withdraws it.
pub(super) struct Queued {
    waiter: Arc<Waiter>,
    /// `None` after the grant.
    owned: Option<OwnedSlot>,
    deadline: Option<Instant>,
    started: Instant,
    sleeper: Option<Arc<Sleeper>>,
}

/// The state that a task shares with the thread that sleeps for it.
#[derive(Default)]
struct Sleeper {
    waker: Mutex<Option<Waker>>,
    /// Why the thread ended.
    failure: Mutex<Option<RoomError>>,
}

impl Queued {
    fn take(&mut self) -> Result<Box<dyn Holding>, RoomError> {
        self.waiter.end();
        let owned = self.owned.take().ok_or(RoomError::Withdrawn)?;
        Ok(Box::new(FileHolding::new(&self.waiter.room, owned)))
    }
}

impl Pending for Queued {
    fn holder(&self) -> HolderId {
        self.waiter.room.slot(self.waiter.nudge.slot).holder()
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError> {
        loop {
            self.waiter.room.ours()?;
            if self.waiter.admitted()? || self.waiter.nap(until)? {
                return self.take().map(Some);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>> {
        let first = self.sleeper.is_none();
        let sleeper = self.sleeper.get_or_insert_default();
        *sleeper.waker.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(context.waker().clone());
        let failure = sleeper.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failure) = failure {
            return Poll::Ready(Err(failure));
        }
        // The waker is in place before this check, so no event is missed.
        self.waiter.room.still_there()?;
        if self.waiter.admitted()? {
            return Poll::Ready(self.take());
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Poll::Ready(Err(RoomError::TimedOut { waited: self.started.elapsed() }));
        }
        if first {
            let (waiter, theirs, deadline) =
                (Arc::clone(&self.waiter), Arc::clone(sleeper), self.deadline);
            let sleep = move || theirs.sleep(&waiter, deadline);
            if let Err(error) = crate::thread::spawn("grouplock-wait", sleep) {
                return Poll::Ready(Err(RoomError::Backend(Box::new(error))));
            }
        }
        Poll::Pending
    }
}

impl Sleeper {
    /// Sleeps for a task until the task has something to check.
    fn sleep(&self, waiter: &Waiter, deadline: Option<Instant>) {
        loop {
            match waiter.nap(deadline) {
                Ok(false) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                Ok(_) => break,
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

impl Drop for Queued {
    fn drop(&mut self) {
        let room = &self.waiter.room;
        if !room.birth.is_ours() {
            return;
        }
        self.waiter.end();
        let Some(owned) = self.owned.take() else { return };
        // `drop` cannot report an error.
        _ = room.leave(owned);
        if self.sleeper.is_some() && room.verdict().is_ok() {
            // The thread of the task sleeps on this word.
            futex::wake(room.slot(self.waiter.nudge.slot).state().0, i32::MAX);
        }
    }
}

impl Latched<'_> {
    fn session_inside(&mut self) -> Option<String> {
        let one = Line(self).inside(1);
        self.room.session_text(self.room.slot(*one.first()?).session())
    }
}
