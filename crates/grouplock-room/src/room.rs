//! A room, and the ways to enter it.

use std::fmt;
use std::num::NonZeroU16;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use crate::backend::KEPT;
use crate::backend::{Backend, Capabilities};
use crate::entry::Entry;
use crate::error::RoomError;
use crate::future::Enter;
use crate::guard::Guard;
#[cfg(unix)]
use crate::guard::Kept;
use crate::name::RoomName;
use crate::place::Place;
use crate::places::Places;
use crate::policy::Policy;
use crate::snapshot::Snapshot;

/// Who may use a room in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The user who creates it. If the directory has the set-group-ID bit and its group may write
    /// to it, also that group.
    #[default]
    Owner,
    /// Also the group of the file. That is the creator's group or, if the directory has the
    /// set-group-ID bit, the directory's group.
    Group,
}

/// How to open a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoomOptions {
    /// The policy that the room must have. `None` accepts the policy of an existing room, and gives
    /// a new room [`Policy::Fifo`].
    pub policy: Option<Policy>,
    /// Whether to open only a room that exists.
    pub existing: bool,
    /// Who may use a new room. Only for directories.
    pub access: Access,
    /// The number of participants that a new room can have at a time; 10,000 by default. Only for
    /// directories.
    pub capacity: Option<NonZeroU16>,
    /// The command that snapshots show for this process, instead of its command line.
    pub command: Option<String>,
    /// Whether only [snapshots](Room::snapshot) are needed. They need no permission to write. Such
    /// a room cannot be entered. Only for directories; rooms on servers ignore it.
    pub look_only: bool,
}

impl RoomOptions {
    /// Opens or creates a room for its owner, with the policy that it has.
    pub fn new() -> Self {
        RoomOptions::default()
    }

    /// Sets the policy that the room must have.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Opens only a room that exists.
    #[must_use]
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// Sets who may use a new room.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the number of participants that a new room can have.
    #[must_use]
    pub fn capacity(mut self, capacity: NonZeroU16) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Opens an existing room only for snapshots.
    #[must_use]
    pub fn look_only(mut self) -> Self {
        (self.existing, self.look_only) = (true, true);
        self
    }

    /// Sets the command that snapshots show.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// A named room that processes share. Holders of the same session are inside together. Different
/// sessions exclude each other.
///
/// Any number of threads can use a handle, and cloning it is cheap. Entries are independent: a
/// thread may enter twice. It waits for itself if it asks for a second session while it holds the
/// first.
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
    /// The place and the name, if [`Places`] opened the room. [`enter_all`](Room::enter_all) sorts
    /// by them.
    at: Option<Arc<(Place, RoomName)>>,
}

impl Room {
    /// Opens a room in a directory with [default options](RoomOptions). Creates the directory and
    /// the room if needed. [`Places`] opens rooms on servers.
    ///
    /// # Errors
    /// [`RoomError`] has a variant for every known failure. A room is never silently replaced by a
    /// weaker one.
    pub fn open<P>(place: P, name: &str) -> Result<Self, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        Places::new().open(place, name, &RoomOptions::new())
    }

    /// As [`open`](Room::open), with options.
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

    /// Removes a room that has no participants from a directory. Handles that are still open report
    /// [`RoomError::Removed`].
    ///
    /// # Errors
    /// [`RoomError::InUse`] if a process is inside or waits. A file that is not a room is not
    /// removed.
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

    /// What this room supports.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// An error if this kind of rooms does not support `what`.
    pub(crate) fn require(&self, supported: bool, what: &str) -> Result<(), RoomError> {
        if supported { Ok(()) } else { Err(self.unsupported(what)) }
    }

    fn unsupported(&self, what: &str) -> RoomError {
        RoomError::Unsupported { backend: self.backend.kind(), what: what.to_owned() }
    }

    /// Enters. Waits without a limit.
    ///
    /// # Errors
    /// If the room can no longer be used, or the name of the session is too long.
    pub fn enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).enter()
    }

    /// Enters at once or fails.
    ///
    /// # Errors
    /// [`RoomError::Occupied`] if the request would have to wait.
    pub fn try_enter(&self, session: &str) -> Result<Guard<'_>, RoomError> {
        self.request(session).no_wait().enter()
    }

    /// Enters alone: no other holder is inside, whatever its session. [`request`](Room::request)
    /// and [`Entry::alone`] can also give it a name and limit the wait.
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

    /// Enters alone at once or fails.
    ///
    /// # Errors
    /// As [`exclusive`](Room::exclusive), and [`RoomError::Occupied`] if the request would have to
    /// wait.
    pub fn try_exclusive(&self) -> Result<Guard<'_>, RoomError> {
        self.request("").alone().no_wait().enter()
    }

    /// [`exclusive`](Room::exclusive) for tasks of any executor.
    pub fn exclusive_async(&self) -> Enter {
        self.request("").alone().enter_async()
    }

    /// Enters several rooms. Every process enters them sorted by place and name, whatever the order
    /// of the requests. So no two processes wait for each other. The guards have the order of the
    /// requests. A room that is named twice with equal requests is entered once.
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
    /// As [`Entry::enter`] for each room. After an error no room is held. [`RoomError::BadOption`]
    /// if a room is named twice with different requests, because a process cannot be inside with
    /// two requests.
    pub fn enter_all<'r, 's>(
        requests: impl IntoIterator<Item = Entry<'r, 's>>,
    ) -> Result<Vec<Guard<'r>>, RoomError> {
        let mut wanted = Vec::new();
        for (position, entry) in requests.into_iter().enumerate() {
            let unknown = || entry.room.unsupported("several rooms at once without a place");
            let at = entry.room.entry_order().ok_or_else(unknown)?;
            wanted.push((at, position, entry));
        }
        wanted.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for pair in wanted.windows(2) {
            let (one, other) = (&pair[0].2.request, &pair[1].2.request);
            let kind = |request: &crate::Request<'_>| (request.alone, request.at_most);
            if pair[0].0 == pair[1].0 && (one.session, kind(one)) != (other.session, kind(other)) {
                return Err(RoomError::BadOption {
                    what: "one entry",
                    value: format!("for the room `{}` twice", pair[0].0.1),
                    expected: "each room can have one session".to_owned(),
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

    /// The place and the name, by which [`enter_all`](Room::enter_all) sorts. It is for programs
    /// that enter several rooms in another way. `None` if [`Places`] did not open the room.
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

    /// As [`enter`](Room::enter), for tasks of any executor.
    pub fn enter_async(&self, session: &str) -> Enter {
        self.request(session).enter_async()
    }

    /// A request with options.
    pub fn request<'s>(&self, session: &'s str) -> Entry<'_, 's> {
        Entry::new(self, session)
    }

    /// The file of a room in a directory; `None` for rooms on servers. A process opens it to [take
    /// over](Guard::keep_by) a holding. It must never be truncated.
    pub fn file(&self) -> Option<&Path> {
        self.backend.file()
    }

    /// The holding that an open file [keeps](Guard::keep_by).
    ///
    /// # Errors
    /// As [`Guard::keep_by`].
    #[cfg(unix)]
    pub fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        self.with_file()?.kept_by(descriptor)
    }

    /// Leaves the holding that an open file [keeps](Guard::keep_by). With `repaired`, it first
    /// [acknowledges](Guard::acknowledge) the deaths that were reported to this holding. Returns
    /// `false` if the file keeps no holding.
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
        self.require(self.file().is_some(), KEPT)?;
        Ok(&*self.backend)
    }

    /// The holders, the waiters and the past phases. A snapshot does not disturb the room, and the
    /// room cannot delay it.
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
