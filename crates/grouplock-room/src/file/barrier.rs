//! A barrier for everybody, paid by the one who needs it.
//!
//! Whoever comes and goes alone writes its state and then reads the gate, with nothing in between that the processor would
//! notice. Whoever takes the gate from it writes the gate, lets the kernel put a full barrier into every running thread
//! that has asked for it, and then reads the state. So at least one of them sees what the other wrote.

use std::io;
use std::sync::OnceLock;

use nix::libc;

/// From `linux/membarrier.h`.
const QUERY: libc::c_int = 0;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> io::Result<libc::c_long> {
    // SAFETY: takes no pointers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Whether this system has it, and lets us use it.
pub(super) fn is_available() -> bool {
    let wanted = libc::c_long::from(GLOBAL_EXPEDITED | REGISTER_GLOBAL_EXPEDITED);
    membarrier(QUERY).is_ok_and(|commands| commands & wanted == wanted)
}

/// Asks that this process takes part from now on. Whether it does.
pub(super) fn join() -> bool {
    static JOINED: OnceLock<bool> = OnceLock::new();
    *JOINED.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED).is_ok())
}

/// A full barrier in all running threads that take part, and in this one.
pub(super) fn everywhere() -> io::Result<()> {
    membarrier(GLOBAL_EXPEDITED).map(drop)
}
