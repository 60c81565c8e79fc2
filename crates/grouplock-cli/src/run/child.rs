//! The command, as a child of this process.
//!
//! It stays in the process group of grouplock. So Ctrl-C, Ctrl-Z and the terminal reach it
//! directly. The child tells its number to the [guardian](super::guardian) before it becomes the
//! command. So the command never runs without a guardian.

use std::ffi::{CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::Pid;

use super::RunError;
use super::guardian::Guardian;
use super::holdings::Holdings;
use crate::exit::{self, Ending};
use crate::system::process::ProcessHandle;
use crate::system::signals::Signals;

/// The smallest number of the room's descriptor in the command. Scripts use small numbers for their
/// own descriptors.
const HIGH: i32 = 100;

/// The size of the child's stack until exec. execvpe(3) may need the length of a path, and more for
/// the arguments.
const STACK: usize = 128 << 10;

/// A command that can be started with few allocations.
pub(super) struct PreparedCommand {
    words: Vec<CString>,
    environment: Vec<CString>,
}

/// The child.
pub(super) struct Child {
    pub(super) pid: Pid,
    pub(super) handle: ProcessHandle,
}

/// A report of waitpid(2).
pub(super) enum ChildEvent {
    Ended(Ending),
    /// The number of the signal that stopped it.
    Stopped(i32),
}

impl PreparedCommand {
    /// The command `words` with the environment of this process, changed by `variables`. A variable
    /// without a value is removed.
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
        Ok(PreparedCommand {
            environment: inherited.chain(ours).map(CString::new).collect::<Result<_, _>>()?,
            words: words
                .into_iter()
                .map(|word| CString::new(word.into_vec()))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Starts the child. It inherits the descriptors of the holdings, so their locks last as long
    /// as the command.
    pub(super) fn fork(
        &self,
        signals: &Signals,
        guardian: &Guardian,
        holdings: &Holdings,
    ) -> Result<Child, RunError> {
        let stack = STACK + 2 * size_of_val(&self.words[..]);
        let child = spawn(stack, || self.become_command(signals, guardian, holdings));
        let pid = child.map_err(RunError::system("start the command"))?;
        // Only this process can reap it, so the number is still that of our child.
        match ProcessHandle::open(pid) {
            Ok(handle) => Ok(Child { pid, handle }),
            Err(errno) => {
                // After grouplock has left the room, the command must not run any more.
                _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
                _ = nix::sys::wait::waitpid(pid, None);
                Err(RunError::system("start the command")(errno))
            }
        }
    }

    /// In the child.
    fn become_command(&self, signals: &Signals, guardian: &Guardian, holdings: &Holdings) -> ! {
        if !guardian.introduce(std::process::id()) {
            complain("the guardian was killed before the command started");
            end(exit::FAILED);
        }
        for place in holdings.descriptors() {
            if fcntl(place, FcntlArg::F_DUPFD(HIGH)).is_err()
                && let Err(errno) = fcntl(place, FcntlArg::F_DUPFD(3))
            {
                complain(&format!("cannot pass on the descriptor of the room: {errno}"));
                end(exit::FAILED);
            }
        }
        if let Err(errno) = signals.restore() {
            complain(&format!("cannot restore signals: {errno}"));
            end(exit::FAILED);
        }
        let Some(program) = self.words.first() else { end(exit::NOT_FOUND) };
        let Err(errno) = nix::unistd::execvpe(program, &self.words, &self.environment);
        let name = crate::output::sanitized(&program.to_string_lossy());
        match errno {
            // The kernel also returns ENOENT for a script whose interpreter is missing.
            Errno::ENOENT if exists(OsStr::from_bytes(program.to_bytes())) => {
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
    /// The next change of its state, if there is one. A child that has ended is reaped.
    pub(super) fn next_event(&self) -> nix::Result<Option<ChildEvent>> {
        let mut status = 0;
        let flags = libc::WNOHANG | libc::WUNTRACED;
        // nix does not know realtime signals. SAFETY: the status is written to a number of its
        // type.
        let found = unsafe { libc::waitpid(self.pid.as_raw(), &raw mut status, flags) };
        Ok(match Errno::result(found)? {
            0 => None,
            _ if libc::WIFSTOPPED(status) => Some(ChildEvent::Stopped(libc::WSTOPSIG(status))),
            _ if libc::WIFSIGNALED(status) => {
                Some(ChildEvent::Ended(Ending::Signal(libc::WTERMSIG(status))))
            }
            _ => {
                let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
                Some(ChildEvent::Ended(Ending::Code(code)))
            }
        })
    }
}

/// Starts a child that runs `work`, which does not return. As with vfork(2), the child shares our
/// memory until exec, and this thread sleeps until then. To copy the memory takes longer than to
/// enter a room.
fn spawn<F: Fn()>(stack: usize, work: F) -> nix::Result<Pid> {
    extern "C" fn begin<F: Fn()>(work: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it is what `spawn` has given to `clone`, and lives until that returns.
        let work = unsafe { &*work.cast::<F>() };
        work();
        exit::FAILED.into()
    }
    let mut stack = vec![0_u128; stack.div_ceil(size_of::<u128>())];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is aligned and ours. When `clone` returns, the child does not use it any
    // more: it has become another program or has ended. `work` lives as long. This thread sleeps
    // meanwhile and does not use what `work` writes. Other threads share memory with it as with any
    // thread. Its signal actions and descriptors are its own.
    let child = unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(begin::<F>, top.cast(), flags, (&raw const work).cast_mut().cast())
    };
    Errno::result(child).map(Pid::from_raw)
}

/// Whether there is a file that execvpe(3) finds for this program.
fn exists(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !program.is_empty() && std::env::split_paths(&path).any(|place| place.join(program).exists())
}

/// It does not use the locks of the standard streams. Another thread may have held them at the
/// fork.
fn complain(message: &str) {
    _ = nix::unistd::write(std::io::stderr(), format!("grouplock: {message}\n").as_bytes());
}

/// Ends a child without running the destructors of its parent.
pub(super) fn end(code: u8) -> ! {
    // SAFETY: it does not return, and runs nothing.
    unsafe { libc::_exit(i32::from(code)) }
}
