//! What several test files need: polling by hand, and waiting for facts.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use grouplock::{Policy, Snapshot};

/// Longer than anything here takes, on however busy a machine.
pub(crate) const LATE: Duration = Duration::from_secs(60);

/// So many entries in a row make a session the favoured one of a striped lock. Under miri few do.
pub(crate) const FAVOURED: u32 = if cfg!(miri) { 8 } else { 200 };

/// Policies that differ in who is asked, invited and handed the room. Under miri the first two, which differ most.
pub(crate) const POLICIES: &[Policy] = {
    let all = &[Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 3 }];
    if cfg!(miri) { all.split_at(2).0 } else { all }
};

/// Waits until `fact` is so. Fails, and names `what` it waited for, if that takes a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut fact: impl FnMut() -> bool) {
    let start = Instant::now();
    while !fact() {
        assert!(start.elapsed() < LATE, "waited {LATE:?} in vain until {what}");
        thread::yield_now();
    }
}

/// What `attempt` gives. It gives nothing if the machine was too slow for it to show anything, and
/// is tried again then, for a minute.
#[track_caller]
pub(crate) fn try_again<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut result = None;
    wait_until(what, || {
        result = attempt();
        result.is_some()
    });
    result.expect("there is one now")
}

/// Runs `what` on another thread and gives what it returns. Fails if that takes a minute.
#[track_caller]
pub(crate) fn in_time<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = what();
        let _ = tell.send(());
        result
    });
    match told.recv_timeout(LATE) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still not done after {LATE:?}"),
    }
}

/// How many requests wait.
pub(crate) fn waiters<S>(seen: &Snapshot<S>) -> usize {
    seen.waiting.iter().map(|phase| phase.waiters).sum()
}

/// Sets a flag when dropped, also by a panic: threads that run until it is set end in any case.
pub(crate) struct SetWhenDropped<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls `future` once, with a waker that does nothing.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// What `future` gives, which must be ready.
#[track_caller]
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future should be ready"),
    }
}

/// Polls `future` once; it must not be ready.
#[track_caller]
pub(crate) fn pending<F: Future + Unpin>(future: &mut F) {
    assert!(poll(future).is_pending(), "the future should have to wait");
}

/// A waker that counts.
#[derive(Default)]
pub(crate) struct Woken(AtomicUsize);

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Woken::default());
        (Arc::clone(&woken), Waker::from(woken))
    }

    /// The waker once more.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// How often it was woken.
    pub(crate) fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls `future` once with `waker`.
pub(crate) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}
