//! What a kind of rooms has to provide.
//!
//! Rooms in a directory are built in. Others live in crates of their own, which implement [`Backend`] for an open
//! room, [`Pending`] and [`Holding`] for a request and what it becomes, and [`Opener`] for the scheme. A
//! program collects the openers it wants in [`Places`]. Every backend runs the suite in
//! `conformance`, which the feature of that name brings.

use std::fmt;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::error::RoomError;
#[cfg(unix)]
use crate::guard::Kept;
use crate::guard::{Recovered, Standing};
use crate::name::RoomName;
use crate::place::Place;
use crate::request::Request;
use crate::room::{Room, RoomOptions};
use crate::snapshot::{HolderId, Snapshot};

/// A room, and what was seen of it.
type Seen = (RoomName, Result<Snapshot, RoomError>);

/// How many rooms are looked at together.
const LOOKERS: usize = 16;

/// What a backend can and cannot do. Tools and the conformance suite ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Capabilities {
    /// Rooms with [`Policy::Batch`](crate::Policy::Batch).
    pub batch: bool,
    /// Rooms with [`Policy::Priority`](crate::Policy::Priority).
    pub priority: bool,
    /// A holding ends by itself when contact is lost, so that it can be [lost](crate::Guard::standing) while its
    /// process lives.
    pub leases: bool,
    /// The next entrants learn that a holder died ([`Guard::recovered`](crate::Guard::recovered)).
    pub tells_deaths: bool,
    /// A death is told to every entrant until one of them [acknowledges](crate::Guard::acknowledge) it. Without this, only
    /// the phase after it is told.
    pub acknowledge: bool,
    /// Requests to be [alone](Request::alone).
    pub alone: bool,
    /// Requests with [`at_most`](Request::at_most).
    pub at_most: bool,
    /// [`Holding::switch`].
    pub switch: bool,
    /// Set-up and tear-down: [`Holding::downgrade`], [`try_alone`](Holding::try_alone),
    /// [`prepared`](Holding::prepared), [`previous`](Holding::previous) and [`set_prepared`](Holding::set_prepared).
    pub set_up: bool,
    /// The longest name of a session, in bytes.
    pub longest_session: usize,
}

impl Capabilities {
    /// The least: first come first served, no leases, no news of deaths.
    pub fn least(longest_session: usize) -> Self {
        Capabilities {
            batch: false,
            priority: false,
            leases: false,
            tells_deaths: false,
            acknowledge: false,
            alone: false,
            at_most: false,
            switch: false,
            set_up: false,
            longest_session,
        }
    }
}

/// An open room.
pub trait Backend: Send + Sync + 'static {
    /// What it can do. [`Room`] asks it, and refuses every request that needs more.
    fn capabilities(&self) -> Capabilities;

    /// What messages call rooms of this kind, such as `etcd`.
    fn kind(&self) -> &'static str {
        "these"
    }

    /// Asks for entry. If it cannot be granted at once the request stands in the queue when this returns,
    /// unless its patience is [exhausted](crate::Patience::exhausted): then nothing is left of it and the error is
    /// [`RoomError::Occupied`] or [`RoomError::TimedOut`].
    ///
    /// # Errors
    /// As the backend has reason to.
    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError>;

    /// The same for tasks, which must not be blocked for as long as servers take to answer: it may return a request that
    /// is still on its way. By itself it does what [`submit`](Backend::submit) does.
    ///
    /// # Errors
    /// As [`submit`](Backend::submit).
    fn begin(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        self.submit(request)
    }

    /// Looks at the room without disturbing it.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn snapshot(&self) -> Result<Snapshot, RoomError>;

    /// The file of a room in a directory.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The place that an open file [keeps](Holding::keep_by). Only rooms with a [`file`](Backend::file) have such places.
    ///
    /// # Errors
    /// As the backend has reason to.
    #[cfg(unix)]
    fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        _ = descriptor;
        Err(missing(KEPT))
    }

    /// Leaves the place that an open file keeps; if `repaired`, the deaths that it was told of are acknowledged before. False
    /// if it keeps none.
    ///
    /// # Errors
    /// As the backend has reason to.
    #[cfg(unix)]
    fn leave_kept(&self, descriptor: BorrowedFd<'_>, repaired: bool) -> Result<bool, RoomError> {
        _ = (descriptor, repaired);
        Err(missing(KEPT))
    }
}

/// What only rooms in a directory can do.
#[cfg(unix)]
pub(crate) const KEPT: &str = "a place that an open file keeps";

/// What became of a request.
pub enum Submitted {
    /// It was granted.
    Granted(Box<dyn Holding>),
    /// It waits.
    Waiting(Box<dyn Pending>),
}

/// A request in the queue. Dropping it withdraws it: nothing is left in the queue, and if it has been granted
/// in the meantime the room is left again.
pub trait Pending: Send {
    /// How snapshots call the one who waits. The same as the holder's, once it is one.
    fn holder(&self) -> HolderId;

