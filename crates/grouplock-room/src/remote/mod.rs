//! For rooms on servers: the exchange between the task that talks to the servers and the thread or
//! task that waits or is inside.
//!
//! A backend on a network has a task of its own that talks to the servers. The program that enters
//! uses blocked threads, or tasks of any executor. [`ask`] makes the two ends of one request: a
//! [`PendingRequest`] for the program, and a [`Desk`] for the backend's task.
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
//! Lost is final. A renewal that arrives after the end of the holding changes nothing, and [returns
//! `false`](Desk::renewed).

mod clients;
mod holding;
mod runner;
mod suspended;
#[cfg(test)]
mod tests;

pub use crate::thread::spawn;
pub use clients::Clients;
pub use runner::{Runner, Running};
#[cfg(feature = "conformance")]
pub use suspended::pretend_to_sleep;
pub use suspended::{LeaseEnd, slept};

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::backend::{Holding, Pending, Submitted};
use crate::error::RoomError;
use crate::guard::{Loss, Recovered, Standing};
use crate::request::Patience;
use crate::snapshot::HolderId;
use holding::RemoteHolding;

/// How long dropping a request or a holding waits until the servers know it.
/// [`leave`](Holding::leave) waits until the lease ends.
const PATIENCE_OF_DROP: Duration = Duration::from_secs(2);

/// What the servers report with a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The epoch of the phase.
    pub epoch: u64,
    /// The last death inside, if it must be reported.
    pub recovered: Option<Recovered>,
    /// When the holding ends, unless it is [renewed](Desk::renewed). It is a time of this machine's
    /// clock before others can enter. The task that asked earlier takes off the time for which the
    /// machine was suspended since ([`LeaseEnd`]).
    pub valid_until: Option<Instant>,
}

/// Makes the two ends of a request. `end` is called once, when the request is withdrawn or the room
/// is left. It tells the backend's task to inform the servers, and does not wait for them.
///
/// ```
/// use grouplock_room::backend::Submitted;
/// use grouplock_room::remote::{self, Grant};
/// use grouplock_room::{HolderId, Patience};
///
/// let (ended, end) = std::sync::mpsc::channel();
/// let (pending, desk) =
///     remote::ask(HolderId::new("7"), Patience::Unlimited, move || drop(ended.send("7")));
///
/// // The task, when the servers have answered:
/// assert!(desk.granted(Grant { epoch: 3, recovered: None, valid_until: None }));
///
/// // The program:
/// let Submitted::Granted(holding) = pending.submitted()? else { unreachable!("it was granted") };
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
) -> (PendingRequest, Desk) {
    request(None, holder, patience, end)
}

/// As [`ask`], for a backend whose tasks the waiting threads run.
pub fn ask_by(
    runner: Arc<dyn Runner>,
    holder: HolderId,
    patience: Patience,
    end: impl FnOnce() + Send + 'static,
) -> (PendingRequest, Desk) {
    request(Some(runner), holder, patience, end)
}

fn request(
    runner: Option<Arc<dyn Runner>>,
    holder: HolderId,
    patience: Patience,
    end: impl FnOnce() + Send + 'static,
) -> (PendingRequest, Desk) {
    let state =
        State { stage: Stage::Asked, end: Some(Box::new(end)), waker: None, grace: Duration::ZERO };
    let exchange =
        Arc::new(Exchange { holder, patience, state: Mutex::new(state), changed: Condvar::new() });
    let ours = Ours { exchange: Arc::clone(&exchange), runner };
    (PendingRequest { ours, asked: Instant::now(), taken: false, running: None }, Desk { exchange })
}

/// The program's side of an exchange. The tasks do not have the runner, which may own them.
#[derive(Clone)]
struct Ours {
    exchange: Arc<Exchange>,
    runner: Option<Arc<dyn Runner>>,
}

impl Ours {
    /// Waits as long as the stage `is_early`, at most until `until`.
    fn wait_while(&self, is_early: fn(&Stage) -> bool, until: Option<Instant>) {
        let exchange = &self.exchange;
        let mut is_ready = |context: &mut Context<'_>| {
            let mut state = exchange.lock();
            state.waker = Some(context.waker().clone());
            !is_early(&state.stage)
        };
        let _running = match &self.runner {
            Some(runner) if runner.run(until, &mut is_ready) => return,
            Some(runner) => Some(Arc::clone(runner).keep_running()),
            None => None,
        };
        let mut state = exchange.lock();
        while is_early(&state.stage) && until.is_none_or(|until| Instant::now() < until) {
            state = exchange.wait(state, until);
        }
    }

    /// Calls `end`, unless it was called before. Waits until the servers have confirmed, at most
    /// until `until`.
    fn end(&self, until: Instant) {
        let mut state = self.exchange.lock();
        if let Some(end) = state.end.take() {
            let over = matches!(state.stage, Stage::Lost(..) | Stage::Failed(_) | Stage::Left);
            if !over {
                state.stage = Stage::Leaving;
            }
            drop(state);
            self.exchange.changed.notify_all();
            end();
        } else {
            drop(state);
        }
        self.wait_while(|stage| matches!(stage, Stage::Leaving), Some(until));
    }
}

