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
        Some(room) => places().remove(&place, room).map(|()| Vec::new()),
        None => remove_unused(&place),
    });
    match removed {
        Ok(names) => print(&names.concat()),
        Err(error) => exit::failed(error),
    }
}

/// Returns the names of the removed rooms, each with a line break.
fn remove_unused(place: &Place) -> Result<Vec<String>, RoomError> {
    let mut removed = Vec::new();
    for name in places().list(place)? {
        match places().remove(place, name.as_str()) {
            Ok(()) => removed.push(sanitized(name.as_str()) + "\n"),
            Err(RoomError::InUse { .. } | RoomError::NoSuchRoom { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}
