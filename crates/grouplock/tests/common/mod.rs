//! Helpers for several test files: polling by hand, and waiting for facts.

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

/// Longer than any step of a test takes, even on a busy machine.
pub(crate) const LATE: Duration = Duration::from_secs(60);

/// After so many entries in a row, a striped lock favours the session. Under miri few are enough.
pub(crate) const FAVOURED: u32 = if cfg!(miri) { 8 } else { 200 };

/// Policies that differ in which requests must ask, are invited, and are handed the room. Under
/// miri the first two, which differ most.
pub(crate) const POLICIES: &[Policy] = {
    let all = &[Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 3 }];
    if cfg!(miri) { all.split_at(2).0 } else { all }
};

/// Waits until `fact` is true. Fails after a minute, and names `what` it waited for.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut fact: impl FnMut() -> bool) {
    let start = Instant::now();
    while !fact() {
        assert!(start.elapsed() < LATE, "after {LATE:?} not yet: {what}");
        thread::yield_now();
    }
}

/// Returns the result of `attempt`. If the machine was too slow for a result, there is none, and it
/// tries again, for a minute.
#[track_caller]
pub(crate) fn try_again<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut result = None;
    wait_until(what, || {
        result = attempt();
        result.is_some()
    });
    result.expect("there is one now")
}

/// Runs `what` on another thread and returns its result. Fails after a minute.
#[track_caller]
pub(crate) fn in_time<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = what();
        _ = tell.send(());
        result
    });
    match told.recv_timeout(LATE) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still not done after {LATE:?}"),
    }
}

/// The number of waiting requests.
pub(crate) fn waiters<S>(seen: &Snapshot<S>) -> usize {
    seen.waiting.iter().map(|phase| phase.waiters).sum()
}

/// Sets a flag when dropped, also by a panic. So threads that run until it is set always end.
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

/// Returns the output of `future`, which must be ready.
#[track_caller]
pub(crate) fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future should be ready"),
    }
}

/// Polls `future` once. It must not be ready.
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

    /// Another copy of the waker.
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
