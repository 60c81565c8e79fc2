//! Entering, for tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::cores::{Cancellable, Phases};
use crate::{ExclusiveGuard, GroupLock, OwnedSessionGuard, SessionGuard};

/// A request on its way through a core: the part that all futures share. Gives the request up when dropped.
struct Request<'a, S, C: Cancellable> {
    core: &'a C,
    session: Option<S>,
    waiting: Option<C::Waiting>,
    done: bool,
}

impl<'a, S, C: Cancellable<Session = S>> Request<'a, S, C> {
    fn new(core: &'a C, session: Option<S>) -> Self {
        Request { core, session, waiting: None, done: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<C::Pass> {
        assert!(!self.done, "the future was polled after it was ready");
        let pass = ready!(self.core.poll_enter(self.session.as_ref(), &mut self.waiting, cx));
        self.done = true;
        Poll::Ready(pass)
    }
}

impl<S, C: Cancellable> Drop for Request<'_, S, C> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.core.cancel(waiting, self.session.is_none());
        }
    }
}

/// The future of [`GroupLock::enter_async`].
#[must_use = "futures do nothing unless polled"]
pub struct Enter<'a, S, T: ?Sized, C: Cancellable = Phases<S>> {
    lock: &'a GroupLock<S, T, C>,
    request: Request<'a, S, C>,
}

impl<'a, S, T: ?Sized, C: Cancellable<Session = S>> Enter<'a, S, T, C> {
    pub(crate) fn new(lock: &'a GroupLock<S, T, C>, session: S) -> Self {
        Enter { lock, request: Request::new(&lock.core, Some(session)) }
    }
}

// Nothing in the futures is pinned: the queue does not point into them.
impl<S, T: ?Sized, C: Cancellable> Unpin for Enter<'_, S, T, C> {}
impl<S, T: ?Sized, C: Cancellable> Unpin for Exclusive<'_, S, T, C> {}
impl<S, T: ?Sized, C: Cancellable> Unpin for EnterArc<S, T, C> {}

impl<'a, S, T: ?Sized, C: Cancellable<Session = S>> Future for Enter<'a, S, T, C> {
    type Output = SessionGuard<'a, S, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pass = ready!(self.request.poll(cx));
        // SAFETY: the pass was given to a request for a session of this lock.
        Poll::Ready(unsafe { SessionGuard::new(self.lock, pass) }.of_task())
    }
}

/// The future of [`GroupLock::exclusive_async`].
#[must_use = "futures do nothing unless polled"]
pub struct Exclusive<'a, S, T: ?Sized, C: Cancellable = Phases<S>> {
    lock: &'a GroupLock<S, T, C>,
    request: Request<'a, S, C>,
}

impl<'a, S, T: ?Sized, C: Cancellable<Session = S>> Exclusive<'a, S, T, C> {
    pub(crate) fn new(lock: &'a GroupLock<S, T, C>) -> Self {
        Exclusive { lock, request: Request::new(&lock.core, None) }
    }
}

impl<'a, S, T: ?Sized, C: Cancellable<Session = S>> Future for Exclusive<'a, S, T, C> {
    type Output = ExclusiveGuard<'a, S, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pass = ready!(self.request.poll(cx));
        // SAFETY: the pass was given to a request to have this lock to itself.
        Poll::Ready(unsafe { ExclusiveGuard::new(self.lock, pass) }.of_task())
    }
}

/// The future of [`GroupLock::enter_arc_async`].
#[must_use = "futures do nothing unless polled"]
pub struct EnterArc<S, T: ?Sized, C: Cancellable = Phases<S>> {
    /// Gone once the guard is made.
    lock: Option<Arc<GroupLock<S, T, C>>>,
    session: S,
    waiting: Option<C::Waiting>,
}

impl<S, T: ?Sized, C: Cancellable<Session = S>> EnterArc<S, T, C> {
    pub(crate) fn new(lock: Arc<GroupLock<S, T, C>>, session: S) -> Self {
        EnterArc { lock: Some(lock), session, waiting: None }
    }
}

impl<S, T: ?Sized, C: Cancellable<Session = S>> Future for EnterArc<S, T, C> {
    type Output = OwnedSessionGuard<S, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let EnterArc { lock: place, session, waiting } = &mut *self;
        // Stays in its place until the guard is made: if polling panics, dropping the future gives the request up.
        let Some(lock) = place else { panic!("the future was polled after it was ready") };
        let pass = ready!(lock.core.poll_enter(Some(session), waiting, cx));
        let Some(lock) = place.take() else { unreachable!("it was there") };
        // SAFETY: the pass was given to a request for a session of this lock.
        Poll::Ready(unsafe { OwnedSessionGuard::new(lock, pass) }.of_task())
    }
}

impl<S, T: ?Sized, C: Cancellable> Drop for EnterArc<S, T, C> {
    fn drop(&mut self) {
        if let (Some(lock), Some(waiting)) = (&self.lock, self.waiting.take()) {
            lock.core.cancel(waiting, false);
        }
    }
}

impl<S: fmt::Debug, T: ?Sized, C: Cancellable<Session = S>> fmt::Debug for Enter<'_, S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").field("session", &self.request.session).finish_non_exhaustive()
    }
}

impl<S, T: ?Sized, C: Cancellable<Session = S>> fmt::Debug for Exclusive<'_, S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, T: ?Sized, C: Cancellable<Session = S>> fmt::Debug for EnterArc<S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterArc").field("session", &self.session).finish_non_exhaustive()
    }
}
