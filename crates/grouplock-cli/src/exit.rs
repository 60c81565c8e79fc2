//! Exit codes of the commands that deal with rooms. `docs/cli.md` lists them for users.

use std::fmt::Display;
use std::process::ExitCode;

use crate::plain::plain;
use crate::signals;

/// The holding was lost while the command ran, or was not there any more when it should be released.
pub(crate) const LOST: u8 = 123;
/// Not admitted in time. `--conflict-exit-code` replaces it.
pub(crate) const NOT_ADMITTED: u8 = 124;
/// Something failed on our side, wrong arguments included.
pub(crate) const FAILED: u8 = 125;
/// The command was found but cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The command was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// How a command ended, and how we end because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(u8),
    /// The number of the signal.
    Signal(i32),
}

impl Ending {
    /// As shells tell it: 128 + n for signal n.
    pub(crate) fn code(self) -> u8 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }

    /// Ends by the same signal, so that a shell knows that its loop was interrupted; else gives the code.
    pub(crate) fn follow(self) -> ExitCode {
        if let Ending::Signal(number) = self {
            signals::die_by(number);
        }
        ExitCode::from(self.code())
    }
}

/// Says on stderr what is wrong.
pub(crate) fn complain(what: impl Display) {
    eprintln!("grouplock: {}", plain(&what.to_string()));
}

/// Says what failed, and gives the code for it.
pub(crate) fn failed(why: impl Display) -> ExitCode {
    complain(why);
    ExitCode::from(FAILED)
}
