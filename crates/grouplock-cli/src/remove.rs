//! `grouplock remove`.

use std::process::ExitCode;

use clap::Args;

use crate::exit;
use crate::place::{At, places};

/// Removes a room that nobody uses.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The room.
    room: String,
    #[command(flatten)]
    at: At,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let removed = arguments.at.place().and_then(|place| places().remove(place, &arguments.room));
    match removed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::failed(error),
    }
}
