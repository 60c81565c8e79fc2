//! A request that is being put together, and what it takes to fulfil it.

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

/// What someone who waits is told from time to time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Progress<'p> {
    /// How snapshots call the one who waits.
    pub holder: &'p HolderId,
    /// How long it has waited.
    pub waited: Duration,
    /// The room. [`Snapshot::phases_before`] tells our place.
    pub snapshot: &'p Snapshot,
}

type Callback<'a> = Box<dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a>;
type SetUp<'a> = Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + 'a>;

/// A request that is being put together.
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

    /// Nobody else may be inside, not even the same session.
    pub fn alone(mut self) -> Self {
        self.request.alone = true;
        self
    }

    /// How many holders there may be while this one is inside, itself included.
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

    /// If the room is not set up for the session, runs `set_up` alone before others of the session are let in. If it
    /// fails, or its process dies, the room is set up for nobody and the next one tries. Only for
    /// [`enter`](Entry::enter) and [`enter_owned`](Entry::enter_owned).
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

    /// When this holder leaves and nobody else is inside, runs `tear_down` before others are let in. The room is set up for
    /// nobody from then on, also if it fails.
    pub fn tear_down<F>(mut self, tear_down: F) -> Self
    where
        F: FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    {
        self.tear_down = Some(Box::new(tear_down));
        self
    }

    /// How urgent it is.
    pub fn priority(mut self, priority: impl Into<Priority>) -> Self {
        self.request.priority = priority.into();
        self
    }

    /// How long the holder expects to stay. Some backends plan with it; it is shown by all, and never enforced.
    pub fn expected(mut self, duration: Duration) -> Self {
        self.request.expected = Some(duration);
        self
    }

    /// Wait at most that long.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.request.patience = Patience::for_time(time);
        self
    }

    /// Wait at most until then.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.request.patience = Patience::Until(deadline);
        self
    }

    /// Do not wait.
    pub fn no_wait(mut self) -> Self {
        self.request.patience = Patience::None;
        self
    }

    /// As told by a [`Patience`].
    pub fn patience(mut self, patience: Patience) -> Self {
        self.request.patience = patience;
        self
    }

    /// While waiting in [`enter`](Entry::enter), calls `callback` at once and then at this interval. If it
    /// returns [`ControlFlow::Break`] the wait ends with [`RoomError::Withdrawn`].
    pub fn progress(
        mut self,
        every: Duration,
        callback: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 's,
    ) -> Self {
        self.progress = Some((every, Box::new(callback)));
        self
    }

    /// Enters, waiting on this thread.
    ///
    /// # Errors
    /// [`RoomError::Occupied`] or [`RoomError::TimedOut`] if patience ran out, in which case nothing is left of
    /// the request; [`RoomError::Unsupported`] if this kind of rooms cannot do it; others if the room cannot be used.
    pub fn enter(self) -> Result<Guard<'r>, RoomError> {
        self.enter_owned()
    }

    /// The same with a guard that does not borrow the room.
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

    /// For tasks of any executor: nothing happens until it is polled; see [`Enter`]. The progress callback is not
    /// called, and a set-up or tear-down is refused: it would block the executor. A task does in steps what
    /// [`set_up`](Entry::set_up) does:
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
    ///         alone.set_prepared(None)?; // if this task is dropped, the room is set up for nobody
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
        Enter::new(
            self.room.clone(),
            &self.request,
            self.check(blocking).and_then(|()| {
                if blocking {
                    Err(self.room.unsupported("set-up or tear-down from a task"))
                } else {
                    Ok(())
                }
            }),
        )
    }

    /// Leaves what `guard` holds and queues in one step: nobody comes in between, and nobody who waits is overtaken. See
    /// [`Guard::switch`].
    ///
    /// # Errors
    /// As [`enter`](Entry::enter). The room has been left in any case.
    pub fn switch(mut self, guard: Guard<'_>) -> Result<Guard<'_>, RoomError> {
        self.check(self.set_up.is_some())?;
        if self.set_up.is_some() || !self.room.capabilities().switch {
            return Err(self.room.unsupported("switching"));
        }
        let guard = self.ask(Some(guard))?;
        Ok(guard.with_tear_down(self.tear_down.take()))
    }

    /// An error if this kind of rooms cannot do what is asked for.
    fn check(&self, set_up: bool) -> Result<(), RoomError> {
        let can = self.room.capabilities();
        let wanted = [
            // First: whoever asks for it is not told that being alone, which it needs too, is missing.
            (set_up || self.tear_down.is_some(), can.set_up, "set-up and tear-down"),
            (self.request.alone || set_up, can.alone, "being alone"),
            (self.request.at_most.is_some(), can.at_most, "a limit of holders"),
        ];
        match wanted.iter().find(|(wanted, possible, _)| *wanted && !possible) {
            Some((.., what)) => Err(self.room.unsupported(what)),
            None => Ok(()),
        }
    }

    /// The room is not set up for the session. Comes back alone, and sets it up unless somebody else has done so meanwhile.
    fn prepare(&mut self, set_up: SetUp<'s>) -> Result<Guard<'static>, RoomError> {
        let stays_alone = std::mem::replace(&mut self.request.alone, true);
        let guard = self.ask(None)?;
        if guard.prepared()?.as_deref() != Some(self.request.session) {
            // First: if we die from here on, the room is set up for nobody.
            guard.set_prepared(None)?;
            set_up().map_err(RoomError::SetUp)?;
            guard.set_prepared(Some(self.request.session))?;
        }
        if stays_alone { Ok(guard) } else { guard.downgrade(self.request.session) }
    }

    /// Queues, from within the room if there is a guard, and waits.
    fn ask<'g>(&mut self, from: Option<Guard<'g>>) -> Result<Guard<'g>, RoomError> {
        let started = Instant::now();
        let submitted = match from {
            None => self.room.backend.submit(&self.request)?,
            Some(guard) => guard.into_holding()?.switch(&self.request)?,
        };
        let mut waiting = match submitted {
            Submitted::Granted(holding) => {
                return Ok(Guard::new(self.room, self.request.session, holding));
            }
            Submitted::Waiting(waiting) => waiting,
        };
        let holding = self.wait(&mut *waiting, started)?;
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
