//! What this process says of itself to those who look.

use std::time::Duration;

use nix::unistd::{Uid, User, gethostname};

use crate::time::Time;
use crate::wire::{About, LONGEST_COMMAND, LONGEST_HOST, LONGEST_USER};

/// What does not change from one request to the next.
#[derive(Clone, Debug)]
pub(super) struct Myself {
    host: String,
    user: String,
    command: String,
}

impl Myself {
    /// With `command` instead of our command line, if given.
    pub(super) fn new(command: Option<&str>) -> Self {
        let host = gethostname().map_or_else(|_| "?".into(), |h| h.to_string_lossy().into_owned());
        let uid = Uid::effective();
        let user = User::from_uid(uid).ok().flatten();
        let user = user.map_or_else(|| uid.to_string(), |user| user.name);
        let command = command.map_or_else(command_line, str::to_owned);
        Myself {
            host: cut(host, LONGEST_HOST),
            user: cut(user, LONGEST_USER),
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

/// Our command line with spaces between the arguments.
fn command_line() -> String {
    let mut bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shortens a text to `most` bytes, but not in the middle of a character.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
