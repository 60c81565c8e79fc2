//! Replaces rooms in a directory on systems other than Linux. Opening one is an error.

use std::path::Path;

use crate::error::RoomError;
use crate::name::RoomName;
use crate::room::{Room, RoomOptions};

fn unsupported<T>() -> Result<T, RoomError> {
    Err(RoomError::Unsupported {
        backend: "directory",
        what: "they need futexes and locks of open files, which only Linux has; use a room on a \
               server"
            .to_owned(),
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
