//! A room, and how to enter it.

use std::fmt;
use std::num::NonZeroU16;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use crate::backend::KEPT;
use crate::backend::{Backend, Capabilities, Places};
use crate::entry::Entry;
use crate::error::RoomError;
use crate::future::Enter;
use crate::guard::Guard;
#[cfg(unix)]
use crate::guard::Kept;
use crate::name::RoomName;
use crate::place::Place;
use crate::policy::Policy;
use crate::snapshot::Snapshot;

/// Who may use a room in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Only the user who creates it; in a directory with the set-group-ID bit that its group may write to, that group as well.
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
    /// How many participants a room that is created can have at a time, 10,000 if nothing is said. Only for directories.
    pub capacity: Option<NonZeroU16>,
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
    pub(crate) backend: Arc<dyn Backend>,
    /// Where it is and what it is called, if it was opened by [`Places`]: what [`enter_all`](Room::enter_all) sorts by.
    at: Option<Arc<(Place, RoomName)>>,
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
        Places::new().remove(place, name)
    }

    /// For backends.
    pub fn from_backend(backend: Arc<dyn Backend>) -> Self {
        Room { backend, at: None }
    }

    pub(crate) fn at(self, place: &Place, name: &RoomName) -> Self {
        Room { at: Some(Arc::new((place.clone(), name.clone()))), ..self }
    }

    /// What this room can do.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    pub(crate) fn unsupported(&self, what: &str) -> RoomError {
        RoomError::Unsupported { backend: self.backend.kind(), what: what.to_owned() }
    }

    /// Enters, and waits as long as it takes.
    ///
    /// # Errors
    /// If the room cannot be used any more, or the name is too long.
    pub fn enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).enter()
    }

    /// Enters at once or not at all.
    ///
    /// # Errors
    /// [`RoomError::Occupied`] if it would have to wait.
    pub fn try_enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).no_wait().enter()
    }

    /// Enters alone: nobody else is inside, whatever the session. To give it a name, or to wait for a limited time:
    /// [`request`](Room::request) and [`Entry::alone`].
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-alone-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// let database = Room::open(directory, "database")?;
    /// let migration = database.exclusive()?;
    /// assert!(database.try_exclusive().is_err_and(|e| e.is_conflict()));
    /// let checking = migration.downgrade("read")?; // others may read now
    /// database.try_enter("read")?.leave()?;
    /// # drop(checking);
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`enter`](Room::enter), and [`RoomError::Unsupported`].
    pub fn exclusive(&self) -> Result<Guard<'_>, RoomError> {
        self.request("").alone().enter()
    }

    /// Enters alone at once, or not at all.
    ///
    /// # Errors
    /// As [`exclusive`](Room::exclusive), and [`RoomError::Occupied`] if it would have to wait.
    pub fn try_exclusive(&self) -> Result<Guard<'_>, RoomError> {
        self.request("").alone().no_wait().enter()
    }

    /// [`exclusive`](Room::exclusive) for tasks of any executor.
    pub fn exclusive_async(&self) -> Enter {
        self.request("").alone().enter_async()
    }

    /// Enters several rooms, whatever order they are named in: each process enters by place and name, so that no two wait
    /// for each other. The guards come in the order of the requests. A room that is named twice with equal requests is
    /// entered once.
    ///
    /// ```
    /// # fn main() -> Result<(), grouplock_room::RoomError> {
    /// # let directory = std::env::temp_dir().join(format!("grouplock-doc-all-{}", std::process::id()));
    /// # let directory = directory.as_path();
    /// # use grouplock_room::Room;
    /// let (gpu, disk) = (Room::open(directory, "gpu")?, Room::open(directory, "disk")?);
    /// let both = Room::enter_all([gpu.request("model A"), disk.request("read")])?;
    /// assert_eq!(both[1].session(), "read");
    /// # drop(both);
    /// # std::fs::remove_dir_all(directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Entry::enter`] for each of them: then none is kept. [`RoomError::BadOption`] if a room is named twice with
    /// requests that differ, as nobody can be inside twice.
    pub fn enter_all<'r, 's>(
        requests: impl IntoIterator<Item = Entry<'r, 's>>,
    ) -> Result<Vec<Guard<'r>>, RoomError> {
        let mut wanted = Vec::new();
        for (position, entry) in requests.into_iter().enumerate() {
            let Some(at) = entry.room.entry_order() else {
                return Err(entry.room.unsupported("several rooms at once without a place"));
            };
            wanted.push((at, position, entry));
        }
        wanted.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for pair in wanted.windows(2) {
            let (one, other) = (&pair[0].2.request, &pair[1].2.request);
            let kind = |request: &crate::Request<'_>| (request.alone, request.at_most);
            if pair[0].0 == pair[1].0 && (one.session, kind(one)) != (other.session, kind(other)) {
                return Err(RoomError::BadOption {
                    what: "what is entered at once",
                    value: format!("the room `{}` twice", pair[0].0.1),
                    expected: "each room can be named with one session".to_owned(),
                });
            }
        }
        wanted.dedup_by(|(one, ..), (other, ..)| one == other);
        let mut guards = Vec::new();
        for (_, position, entry) in wanted {
            guards.push((position, entry.enter()?));
        }
        guards.sort_by_key(|(position, _)| *position);
        Ok(guards.into_iter().map(|(_, guard)| guard).collect())
    }

    /// What [`enter_all`](Room::enter_all) sorts by, for those who enter several rooms in another way: the place and the name.
    /// `None` for a room that was not opened by [`Places`].
    pub fn entry_order(&self) -> Option<(String, String)> {
        let (place, name) = self.at.as_deref()?;
        let place = match place {
            // One directory may have several paths.
            Place::Directory(path) => {
                path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string()
            }
            Place::Servers { .. } => place.to_string(),
        };
        Some((place, name.to_string()))
    }

    /// For tasks of any executor.
    pub fn enter_async(&self, session: &str) -> Enter {
        self.request(session).enter_async()
    }

    /// A request with more to say than the session.
    pub fn request<'s>(&self, session: &'s str) -> Entry<'_, 's> {
        Entry::new(self, session)
    }

    /// The file of a room in a directory; `None` for rooms on servers. To be opened by those whom a place is
    /// [handed to](Guard::keep_by), and never to be emptied.
    pub fn file(&self) -> Option<&Path> {
        self.backend.file()
    }

    /// The place that an open file [keeps](Guard::keep_by).
    ///
    /// # Errors
    /// As [`Guard::keep_by`].
    #[cfg(unix)]
    pub fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        self.with_file()?.kept_by(descriptor)
    }

    /// Leaves the place that an open file [keeps](Guard::keep_by). If `repaired`, the deaths that it was told of are
    /// [acknowledged](Guard::acknowledge) before. False if it keeps none.
    ///
    /// # Errors
    /// As [`Guard::keep_by`].
    #[cfg(unix)]
    pub fn leave_kept(
        &self,
        descriptor: BorrowedFd<'_>,
        repaired: bool,
    ) -> Result<bool, RoomError> {
        self.with_file()?.leave_kept(descriptor, repaired)
    }

    #[cfg(unix)]
    fn with_file(&self) -> Result<&dyn Backend, RoomError> {
        self.file().map(|_| &*self.backend).ok_or_else(|| self.unsupported(KEPT))
    }

    /// Who is inside, who waits, what was before. Does not disturb the room, and cannot be held up by it.
    ///
    /// # Errors
    /// If the room cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, RoomError> {
        self.backend.snapshot()
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}
