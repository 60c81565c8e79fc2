//! The command as a child of ours.
//!
//! It stays in our process group, so that Ctrl-C, Ctrl-Z and the terminal reach it as if we were not there. It tells its
//! [guardian](super::guardian) who it is before it becomes the command: there is no moment at which it runs unguarded.

use std::ffi::{CString, NulError, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, fork};
use rustix::process::{PidfdFlags, pidfd_open};

use super::RunError;
use super::guardian::Guardian;
use crate::exit;
use crate::signals::Signals;

/// A command that can be run without allocating much.
pub(super) struct Prepared {
    words: Vec<CString>,
    environment: Vec<CString>,
}

/// The child.
pub(super) struct Child {
    pub(super) pid: Pid,
    /// Means this child and no later process with its number.
    pub(super) handle: OwnedFd,
}

impl Prepared {
    /// `words` with our environment and `variables`, of which those without a value are removed.
    pub(super) fn new(
        words: Vec<OsString>,
        variables: &[(&str, Option<String>)],
    ) -> Result<Self, NulError> {
        let inherited = std::env::vars_os()
            .filter(|(name, _)| !variables.iter().any(|(ours, _)| name.as_os_str() == *ours))
            .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        let ours = variables.iter().filter_map(|(name, value)| {
            value.as_ref().map(|value| format!("{name}={value}").into_bytes())
        });
        Ok(Prepared {
            environment: inherited.chain(ours).map(CString::new).collect::<Result<_, _>>()?,
            words: words
                .into_iter()
                .map(|word| CString::new(word.into_vec()))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Makes the child.
    pub(super) fn fork(&self, signals: &Signals, guardian: &Guardian) -> Result<Child, RunError> {
        let failed = |source: rustix::io::Errno| RunError::System {
            what: "start the command",
            source: source.into(),
        };
        // SAFETY: what the child does before exec are system calls and small allocations, which the C libraries of
        // Linux keep possible in a child even if other threads were allocating.
        match unsafe { fork() }.map_err(RunError::system("start the command"))? {
            ForkResult::Parent { child } => {
                let number = rustix::process::Pid::from_raw(child.as_raw());
                let number = number.ok_or_else(|| failed(rustix::io::Errno::INVAL))?;
                // Nobody but us can reap it, so the number means our child.
                match pidfd_open(number, PidfdFlags::empty()) {
                    Ok(handle) => Ok(Child { pid: child, handle }),
                    Err(errno) => {
                        // Once we have left, it must not be there any more.
                        _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
                        _ = nix::sys::wait::waitpid(child, None);
                        Err(failed(errno))
                    }
                }
            }
            ForkResult::Child => self.become_command(signals, guardian),
        }
    }

    /// In the child.
    fn become_command(&self, signals: &Signals, guardian: &Guardian) -> ! {
        if !guardian.is_told_of(std::process::id()) {
            complain("the guardian of the command was killed before the command began");
            end(exit::FAILED);
        }
        if let Err(errno) = signals.restore() {
            complain(&format!("cannot give signals back: {errno}"));
            end(exit::FAILED);
        }
        let Some(program) = self.words.first() else { end(exit::NOT_FOUND) };
        let Err(errno) = nix::unistd::execvpe(program, &self.words, &self.environment);
        complain(&format!("cannot run `{}`: {}", program.to_string_lossy(), errno.desc()));
        end(if errno == Errno::ENOENT { exit::NOT_FOUND } else { exit::CANNOT_RUN })
    }
}

/// Without the locks of the standard streams, which somebody may have held when we forked.
fn complain(message: &str) {
    _ = rustix::io::write(rustix::stdio::stderr(), format!("grouplock: {message}\n").as_bytes());
}

/// Ends a child without running what belongs to its parent.
pub(super) fn end(code: u8) -> ! {
    // SAFETY: it does not return, and runs nothing.
    unsafe { libc::_exit(i32::from(code)) }
}
