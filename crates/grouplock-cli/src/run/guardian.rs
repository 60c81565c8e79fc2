//! What keeps the room closed if we are killed while the command runs.
//!
//! The kernel drops our locks when we die, and nothing that it does for our children then comes before that: a signal
//! at the death of the parent would reach the command too late, and would separate its children from it, so that nobody finds
//! them. So a second process shares our open descriptors, and with them the place in the room, and does nothing but wait. If
//! we say goodbye it ends. If we just disappear it kills the command and all its descendants, waits until they are dead, and
//! only then gives the place back.
//!
//! If both of us are killed at once, the command still has the [descriptor](grouplock_room::Guard::descriptor) of the
//! room, and with it the place.
//!
//! The guardian is in our process group and blocks all signals. So those that are sent to the whole group are
//! [pending](Guardian::has_got) there, which tells them from those that are sent to us alone.

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

use super::child::{Child, end};
use super::inside::Inside;
use super::{RunError, family};
use crate::handle::{Handle, wait_for};

/// The guardian, as its ward sees it.
pub(super) struct Guardian {
    pid: Pid,
    /// Closed by our death.
    line: OwnedFd,
}

/// What is said on the line, in one piece each: the number of the command, or this, or the number of a signal to forget with the
/// top bit set.
const GOODBYE: u32 = 0;
const FORGET: u32 = 1 << 31;

/// How long it may take the guardian to forget a signal, in steps of a millisecond. It is not waited for if it is stopped.
const PATIENCE: u32 = 1000;

impl Guardian {
    /// Posts one, for a command that will tell it who it is or for one that runs already.
    pub(super) fn post(command: Option<&Child>, inside: &Inside) -> Result<Self, RunError> {
        let what = "post a guardian for the command";
        let (listen, line) = pipe2(OFlag::O_CLOEXEC).map_err(RunError::system(what))?;
        // SAFETY: the child makes system calls and small allocations, which the C libraries of Linux keep possible
        // in a child even if other threads were allocating; it ends without running our destructors.
        match unsafe { fork() }.map_err(RunError::system(what))? {
            ForkResult::Parent { child } => Ok(Guardian { pid: child, line }),
            ForkResult::Child => {
                // Else it would never be closed.
                drop(line);
                watch_over(command, inside, &listen)
            }
        }
    }

    fn say(&self, word: u32) -> bool {
        write(self.line.as_fd(), &word.to_ne_bytes()) == Ok(4)
    }

    /// In the command's process, before it is the command: says who it is. The line stays open until it is the
    /// command, so if we die meanwhile the guardian does not believe that there is none.
    pub(super) fn is_told_of(&self, command: u32) -> bool {
        self.say(command)
    }

    /// Whether a signal that has come to us was sent to our whole process group.
    ///
    /// The kernel signals the youngest of a group first. So the guardian has got it before we have.
    pub(super) fn has_got(&self, signal: Signal) -> bool {
        if !self.is_pending(signal) {
            return false;
        }
        // Else the next one that is sent to us alone would seem to be this one. If the guardian is gone, the next begins
        // with nothing.
        if self.say(FORGET | signal as u32) {
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

    /// Lets it go, and returns when it is gone.
    pub(super) fn dismiss(self) {
        // If it is gone already there is nobody to tell.
        self.say(GOODBYE);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether it has ended. Then it is reaped.
    pub(super) fn is_gone(&self) -> bool {
        !matches!(waitpid(self.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
    }
}

/// In the guardian.
fn watch_over(command: Option<&Child>, inside: &Inside, listen: &OwnedFd) -> ! {
    // Nothing that is sent to the job or comes from the terminal is meant for it.
    _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // Whoever kills all processes with our name shall not hit it.
    _ = prctl::set_name(c"room-guardian");
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
        // Somebody who has left the family may still have the descriptor.
        inside.guards().for_each(Guard::abandon);
    }
    end(0)
}

/// The next word on the line; `None` if it is broken. All signals are blocked, so nothing interrupts this.
fn hear(listen: &OwnedFd) -> Option<u32> {
    let mut word = [0; 4];
    (read(listen.as_fd(), &mut word) == Ok(4)).then(|| u32::from_ne_bytes(word))
}

/// Lets go of a signal that is pending here, if the word says so; else gives the word back.
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

/// Waits for the command to say who it is.
fn introduction(listen: &OwnedFd) -> Option<(Pid, Handle)> {
    let number = loop {
        match heed(hear(listen)?) {
            Some(GOODBYE) => return None,
            Some(number) => break i32::try_from(number).ok()?,
            None => {}
        }
    };
    let handle = Handle::open(Pid::from_raw(number)).ok()?;
    // If it has ended and was reaped since it wrote, the number may be somebody else's by now: who has another parent. If
    // ours dies between the two questions, both get the same new one.
    let sibling = (0..2).any(|_| family::parent_of(number) == Some(getppid().as_raw()));
    sibling.then_some((Pid::from_raw(number), handle))
}

/// Waits until the command has ended or we are not needed any more, or until the line breaks: then true.
fn is_orphaned(command: &Handle, listen: &OwnedFd) -> bool {
    loop {
        let mut sources = [
            PollFd::new(listen.as_fd(), PollFlags::POLLIN),
            PollFd::new(command.as_fd(), PollFlags::POLLIN),
        ];
        match wait_for(&mut sources, None) {
            Err(Errno::EINTR) => continue,
            // Nothing that can happen; but if it does, the command must not be left alone.
            Err(_) => return true,
            Ok(_) => {}
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
