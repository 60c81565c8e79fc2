//! Entering a phase, for tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{AloneGuard, OwnedPhaseGuard, Phase, PhaseGuard};
use crate::cores::{Cancellable, Phases};
use crate::future::{Enter, EnterArc, Exclusive};

/// The future of [`Phased::enter_async`](super::Phased::enter_async).
#[must_use = "futures do nothing unless polled"]
pub struct EnterPhase<
    'a,
    P: Phase<T>,
    T,
    C: Cancellable<Session = P::Name> = Phases<<P as Phase<T>>::Name>,
> {
    /// Gone once the guard is made.
    phase: Option<P>,
    request: Enter<'a, P::Name, T, C>,
}

/// The future of [`Phased::enter_arc_async`](super::Phased::enter_arc_async).
#[must_use = "futures do nothing unless polled"]
pub struct EnterPhaseArc<
    P: Phase<T>,
    T,
    C: Cancellable<Session = P::Name> = Phases<<P as Phase<T>>::Name>,
> {
    /// Gone once the guard is made.
    phase: Option<P>,
    request: EnterArc<P::Name, T, C>,
}

/// The future of [`Phased::exclusive_async`](super::Phased::exclusive_async).
#[must_use = "futures do nothing unless polled"]
pub struct Alone<'a, N, T, C: Cancellable<Session = N> = Phases<N>>(Exclusive<'a, N, T, C>);

impl<'a, P: Phase<T>, T, C: Cancellable<Session = P::Name>> EnterPhase<'a, P, T, C> {
    pub(super) fn new(phase: P, request: Enter<'a, P::Name, T, C>) -> Self {
        EnterPhase { phase: Some(phase), request }
    }
}

impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> EnterPhaseArc<P, T, C> {
    pub(super) fn new(phase: P, request: EnterArc<P::Name, T, C>) -> Self {
        EnterPhaseArc { phase: Some(phase), request }
    }
}

impl<'a, N, T, C: Cancellable<Session = N>> Alone<'a, N, T, C> {
    pub(super) fn new(request: Exclusive<'a, N, T, C>) -> Self {
        Alone(request)
    }
}

// Nothing in the futures is pinned, the phase included.
impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> Unpin for EnterPhase<'_, P, T, C> {}
impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> Unpin for EnterPhaseArc<P, T, C> {}
impl<N, T, C: Cancellable<Session = N>> Unpin for Alone<'_, N, T, C> {}

/// The request panics when it is polled after it was ready, and the phase is there until then.
const THERE: &str = "the phase is there until the guard is made";

impl<'a, P: Phase<T>, T, C: Cancellable<Session = P::Name>> Future for EnterPhase<'a, P, T, C> {
    type Output = PhaseGuard<'a, P, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inside = ready!(Pin::new(&mut self.request).poll(cx));
        Poll::Ready(PhaseGuard::new(self.phase.take().expect(THERE), inside))
    }
}

impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> Future for EnterPhaseArc<P, T, C> {
    type Output = OwnedPhaseGuard<P, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inside = ready!(Pin::new(&mut self.request).poll(cx));
        Poll::Ready(OwnedPhaseGuard::new(self.phase.take().expect(THERE), inside))
    }
}

impl<'a, N, T, C: Cancellable<Session = N>> Future for Alone<'a, N, T, C> {
    type Output = AloneGuard<'a, N, T, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(AloneGuard::new)
    }
}

impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> fmt::Debug for EnterPhase<'_, P, T, C>
where
    P::Name: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnterPhase").field(&self.request).finish()
    }
}

impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> fmt::Debug for EnterPhaseArc<P, T, C>
where
    P::Name: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnterPhaseArc").field(&self.request).finish()
    }
}

impl<N, T, C: Cancellable<Session = N>> fmt::Debug for Alone<'_, N, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alone").finish_non_exhaustive()
    }
}
