//! For rooms on servers: what passes between the task that talks to the servers and the one who waits or is inside.
//!
//! A backend whose rooms are reached over a network has a task of its own that speaks with the servers, while
//! those who enter are blocked threads or tasks of any executor. [`ask`] makes the two ends of one request: a
//! [`Ticket`] for the one who wants to enter, and a [`Desk`] for the task.
//!
//! ```text
//!            queued        granted             renewed
//!   Asked ──────────▶ Queued ──────▶ Granted ───┐ ┌──▶ lost, or valid_until passes ──▶ Lost
//!     │                 │              │        ▼ │
//!     │ failed          │ failed       └─────▶ Held ─────▶ left ─────────────────────▶ Left
//!     ▼                 ▼
//!   Failed            Failed
//! ```
//!
//! Nothing comes back from Lost: a renewal that arrives after the holding's time is over changes nothing and
//! [says so](Desk::renewed).

mod asleep;
#[cfg(test)]
mod tests;

#[cfg(feature = "conformance")]
pub use asleep::pretend_to_sleep;
pub use asleep::slept;

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(unix)]
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::backend::{Holding, Pending, Submitted, Watch};
use crate::error::RoomError;
use crate::guard::{Loss, Recovered, Standing};
use crate::request::Patience;
use crate::snapshot::HolderId;

/// How long dropping a ticket or a holding waits for the servers to hear of it. Leaving by
/// [`leave`](Holding::leave) waits for as long as the lease lasts.
const PATIENCE_OF_DROP: Duration = Duration::from_secs(2);

/// How often somebody who waits for the end of a holding looks whether the machine has slept.
const GLANCE: Duration = Duration::from_secs(1);

/// Starts the thread on which a backend talks to its servers. No signal is handled there: one that the program waits for in a
/// thread of its own, or through a descriptor, would else be lost on this one.
///
/// # Errors
/// If there can be no more threads.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A thread begins with the mask of the one that starts it.
    #[cfg(unix)]
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    #[cfg(unix)]
    before.thread_set_mask()?;
    started
}

/// What is told with a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The epoch of the phase.
    pub epoch: u64,
    /// Whether someone died inside before.
    pub recovered: Option<Recovered>,
    /// When the holding ends unless it is [renewed](Desk::renewed): before others can have been let in, by this
    /// machine's clock.
    pub valid_until: Option<Instant>,
}

/// Makes the two ends of a request. `end` is called once, when the request is withdrawn or the room left: it asks the
/// task to tell the servers, and does not wait for them.
///
/// ```
/// use grouplock_room::backend::Submitted;
/// use grouplock_room::remote::{self, Admission};
/// use grouplock_room::{HolderId, Patience};
///
/// let (ended, end) = std::sync::mpsc::channel();
/// let (ticket, desk) =
///     remote::ask(HolderId::new("7"), Patience::Unlimited, move || drop(ended.send("7")));
///
/// // The task, when the servers have answered:
/// assert!(desk.granted(Admission { epoch: 3, recovered: None, valid_until: None }));
///
/// // The one who asked:
/// let Submitted::Granted(holding) = ticket.submitted()? else { unreachable!("it was granted") };
/// assert_eq!(holding.epoch(), 3);
/// let leaving = std::thread::spawn(move || holding.leave());
/// assert_eq!(end.recv()?, "7");
/// desk.left();
/// leaving.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ask(
    holder: HolderId,
    patience: Patience,
    end: impl FnOnce() + Send + 'static,
) -> (Ticket, Desk) {
    let state = State {
        stage: Stage::Asked,
        end: Some(Box::new(end)),
        waker: None,
        grace: Duration::ZERO,
        slept: slept(),
    };
    let seat =
        Arc::new(Seat { holder, patience, state: Mutex::new(state), changed: Condvar::new() });
    (Ticket { seat: Some(Arc::clone(&seat)), asked: Instant::now() }, Desk { seat })
}

/// What both ends know.
struct Seat {
    holder: HolderId,
    patience: Patience,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stage: Stage,
    /// Taken when the request is withdrawn or the room left.
    end: Option<Box<dyn FnOnce() + Send>>,
    /// Of the task that waits for the grant.
    waker: Option<Waker>,
    /// How long after the end of a lease nobody else is let in yet.
    grace: Duration,
    /// How long the machine had [`slept`] when something was last heard from the servers.
    slept: Duration,
}

