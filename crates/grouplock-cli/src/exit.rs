//! Exit codes of the commands that deal with rooms. `docs/cli.md` lists them for users.

use std::fmt::Display;
use std::process::ExitCode;

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

/// How a shell tells that a signal was the end.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Says what failed, and gives the code for it.
pub(crate) fn failed(why: impl Display) -> ExitCode {
    eprintln!("grouplock: {why}");
    ExitCode::from(FAILED)
}
