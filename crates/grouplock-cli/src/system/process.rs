//! Handles to processes. A handle is for one process, never for a later process with the same
//! number.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::unistd::Pid;

/// A handle to a process.
#[derive(Debug)]
pub(crate) struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    pub(crate) fn open(pid: Pid) -> nix::Result<Self> {
        // SAFETY: the call takes two numbers and touches no memory.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        let number = i32::try_from(Errno::result(opened)?).map_err(|_| Errno::EBADF)?;
        // SAFETY: the kernel has just opened this descriptor for us, and no other code knows it.
        Ok(ProcessHandle(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    pub(crate) fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(ProcessHandle)
    }

    /// Sends a signal, by its number.
    pub(crate) fn send(&self, signal: i32) -> nix::Result<()> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: without a siginfo the call touches no memory.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, none, 0)
        };
        Errno::result(sent).map(drop)
    }

    /// Waits until the process has ended, at most that long. Returns whether it has.
    pub(crate) fn ends_within(&self, time: Option<Duration>) -> bool {
        let ready = wait_for(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], time);
        // A descriptor of a process cannot fail.
        ready.is_ok_and(|count| count > 0)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends_within(Some(Duration::ZERO))
    }
}

impl AsFd for ProcessHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until one of the sources is ready, at most that long. Returns how many are.
pub(crate) fn wait_for(sources: &mut [PollFd<'_>], time: Option<Duration>) -> nix::Result<i32> {
    let started = Instant::now();
    loop {
        let left = time.map(|time| time.saturating_sub(started.elapsed()));
        match ppoll(sources, left.map(Into::into), None) {
            Err(Errno::EINTR) => {}
            ready => return ready,
        }
    }
}