enum Stage {
    Asked,
    Queued,
    Failed(Option<RoomError>),
    Granted(Admission),
    Held {
        valid_until: Option<Instant>,
        /// How long the machine had [`slept`] when that was found out.
        slept: Duration,
    },
    /// The one who asked has ended it; the servers have not confirmed it yet.
    Leaving,
    Left,
    /// Since when, or from when on, others may be inside.
    Lost(Loss, Instant),
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a new stage and wakes whoever waits.
    fn turn(&self, mut state: MutexGuard<'_, State>, stage: Stage) {
        state.stage = stage;
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for a change, at most until `until`.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'s, State> {
        match until {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Asks the task to withdraw or leave, unless that has been done, and waits until the servers know or `until`.
    fn end(&self, until: Instant) {
        let mut state = self.lock();
        if let Some(end) = state.end.take() {
            let over = matches!(state.stage, Stage::Lost(..) | Stage::Failed(_) | Stage::Left);
            if !over {
                state.stage = Stage::Leaving;
            }
            drop(state);
            self.changed.notify_all();
            end();
            state = self.lock();
        }
        while matches!(state.stage, Stage::Leaving) && Instant::now() < until {
            state = self.wait(state, Some(until));
        }
    }
}

impl State {
    /// What was granted becomes held by the one who asked; its time may be over by then.
    fn take_grant(&mut self) -> Option<Admission> {
        let Stage::Granted(admission) = &self.stage else { return None };
        let admission = admission.clone();
        self.stage = Stage::Held { valid_until: admission.valid_until, slept: self.slept };
        Some(admission)
    }

    /// If the holding's time is over it is lost, for good. Leases run out while the machine sleeps, and the clock of
    /// [`Instant`] stands still.
    fn lose_if_late(&mut self) {
        if let Stage::Held { valid_until: Some(until), slept: before } = self.stage
            && until <= Instant::now() + slept().saturating_sub(before)
        {
            self.stage = Stage::Lost(late(), until + self.grace);
        }
    }

    fn standing(&mut self) -> Standing {
        self.lose_if_late();
        match &self.stage {
            Stage::Lost(loss, _) => Standing::Lost(loss.clone()),
            Stage::Leaving | Stage::Left | Stage::Failed(_) => Standing::Left,
            Stage::Asked | Stage::Queued | Stage::Granted(_) | Stage::Held { .. } => Standing::Held,
        }
    }

    fn valid_until(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Held { valid_until, .. } => *valid_until,
            Stage::Lost(_, others_enter) => Some(*others_enter),
            _ => None,
        }
    }
}

fn late() -> Loss {
    Loss::Expired("the servers have not confirmed it for too long".to_owned())
}

/// The task's end of a request.
#[derive(Clone)]
pub struct Desk {
    seat: Arc<Seat>,
}

impl Desk {
    /// Who asks.
    pub fn holder(&self) -> &HolderId {
        &self.seat.holder
    }

    /// How long it is ready to wait.
    pub fn patience(&self) -> Patience {
        self.seat.patience
    }

    /// How long after the end of a lease nobody else is let in yet: the time its holder has to stop what it does.
    pub fn grace(&self, time: Duration) {
        self.seat.lock().grace = time;
    }

    /// The request stands in the servers' queue.
    pub fn queued(&self) {
        let state = self.seat.lock();
        if matches!(state.stage, Stage::Asked) {
            self.seat.turn(state, Stage::Queued);
        }
    }

    /// The servers have let it in. If this is `false` nobody wants it any more, and the task has to leave again.
    #[must_use = "if nobody wants the grant it has to be given back"]
    pub fn granted(&self, admission: Admission) -> bool {
        let mut state = self.seat.lock();
        let wanted = matches!(state.stage, Stage::Asked | Stage::Queued);
        if wanted {
            state.slept = slept();
            self.seat.turn(state, Stage::Granted(admission));
        }
        wanted
    }

