//! The command as a child of ours.
//!
//! It stays in our process group, so that Ctrl-C, Ctrl-Z and the terminal reach it as if we were not there. It begins
//! only when it is told so: if we die before its [guardian](super::guardian) stands, it ends without having run.

use std::ffi::{CString, NulError, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid, fork};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, pidfd_open};

use super::RunError;
use crate::exit;
use crate::signals::Signals;

/// A command that can be run without allocating much.
pub(super) struct Prepared {
    words: Vec<CString>,
    environment: Vec<CString>,
}

/// A child that waits to be told to begin.
pub(super) struct Child {
    pub(super) pid: Pid,
    /// Means this child and no later process with its number.
    pub(super) handle: OwnedFd,
    go: OwnedFd,
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
    pub(super) fn fork(&self, signals: &Signals) -> Result<Child, RunError> {
        let failed = |source: rustix::io::Errno| RunError::System {
            what: "start the command",
            source: source.into(),
        };
        let (wait, go) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        // SAFETY: what the child does before exec are system calls and small allocations, which the C libraries of
        // Linux keep possible in a child even if other threads were allocating.
        match unsafe { fork() }.map_err(RunError::system("start the command"))? {
            ForkResult::Parent { child } => {
                let number = rustix::process::Pid::from_raw(child.as_raw());
                let number = number.ok_or_else(|| failed(rustix::io::Errno::INVAL))?;
                // Nobody but us can reap it, so the number means our child.
                let handle = pidfd_open(number, PidfdFlags::empty()).map_err(failed)?;
                Ok(Child { pid: child, handle, go })
            }
            ForkResult::Child => {
                // Else we would wait for ourselves.
                drop(go);
                self.become_command(signals, &wait)
            }
        }
    }

    /// In the child: waits for the word and becomes the command.
    fn become_command(&self, signals: &Signals, wait: &OwnedFd) -> ! {
        let told = loop {
            match rustix::io::read(wait.as_fd(), &mut [0; 1]) {
                Err(rustix::io::Errno::INTR) => {}
                done => break done == Ok(1),
            }
        };
        if !told {
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

impl Child {
    /// Lets it begin.
    pub(super) fn begin(&self) -> Result<(), RunError> {
        match rustix::io::write(self.go.as_fd(), &[1]) {
            // If it was killed in the meantime, waiting for it will tell.
            Ok(_) | Err(rustix::io::Errno::PIPE) => Ok(()),
            Err(errno) => Err(RunError::System { what: "start the command", source: errno.into() }),
        }
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