    /// Waits for the grant, at most until `until`, and gives `None` if there is none by then. The deadline of
    /// the request itself is the caller's business here. After a grant or an error it is not called again.
    ///
    /// # Errors
    /// If the request is not in the queue any more and will not be granted.
    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError>;

    /// The same for tasks. Wakes the task when there is something new, also when the deadline of the request
    /// passes, which gives [`RoomError::TimedOut`].
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>>;
}

/// A place inside. Dropping it leaves.
///
/// What follows [`leave`](Holding::leave) is called only if the [`Capabilities`] promise it.
pub trait Holding: Send + Sync {
    /// The epoch of the phase.
    fn epoch(&self) -> u64;

    /// How snapshots call the holder.
    fn holder(&self) -> HolderId;

    /// The last death inside that was not acknowledged when this holder entered.
    fn recovered(&self) -> Option<Recovered>;

    /// Something that outlives the holding and tells how it stands.
    fn watch(&self) -> Box<dyn Watch>;

    /// Leaves, and tells if that failed.
    ///
    /// # Errors
    /// [`RoomError::Lost`] if the holding had ended before.
    fn leave(self: Box<Self>) -> Result<(), RoomError>;

    /// All deaths inside that were not acknowledged when this holder entered, the oldest first, as far as they are
    /// remembered.
    fn deaths(&self) -> Vec<Recovered> {
        self.recovered().into_iter().collect()
    }

    /// The deaths that this holder was told of are repaired: they are not told any more. Later ones are.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn acknowledge(&self) -> Result<(), RoomError> {
        Err(missing("acknowledging deaths"))
    }

    /// The holder is alone. From now on it is a holder of `session`, which others may join. It does not queue, and the
    /// epoch stays.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn downgrade(&self, session: &str) -> Result<(), RoomError> {
        _ = session;
        Err(missing("downgrading"))
    }

    /// Leaves and queues in one step: nobody can come in between, and nobody who waits is overtaken.
    ///
    /// # Errors
    /// As [`Backend::submit`]. The room has been left in any case.
    fn switch(self: Box<Self>, request: &Request<'_>) -> Result<Submitted, RoomError> {
        _ = request;
        Err(missing("switching"))
    }

    /// If nobody else is inside: this holder is alone from now on, as if it had asked for that. Whether it is.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn try_alone(&self) -> Result<bool, RoomError> {
        Err(missing("being alone"))
    }

    /// The session for which the room is set up. It is forgotten when a phase begins whose session has another name, or
    /// that is alone under another name.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn prepared(&self) -> Result<Option<String>, RoomError> {
        Err(missing("set-up"))
    }

    /// The session for which the room was set up before that was forgotten, unless it was torn down.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn previous(&self) -> Result<Option<String>, RoomError> {
        Err(missing("set-up"))
    }

    /// Remembers for which session the room is set up. The holder is alone.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn set_prepared(&self, session: Option<&str>) -> Result<(), RoomError> {
        _ = session;
        Err(missing("set-up"))
    }

    /// The descriptor whose lock keeps the place, if there is one.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Gives the place up for a holder that has died, in a child forked from it. Without a descriptor there is nothing to
    /// do: the lease ends.
    fn abandon(&self) {}

    /// Hands the place to a file that somebody else has opened, and lets `pid` be shown as the holder. How snapshots call it.
    ///
    /// # Errors
    /// As the backend has reason to. The room has been left then.
    #[cfg(unix)]
    fn keep_by(
        self: Box<Self>,
        descriptor: BorrowedFd<'_>,
        pid: u32,
    ) -> Result<HolderId, RoomError> {
        _ = (descriptor, pid);
        Err(missing(KEPT))
    }
}

fn missing(what: &str) -> RoomError {
    RoomError::Unsupported { backend: "these", what: what.to_owned() }
}

/// Tells how a holding stands. Usable from any thread, also after the holding is gone.
pub trait Watch: Send + Sync {
    /// How it stands now.
    fn standing(&self) -> Standing;

    /// Waits until it is no longer [`Held`](Standing::Held), at most until `until`. With a lease it must return
    /// **before** the moment at which others may be let in.
    fn wait(&self, until: Option<Instant>) -> Standing;

    /// The moment at which the holding ends if nothing more is heard from the servers; `None` if it does not
    /// depend on time. Once it is lost: the moment from which on others may be inside, which may have passed.
    fn valid_until(&self) -> Option<Instant> {
        None
    }
}

/// Opens the rooms of one scheme.
pub trait Opener: Send + Sync {
    /// The scheme, such as `etcd`.
    fn scheme(&self) -> &'static str;

