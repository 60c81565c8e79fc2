//! The guardian keeps the room closed if grouplock is killed while the command runs.
//!
//! When a process dies, the kernel drops its locks first. A signal at the death of the parent would
//! reach the command too late. It would also separate the command from its children, so that they
//! could not be found. So a second process, the guardian, shares the open descriptors, and with
//! them the holding. It only waits. If grouplock says goodbye, the guardian ends. If grouplock
//! disappears without a goodbye, the guardian kills the command and all its descendants, waits
//! until they are dead, and then gives up the holding.
//!
//! If both are killed at once, the command still has the
//! [descriptor](grouplock_room::Guard::descriptor) of the room, and with it the holding.
//!
//! The guardian is in our process group and blocks all signals. A signal to the whole group stays
//! [pending](Guardian::was_sent_to_group) in it. That distinguishes it from a signal to grouplock
//! alone.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use grouplock_room::Guard;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getppid, pipe2, read, write};

use super::RunError;
use super::child::{Child, end};
use super::holdings::Holdings;
use crate::system::descendants;
use crate::system::proc::parent_of;
use crate::system::process::{ProcessHandle, wait_for};

/// The guardian, as grouplock sees it.
pub(super) struct Guardian {
    pid: Pid,
    /// The kernel closes it when grouplock dies.
    pipe: OwnedFd,
}

/// The messages of the pipe, four bytes each: the number of the command, or `GOODBYE`, or `FORGET`
/// with the number of a signal.
const GOODBYE: u32 = 0;
const FORGET: u32 = 1 << 31;

/// The longest wait until the guardian has forgotten a signal, in milliseconds. A stopped guardian
/// does not answer.
const PATIENCE: u32 = 1000;

impl Guardian {
    /// Starts a guardian: for a command that runs already, or for one that will introduce itself.
    pub(super) fn start(command: Option<&Child>, holdings: &Holdings) -> Result<Self, RunError> {
        let what = "start a guardian for the command";
        let (listen, pipe) = pipe2(OFlag::O_CLOEXEC).map_err(RunError::system(what))?;
        // SAFETY: the child makes system calls and small allocations, which the C libraries of
        // Linux keep possible in a child even if other threads were allocating; it ends without
        // running our destructors.
        match unsafe { fork() }.map_err(RunError::system(what))? {
            ForkResult::Parent { child } => Ok(Guardian { pid: child, pipe }),
            ForkResult::Child => {
                // Otherwise the pipe would never be closed.
                drop(pipe);
                guard(command, holdings, &listen)
            }
        }
    }

    fn send(&self, word: u32) -> bool {
        write(self.pipe.as_fd(), &word.to_ne_bytes()) == Ok(4)
    }

    /// Tells the guardian the number of the command. The child calls it before exec. It keeps the
    /// pipe open until exec. So if grouplock dies in between, the guardian does not conclude that
    /// there is no command.
    pub(super) fn introduce(&self, command: u32) -> bool {
        self.send(command)
    }

    /// Whether a signal that we received was sent to our whole process group.
    ///
    /// The kernel signals the youngest process of a group first. So the guardian received it before
    /// us.
    pub(super) fn was_sent_to_group(&self, signal: Signal) -> bool {
        if !self.is_pending(signal) {
            return false;
        }
        // Otherwise the next signal to grouplock alone would look like this one. If the guardian is
        // gone, a new one has no pending signals.
        if self.send(FORGET | signal as u32) {
            for _ in 0..PATIENCE {
                if !self.is_pending(signal) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        true
    }

    fn is_pending(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.is_some_and(|mask| mask & 1 << (signal as i32 - 1) != 0)
    }

    /// Ends the guardian, and waits for its end.
    pub(super) fn dismiss(self) {
        // It fails if the guardian is gone.
        self.send(GOODBYE);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether it has ended. Then it is also reaped.
    pub(super) fn is_gone(&self) -> bool {
        !matches!(waitpid(self.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
    }
}

/// In the guardian.
fn guard(command: Option<&Child>, holdings: &Holdings, listen: &OwnedFd) -> ! {
    // Signals to the job or from the terminal are not for the guardian.
    _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // `pkill` with our name must not hit it.
    _ = prctl::set_name(c"room-guardian");
    let introduced;
    let (pid, handle) = if let Some(Child { pid, handle }) = command {
        (*pid, handle)
    } else {
        introduced = introduction(listen);
        // There will be no command, or it has already ended.
        let Some((pid, handle)) = &introduced else { end(0) };
        (*pid, handle)
    };
    // The guardian also ends with the command: then nothing is left to guard.
    if is_orphaned(handle, listen) {
        descendants::kill(pid, handle);
        // A process that is no longer a descendant may still have the descriptor.
        holdings.guards().for_each(Guard::abandon);
    }
    end(0)
}

/// The next message; `None` if the pipe is closed. All signals are blocked, so nothing interrupts
/// it.
fn hear(listen: &OwnedFd) -> Option<u32> {
    let mut word = [0; 4];
    (read(listen.as_fd(), &mut word) == Ok(4)).then(|| u32::from_ne_bytes(word))
}

/// Removes a pending signal, if the message says so. Otherwise returns the message.
fn heed(word: u32) -> Option<u32> {
    if word & FORGET == 0 {
        return Some(word);
    }
    let signal =
        i32::try_from(word & !FORGET).ok().and_then(|number| Signal::try_from(number).ok());
    let only: SigSet = signal.into_iter().collect();
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    if let Ok(pending) = SignalFd::with_flags(&only, flags) {
        _ = pending.read_signal();
    }
    None
}

/// Waits until the command introduces itself.
fn introduction(listen: &OwnedFd) -> Option<(Pid, ProcessHandle)> {
    let number = loop {
        match heed(hear(listen)?) {
            Some(GOODBYE) => return None,
            Some(number) => break i32::try_from(number).ok()?,
            None => {}
        }
    };
    let handle = ProcessHandle::open(Pid::from_raw(number)).ok()?;
    // If the command has ended and was reaped, another process may have its number. That process
    // has another parent. If our parent dies between the two calls, both processes get the same new
    // parent, so it tries twice.
    let sibling = (0..2).any(|_| parent_of(number) == Some(getppid().as_raw()));
    sibling.then_some((Pid::from_raw(number), handle))
}

/// Waits until the command has ended, grouplock says goodbye, or the pipe closes. Returns whether
/// the pipe closed.
fn is_orphaned(command: &ProcessHandle, listen: &OwnedFd) -> bool {
    loop {
        let mut sources = [
            PollFd::new(listen.as_fd(), PollFlags::POLLIN),
            PollFd::new(command.as_fd(), PollFlags::POLLIN),
        ];
        if wait_for(&mut sources, None).is_err() {
            // It cannot happen. But then the command must not be left alone.
            return true;
        }
        if sources[0].any() == Some(true) {
            match hear(listen).map(heed) {
                Some(None) => {}
                Some(Some(_)) => return false,
                None => return true,
            }
        } else if sources[1].any() == Some(true) {
            return false;
        }
    }
}