/// The state that both ends share.
struct Exchange {
    holder: HolderId,
    patience: Patience,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stage: Stage,
    /// Taken when the request is withdrawn or the room is left.
    end: Option<Box<dyn FnOnce() + Send>>,
    /// The waker of the task that waits for the grant.
    waker: Option<Waker>,
    /// For how long after the end of a lease the servers still admit no other session.
    grace: Duration,
}

enum Stage {
    Asked,
    Queued,
    Failed(Option<RoomError>),
    /// With the end of the lease, as in `Held`.
    Granted(Grant, Option<LeaseEnd>),
    Held(Option<LeaseEnd>),
    /// The program has ended it. The servers have not confirmed it yet.
    Leaving,
    Left,
    /// With the time from which others may be inside.
    Lost(Loss, LeaseEnd),
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a new stage, and wakes all threads and the task that wait.
    fn advance(&self, mut state: MutexGuard<'_, State>, stage: Stage) {
        state.stage = stage;
        self.wake_all(state);
    }

    fn wake_all(&self, mut state: MutexGuard<'_, State>) {
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
}

impl State {
    /// Turns a grant into a holding. Its lease may already be over.
    fn take_grant(&mut self) -> Option<Grant> {
        let Stage::Granted(grant, end) = &self.stage else { return None };
        let (grant, end) = (grant.clone(), *end);
        self.stage = Stage::Held(end);
        Some(grant)
    }

    /// Marks the holding as lost if its lease is over.
    fn lose_if_late(&mut self) {
        if let Stage::Held(Some(end)) = self.stage
            && end.has_passed()
        {
            self.stage = Stage::Lost(late(), (end.instant() + self.grace).into());
        }
    }

    fn standing(&mut self) -> Standing {
        self.lose_if_late();
        match &self.stage {
            Stage::Lost(loss, _) => Standing::Lost(loss.clone()),
            Stage::Leaving | Stage::Left | Stage::Failed(_) => Standing::Left,
            Stage::Asked | Stage::Queued | Stage::Granted(..) | Stage::Held(_) => Standing::Held,
        }
    }

    fn valid_until(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Held(end) => end.map(|end| end.instant()),
            Stage::Lost(_, others_enter) => Some(others_enter.instant()),
            _ => None,
        }
    }
}

fn late() -> Loss {
    Loss::Expired("the servers have not renewed it in time".to_owned())
}

/// The end of a request that the backend's task uses.
#[derive(Clone)]
pub struct Desk {
    exchange: Arc<Exchange>,
}

impl Desk {
    /// The identifier of the holder.
    pub fn holder(&self) -> &HolderId {
        &self.exchange.holder
    }

    /// How long the request may wait.
    pub fn patience(&self) -> Patience {
        self.exchange.patience
    }

    /// Sets for how long after the end of a lease the servers still admit no other session. The
    /// holder can use this time to stop its work.
    pub fn grace(&self, time: Duration) {
        self.exchange.lock().grace = time;
    }

    /// The request is in the servers' queue.
    pub fn queued(&self) {
        let state = self.exchange.lock();
        if matches!(state.stage, Stage::Asked) {
            self.exchange.advance(state, Stage::Queued);
        }
    }

    /// The servers have granted the request. Returns `false` if the program no longer wants it.
    /// Then the task must leave the room.
    #[must_use = "if the grant is not wanted, leave the room"]
    pub fn granted(&self, grant: Grant) -> bool {
        let state = self.exchange.lock();
        let wanted = matches!(state.stage, Stage::Asked | Stage::Queued);
        if wanted {
            let end = grant.valid_until.map(LeaseEnd::from);
            self.exchange.advance(state, Stage::Granted(grant, end));
        }
        wanted
    }

    /// The request will not be granted. The servers have nothing left of it.
    pub fn failed(&self, error: RoomError) {
        let state = self.exchange.lock();
        if matches!(state.stage, Stage::Asked | Stage::Queued) {
            self.exchange.advance(state, Stage::Failed(Some(error)));
        } else if matches!(state.stage, Stage::Leaving) {
            self.exchange.advance(state, Stage::Left);
        }
    }

    /// The [deadline](Patience::deadline) of the request has passed. The task calls this at that
    /// time to wake a waiting future.
    pub fn expired(&self) {
        self.exchange.wake_all(self.exchange.lock());
    }