    /// Opens a room, creating it if the options say so.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn open(
        &self,
        place: &Place,
        name: &RoomName,
        options: &RoomOptions,
    ) -> Result<Room, RoomError>;

    /// The rooms that there are.
    ///
    /// # Errors
    /// As the backend has reason to.
    fn list(&self, place: &Place) -> Result<Vec<RoomName>, RoomError>;

    /// Removes a room that nobody uses.
    ///
    /// # Errors
    /// [`RoomError::InUse`] if someone is inside or waits; [`RoomError::Unsupported`] if such rooms are not removed.
    fn remove(&self, place: &Place, name: &RoomName) -> Result<(), RoomError> {
        _ = (place, name);
        Err(missing("removing a room"))
    }
}

/// The kinds of rooms a program can reach: those in directories, and those it was given an [`Opener`] for.
///
/// ```no_run
/// use grouplock_room::{Places, RoomOptions};
///
/// let places = Places::new(); // .with(grouplock_etcd::opener())
/// let room = places.open("/run/grouplock", "build", &RoomOptions::new())?;
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
#[derive(Default)]
pub struct Places {
    openers: Vec<Box<dyn Opener>>,
}

impl Places {
    /// Only rooms in directories.
    pub fn new() -> Self {
        Places::default()
    }

    /// And those of `opener`. A later one for the same scheme replaces the earlier.
    #[must_use]
    pub fn with(mut self, opener: impl Opener + 'static) -> Self {
        self.openers.retain(|known| known.scheme() != opener.scheme());
        self.openers.push(Box::new(opener));
        self
    }

    /// Opens a room.
    ///
    /// # Errors
    /// [`RoomError::NoBackend`] if nobody opens such places; else as the backend has reason to.
    pub fn open<P>(&self, place: P, name: &str, options: &RoomOptions) -> Result<Room, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let name = RoomName::new(name)?;
        let room = match &place {
            Place::Directory(directory) => crate::file::open(directory, &name, options),
            Place::Servers { .. } => self.opener(&place)?.open(&place, &name, options),
        };
        Ok(room?.at(&place, &name))
    }

    /// The names of the rooms in a place, sorted. A directory that does not exist has none.
    ///
    /// # Errors
    /// As [`open`](Places::open).
    pub fn list<P>(&self, place: P) -> Result<Vec<RoomName>, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let mut names = match &place {
            Place::Directory(directory) => crate::file::list(directory)?,
            Place::Servers { .. } => self.opener(&place)?.list(&place)?,
        };
        names.sort();
        Ok(names)
    }

    /// Looks at all rooms in a place, sorted by name. Several are looked at together, so that many rooms on servers do not take as
    /// many times as long as one. Rooms that were removed meanwhile are left out.
    ///
    /// # Errors
    /// As [`list`](Places::list). A room that cannot be looked at has its own.
    pub fn snapshots<P>(&self, place: P) -> Result<Vec<Seen>, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        self.look_at_all(&place.try_into()?)
    }

    fn look_at_all(&self, place: &Place) -> Result<Vec<Seen>, RoomError> {
        let names = self.list(place)?;
        let options = RoomOptions::new().look_only();
        let look = |name: &RoomName| {
            let room = self.open(place, name.as_str(), &options);
            (name.clone(), room.and_then(|room| room.snapshot()))
        };
        let look_at = &|names: &[RoomName]| names.iter().map(look).collect::<Vec<_>>();
        let mut seen: Vec<_> = std::thread::scope(|scope| {
            let shares = names.chunks(names.len().div_ceil(LOOKERS).max(1));
            let lookers: Vec<_> = shares.map(|share| scope.spawn(move || look_at(share))).collect();
            let seen = lookers.into_iter().map(std::thread::ScopedJoinHandle::join);
            seen.flat_map(|seen| seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        seen.retain(|(_, seen)| {
            !matches!(seen, Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }))
        });
        Ok(seen)
    }

    /// Removes a room that nobody uses. Handles that are still open notice, or make it anew when somebody enters.
    ///
    /// # Errors
    /// [`RoomError::InUse`] if someone is inside or waits; else as [`open`](Places::open).
    pub fn remove<P>(&self, place: P, name: &str) -> Result<(), RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let name = RoomName::new(name)?;
        match &place {
            Place::Directory(directory) => crate::file::remove(directory, &name),
            Place::Servers { .. } => self.opener(&place)?.remove(&place, &name),
        }
    }

    fn opener(&self, place: &Place) -> Result<&dyn Opener, RoomError> {
        let found = self.openers.iter().find(|opener| opener.scheme() == place.scheme());
        found.map(|opener| &**opener).ok_or_else(|| {
            let schemes = self.openers.iter().map(|opener| format!(", {}://", opener.scheme()));
            RoomError::NoBackend {
                place: place.to_string(),
                scheme: place.scheme().to_owned(),
                known: "directories".to_owned() + &schemes.collect::<String>(),
            }
        })
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schemes = self.openers.iter().map(|opener| opener.scheme());
        f.debug_list().entry(&"file").entries(schemes).finish()
    }
}
