//! Futures that enter.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::GroupLock;
use crate::cores::{Core, Phases};
use crate::guards::{Access, Alone, Guard, Handle, Sharing};
use crate::watch::Held;

/// The future of [`GroupLock::enter_async`].
pub type Enter<'a, S, T, C = Phases<S>> = Request<&'a C, S, C, Sharing<T>>;
/// The future of [`GroupLock::exclusive_async`].
pub type Exclusive<'a, S, T, C = Phases<S>> = Request<&'a C, S, C, Alone<T>>;
/// The future of [`GroupLock::enter_arc_async`].
pub type EnterArc<S, T, C = Phases<S>> = Request<Arc<GroupLock<S, T, C>>, S, C, Sharing<T>>;
/// The future of [`GroupLock::exclusive_arc_async`].
pub type ExclusiveArc<S, T, C = Phases<S>> = Request<Arc<GroupLock<S, T, C>>, S, C, Alone<T>>;

const READY: &str = "the future was polled after it was ready";

/// A request of a task. Dropping it withdraws the request.
#[must_use = "futures do nothing unless polled"]
pub struct Request<H: Handle<C>, S, C: Core<Session = S>, A: Access> {
    /// `None` after the guard was made.
    lock: Option<(H, A)>,
    session: Option<S>,
    waiting: Option<C::Waiting>,
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Request<H, S, C, A> {
    /// `data` belongs to `lock`. There is a session unless `A` is [`Alone`].
    pub(crate) fn new(lock: H, data: A, session: Option<S>) -> Self {
        Request { lock: Some((lock, data)), session, waiting: None }
    }
}

// The futures pin nothing: the queue does not point into them.
impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Unpin for Request<H, S, C, A> {}
impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> Unpin for Switch<'_, H, S, C, T> {}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Future for Request<H, S, C, A> {
    type Output = Guard<H, S, C, A>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Request { lock: kept, session, waiting } = &mut *self;
        // If the poll panics, the future still has the lock, and dropping it withdraws the request.
        let (lock, _) = kept.as_ref().expect(READY);
        let pass = ready!(lock.core().poll_enter(session.as_ref(), waiting, cx));
        let (lock, data) = kept.take().expect(READY);
        // SAFETY: this lock gave the pass to a request, which asked to be alone if `A` says so.
        Poll::Ready(unsafe { Guard::new(lock, pass, data) }.of_task())
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Drop for Request<H, S, C, A> {
    #[inline]
    fn drop(&mut self) {
        if let (Some((lock, _)), Some(waiting)) = (&self.lock, self.waiting.take()) {
            lock.core().cancel(waiting, A::EXCLUSIVE);
        }
    }
}

impl<H: Handle<C>, S: fmt::Debug, C: Core<Session = S>, A: Access> fmt::Debug
    for Request<H, S, C, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("session", &self.session).finish_non_exhaustive()
    }
}

/// The future of [`SessionGuard::switch_async`](Guard::switch_async).
#[must_use = "futures do nothing unless polled"]
pub struct Switch<'g, H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> {
    guard: &'g mut Guard<H, S, C, Sharing<T>>,
    session: S,
    waiting: Option<C::Waiting>,
    /// The access of the guard to the data, while the guard is outside.
    data: Option<Sharing<T>>,
    done: bool,
}

impl<'g, H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> Switch<'g, H, S, C, T> {
    /// The guard is inside.
    pub(crate) fn new(guard: &'g mut Guard<H, S, C, Sharing<T>>, session: S) -> Self {
        Switch { guard, session, waiting: None, data: None, done: false }
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> Future for Switch<'_, H, S, C, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Switch { guard, session, waiting, data, done } = &mut *self;
        assert!(!*done, "{READY}");
        let core = guard.lock.core();
        if waiting.is_none() {
            guard.held.leave();
            // SAFETY: the guard's pass is inside a session, because no earlier poll has left it. No
            // reference to the data exists, because the guard is borrowed mutably. If this panics,
            // the pass is still inside. If not, nothing panics before the guard is outside.
            if unsafe { core.poll_switch(&mut guard.pass, session, waiting, cx) }.is_pending() {
                *data = guard.data.take();
                return Poll::Pending;
            }
        } else {
            guard.pass = ready!(core.poll_enter(Some(session), waiting, cx));
            guard.data = data.take();
        }
        *done = true;
        guard.held = Held::new(core.address(), false);
        guard.held.of_task();
        Poll::Ready(())
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> Drop for Switch<'_, H, S, C, T> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.guard.lock.core().cancel(waiting, false);
        }
    }
}

impl<H: Handle<C>, S: fmt::Debug, C: Core<Session = S>, T: ?Sized> fmt::Debug
    for Switch<'_, H, S, C, T>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Waits for a room that is set up, or for the right to set it up. The result becomes a guard.
pub(crate) struct EnterWith<'a, S, C: Core<Session = S>> {
    core: &'a C,
    session: &'a S,
    waiting: Option<C::Waiting>,
}

impl<'a, S, C: Core<Session = S>> EnterWith<'a, S, C> {
    pub(crate) fn new(core: &'a C, session: &'a S) -> Self {
        EnterWith { core, session, waiting: None }
    }
}

impl<S, C: Core<Session = S>> Unpin for EnterWith<'_, S, C> {}

impl<S, C: Core<Session = S>> Future for EnterWith<'_, S, C> {
    type Output = (C::Pass, bool);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let EnterWith { core, session, waiting } = &mut *self;
        core.poll_enter_with(session, waiting, cx)
    }
}

impl<S, C: Core<Session = S>> Drop for EnterWith<'_, S, C> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.core.cancel(waiting, false);
        }
    }
}
