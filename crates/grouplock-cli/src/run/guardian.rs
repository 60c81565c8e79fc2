//! What keeps the room closed if we are killed while the command runs.
//!
//! The kernel drops our locks when we die, and nothing that it does for our children then comes before that: a signal
//! at the death of the parent would reach the command too late. So a second process shares our open descriptors,
//! and with them the place in the room, and does nothing but wait. If we say goodbye it ends. If we just
//! disappear it kills the command and all its descendants, waits until they are dead, and only then ends, which gives
//! the place back. The command itself inherits nothing.

use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, setsid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, getppid, pidfd_open};

use super::child::{Child, end};
use super::{RunError, family};

/// The guardian, as its ward sees it.
pub(super) struct Guardian {
    pid: Pid,
    /// Closed by our death.
    line: OwnedFd,
}

impl Guardian {
    /// Posts one, for a command that will tell it who it is or for one that runs already.
    pub(super) fn post(command: Option<&Child>) -> Result<Self, RunError> {
        let what = "post a guardian for the command";
        let (listen, line) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| RunError::System { what, source: errno.into() })?;
        // SAFETY: the child makes system calls and small allocations, which the C libraries of Linux keep possible
        // in a child even if other threads were allocating; it ends without running our destructors.
        match unsafe { fork() }.map_err(RunError::system(what))? {
            ForkResult::Parent { child } => Ok(Guardian { pid: child, line }),
            ForkResult::Child => {
                // Else it would never be closed.
                drop(line);
                guard(command, &listen)
            }
        }
    }

    /// In the command's process, before it is the command: says who it is. The line stays open until it is the
    /// command, so if we die meanwhile the guardian does not believe that there is none.
    pub(super) fn is_told_of(&self, command: u32) -> bool {
        rustix::io::write(self.line.as_fd(), &command.to_ne_bytes()) == Ok(4)
    }

    /// Lets it go, and returns when it is gone.
    pub(super) fn dismiss(self) {
        // If it is gone already there is nobody to tell.
        _ = rustix::io::write(self.line.as_fd(), &[1]);
        while waitpid(self.pid, None) == Err(nix::errno::Errno::EINTR) {}
    }

    /// Whether it has ended. Then it is reaped.
    pub(super) fn is_gone(&self) -> bool {
        !matches!(waitpid(self.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
    }
}

/// In the guardian.
fn guard(command: Option<&Child>, listen: &OwnedFd) -> ! {
    // Nothing that is sent to the job or comes from the terminal is meant for it.
    _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    _ = setsid();
    let introduced;
    let (pid, handle) = if let Some(Child { pid, handle }) = command {
        (*pid, handle)
    } else {
        introduced = introduction(listen);
        // There will be no command, or it has ended already.
        let Some((pid, handle)) = &introduced else { end(0) };
        (*pid, handle)
    };
    // It ends with the command as well: then there is nothing left to guard, and we need not wait for it to hear us.
    if is_orphaned(handle, listen) {
        family::kill(pid, handle);
    }
    end(0)
}

/// Waits for the command to say who it is.
fn introduction(listen: &OwnedFd) -> Option<(Pid, OwnedFd)> {
    let mut number = [0; 4];
    // All signals are blocked, so nothing interrupts this. What the command writes comes in one piece.
    if rustix::io::read(listen.as_fd(), &mut number) != Ok(4) {
        return None;
    }
    let number = i32::try_from(u32::from_ne_bytes(number)).ok()?;
    let handle = pidfd_open(rustix::process::Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
    // If it has ended and was reaped since it wrote, the number may be somebody else's by now: who has another parent. If
    // ours dies between the two questions, both get the same new one.
    let ours = || getppid().map(|parent| parent.as_raw_nonzero().get());
    let sibling = (0..2).any(|_| ours().is_some() && family::parent_of(number) == ours());
    sibling.then_some((Pid::from_raw(number), handle))
}

/// Waits until the command has ended or we are not needed any more, or until the line breaks: then true.
fn is_orphaned(command: &OwnedFd, listen: &OwnedFd) -> bool {
    loop {
        let mut sources = [PollFd::new(listen, PollFlags::IN), PollFd::new(command, PollFlags::IN)];
        match poll(&mut sources, None) {
            Err(rustix::io::Errno::INTR) => continue,
            // Nothing that can happen; but if it does, the command must not be left alone.
            Err(_) => return true,
            Ok(_) => {}
        }
        if !sources[0].revents().is_empty() {
            return rustix::io::read(listen.as_fd(), &mut [0; 1]) != Ok(1);
        }
        if !sources[1].revents().is_empty() {
            return false;
        }
    }
}
