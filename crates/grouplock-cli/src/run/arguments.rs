//! The options of `grouplock run`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use crate::entering::{Entrance, RoomRequest, StderrReport};
use crate::events::Events;

/// What happens to the command if its holding is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLoss {
    /// Send SIGTERM. Send SIGKILL if the command still runs when others may enter, or after 5
    /// seconds.
    Term,
    /// Send SIGKILL at once, also to its descendants.
    Kill,
    /// Only print a warning.
    Warn,
}

/// Runs a command inside a room.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) entrance: Entrance,
    /// Another room and session to be inside at the same time. May be repeated. All options apply
    /// to all rooms. All processes enter rooms in the same order, so that no two wait for each
    /// other.
    #[arg(long = "and", value_names = ["ROOM", "SESSION"], num_args = 2, action = clap::ArgAction::Append,
          conflicts_with_all = ["setup", "teardown"])]
    others: Vec<String>,
    /// Run this text with /bin/sh -c.
    #[arg(
        long = "command",
        short = 'c',
        value_name = "STRING",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    shell: Option<OsString>,
    /// If the room is not set up for the session, first run this text with /bin/sh -c, alone. If it
    /// fails, the command does not run, and the next entrant tries.
    #[arg(long, value_name = "STRING")]
    pub(super) setup: Option<OsString>,
    /// When this is the last holder to leave, run this text with /bin/sh -c before others enter.
    #[arg(long, value_name = "STRING")]
    pub(super) teardown: Option<OsString>,
    /// If the command succeeds, acknowledge the deaths that were reported to it. They are not
    /// reported again. On servers it does nothing.
    #[arg(long)]
    pub(super) repaired: bool,
    /// What to do with the command if the holding is lost.
    #[arg(long, value_enum, value_name = "ACTION", default_value = "term")]
    pub(super) on_loss: OnLoss,
    /// Write events as JSON, one object per line, to stderr or to this file descriptor.
    #[arg(long, value_name = "FD", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    pub(super) json: Option<i32>,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

/// The command that runs a text in a shell.
pub(super) fn shell(text: &OsString) -> Vec<OsString> {
    vec!["/bin/sh".into(), "-c".into(), text.clone()]
}

impl Arguments {
    /// The requests, one for each room.
    pub(super) fn requests(&self) -> Result<Vec<RoomRequest>, super::RunError> {
        let words: Vec<_> = match &self.shell {
            Some(text) => vec![text.to_string_lossy()],
            None => self.command.iter().map(|word| word.to_string_lossy()).collect(),
        };
        let prepares = self.setup.is_some() || self.teardown.is_some();
        let first = RoomRequest { prepares, ..self.entrance.request(&words.join(" "))? };
        let other = |names: &[String]| RoomRequest {
            room: names[0].clone(),
            session: names[1].clone(),
            ..first.clone()
        };
        let others: Vec<RoomRequest> = self.others.chunks_exact(2).map(other).collect();
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// The messages about a request.
    pub(super) fn report(&self, request: &RoomRequest, events: &Events) -> StderrReport {
        StderrReport::new(
            &request.room,
            &request.session,
            self.entrance.verbosity(events.use_stderr()),
        )
    }

    /// The program and its arguments.
    pub(super) fn command(&self) -> Vec<OsString> {
        match &self.shell {
            Some(text) => shell(text),
            None => self.command.clone(),
        }
    }
}
