//! A room, and how to enter it.

use std::fmt;
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::{Backend, Capabilities, Places};
use crate::error::RoomError;
use crate::file;
use crate::future::Enter;
use crate::guard::Guard;
use crate::place::Place;
use crate::policy::{Policy, Priority};
use crate::request::{Patience, Request};
use crate::snapshot::{HolderId, Snapshot};
use crate::waiting::{self, Outcome, Waiting};

/// Who may use a room in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Only the user who creates it.
    #[default]
    Owner,
    /// The group of the file as well, which is the creator's or, in a directory with the set-group-ID bit, the
    /// directory's.
    Group,
}

/// How to open a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoomOptions {
    /// The policy: asked for, or `None` for whatever the room has, [`Policy::Fifo`] for a new one.
    pub policy: Option<Policy>,
    /// Open only a room that exists.
    pub existing: bool,
    /// Who may use a room that is created. Only for directories.
    pub access: Access,
    /// How many participants a room that is created can have at a time. Only for directories.
    pub capacity: Option<NonZeroU16>,
    /// Let every entry through this handle appear among the [recent phases](Snapshot::recent). It takes a
    /// microsecond instead of nanoseconds. Only for directories; others always remember or never.
    pub history: bool,
    /// What snapshots show as our command, instead of the command line of this process.
    pub command: Option<String>,
    /// Only look: [`snapshot`](Room::snapshot) works without the permission to write, and entering does not. Only for
    /// directories; elsewhere it means nothing.
    pub look_only: bool,
}

impl RoomOptions {
    /// To open or create, with the policy it has, for the owner alone.
    pub fn new() -> Self {
        RoomOptions::default()
    }

    /// Asks for a policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Opens only what exists.
    #[must_use]
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// Who may use a new room.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// How many participants a new room has places for.
    #[must_use]
    pub fn capacity(mut self, capacity: NonZeroU16) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Whether all entries are remembered.
    #[must_use]
    pub fn history(mut self, history: bool) -> Self {
        self.history = history;
        self
    }

    /// Opens a room that exists, only to look at it.
    #[must_use]
    pub fn look_only(mut self) -> Self {
        (self.existing, self.look_only) = (true, true);
        self
    }

    /// What snapshots show as our command.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// A named room that processes share: those of the same session may be inside together, those of different
/// sessions exclude each other.
///
/// A handle can be used by any number of threads and cloned cheaply. Each entry is on its own: the same thread may
/// enter twice, and waits for itself if it asks for two sessions at once.
///
/// ```
/// # fn main() -> Result<(), grouplock_room::RoomError> {
/// # let directory = std::env::temp_dir().join(format!("grouplock-doc-room-{}", std::process::id()));
/// # let directory = directory.as_path();
/// use grouplock_room::Room;
///
/// let room = Room::open(directory, "database")?;
/// let backup = room.enter("backup")?;
/// let another = room.enter("backup")?; // shares
/// assert_eq!(backup.epoch(), another.epoch());
/// assert!(room.try_enter("migration").is_err_and(|e| e.is_conflict()));
/// drop((backup, another));
/// room.enter("migration")?.leave()?;
/// # std::fs::remove_dir_all(directory).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Room {
    pub(crate) inner: Inner,
}

#[derive(Clone)]
pub(crate) enum Inner {
    File(Arc<file::FileRoom>),
    Other(Arc<dyn Backend>),
}