    /// The request will not be granted; nothing is left of it at the servers.
    pub fn failed(&self, error: RoomError) {
        let state = self.seat.lock();
        if matches!(state.stage, Stage::Asked | Stage::Queued) {
            self.seat.turn(state, Stage::Failed(Some(error)));
        } else if matches!(state.stage, Stage::Leaving) {
            self.seat.turn(state, Stage::Left);
        }
    }

    /// The [deadline](Patience::deadline) of the request has passed. The task calls this at that time, so that those who
    /// wait in a future hear of it.
    pub fn expired(&self) {
        let mut state = self.seat.lock();
        let waker = state.waker.take();
        drop(state);
        self.seat.changed.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    /// The lease is good until then. `false` if the holding is not held any more, for instance because this comes
    /// too late.
    pub fn renewed(&self, until: Instant) -> bool {
        let mut state = self.seat.lock();
        state.lose_if_late();
        let later = |old: Option<Instant>| Some(old.map_or(until, |old| old.max(until)));
        match &mut state.stage {
            Stage::Granted(admission) => admission.valid_until = later(admission.valid_until),
            Stage::Held { valid_until, slept: then } => {
                *valid_until = later(*valid_until);
                *then = slept();
            }
            _ => return false,
        }
        state.slept = slept();
        drop(state);
        self.seat.changed.notify_all();
        true
    }

    /// The servers have taken the holding away, or the request out of the queue.
    pub fn lost(&self, loss: Loss) {
        let mut state = self.seat.lock();
        // One who is late knows better when others come than one who is told now.
        state.lose_if_late();
        match state.stage {
            Stage::Asked | Stage::Queued => {
                self.seat.turn(state, Stage::Failed(Some(RoomError::Lost(loss))));
            }
            Stage::Granted(_) | Stage::Held { .. } | Stage::Leaving => {
                self.seat.turn(state, Stage::Lost(loss, Instant::now()));
            }
            Stage::Failed(_) | Stage::Left => {}
            Stage::Lost(..) => self.seat.changed.notify_all(),
        }
    }

    /// The servers know that it is over.
    pub fn left(&self) {
        let state = self.seat.lock();
        if matches!(state.stage, Stage::Leaving) {
            self.seat.turn(state, Stage::Left);
        }
    }

    /// Whether someone waits for the grant, or holds it.
    pub fn wanted(&self) -> bool {
        let state = self.seat.lock();
        matches!(state.stage, Stage::Asked | Stage::Queued | Stage::Granted(_) | Stage::Held { .. })
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("holder", &self.seat.holder).finish_non_exhaustive()
    }
}

/// The end of the one who asks. Dropping it withdraws the request.
pub struct Ticket {
    /// `None` once it has become a holding.
    seat: Option<Arc<Seat>>,
    asked: Instant,
}

impl Ticket {
    /// Waits until the servers have let it in, put it into their queue or refused it, or its patience ends: what
    /// [`Backend::submit`](crate::Backend::submit) has to give.
    ///
    /// # Errors
    /// What the task said, or [`RoomError::TimedOut`].
    pub fn submitted(mut self) -> Result<Submitted, RoomError> {
        let Some(seat) = self.seat.clone() else { return Err(RoomError::Withdrawn) };
        let mut state = seat.lock();
        while matches!(state.stage, Stage::Asked) && !self.too_late(&seat) {
            state = seat.wait(state, seat.patience.deadline());
        }
        let queued = matches!(state.stage, Stage::Queued);
        drop(state);
        match self.look() {
            Some(result) => result.map(Submitted::Granted),
            None if self.too_late(&seat) => {
                Err(RoomError::TimedOut { waited: self.asked.elapsed() })
            }
            None => {
                debug_assert!(queued, "what is neither granted nor refused stands in the queue");
                Ok(Submitted::Waiting(Box::new(self)))
            }
        }
    }

    /// The same without waiting for the servers: what [`Backend::begin`](crate::Backend::begin) gives to tasks.
    pub fn begun(self) -> Submitted {
        Submitted::Waiting(Box::new(self))
    }

