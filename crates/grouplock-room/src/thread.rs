//! The threads of this crate.

use std::io;
use std::thread::{Builder, JoinHandle};

#[cfg(unix)]
use nix::sys::signal::{SigSet, SigmaskHow};

/// Starts a thread that blocks all signals. Otherwise it could receive a signal that the program
/// awaits on another thread or through a descriptor.
///
/// # Errors
/// If the system cannot start a thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A new thread inherits the signal mask of the thread that starts it.
    #[cfg(unix)]
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = Builder::new().name(name.to_owned()).spawn(work);
    #[cfg(unix)]
    before.thread_set_mask()?;
    started
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use nix::sys::signal::Signal;

    #[test]
    fn a_thread_of_ours_takes_no_signal() {
        let ours = SigSet::thread_get_mask().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let look = move || tell.send(SigSet::thread_get_mask().unwrap()).unwrap();
        spawn("test", look).unwrap().join().unwrap();
        let theirs = told.recv().unwrap();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM] {
            assert!(theirs.contains(signal), "{signal} is blocked there");
        }
        assert_eq!(SigSet::thread_get_mask().unwrap(), ours, "and here it is as it was");
    }
}
