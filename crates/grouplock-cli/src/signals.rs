//! Signals, read one after the other instead of breaking in anywhere.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What is meant for the command if it is sent to us, and ends the wait if there is no command yet.
const FORWARDED: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTERM,
    Signal::SIGWINCH,
];

/// What a terminal stops a job with.
const STOPPING: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// A signal that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) signal: Signal,
    /// Whether the kernel sent it, as for Ctrl-C: then the command, which is in our process group, has got it too.
    pub(crate) from_terminal: bool,
}

/// Our signals, blocked and read from a descriptor.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    set: SigSet,
    /// The mask we were started with, which is the command's.
    before: SigSet,
}

impl Signals {
    /// Takes over the signals that can be forwarded. Those that are ignored stay so, as nohup(1) and shells want it.
    pub(crate) fn take() -> nix::Result<Self> {
        let mut set = SigSet::empty();
        for signal in FORWARDED {
            if !is_ignored(signal)? {
                set.add(signal);
            }
        }
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut before))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals { descriptor: SignalFd::with_flags(&set, flags)?, set, before })
    }

    /// Takes over as well what tells about a child, and what stops a job: once there is a command we stop when it
    /// does, neither sooner nor without it.
    pub(crate) fn take_children(&mut self) -> nix::Result<()> {
        self.set.add(Signal::SIGCHLD);
        for signal in STOPPING {
            if !is_ignored(signal)? {
                self.set.add(signal);
            }
        }
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&self.set), None)?;
        self.descriptor.set_mask(&self.set)
    }

    /// The next one, if one has come.
    pub(crate) fn next(&self) -> nix::Result<Option<Arrival>> {
        let Some(info) = self.descriptor.read_signal()? else { return Ok(None) };
        let number = i32::try_from(info.ssi_signo).unwrap_or_default();
        let signal = Signal::try_from(number)?;
        Ok(Some(Arrival { signal, from_terminal: info.ssi_code == libc::SI_KERNEL }))
    }

    /// Gives signals back as they were at the start: for the command, between fork and exec.
    pub(crate) fn restore(&self) -> nix::Result<()> {
        // Rust's runtime ignores SIGPIPE; programs expect to be ended by it.
        // SAFETY: the default action is no function of ours that could do something unsafe.
        unsafe { nix::sys::signal::signal(Signal::SIGPIPE, SigHandler::SigDfl) }?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None)
    }

    /// Stops this process as `signal` would if nobody had blocked it. Returns when it goes on.
    pub(crate) fn stop_by(&self, signal: Signal) -> nix::Result<()> {
        let only: SigSet = [signal].into_iter().collect();
        nix::sys::signal::raise(signal)?;
        sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None)?;
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&only), None)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn is_ignored(signal: Signal) -> nix::Result<bool> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, and the old one is written to memory of its type.
    let asked = unsafe { libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) };
    nix::errno::Errno::result(asked)?;
    // SAFETY: the call succeeded, so it has been written.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}
