//! How long things may be, and how long a connection may be silent.

use std::time::Duration;

use grouplock_room::RoomName;
use thiserror::Error;

/// The longest name of a session, in bytes: as in rooms in a directory.
pub const LONGEST_SESSION: usize = 512;
/// The longest name of a machine, in bytes. Longer ones are cut by who sends them.
pub const LONGEST_HOST: usize = 64;
/// The longest name of a user, in bytes. Longer ones are cut by who sends them.
pub const LONGEST_USER: usize = 64;
/// The longest command line, in bytes. Longer ones are cut by who sends them.
pub const LONGEST_COMMAND: usize = 256;

/// Who has written nothing for so long writes [`Ping`](super::Frame::Ping).
pub const PING_AFTER: Duration = Duration::from_secs(2);
/// Who has read nothing for so long takes the connection for dead.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);

/// Something that arrived is longer than it may be, or is no name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadName {
    /// No room can be called so.
    #[error("{0}")]
    Room(String),
    /// Too long.
    #[error("{what} has {length} bytes, at most {most} are possible")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The longest possible.
        most: usize,
    },
}

pub(super) fn room(name: &str) -> Result<(), BadName> {
    RoomName::new(name).map(drop).map_err(|error| BadName::Room(error.to_string()))
}

pub(super) fn at_most(what: &'static str, text: &str, most: usize) -> Result<(), BadName> {
    let length = text.len();
    if length > most { Err(BadName::TooLong { what, length, most }) } else { Ok(()) }
}
