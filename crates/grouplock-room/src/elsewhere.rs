//! In place of rooms in a directory, which only Linux has: there are none, and opening one says so.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::backend::{Capabilities, Watch};
use crate::error::RoomError;
use crate::guard::{Recovered, Standing};
use crate::name::RoomName;
use crate::request::Request;
use crate::room::{Room, RoomOptions};
use crate::snapshot::{HolderId, Snapshot};

/// None can be opened.
pub(crate) struct FileRoom(Infallible);

/// Nobody is in one. All that would come of a room is one of these.
pub(crate) struct Never<'r>(&'r Infallible);

pub(crate) type Claimed<'r> = Never<'r>;
pub(crate) type Holding<'r> = Never<'r>;
pub(crate) type Pending<'r> = Never<'r>;
pub(crate) type Place<'r> = Never<'r>;

pub(crate) enum Keeper<'r> {
    Borrowed(&'r Arc<FileRoom>),
    Shared(Arc<FileRoom>),
}

pub(crate) enum Submitted<'r> {
    Granted(Holding<'r>),
    Waiting(Pending<'r>),
}

fn unsupported<T>() -> Result<T, RoomError> {
    Err(RoomError::Unsupported {
        backend: "directory",
        what: "futexes and locks of open files are needed, which only Linux has; use a room on a server".to_owned(),
    })
}

pub(crate) fn open(_: &Path, _: &RoomName, _: &RoomOptions) -> Result<Room, RoomError> {
    unsupported()
}

pub(crate) fn remove(_: &Path, _: &RoomName) -> Result<(), RoomError> {
    unsupported()
}

pub(crate) fn list(_: &Path) -> Result<Vec<RoomName>, RoomError> {
    unsupported()
}

pub(crate) fn capabilities() -> Capabilities {
    Capabilities::least(0)
}

pub(crate) fn submit<'r>(keeper: Keeper<'r>, _: &Request<'_>) -> Result<Submitted<'r>, RoomError> {
    match keeper {
        Keeper::Borrowed(room) => match room.0 {},
        Keeper::Shared(room) => match room.0 {},
    }
}

impl FileRoom {
    pub(crate) fn enter_idle<'r>(self: &'r Arc<Self>, _: &str) -> Option<Claimed<'r>> {
        match self.0 {}
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot, RoomError> {
        match self.0 {}
    }
}

impl<'r> Never<'r> {
    pub(crate) fn place(&self) -> Place<'_> {
        match *self.0 {}
    }

    pub(crate) fn session(&self) -> &'r str {
        match *self.0 {}
    }

    pub(crate) fn epoch(&self) -> u64 {
        match *self.0 {}
    }

    pub(crate) fn holder(&self) -> HolderId {
        match *self.0 {}
    }

    pub(crate) fn recovered(&self) -> Option<Recovered> {
        match *self.0 {}
    }

    pub(crate) fn standing(&self) -> Standing {
        match *self.0 {}
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        match *self.0 {}
    }

    pub(crate) fn leave(self) -> Result<(), RoomError> {
        match *self.0 {}
    }

    pub(crate) fn wait(&mut self, _: Option<Instant>) -> Result<Option<Holding<'r>>, RoomError> {
        match *self.0 {}
    }

    pub(crate) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Result<Holding<'r>, RoomError>> {
        match *self.0 {}
    }
}
