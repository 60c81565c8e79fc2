//! The traits that a kind of rooms implements.
//!
//! Rooms in a directory are built in. Another kind lives in a crate of its own. It implements
//! [`Backend`] for an open room, [`Pending`] for a waiting request, [`Holding`] for a granted one,
//! and [`Opener`] for its scheme. A program collects openers in [`Places`](crate::Places). Every
//! backend runs the test suite `conformance`, which is a feature of this crate.

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

/// What a backend supports. Tools and the conformance suite read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Capabilities {
    /// Rooms with [`Policy::Batch`](crate::Policy::Batch).
    pub batch: bool,
    /// Rooms with [`Policy::Priority`](crate::Policy::Priority).
    pub priority: bool,
    /// Whether a holding depends on a lease. Then it ends by itself when contact is lost, and can
    /// be [lost](crate::Guard::standing) while its process lives.
    pub leases: bool,
    /// Whether the next entrants learn that a holder died
    /// ([`Guard::recovered`](crate::Guard::recovered)).
    pub reports_deaths: bool,
    /// Whether a death is reported to every entrant until one of them
    /// [acknowledges](crate::Guard::acknowledge) it. Otherwise it is reported to the next phase,
    /// and perhaps to holders that join the phase of the death.
    pub acknowledge: bool,
    /// Requests to be [alone](Request::alone).
    pub alone: bool,
    /// Requests with [`at_most`](Request::at_most).
    pub at_most: bool,
    /// [`Holding::switch`].
    pub switch: bool,
    /// Set-up and tear-down: [`Holding::downgrade`], [`try_alone`](Holding::try_alone),
    /// [`prepared`](Holding::prepared), [`previous`](Holding::previous) and
    /// [`set_prepared`](Holding::set_prepared).
    pub set_up: bool,
    /// The longest name of a session, in bytes.
    pub longest_session: usize,
}

