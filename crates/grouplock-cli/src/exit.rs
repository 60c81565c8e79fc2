//! Exit codes. `docs/cli.md` lists them for users.

use std::fmt::Display;
use std::process::ExitCode;

use crate::output::sanitized;
use crate::system::signals;

/// The holding was lost while the command ran, or it had ended before it was to be left.
pub(crate) const LOST: u8 = 123;
/// Not admitted in time. `--conflict-exit-code` replaces it.
pub(crate) const NOT_ADMITTED: u8 = 124;
/// grouplock itself failed. Wrong arguments are included.
pub(crate) const FAILED: u8 = 125;
/// The command was found but cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The command was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// How a command ended. grouplock ends in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(u8),
    /// The number of the signal.
    Signal(i32),
}

impl Ending {
    /// The code that shells show: 128 + n for signal n.
    pub(crate) fn code(self) -> u8 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }

    /// Ends this process by the same signal, so that a shell knows that its loop was interrupted.
    /// Otherwise returns the code.
    pub(crate) fn follow(self) -> ExitCode {
        if let Ending::Signal(number) = self {
            signals::die_by(number);
        }
        ExitCode::from(self.code())
    }
}

/// Writes a message to stderr.
pub(crate) fn complain(what: impl Display) {
    eprintln!("grouplock: {}", sanitized(&what.to_string()));
}

/// Reports an error, if there is one. The exit code is [`LOST`] if the error says that the holding
/// has ended.
pub(crate) fn code_of<E: Display>(
    result: Result<(), E>,
    is_lost: impl FnOnce(&E) -> bool,
) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    complain(&error);
    ExitCode::from(if is_lost(&error) { LOST } else { FAILED })
}

/// Reports a failure. Returns the exit code for it.
pub(crate) fn failed(why: impl Display) -> ExitCode {
    complain(why);
    ExitCode::from(FAILED)
}
