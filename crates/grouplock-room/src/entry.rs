//! Building a request and submitting it.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::backend::{Pending, Submitted};
use crate::error::RoomError;
use crate::future::Enter;
use crate::guard::{Guard, TearDown};
use crate::policy::Priority;
use crate::request::{Patience, Request};
use crate::room::Room;
use crate::snapshot::{HolderId, Snapshot};

/// The state of a wait, for the progress callback.
#[derive(Debug)]
#[non_exhaustive]
pub struct Progress<'p> {
    /// The identifier of the waiter in snapshots.
    pub holder: &'p HolderId,
    /// How long it has waited.
    pub waited: Duration,
    /// The room. [`Snapshot::phases_before`] returns the position of the waiter.
    pub snapshot: &'p Snapshot,
}

type Callback<'a> = Box<dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a>;
type SetUp<'a> = Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + 'a>;

/// A builder for a request.
#[must_use = "nothing happens until `enter` or `enter_async`"]
pub struct Entry<'r, 's> {
    pub(crate) room: &'r Room,
    pub(crate) request: Request<'s>,
    progress: Option<(Duration, Callback<'s>)>,
    set_up: Option<SetUp<'s>>,
    tear_down: Option<TearDown>,
}

impl<'r, 's> Entry<'r, 's> {
    pub(crate) fn new(room: &'r Room, session: &'s str) -> Self {
        let request = Request::new(session);
        Entry { room, request, progress: None, set_up: None, tear_down: None }
    }

    /// Requires that no other holder is inside, not even of the same session.
    pub fn alone(mut self) -> Self {
        self.request.alone = true;
        self
    }

    /// Limits the number of holders while this one is inside, itself included.
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-most-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// let machine = Room::open(directory, "machine")?;
    /// let two = std::num::NonZeroU32::new(2).unwrap();
    /// let one = machine.request("build").at_most(two).enter()?;
    /// let other = machine.request("build").at_most(two).enter()?;
    /// assert!(machine.request("build").at_most(two).no_wait().enter().is_err());
    /// # drop((one, other));
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn at_most(mut self, holders: NonZeroU32) -> Self {
        self.request.at_most = Some(holders);
        self
    }

    /// Runs `set_up` if the room is not set up for the session. It runs alone, before others of the
    /// session enter. If it fails or its process dies, the room is not set up, and the next entrant
    /// tries. Only for [`enter`](Entry::enter) and [`enter_owned`](Entry::enter_owned).
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-setup-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// let gpu = Room::open(directory, "gpu")?;
    /// let mut loaded = 0;
    /// let mut load = || { loaded += 1; Ok(()) };
    /// gpu.request("model A").set_up(&mut load).enter()?.leave()?;
    /// gpu.request("model A").set_up(&mut load).enter()?.leave()?; // it is still loaded
    /// gpu.request("model B").set_up(&mut load).enter()?.leave()?;
    /// assert_eq!(loaded, 2);
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_up<F>(mut self, set_up: F) -> Self
    where
        F: FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + 's,
    {
        self.set_up = Some(Box::new(set_up));
        self
    }

    /// Runs `tear_down` when this holder leaves and is the last one inside, before others enter.
    /// From then on the room is not set up, even if `tear_down` fails.
    pub fn tear_down<F>(mut self, tear_down: F) -> Self
    where
        F: FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    {
        self.tear_down = Some(Box::new(tear_down));
        self
    }

    /// Sets the urgency.
    pub fn priority(mut self, priority: impl Into<Priority>) -> Self {
        self.request.priority = priority.into();
        self
    }

    /// Sets how long the holder expects to stay. All backends show it, some plan with it, and none
    /// enforces it.
    pub fn expected(mut self, duration: Duration) -> Self {
        self.request.expected = Some(duration);
        self
    }

    /// Waits at most this long.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.request.patience = Patience::for_time(time);
        self
    }

