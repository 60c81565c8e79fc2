//! Signals are blocked, and read from a descriptor one after the other.

use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::system::startup;

/// Signals that are passed on to the command. Before the command runs, TSTP stops the wait, WINCH
/// is ignored, and the others end the wait.
const FORWARDED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

/// Signals with which a terminal stops a background job.
const BACKGROUND: [Signal; 2] = [Signal::SIGTTIN, Signal::SIGTTOU];

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) signal: Signal,
    /// Whether the kernel sent it, as for Ctrl-C. Then the whole process group has received it.
    pub(crate) from_terminal: bool,
}

/// The blocked signals and their descriptor.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    set: SigSet,
    /// The signal mask at the start. The command gets it back.
    before: SigSet,
    /// Whether SIGCHLD was ignored at the start. Then the kernel would reap our children without a
    /// report.
    child_ignored: bool,
}

impl Signals {
    /// Takes over the signals that can be passed on. Ignored signals stay ignored, as nohup(1) and
    /// shells need it.
    pub(crate) fn take() -> nix::Result<Self> {
        Self::take_some(&FORWARDED)
    }

    /// Takes over these signals.
    pub(crate) fn take_some(signals: &[Signal]) -> nix::Result<Self> {
        let mut set = SigSet::empty();
        for signal in signals {
            if !is_ignored(*signal)? {
                set.add(*signal);
            }
        }
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut before))?;
        let child_ignored = is_ignored(Signal::SIGCHLD)?;
        dispose(Signal::SIGCHLD, false)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&set, flags)?;
        Ok(Signals { descriptor, set, before, child_ignored })
    }

    /// Also takes over the signals about children and those that stop a job. While the command
    /// runs, this process stops exactly when the command does.
    pub(crate) fn take_children(&mut self) -> nix::Result<()> {
        self.set.add(Signal::SIGCHLD);
        for signal in BACKGROUND {
            if !is_ignored(signal)? {
                self.set.add(signal);
            }
        }
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&self.set), None)?;
        self.descriptor.set_mask(&self.set)
    }

    /// The next signal, if one has arrived.
    pub(crate) fn next(&self) -> nix::Result<Option<Arrival>> {
        let Some(info) = self.descriptor.read_signal()? else { return Ok(None) };
        let number = i32::try_from(info.ssi_signo).unwrap_or_default();
        let signal = Signal::try_from(number)?;
        Ok(Some(Arrival { signal, from_terminal: info.ssi_code == libc::SI_KERNEL }))
    }

    /// Restores the signals as they were at the start. The child calls it between fork and exec.
    pub(crate) fn restore(&self) -> nix::Result<()> {
        dispose(Signal::SIGPIPE, startup::pipe_was_ignored())?;
        dispose(Signal::SIGCHLD, self.child_ignored)?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None)
    }

    /// Stops this process as `signal` would if it was not blocked. Returns when the process
    /// continues.
    pub(crate) fn stop_by(&self, signal: Signal) -> nix::Result<()> {
        let only: SigSet = [signal].into_iter().collect();
        raise(signal)?;
        sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None)?;
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&only), None)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Ends this process by a signal, without a core dump. Returns only if the signal cannot end it, as
/// in the first process of a container.
pub(crate) fn die_by(number: i32) {
    _ = prctl::set_dumpable(false);
    // Realtime signals are never taken over.
    if let Ok(signal) = Signal::try_from(number) {
        _ = dispose(signal, false);
        let only: SigSet = [signal].into_iter().collect();
        _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    }
    // SAFETY: it takes a number. No action of ours is set for any signal, so nothing of ours runs.
    unsafe { libc::raise(number) };
}

/// Ignores a signal, or gives it its default action.
fn dispose(number: Signal, ignore: bool) -> nix::Result<()> {
    let action = if ignore { SigHandler::SigIgn } else { SigHandler::SigDfl };
    // SAFETY: neither action is a function of ours that could do something unsafe.
    unsafe { signal(number, action) }.map(drop)
}

pub(crate) fn is_ignored(signal: Signal) -> nix::Result<bool> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, and the old one is written to memory of its type.
    let asked = unsafe { libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) };
    nix::errno::Errno::result(asked)?;
    // SAFETY: the call succeeded, so it has been written.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}
