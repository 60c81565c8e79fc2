//! Sleeping on a word that processes share.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use nix::libc;

/// Sleeps while the word is `expected`, at most for `time`. May return early. Returns whether the
/// time was over.
pub(super) fn wait(word: &AtomicU32, expected: u32, time: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // Not FUTEX_PRIVATE: the sleepers are in different processes.
    // SAFETY: the word and the time are alive for the call, and the call writes to neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            &raw const time,
            std::ptr::null::<u32>(),
            0,
        )
    };
    result != 0 && nix::errno::Errno::last() == nix::errno::Errno::ETIMEDOUT
}

/// Wakes at most `count` sleepers.
pub(super) fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word is alive for the call, which only uses its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}
