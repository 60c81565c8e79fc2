//! What this process shows of itself to others.

use std::time::Duration;

use grouplock_room::myself::{self, cut};

use crate::time::Time;
use crate::wire::{About, LONGEST_COMMAND, LONGEST_HOST, LONGEST_USER};

/// The parts that are equal for all requests.
#[derive(Clone, Debug)]
pub(super) struct Myself {
    host: String,
    user: String,
    command: String,
}

impl Myself {
    /// If `command` is given, it replaces our command line.
    pub(super) fn new(command: Option<&str>) -> Self {
        let command = command.map_or_else(myself::command_line, str::to_owned);
        Myself {
            host: cut(myself::host(), LONGEST_HOST),
            user: cut(myself::user(), LONGEST_USER),
            command: cut(command, LONGEST_COMMAND),
        }
    }

    pub(super) fn about(&self, since: Time, priority: i32, expected: Option<Duration>) -> About {
        About {
            host: self.host.clone(),
            user: self.user.clone(),
            pid: std::process::id(),
            command: self.command.clone(),
            since,
            priority,
            expected,
        }
    }
}
