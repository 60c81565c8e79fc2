//! The options of `grouplock run`, and those it shares with `grouplock acquire`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, ValueEnum};
use grouplock_room::{Patience, Policy, RoomError, RoomOptions, parse_duration};

use super::events::Events;
use super::words::{Loudness, Teller};
use crate::exit::{self, complain};
use crate::place::At;
use crate::waiting::{WaitError, Wish};

/// How to enter.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Entrance {
    /// The room: any name. It is created if it does not exist.
    #[arg(value_name = "ROOM")]
    pub(crate) room: String,
    /// The session: any text. Those of the same session are inside together, different sessions exclude each
    /// other.
    #[arg(value_name = "SESSION", required_unless_present = "exclusive")]
    session: Option<String>,
    /// Alone: nobody else is inside, not even the same session. Then SESSION is only a name, and may be left out.
    #[arg(long, short = 'x')]
    exclusive: bool,
    /// At most that many are inside together while this one is.
    #[arg(long, value_name = "NUMBER")]
    at_most: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) at: At,
    /// Do not wait: fail if the room cannot be entered at once.
    #[arg(long, short = 'n', visible_alias = "nonblock", conflicts_with = "timeout")]
    no_wait: bool,
    /// Wait at most that long, such as 5 (seconds), 0.5, 500ms, 2m, 2h30m.
    #[arg(long, short = 'w', value_name = "TIME", visible_alias = "wait", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// If the room has no place for another participant (10,000 have one), wait until it has, instead of failing. Who waits for
    /// a place is not in the line yet.
    #[arg(long, conflicts_with = "no_wait")]
    wait_if_full: bool,
    /// The exit code if the room could not be entered in time.
    #[arg(long, short = 'E', value_name = "CODE", default_value_t = exit::NOT_ADMITTED)]
    pub(crate) conflict_exit_code: u8,
    /// How urgent it is: larger goes first in rooms with the policy `priority`; elsewhere it is only shown.
    #[arg(
        long,
        short = 'p',
        value_name = "NUMBER",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    priority: i32,
    /// How long it will probably take. It is shown to those who wait, and never enforced.
    #[arg(long, short = 'd', value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// What others see of us instead of the command, where that is long.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The order of admission: fifo, batch:PASSES or priority:AGING (such as priority:30s). A new room gets
    /// it (fifo if not given); one that exists must have it.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<Policy>,
    /// Say nothing about waiting, nor that the room could not be entered in time.
    #[arg(long, short = 'q', conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say on stderr what happens, also if it is not a terminal.
    #[arg(long, short = 'v')]
    verbose: bool,
}

/// What becomes of the command if its holding is lost, so that others may be inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLoss {
    /// SIGTERM, and SIGKILL if it has not ended when others may enter, 5 seconds later at most.
    Term,
    /// SIGKILL at once, its descendants as well.
    Kill,
    /// It goes on.
    Warn,
}

/// Runs a command inside a room.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) entrance: Entrance,
    /// Another room and session to be inside at the same time; may be given several times. All options are about all rooms.
    /// They are entered in one order for everybody, so that no two runs wait for each other.
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
    /// If the room is not set up for the session, run this text with /bin/sh -c before, alone. If it fails, the command
    /// does not run and the next one tries.
    #[arg(long, value_name = "STRING")]
    pub(super) setup: Option<OsString>,
    /// When leaving, if nobody else is inside, run this text with /bin/sh -c before others are let in.
    #[arg(long, value_name = "STRING")]
    pub(super) teardown: Option<OsString>,
    /// If the command succeeds, what those who died inside left behind is repaired: nobody is told of them any more.
    #[arg(long)]
    pub(super) repaired: bool,
    /// What to do with the command if the holding is lost.
    #[arg(long, value_enum, value_name = "ACTION", default_value = "term")]
    pub(super) on_loss: OnLoss,
    /// Write what happens as JSON, an object per line, to this file descriptor.
    #[arg(long, value_name = "FD", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    pub(super) json: Option<i32>,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

/// A text as a command.
pub(super) fn shell(text: &OsString) -> Vec<OsString> {
    vec!["/bin/sh".into(), "-c".into(), text.clone()]
}

fn policy(text: &str) -> Result<Policy, RoomError> {
    text.parse()
}

impl Entrance {
    pub(crate) fn loudness(&self, stderr_taken: bool) -> Loudness {
        if self.quiet || stderr_taken {
            Loudness::Quiet
        } else if self.verbose {
            Loudness::Verbose
        } else {
            Loudness::Usual
        }
    }

    /// Why we did not get in. The time is the one that was asked for: we have waited that long, but for a moment not in the queue.
    pub(crate) fn told(&self, error: &WaitError) -> String {
        match (error, self.timeout) {
            (WaitError::Room(RoomError::TimedOut { .. }), Some(time)) => {
                format!("not admitted within {} s", time.as_secs_f64())
            }
            (WaitError::Room(RoomError::Full { .. }), _) if !self.no_wait => {
                format!("{error}; --wait-if-full waits for one")
            }
            _ => error.to_string(),
        }
    }

    /// As a wish, with `shown` as what others see of us.
    pub(crate) fn wish(&self, shown: &str) -> Result<Wish, RoomError> {
        let mut options = RoomOptions::new();
        options.policy = self.policy;
        options.command = Some(self.label.as_deref().unwrap_or(shown).to_owned());
        if !self.quiet
            && let Some(other) = self.at.elsewhere(&self.room)
        {
            complain(format_args!(
                "there is another room `{}` in {other}, which this is not; --at {other} enters that",
                self.room
            ));
        }
        let patience = match self.timeout {
            _ if self.no_wait => Patience::None,
            Some(time) => Patience::for_time(time),
            None => Patience::Unlimited,
        };
        Ok(Wish {
            place: self.at.place()?,
            room: self.room.clone(),
            session: self.session.clone().unwrap_or_default(),
            alone: self.exclusive,
            at_most: self.at_most,
            options,
            priority: self.priority,
            expected: self.duration,
            patience,
            waits_if_full: self.wait_if_full,
        })
    }
}

impl Arguments {
    /// One for each room.
    pub(super) fn wishes(&self) -> Result<Vec<Wish>, super::RunError> {
        let words: Vec<_> = match &self.shell {
            Some(text) => vec![text.to_string_lossy()],
            None => self.command.iter().map(|word| word.to_string_lossy()).collect(),
        };
        let first = self.entrance.wish(&words.join(" ")).map_err(WaitError::from)?;
        let other = |names: &[String]| Wish {
            room: names[0].clone(),
            session: names[1].clone(),
            ..first.clone()
        };
        let others: Vec<Wish> = self.others.chunks_exact(2).map(other).collect();
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// Who tells about the wish.
    pub(super) fn teller(&self, wish: &Wish, events: &Events) -> Teller {
        Teller::new(&wish.room, &wish.session, self.entrance.loudness(events.use_stderr()))
    }

    /// The program and its arguments.
    pub(super) fn command(&self) -> Vec<OsString> {
        match &self.shell {
            Some(text) => shell(text),
            None => self.command.clone(),
        }
    }
}