    /// Requests without patience are answered by the task, which knows what it means to wait.
    fn too_late(&self, seat: &Seat) -> bool {
        seat.patience.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What has become of the request, if anything has.
    fn look(&mut self) -> Option<Result<Box<dyn Holding>, RoomError>> {
        let Some(seat) = self.seat.clone() else { return Some(Err(RoomError::Withdrawn)) };
        let mut state = seat.lock();
        if let Some(Admission { epoch, recovered, .. }) = state.take_grant() {
            drop(state);
            self.seat = None;
            return Some(Ok(Box::new(Inside { seat, epoch, recovered })));
        }
        match &mut state.stage {
            Stage::Asked | Stage::Queued => None,
            Stage::Failed(error) => Some(Err(error.take().unwrap_or(RoomError::Withdrawn))),
            Stage::Lost(loss, _) => Some(Err(RoomError::Lost(loss.clone()))),
            _ => Some(Err(RoomError::Withdrawn)),
        }
    }
}

impl Pending for Ticket {
    fn holder(&self) -> HolderId {
        self.seat.as_ref().map_or_else(|| HolderId::new("-"), |seat| seat.holder.clone())
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError> {
        let Some(seat) = self.seat.clone() else { return Err(RoomError::Withdrawn) };
        let mut state = seat.lock();
        while matches!(state.stage, Stage::Asked | Stage::Queued)
            && until.is_none_or(|until| Instant::now() < until)
        {
            state = seat.wait(state, until);
        }
        drop(state);
        self.look().transpose()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>> {
        let Some(seat) = self.seat.clone() else { return Poll::Ready(Err(RoomError::Withdrawn)) };
        // Before looking, so that no change is missed.
        seat.lock().waker = Some(context.waker().clone());
        match self.look() {
            Some(result) => Poll::Ready(result),
            None if self.too_late(&seat) => {
                Poll::Ready(Err(RoomError::TimedOut { waited: self.asked.elapsed() }))
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(seat) = &self.seat {
            seat.end(Instant::now() + PATIENCE_OF_DROP);
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("holder", &self.holder()).finish_non_exhaustive()
    }
}

/// A place inside.
struct Inside {
    seat: Arc<Seat>,
    epoch: u64,
    recovered: Option<Recovered>,
}

impl Holding for Inside {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn holder(&self) -> HolderId {
        self.seat.holder.clone()
    }

    fn recovered(&self) -> Option<Recovered> {
        self.recovered.clone()
    }

    fn watch(&self) -> Box<dyn Watch> {
        Box::new(OnSeat(Arc::clone(&self.seat)))
    }

    fn leave(self: Box<Self>) -> Result<(), RoomError> {
        let mut state = self.seat.lock();
        state.lose_if_late();
        if let Stage::Lost(loss, _) = &state.stage {
            return Err(RoomError::Lost(loss.clone()));
        }
        let until = state.valid_until().unwrap_or_else(|| Instant::now() + PATIENCE_OF_DROP);
        drop(state);
        self.seat.end(until);
        match &self.seat.lock().stage {
            Stage::Lost(loss, _) => Err(RoomError::Lost(loss.clone())),
            // Nobody else has been let in before the lease ended, and it ends by itself.
            Stage::Leaving => Err(RoomError::Lost(late())),
            _ => Ok(()),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.seat.end(Instant::now() + PATIENCE_OF_DROP);
    }
}

/// Tells how a holding stands.
struct OnSeat(Arc<Seat>);

impl Watch for OnSeat {
    fn standing(&self) -> Standing {
        self.0.lock().standing()
    }

    fn wait(&self, until: Option<Instant>) -> Standing {
        let mut state = self.0.lock();
        loop {
            let standing = state.standing();
            if standing != Standing::Held || until.is_some_and(|until| until <= Instant::now()) {
                return standing;
            }
            // The machine may sleep, and nobody wakes this thread for that.
            let soon = state.valid_until().map(|end| end.min(Instant::now() + GLANCE));
            let next = until.into_iter().chain(soon).min();
            state = self.0.wait(state, next);
        }
    }

    /// Once it is lost: when others may be let in, which may be past.
    fn valid_until(&self) -> Option<Instant> {
        self.0.lock().valid_until()
    }
}