    /// The lease is valid until then: a time as in [`Grant::valid_until`]. Returns `false` if the
    /// holding has ended, for example because the renewal came too late.
    pub fn renewed(&self, until: Instant) -> bool {
        let mut state = self.exchange.lock();
        state.lose_if_late();
        match &mut state.stage {
            Stage::Granted(_, end) | Stage::Held(end) => {
                if end.is_none_or(|end| end.instant() < until) {
                    *end = Some(until.into());
                }
            }
            _ => return false,
        }
        drop(state);
        self.exchange.changed.notify_all();
        true
    }

    /// The servers have taken away the holding, or removed the request from the queue.
    pub fn lost(&self, loss: Loss) {
        let mut state = self.exchange.lock();
        // First: after the end of the lease, the time of the loss is known exactly.
        state.lose_if_late();
        match state.stage {
            Stage::Asked | Stage::Queued => {
                self.exchange.advance(state, Stage::Failed(Some(RoomError::Lost(loss))));
            }
            Stage::Granted(..) | Stage::Held(_) | Stage::Leaving => {
                self.exchange.advance(state, Stage::Lost(loss, Instant::now().into()));
            }
            Stage::Failed(_) | Stage::Left => {}
            Stage::Lost(..) => self.exchange.changed.notify_all(),
        }
    }

    /// The servers have confirmed the end.
    pub fn left(&self) {
        let state = self.exchange.lock();
        if matches!(state.stage, Stage::Leaving) {
            self.exchange.advance(state, Stage::Left);
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("holder", &self.exchange.holder).finish_non_exhaustive()
    }
}

/// The end of a request that the program uses. Dropping it withdraws the request.
pub struct PendingRequest {
    ours: Ours,
    asked: Instant,
    /// Whether the request has become a holding. Then the holding ends it.
    taken: bool,
    /// For a task: it cannot run the backend's tasks.
    running: Option<Running>,
}

impl PendingRequest {
    /// Waits until the servers have granted, queued or refused the request, or its time to wait is
    /// over. The result is that of [`Backend::submit`](crate::Backend::submit).
    ///
    /// # Errors
    /// The error that the task reported, or [`RoomError::TimedOut`].
    pub fn submitted(mut self) -> Result<Submitted, RoomError> {
        let deadline = self.ours.exchange.patience.deadline();
        self.ours.wait_while(|stage| matches!(stage, Stage::Asked), deadline);
        match self.look() {
            Some(result) => result.map(Submitted::Granted),
            None if self.too_late() => Err(RoomError::TimedOut { waited: self.asked.elapsed() }),
            None => Ok(Submitted::Waiting(Box::new(self))),
        }
    }

    /// As [`submitted`](PendingRequest::submitted), but it does not wait for the servers. The
    /// result is that of [`Backend::begin`](crate::Backend::begin).
    pub fn begun(mut self) -> Submitted {
        self.running = self.ours.runner.clone().map(Runner::keep_running);
        Submitted::Waiting(Box::new(self))
    }

    /// Requests without patience are not checked here. The backend's task answers them.
    fn too_late(&self) -> bool {
        let deadline = self.ours.exchange.patience.deadline();
        deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// The result of the request, if there is one.
    fn look(&mut self) -> Option<Result<Box<dyn Holding>, RoomError>> {
        let mut state = self.ours.exchange.lock();
        if let Some(Grant { epoch, recovered, .. }) = state.take_grant() {
            drop(state);
            self.taken = true;
            let ours = self.ours.clone();
            return Some(Ok(Box::new(RemoteHolding { ours, epoch, recovered })));
        }
        match &mut state.stage {
            Stage::Asked | Stage::Queued => None,
            Stage::Failed(error) => Some(Err(error.take().unwrap_or(RoomError::Withdrawn))),
            Stage::Lost(loss, _) => Some(Err(RoomError::Lost(loss.clone()))),
            _ => Some(Err(RoomError::Withdrawn)),
        }
    }
}

impl Pending for PendingRequest {
    fn holder(&self) -> HolderId {
        self.ours.exchange.holder.clone()
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError> {
        self.ours.wait_while(|stage| matches!(stage, Stage::Asked | Stage::Queued), until);
        self.look().transpose()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>> {
        // Set the waker before the check, so that no change is missed.
        self.ours.exchange.lock().waker = Some(context.waker().clone());
        match self.look() {
            Some(result) => Poll::Ready(result),
            None if self.too_late() => {
                Poll::Ready(Err(RoomError::TimedOut { waited: self.asked.elapsed() }))
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if !self.taken {
            self.ours.end(Instant::now() + PATIENCE_OF_DROP);
        }
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest").field("holder", &self.holder()).finish_non_exhaustive()
    }
}
