//! `grouplock remove`.

use std::process::ExitCode;

use clap::Args;
use grouplock_room::{Place, RoomError};

use crate::exit;
use crate::output::{print, sanitized};
use crate::place::{At, places};

/// Removes a room that has no holders and no waiters.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The room.
    #[arg(required_unless_present = "unused", conflicts_with = "unused")]
    room: Option<String>,
    /// Remove all such rooms of the place, and print their names.
    #[arg(long)]
    unused: bool,
    #[command(flatten)]
    at: At,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let removed = arguments.at.place().and_then(|place| match &arguments.room {
        Some(room) => places().remove(&place, room).map(|()| ExitCode::SUCCESS),
        None => remove_unused(&place),
    });
    removed.unwrap_or_else(exit::failed)
}

/// Prints the names of the removed rooms. A room that cannot be removed does not keep the others.
fn remove_unused(place: &Place) -> Result<ExitCode, RoomError> {
    let (mut removed, mut failed) = (String::new(), None);
    for name in places().list(place)? {
        match places().remove(place, name.as_str()) {
            Ok(()) => removed += &(sanitized(name.as_str()) + "\n"),
            Err(RoomError::InUse { .. } | RoomError::NoSuchRoom { .. }) => {}
            Err(error @ RoomError::Unsupported { .. }) => return Err(error),
            Err(error) => failed = Some(exit::failed(format_args!("{name}: {error}"))),
        }
    }
    let printed = print(&removed);
    Ok(failed.unwrap_or(printed))
}
