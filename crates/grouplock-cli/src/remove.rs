//! `grouplock remove`.

use std::process::ExitCode;

use clap::Args;
use grouplock_room::{Place, RoomError};

use crate::exit;
use crate::place::{At, places};
use crate::plain::{plain, print};

/// Removes a room that nobody uses.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The room.
    #[arg(required_unless_present = "unused", conflicts_with = "unused")]
    room: Option<String>,
    /// All rooms of the place that nobody uses. Their names are printed.
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

/// Their names, a line for each.
fn remove_unused(place: &Place) -> Result<Vec<String>, RoomError> {
    let mut removed = Vec::new();
    for name in places().list(place)? {
        match places().remove(place, name.as_str()) {
            Ok(()) => removed.push(plain(name.as_str()) + "\n"),
            Err(RoomError::InUse { .. } | RoomError::NoSuchRoom { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}
