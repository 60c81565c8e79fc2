//! Facts that Rust's runtime changes before `main`. They are read before that.

use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use nix::sys::signal::Signal;

use crate::system::signals::is_ignored;

/// Whether SIGPIPE was ignored. The runtime always ignores it.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Whether stdout was closed. The runtime opens /dev/null in its place.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls each function in this section once before `main`, on the only thread.
// The function makes system calls and writes atomics. It needs nothing that `main` prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn ask() {
        // Relaxed, here and below: there is no other thread yet.
        PIPE_IGNORED.store(is_ignored(Signal::SIGPIPE).unwrap_or(false), Ordering::Relaxed);
        // SAFETY: it takes numbers and touches no memory.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_CLOSED.store(flags < 0, Ordering::Relaxed);
    }
    ask
};

pub(crate) fn pipe_was_ignored() -> bool {
    PIPE_IGNORED.load(Ordering::Relaxed)
}

/// Standard output. An error if it was closed, because the output would be lost silently.
pub(crate) fn stdout() -> io::Result<Stdout> {
    if STDOUT_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(io::stdout())
}