    /// Waits at most until this time.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.request.patience = Patience::Until(deadline);
        self
    }

    /// Does not wait.
    pub fn no_wait(mut self) -> Self {
        self.request.patience = Patience::None;
        self
    }

    /// Sets how long to wait.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.request.patience = patience;
        self
    }

    /// Calls `callback` while [`enter`](Entry::enter) waits: at once, and then at this interval. If
    /// it returns [`ControlFlow::Break`], the wait ends with [`RoomError::Withdrawn`].
    pub fn progress(
        mut self,
        every: Duration,
        callback: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 's,
    ) -> Self {
        self.progress = Some((every, Box::new(callback)));
        self
    }

    /// Enters. The wait blocks this thread.
    ///
    /// # Errors
    /// [`RoomError::Occupied`] or [`RoomError::TimedOut`] if the time to wait is over; the request
    /// is withdrawn. [`RoomError::Unsupported`] if this kind of rooms lacks a feature. Others if
    /// the room cannot be used.
    pub fn enter(self) -> Result<Guard<'r>, RoomError> {
        self.enter_owned()
    }

    /// As [`enter`](Entry::enter), but the guard does not borrow the room.
    ///
    /// # Errors
    /// As [`enter`](Entry::enter).
    pub fn enter_owned(mut self) -> Result<Guard<'static>, RoomError> {
        let set_up = self.set_up.take();
        self.check(set_up.is_some())?;
        let guard = self.ask(None)?;
        match set_up {
            Some(set_up) if guard.prepared()?.as_deref() != Some(self.request.session) => {
                drop(guard);
                self.prepare(set_up)
            }
            _ => Ok(guard),
        }
        .map(|guard| guard.with_tear_down(self.tear_down.take()))
    }

    /// Enters from a task of any executor. Nothing happens until the future is polled; see
    /// [`Enter`]. The progress callback is not called. A set-up or tear-down is refused, because it
    /// would block the executor. A task does the steps of [`set_up`](Entry::set_up) itself:
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-task-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::{Guard, Room, RoomError};
    /// # async fn load() {}
    /// async fn enter(gpu: &Room, model: &str) -> Result<Guard<'static>, RoomError> {
    ///     let guard = gpu.enter_async(model).await?;
    ///     if guard.prepared()?.as_deref() == Some(model) {
    ///         return Ok(guard);
    ///     }
    ///     drop(guard);
    ///     let alone = gpu.request(model).alone().enter_async().await?;
    ///     if alone.prepared()?.as_deref() != Some(model) {
    ///         alone.set_prepared(None)?; // if this task is dropped, the room is not set up
    ///         load().await;
    ///         alone.set_prepared(Some(model))?;
    ///     }
    ///     alone.downgrade(model) // others of the session join
    /// }
    /// # let gpu = Room::open(directory, "gpu")?;
    /// # let mut entering = std::pin::pin!(enter(&gpu, "model A"));
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(guard) = entering.as_mut().poll(&mut context) else { panic!("it is empty") };
    /// # let guard = guard?;
    /// # assert_eq!(guard.prepared()?.as_deref(), Some("model A"));
    /// # gpu.try_enter("model A")?.leave()?;
    /// # drop(guard);
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter_async(self) -> Enter {
        let blocking = self.set_up.is_some() || self.tear_down.is_some();
        let checked = self.check(blocking);
        let checked =
            checked.and_then(|()| self.room.require(!blocking, "set-up or tear-down from a task"));
        Enter::new(self.room.clone(), &self.request, checked)
    }

    /// Leaves the holding of `guard` and queues in one step. No other request is admitted in
    /// between. The order is that of a new request. See [`Guard::switch`].
    ///
    /// # Errors
    /// As [`enter`](Entry::enter). Also after an error the room has been left.
    pub fn switch(mut self, guard: Guard<'_>) -> Result<Guard<'_>, RoomError> {
        self.check(self.set_up.is_some())?;
        let possible = self.set_up.is_none() && self.room.capabilities().switch;
        self.room.require(possible, "switching")?;
        let guard = self.ask(Some(guard))?;
        Ok(guard.with_tear_down(self.tear_down.take()))
    }

    /// An error if this kind of rooms lacks a feature that the request needs.
    fn check(&self, set_up: bool) -> Result<(), RoomError> {
        let can = self.room.capabilities();
        let prepares = set_up || self.tear_down.is_some();
        // First: a set-up also needs to be alone, but the error should name the set-up.
        self.room.require(can.set_up || !prepares, "set-up and tear-down")?;
        self.room.require(can.alone || !(self.request.alone || set_up), "being alone")?;
        self.room.require(can.at_most || self.request.at_most.is_none(), "a limit of holders")
    }

    /// Enters alone, and sets the room up unless another process has done it in the meantime.
    fn prepare(&mut self, set_up: SetUp<'s>) -> Result<Guard<'static>, RoomError> {
        let stays_alone = std::mem::replace(&mut self.request.alone, true);
        let guard = self.ask(None)?;
        if guard.prepared()?.as_deref() != Some(self.request.session) {
            // First: if this process dies during the set-up, the room is not set up.
            guard.set_prepared(None)?;
            set_up().map_err(RoomError::SetUp)?;
            guard.set_prepared(Some(self.request.session))?;
        }
        if stays_alone { Ok(guard) } else { guard.downgrade(self.request.session) }
    }

    /// Submits the request and waits. With a guard, it leaves that holding in the same step.
    fn ask<'g>(&mut self, from: Option<Guard<'g>>) -> Result<Guard<'g>, RoomError> {
        let started = Instant::now();
        let submitted = match from {
            None => self.room.backend.submit(&self.request)?,
            Some(guard) => guard.into_holding()?.switch(&self.request)?,
        };
        let holding = match submitted {
            Submitted::Granted(holding) => holding,
            Submitted::Waiting(mut waiting) => self.wait(&mut *waiting, started)?,
        };
        Ok(Guard::new(self.room, self.request.session, holding))
    }

    fn wait(
        &mut self,
        waiting: &mut dyn Pending,
        started: Instant,
    ) -> Result<Box<dyn crate::backend::Holding>, RoomError> {
        let deadline = self.request.patience.deadline();
        let holder = waiting.holder();
        loop {
            let mut until = deadline;
            if let Some((every, callback)) = &mut self.progress {
                let snapshot = self.room.snapshot()?;
                let progress =
                    Progress { holder: &holder, waited: started.elapsed(), snapshot: &snapshot };
                if callback(&progress).is_break() {
                    return Err(RoomError::Withdrawn);
                }
                let next = Instant::now().checked_add(*every);
                until = until.into_iter().chain(next).min();
            }
            if let Some(holding) = waiting.wait(until)? {
                return Ok(holding);
            }
            if self.request.patience.exhausted() {
                return Err(RoomError::TimedOut { waited: started.elapsed() });
            }
        }
    }
}

impl fmt::Debug for Entry<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("request", &self.request).finish_non_exhaustive()
    }
}
