//! The options that `run`, `enter` and `acquire` share.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use grouplock_room::{Patience, Policy, RoomError, RoomOptions, parse_duration};

use super::report::Verbosity;
use super::{RoomRequest, WaitError};
use crate::exit::{self, complain};
use crate::place::At;

/// Options of an entry.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Entrance {
    /// The room: any name. It is created if it does not exist.
    #[arg(value_name = "ROOM")]
    pub(crate) room: String,
    /// The session: any text. Holders of the same session are inside together. Different sessions
    /// exclude each other.
    #[arg(value_name = "SESSION", required_unless_present = "exclusive")]
    session: Option<String>,
    /// Enter alone: no other holder is inside, not even of the same session. Then SESSION is only a
    /// name, and may be left out.
    #[arg(long, short = 'x')]
    exclusive: bool,
    /// At most that many holders are inside while this one is.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    at_most: Option<u32>,
    #[command(flatten)]
    pub(crate) at: At,
    /// Do not wait. Fail if the room cannot be entered at once.
    #[arg(long, short = 'n', visible_alias = "nonblock", conflicts_with = "timeout")]
    no_wait: bool,
    /// Wait at most that long, such as 5 (seconds), 0.5, 500ms, 2m, 2h30m.
    #[arg(long, short = 'w', value_name = "TIME", visible_alias = "wait",
          value_parser = parse_duration, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Wait for a slot if the room is full (it has 10,000 slots by default). Otherwise a full room
    /// is an error. A request that waits for a slot is not in the queue yet.
    #[arg(long, conflicts_with = "no_wait")]
    wait_if_full: bool,
    /// The exit code if the room was not entered in time.
    #[arg(long, short = 'E', value_name = "CODE", default_value_t = exit::NOT_ADMITTED,
          allow_negative_numbers = true)]
    conflict_exit_code: u8,
    /// The urgency. In rooms with the policy `priority`, larger numbers go first. Other rooms only
    /// show it.
    #[arg(
        long,
        short = 'p',
        value_name = "NUMBER",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    priority: i32,
    /// How long it will probably take. Others see it. It is not enforced.
    #[arg(long, short = 'd', value_name = "TIME", value_parser = parse_duration,
          allow_negative_numbers = true)]
    duration: Option<Duration>,
    /// A text that others see instead of the command.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The order of admission: fifo, batch:PASSES or priority:AGING (such as priority:30s). A new
    /// room gets it; the default is fifo. An existing room must have it.
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// Print nothing about the wait, and no message if the room was not entered in time.
    #[arg(long, short = 'q', conflicts_with = "verbose")]
    quiet: bool,
    /// Print messages to stderr, even if stderr is not a terminal.
    #[arg(long, short = 'v')]
    verbose: bool,
}

impl Entrance {
    pub(crate) fn verbosity(&self, stderr_taken: bool) -> Verbosity {
        if self.quiet || stderr_taken {
            Verbosity::Quiet
        } else if self.verbose {
            Verbosity::Verbose
        } else {
            Verbosity::Usual
        }
    }

    /// The exit code and the message for a failed entry. The message shows the timeout of the
    /// options. The time in the queue is a little shorter.
    pub(crate) fn failure(&self, error: &WaitError) -> (u8, String) {
        let code = if error.is_conflict() { self.conflict_exit_code } else { exit::FAILED };
        let message = match (error, self.timeout) {
            (WaitError::Room(RoomError::TimedOut { .. }), Some(time)) => {
                format!("not admitted within {} s", time.as_secs_f64())
            }
            (WaitError::Room(RoomError::Full { .. }), _) if !self.no_wait => {
                format!("{error}; --wait-if-full waits for a slot")
            }
            _ => error.to_string(),
        };
        (code, message)
    }

    /// Whether `--quiet` suppresses the message for a failed entry.
    pub(crate) fn is_silent_about(&self, error: &WaitError) -> bool {
        self.quiet && error.is_conflict()
    }

    /// The request. Snapshots show `shown` as the command, unless there is a label.
    pub(crate) fn request(&self, shown: &str) -> Result<RoomRequest, RoomError> {
        let mut options = RoomOptions::new();
        options.policy = self.policy;
        options.command = Some(self.label.as_deref().unwrap_or(shown).to_owned());
        if !self.quiet
            && let Some(other) = self.at.elsewhere(&self.room)
        {
            complain(format_args!(
                "this is not the room `{}` in {other}; --at {other} enters that one",
                self.room
            ));
        }
        let patience = match self.timeout {
            _ if self.no_wait => Patience::None,
            Some(time) => Patience::for_time(time),
            None => Patience::Unlimited,
        };
        Ok(RoomRequest {
            place: self.at.place()?,
            room: self.room.clone(),
            session: self.session.clone().unwrap_or_default(),
            alone: self.exclusive,
            at_most: self.at_most.and_then(NonZeroU32::new),
            prepares: false,
            options,
            priority: self.priority,
            expected: self.duration,
            patience,
            waits_if_full: self.wait_if_full,
        })
    }
}
