//! The command as a child of ours.
//!
//! It stays in our process group, so that Ctrl-C, Ctrl-Z and the terminal reach it as if we were not there. It tells its
//! [guardian](super::guardian) who it is before it becomes the command: there is no moment at which it runs unguarded.

use std::ffi::{CString, NulError, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::Pid;

use super::RunError;
use super::guardian::Guardian;
use super::inside::Inside;
use crate::exit::{self, Ending};
use crate::handle::Handle;
use crate::signals::Signals;

/// The number from which on the command inherits the room's descriptor: scripts choose small ones for their own.
const HIGH: i32 = 100;

/// How much stack the child has until it is another program. execvpe(3) may need as much as a path is long, and more for the
/// arguments.
const STACK: usize = 128 << 10;

/// A command that can be run without allocating much.
pub(super) struct Prepared {
    words: Vec<CString>,
    environment: Vec<CString>,
}

/// The child.
pub(super) struct Child {
    pub(super) pid: Pid,
    pub(super) handle: Handle,
}

/// What waitpid(2) tells of a child.
pub(super) enum News {
    Ended(Ending),
    /// By the signal with this number.
    Stopped(i32),
}

impl Prepared {
    /// `words` with our environment and `variables`, of which those without a value are removed.
    pub(super) fn new(
        words: Vec<OsString>,
        variables: &[(String, Option<String>)],
    ) -> Result<Self, NulError> {
        let inherited = std::env::vars_os()
            .filter(|(name, _)| {
                !variables.iter().any(|(ours, _)| name.as_os_str() == ours.as_str())
            })
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

    /// Makes the child. It inherits the descriptors of our places, whose locks then last as long as the command.
    pub(super) fn fork(
        &self,
        signals: &Signals,
        guardian: &Guardian,
        inside: &Inside,
    ) -> Result<Child, RunError> {
        let stack = STACK + 2 * size_of_val(&self.words[..]);
        let child = spawn(stack, || self.become_command(signals, guardian, inside));
        let pid = child.map_err(RunError::system("start the command"))?;
        // Nobody but us can reap it, so the number means our child.
        match Handle::open(pid) {
            Ok(handle) => Ok(Child { pid, handle }),
            Err(errno) => {
                // Once we have left, it must not be there any more.
                _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
                _ = nix::sys::wait::waitpid(pid, None);
                Err(RunError::system("start the command")(errno))
            }
        }
    }

    /// In the child.
    fn become_command(&self, signals: &Signals, guardian: &Guardian, inside: &Inside) -> ! {
        if !guardian.is_told_of(std::process::id()) {
            complain("the guardian of the command was killed before the command began");
            end(exit::FAILED);
        }
        for place in inside.descriptors() {
            if fcntl(place, FcntlArg::F_DUPFD(HIGH)).is_err()
                && let Err(errno) = fcntl(place, FcntlArg::F_DUPFD(3))
            {
                complain(&format!("cannot hand on the descriptor of the room: {errno}"));
                end(exit::FAILED);
            }
        }
        if let Err(errno) = signals.restore() {
            complain(&format!("cannot give signals back: {errno}"));
            end(exit::FAILED);
        }
        let Some(program) = self.words.first() else { end(exit::NOT_FOUND) };
        let Err(errno) = nix::unistd::execvpe(program, &self.words, &self.environment);
        let name = crate::plain::plain(&program.to_string_lossy());
        // The kernel says the same of a script whose interpreter is missing.
        let is_file = name.contains('/') && Path::new(&name).exists();
        match errno {
            Errno::ENOENT if is_file => {
                complain(&format!("{name}: the interpreter it asks for was not found"));
                end(exit::CANNOT_RUN)
            }
            Errno::ENOENT => {
                complain(&format!("{name}: command not found"));
                end(exit::NOT_FOUND)
            }
            _ => {
                complain(&format!("{name}: cannot be run: {}", errno.desc()));
                end(exit::CANNOT_RUN)
            }
        }
    }
}

impl Child {
    /// What has become of it since the last time. Once it has ended it is reaped.
    pub(super) fn news(&self) -> nix::Result<Option<News>> {
        let mut status = 0;
        let flags = libc::WNOHANG | libc::WUNTRACED;
        // Not nix's: that knows no realtime signals.
        // SAFETY: the status is written to a number of its type.
        let found = unsafe { libc::waitpid(self.pid.as_raw(), &raw mut status, flags) };
        Ok(match Errno::result(found)? {
            0 => None,
            _ if libc::WIFSTOPPED(status) => Some(News::Stopped(libc::WSTOPSIG(status))),
            _ if libc::WIFSIGNALED(status) => {
                Some(News::Ended(Ending::Signal(libc::WTERMSIG(status))))
            }
            _ => {
                let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
                Some(News::Ended(Ending::Code(code)))
            }
        })
    }
}

/// Makes a child that does `work` and never returns from it. As vfork(2) does, it shares our memory until it is another
/// program, and this thread sleeps until then: to copy the memory, and to copy again what we write to, takes longer than
/// entering a room.
fn spawn<F: Fn()>(stack: usize, work: F) -> nix::Result<Pid> {
    extern "C" fn begin<F: Fn()>(work: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it is what `spawn` has given to `clone`, and lives until that returns.
        let work = unsafe { &*work.cast::<F>() };
        work();
        exit::FAILED.into()
    }
    let mut stack = vec![0_u128; stack.div_ceil(size_of::<u128>())];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is aligned, ours, and the child is done with it when `clone` returns, since it has become another
    // program or has ended. `work` lives as long. What it writes to is not used by this thread meanwhile, which sleeps; other
    // threads share memory with it as with any thread. Its signal actions and descriptors are its own.
    let child = unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(begin::<F>, top.cast(), flags, (&raw const work).cast_mut().cast())
    };
    Errno::result(child).map(Pid::from_raw)
}

/// Without the locks of the standard streams, which somebody may have held when we forked.
fn complain(message: &str) {
    _ = nix::unistd::write(std::io::stderr(), format!("grouplock: {message}\n").as_bytes());
}

/// Ends a child without running what belongs to its parent.
pub(super) fn end(code: u8) -> ! {
    // SAFETY: it does not return, and runs nothing.
    unsafe { libc::_exit(i32::from(code)) }
}
