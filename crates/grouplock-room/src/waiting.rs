//! A request that waits, whatever the backend.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::backend::{Pending, Submitted};
use crate::error::RoomError;
use crate::file;
use crate::guard::Guard;
use crate::request::Request;
use crate::room::{Inner, Room};
use crate::snapshot::HolderId;

/// What became of a request.
pub(crate) enum Outcome<'r> {
    Inside(Guard<'r>),
    Waiting(Waiting<'r>),
}

pub(crate) fn submit_borrowed<'r>(
    room: &'r Room,
    request: &Request<'_>,
) -> Result<Outcome<'r>, RoomError> {
    match &room.inner {
        Inner::File(file) => {
            file::submit(file::Keeper::Borrowed(file), request).map(Outcome::from_file)
        }
        Inner::Other(backend) => {
            backend.submit(request).map(|done| Outcome::from_other(request.session, done))
        }
    }
}

/// For tasks.
pub(crate) fn begin(room: &Room, request: &Request<'_>) -> Result<Outcome<'static>, RoomError> {
    match &room.inner {
        Inner::File(_) => submit_owned(room, request),
        Inner::Other(backend) => {
            backend.begin(request).map(|done| Outcome::from_other(request.session, done))
        }
    }
}

pub(crate) fn submit_owned(
    room: &Room,
    request: &Request<'_>,
) -> Result<Outcome<'static>, RoomError> {
    match &room.inner {
        Inner::File(file) => {
            file::submit(file::Keeper::Shared(Arc::clone(file)), request).map(Outcome::from_file)
        }
        Inner::Other(backend) => {
            backend.submit(request).map(|done| Outcome::from_other(request.session, done))
        }
    }
}

impl<'r> Outcome<'r> {
    fn from_file(submitted: file::Submitted<'r>) -> Self {
        match submitted {
            file::Submitted::Granted(holding) => Outcome::Inside(Guard::file(holding)),
            file::Submitted::Waiting(pending) => Outcome::Waiting(Waiting::File(pending)),
        }
    }

    fn from_other(session: &str, submitted: Submitted) -> Self {
        match submitted {
            Submitted::Granted(holding) => Outcome::Inside(Guard::other(session, holding)),
            Submitted::Waiting(pending) => Outcome::Waiting(Waiting::Other(pending)),
        }
    }
}

/// A request in the queue.
pub(crate) enum Waiting<'r> {
    File(file::Pending<'r>),
    Other(Box<dyn Pending>),
}

impl<'r> Waiting<'r> {
    pub(crate) fn holder(&self) -> HolderId {
        match self {
            Waiting::File(pending) => pending.holder(),
            Waiting::Other(pending) => pending.holder(),
        }
    }

    /// `None` if it is not granted by `until`.
    pub(crate) fn wait(
        &mut self,
        until: Option<Instant>,
        session: &str,
    ) -> Result<Option<Guard<'r>>, RoomError> {
        match self {
            Waiting::File(pending) => Ok(pending.wait(until)?.map(Guard::file)),
            Waiting::Other(pending) => {
                Ok(pending.wait(until)?.map(|holding| Guard::other(session, holding)))
            }
        }
    }
}

impl Waiting<'static> {
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        session: &str,
    ) -> Poll<Result<Guard<'static>, RoomError>> {
        match self {
            Waiting::File(pending) => pending.poll(context).map_ok(Guard::file),
            Waiting::Other(pending) => {
                pending.poll(context).map_ok(|holding| Guard::other(session, holding))
            }
        }
    }
}
