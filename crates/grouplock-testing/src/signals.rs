//! Signals of programs under test.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Starts the program with default signals, as from a terminal. Tests in the background of a script
/// ignore interrupts, and their programs inherit that.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    // SAFETY: `reset` runs between fork and exec, and calls nothing but `signal`, which may be
    // called there. It allocates nothing.
    unsafe { command.pre_exec(reset) }
}

fn reset() -> io::Result<()> {
    for number in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        // SAFETY: the default action is no function of ours.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    Ok(())
}
