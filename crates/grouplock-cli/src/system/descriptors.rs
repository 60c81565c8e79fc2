//! Descriptors that this process has inherited.

use std::os::fd::{BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};

/// The numbers of the open descriptors, without the standard streams. The directory that this
/// function reads is among them, and is closed when it returns.
pub(crate) fn open_numbers() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| *number > 2).collect()
}

/// The descriptor that the caller of this program has opened under this number; `None` if it is not
/// open. Call it before this program opens descriptors of its own.
pub(crate) fn inherited(number: RawFd) -> Option<BorrowedFd<'static>> {
    if number < 0 {
        return None;
    }
    // SAFETY: only its flags are read before it is known to be open. This program has opened
    // nothing yet, so an open descriptor is the caller's. It stays open for as long as this process
    // runs.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(descriptor, FcntlArg::F_GETFD).is_ok().then_some(descriptor)
}