impl Room {
    /// Opens a room in a directory, creating both if needed, with [default options](RoomOptions).
    /// [`Places`] opens others.
    ///
    /// # Errors
    /// [`RoomError`] has a case for everything that is known to go wrong; a room is never quietly replaced
    /// by a weaker one.
    pub fn open<P>(place: P, name: &str) -> Result<Self, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        Places::new().open(place, name, &RoomOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`open`](Room::open).
    pub fn open_with<P>(place: P, name: &str, options: &RoomOptions) -> Result<Self, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        Places::new().open(place, name, options)
    }

    /// Removes a room that nobody uses from a directory. Handles that are still open notice and report
    /// [`RoomError::Removed`].
    ///
    /// # Errors
    /// [`RoomError::InUse`] if someone is inside or waits. A file that is no room is not removed.
    pub fn remove<P>(place: P, name: &str) -> Result<(), RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let name = crate::name::RoomName::new(name)?;
        match &place {
            Place::Directory(directory) => file::remove(directory, &name),
            Place::Servers { .. } => Err(RoomError::Unsupported {
                backend: "these",
                what: "rooms on servers are not removed by hand".to_owned(),
            }),
        }
    }

    /// For backends.
    pub fn from_backend(backend: Arc<dyn Backend>) -> Self {
        Room { inner: Inner::Other(backend) }
    }

    /// What this room can do.
    pub fn capabilities(&self) -> Capabilities {
        match &self.inner {
            Inner::File(_) => file::capabilities(),
            Inner::Other(backend) => backend.capabilities(),
        }
    }

    /// Enters, and waits as long as it takes.
    ///
    /// # Errors
    /// If the room cannot be used any more, or the name is too long.
    // Always: a guard that is made in the caller's frame need not be copied there.
    #[inline(always)]
    pub fn enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        if let Inner::File(room) = &self.inner
            && let Some(claimed) = room.enter_idle(session)
        {
            return Ok(Guard::claimed(claimed));
        }
        self.enter_patiently(session)
    }

    #[cold]
    fn enter_patiently(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).enter()
    }

    /// Enters at once or not at all.
    ///
    /// # Errors
    /// [`RoomError::Occupied`] if it would have to wait.
    pub fn try_enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).no_wait().enter()
    }

    /// For tasks of any executor.
    pub fn enter_async(&self, session: &str) -> Enter {
        self.request(session).enter_async()
    }

    /// A request with more to say than the session.
    pub fn request<'s>(&self, session: &'s str) -> Entry<'_, 's> {
        Entry { room: self, request: Request::new(session), progress: None }
    }

    /// Who is inside, who waits, what was before. Does not disturb the room, and cannot be held up by it.
    ///
    /// # Errors
    /// If the room cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, RoomError> {
        match &self.inner {
            Inner::File(room) => room.snapshot(),
            Inner::Other(backend) => backend.snapshot(),
        }
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

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

/// A request that is being put together.
#[must_use = "nothing happens until `enter` or `enter_async`"]
pub struct Entry<'r, 's> {
    room: &'r Room,
    request: Request<'s>,
    progress: Option<(Duration, Callback<'s>)>,
}

impl<'r, 's> Entry<'r, 's> {
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
    /// the request; others if the room cannot be used.
    pub fn enter(self) -> Result<Guard<'r>, RoomError> {
        let started = Instant::now();
        match waiting::submit_borrowed(self.room, &self.request)? {
            Outcome::Inside(guard) => Ok(guard),
            Outcome::Waiting(waiting) => self.wait(waiting, started),
        }
    }

    /// The same with a guard that does not borrow the room.
    ///
    /// # Errors
    /// As [`enter`](Entry::enter).
    pub fn enter_owned(self) -> Result<Guard<'static>, RoomError> {
        let started = Instant::now();
        match waiting::submit_owned(self.room, &self.request)? {
            Outcome::Inside(guard) => Ok(guard),
            Outcome::Waiting(waiting) => self.wait(waiting, started),
        }
    }

    /// For tasks of any executor: nothing happens until it is polled; see [`Enter`]. The progress callback is not
    /// called.
    pub fn enter_async(self) -> Enter {
        Enter::new(self.room.clone(), &self.request)
    }

    fn wait(mut self, mut waiting: Waiting<'_>, started: Instant) -> Result<Guard<'_>, RoomError> {
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
            if let Some(guard) = waiting.wait(until, self.request.session)? {
                return Ok(guard);
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
