//! Limits of lengths, and of silence on a connection.

use std::time::Duration;

use grouplock_room::RoomName;
use thiserror::Error;

/// The longest name of a session, in bytes: as in rooms in a directory.
pub const LONGEST_SESSION: usize = 512;
/// The longest name of a machine, in bytes. The sender shortens longer ones.
pub const LONGEST_HOST: usize = 64;
/// The longest name of a user, in bytes. The sender shortens longer ones.
pub const LONGEST_USER: usize = 64;
/// The longest command line, in bytes. The sender shortens longer ones.
pub const LONGEST_COMMAND: usize = 256;

/// A side that has written nothing for this long writes a keep-alive frame.
pub const PING_AFTER: Duration = Duration::from_secs(2);
/// A side that has read nothing for this long closes the connection.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);

/// A name is bad, or a text is too long.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadName {
    /// It is not the name of a room.
    #[error("{0}")]
    Room(String),
    /// It is too long.
    #[error("{what} has {length} bytes, at most {most} are allowed")]
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