impl Capabilities {
    /// The minimum: first come first served, no leases, no reports of deaths.
    pub fn least(longest_session: usize) -> Self {
        Capabilities {
            batch: false,
            priority: false,
            leases: false,
            reports_deaths: false,
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
    /// What this room supports. [`Room`] refuses requests that need more.
    fn capabilities(&self) -> Capabilities;

    /// The name of this kind of rooms in messages, such as `etcd`.
    fn kind(&self) -> &'static str {
        "these"
    }

    /// Submits a request. If it is not granted at once, it is in the queue when this function
    /// returns. If its patience is [exhausted](crate::Patience::exhausted), it is withdrawn
    /// instead, and the error is [`RoomError::Occupied`] or [`RoomError::TimedOut`].
    ///
    /// # Errors
    /// The errors of the backend.
    fn submit(&self, request: &Request<'_>) -> Result<Submitted, RoomError>;

    /// As [`submit`](Backend::submit), but for tasks. It must not block a task until servers
    /// answer, so it may return a request that is not in the queue yet. The default calls
    /// [`submit`](Backend::submit).
    ///
    /// # Errors
    /// As [`submit`](Backend::submit).
    fn begin(&self, request: &Request<'_>) -> Result<Submitted, RoomError> {
        self.submit(request)
    }

    /// Takes a snapshot. It does not disturb the room.
    ///
    /// # Errors
    /// The errors of the backend.
    fn snapshot(&self) -> Result<Snapshot, RoomError>;

    /// The file, if the room is in a directory.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The holding that an open file [keeps](Holding::keep_by). Only rooms with a
    /// [`file`](Backend::file) support it.
    ///
    /// # Errors
    /// The errors of the backend.
    #[cfg(unix)]
    fn kept_by(&self, descriptor: BorrowedFd<'_>) -> Result<Option<Kept>, RoomError> {
        _ = descriptor;
        Err(missing(KEPT))
    }

    /// Leaves the holding that an open file keeps. With `repaired`, it first acknowledges the
    /// deaths that were reported to this holding. Returns `false` if the file keeps no holding.
    ///
    /// # Errors
    /// The errors of the backend.
    #[cfg(unix)]
    fn leave_kept(&self, descriptor: BorrowedFd<'_>, repaired: bool) -> Result<bool, RoomError> {
        _ = (descriptor, repaired);
        Err(missing(KEPT))
    }
}

/// A feature that only rooms in a directory have.
#[cfg(unix)]
pub(crate) const KEPT: &str = "a holding that an open file keeps";

/// The result of [`Backend::submit`].
pub enum Submitted {
    /// The request was granted.
    Granted(Box<dyn Holding>),
    /// The request waits.
    Waiting(Box<dyn Pending>),
}

/// A request in the queue. Dropping it withdraws the request. If it was granted in the meantime,
/// dropping it leaves the room.
pub trait Pending: Send {
    /// The identifier of the waiter in snapshots. The holder keeps it.
    fn holder(&self) -> HolderId;

    /// Waits for the grant, at most until `until`. Returns `None` if there is no grant at that
    /// time. The caller checks the deadline of the request. It is not called again after a grant or
    /// an error.
    ///
    /// # Errors
    /// If the request is no longer in the queue and will not be granted.
    fn wait(&mut self, until: Option<Instant>) -> Result<Option<Box<dyn Holding>>, RoomError>;

    /// As [`wait`](Pending::wait), but for tasks. It wakes the task when the state changes, and
    /// when the deadline of the request passes. Then it returns [`RoomError::TimedOut`].
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Box<dyn Holding>, RoomError>>;
}

/// The right of one holder to be inside. Dropping it leaves the room.
///
/// The methods after [`leave`](Holding::leave) are called only if the [`Capabilities`] include
/// them.
pub trait Holding: Send + Sync {
    /// The epoch of the phase.
    fn epoch(&self) -> u64;

    /// The identifier of the holder in snapshots.
    fn holder(&self) -> HolderId;

    /// All deaths inside that nobody had acknowledged when this holder entered, the oldest first.
    /// The room remembers a limited number.
    fn deaths(&self) -> Vec<Recovered>;

    /// A watch of this holding. It outlives the holding.
    fn watch(&self) -> Box<dyn Watch>;

    /// Leaves the room, and reports a failure.
    ///
    /// # Errors
    /// [`RoomError::Lost`] if the holding had already ended.
    fn leave(self: Box<Self>) -> Result<(), RoomError>;

    /// Acknowledges the deaths that were reported to this holder: their damage is repaired, and
    /// they are not reported again. Later deaths are.
    ///
    /// # Errors
    /// The errors of the backend.
    fn acknowledge(&self) -> Result<(), RoomError> {
        Err(missing("acknowledging deaths"))
    }

    /// Turns a holder that is alone into a holder of `session`, which others may join. It does not
    /// queue, and keeps the epoch.
    ///
    /// # Errors
    /// The errors of the backend.
    fn downgrade(&self, session: &str) -> Result<(), RoomError> {
        _ = session;
        Err(missing("downgrading"))
    }

    /// Leaves and queues in one step. No other request is admitted in between. The order is that
    /// of a new request.
    ///
    /// # Errors
    /// As [`Backend::submit`]. Also after an error the room has been left.
    fn switch(self: Box<Self>, request: &Request<'_>) -> Result<Submitted, RoomError> {
        _ = request;
        Err(missing("switching"))
    }

    /// Makes this holder alone if it is the only one inside, and returns whether it is.
    ///
    /// # Errors
    /// The errors of the backend.
    fn try_alone(&self) -> Result<bool, RoomError> {
        Err(missing("being alone"))
    }

    /// The session that the room is set up for. The room forgets it when a phase with another name
    /// begins, also if that phase is alone.
    ///
    /// # Errors
    /// The errors of the backend.
    fn prepared(&self) -> Result<Option<String>, RoomError> {
        Err(missing("set-up"))
    }

    /// The session that the room was set up for before, unless it was torn down.
    ///
    /// # Errors
    /// The errors of the backend.
    fn previous(&self) -> Result<Option<String>, RoomError> {
        Err(missing("set-up"))
    }

    /// Records the session that the room is set up for. The holder must be alone.
    ///
    /// # Errors
    /// The errors of the backend.
    fn set_prepared(&self, session: Option<&str>) -> Result<(), RoomError> {
        _ = session;
        Err(missing("set-up"))
    }

    /// The descriptor whose lock keeps the holding, if there is one.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Gives up the holding of a dead process. A child that was forked from that process calls it.
    /// Without a descriptor it does nothing: the lease ends.
    fn abandon(&self) {}

    /// Moves the holding to a file that another process has opened. Snapshots show `pid` as the
    /// holder's process. Returns the holder's identifier.
    ///
    /// # Errors
    /// The errors of the backend. After an error the room has been left.
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

/// Reports the standing of a holding. Any thread may use it, also after the holding is gone.
pub trait Watch: Send + Sync {
    /// The standing now.
    fn standing(&self) -> Standing;

    /// Waits until the standing is no longer [`Held`](Standing::Held), at most until `until`. If
    /// there is a lease, it must return **before** others may enter.
    fn wait(&self, until: Option<Instant>) -> Standing;

    /// The time at which the holding ends if the servers stay silent; `None` if it does not depend
    /// on time. For a lost holding: the time from which others may be inside. It may be in the
    /// past.
    fn valid_until(&self) -> Option<Instant> {
        None
    }
}

/// Opens the rooms of one scheme.
pub trait Opener: Send + Sync {
    /// The scheme, such as `etcd`.
    fn scheme(&self) -> &'static str;

    /// Opens a room. Creates it if the options allow it.
    ///
    /// # Errors
    /// The errors of the backend.
    fn open(
        &self,
        place: &Place,
        name: &RoomName,
        options: &RoomOptions,
    ) -> Result<Room, RoomError>;

    /// The names of the rooms in a place.
    ///
    /// # Errors
    /// The errors of the backend.
    fn list(&self, place: &Place) -> Result<Vec<RoomName>, RoomError>;

    /// Removes a room that has no participants.
    ///
    /// # Errors
    /// [`RoomError::InUse`] if a process is inside or waits; [`RoomError::Unsupported`] if such
    /// rooms cannot be removed.
    fn remove(&self, place: &Place, name: &RoomName) -> Result<(), RoomError> {
        _ = (place, name);
        let what = "removing a room".to_owned();
        Err(RoomError::Unsupported { backend: self.scheme(), what })
    }
}
