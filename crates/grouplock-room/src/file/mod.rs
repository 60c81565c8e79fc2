//! Rooms in a directory: stub while the interface settles.
use std::marker::PhantomData;
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

fn unfinished<T>() -> Result<T, RoomError> {
    Err(RoomError::Unsupported { backend: "file", what: "not finished yet".to_owned() })
}

pub(crate) fn open(_: &Path, _: &RoomName, _: &RoomOptions) -> Result<Room, RoomError> {
    unfinished()
}
pub(crate) fn list(_: &Path) -> Result<Vec<RoomName>, RoomError> {
    unfinished()
}
pub(crate) fn remove(_: &Path, _: &RoomName) -> Result<(), RoomError> {
    unfinished()
}
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        batch: true,
        priority: true,
        leases: false,
        tells_deaths: true,
        longest_session: 512,
    }
}
pub(crate) struct FileRoom;
impl FileRoom {
    pub(crate) fn enter_idle(&self, _: &str) -> Option<Holding<'_>> {
        None
    }
    pub(crate) fn snapshot(&self) -> Result<Snapshot, RoomError> {
        unfinished()
    }
}
#[allow(dead_code)]
pub(crate) enum Keeper<'r> {
    Borrowed(&'r FileRoom),
    Shared(Arc<FileRoom>),
}
#[allow(dead_code)]
pub(crate) enum Submitted<'r> {
    Granted(Holding<'r>),
    Waiting(Pending<'r>),
}
pub(crate) fn submit<'r>(_: Keeper<'r>, _: &Request<'_>) -> Result<Submitted<'r>, RoomError> {
    unfinished()
}
pub(crate) struct Holding<'r>(PhantomData<&'r ()>);
impl Holding<'_> {
    pub(crate) fn session(&self) -> &'static str {
        ""
    }
    pub(crate) fn epoch(&self) -> u64 {
        0
    }
    pub(crate) fn holder(&self) -> HolderId {
        HolderId::new("")
    }
    pub(crate) fn recovered(&self) -> Option<Recovered> {
        None
    }
    pub(crate) fn standing(&self) -> Standing {
        Standing::Left
    }
    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        unimplemented!()
    }
    pub(crate) fn leave(self) -> Result<(), RoomError> {
        unfinished()
    }
}
pub(crate) struct Pending<'r>(PhantomData<&'r ()>);
impl<'r> Pending<'r> {
    pub(crate) fn holder(&self) -> HolderId {
        HolderId::new("")
    }
    pub(crate) fn wait(&mut self, _: Option<Instant>) -> Result<Option<Holding<'r>>, RoomError> {
        unfinished()
    }
    pub(crate) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Result<Holding<'r>, RoomError>> {
        Poll::Ready(unfinished())
    }
}
