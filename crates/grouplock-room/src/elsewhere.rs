//! In place of rooms in a directory, which only Linux has: there are none, and opening one says so.

use std::path::Path;

use crate::error::RoomError;
use crate::name::RoomName;
use crate::room::{Room, RoomOptions};

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
