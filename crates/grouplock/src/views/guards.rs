//! Guards of phases. A guard shows the view of its phase.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{Inside, Phase};
use crate::cores::{Core, Phases};
use crate::guards::{Alone, Guard, Handle, Sharing};
use crate::{OwnedSessionGuard, SessionGuard};

/// Inside phase `P`, until dropped. From [`Phased::enter`](super::Phased::enter).
pub type PhaseGuard<'a, P, T, C = Phases<<P as Phase<T>>::Name>> =
    InPhase<P, SessionGuard<'a, <P as Phase<T>>::Name, T, C>>;

/// A [`PhaseGuard`] that owns a share of its lock. From `Phased::enter_arc`.
pub type OwnedPhaseGuard<P, T, C = Phases<<P as Phase<T>>::Name>> =
    InPhase<P, OwnedSessionGuard<<P as Phase<T>>::Name, T, C>>;

/// The type of both guards: a phase, and a guard of the session with its name.
#[must_use = "the phase is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct InPhase<P, G> {
    phase: P,
    inside: G,
}

impl<P, G> InPhase<P, G> {
    /// `inside` belongs to a request for the name of `phase`.
    #[inline]
    pub(super) fn new(phase: P, inside: G) -> Self {
        InPhase { phase, inside }
    }

    /// The phase that the guard is inside.
    #[inline]
    pub fn phase(&self) -> &P {
        &self.phase
    }
}

impl<P, T, H, C> InPhase<P, Guard<H, P::Name, C, Sharing<T>>>
where
    P: Phase<T>,
    H: Handle<C>,
    C: Core<Session = P::Name>,
{
    /// The view of the data. It borrows the guard, so the phase is not left meanwhile.
    #[inline]
    pub fn view(&self) -> P::View<'_> {
        self.phase.view(Inside::new(&*self.inside))
    }

    /// Leaves this phase and waits for `phase`, as [`SessionGuard::switch`](Guard::switch) does.
    ///
    /// Other holders may have been inside in between, so what was known of the data may be false.
    ///
    /// If making, cloning or comparing the name of `phase` panics, the old phase is left.
    pub fn switch<Q>(self, phase: Q) -> InPhase<Q, Guard<H, P::Name, C, Sharing<T>>>
    where
        Q: Phase<T, Name = P::Name>,
    {
        let mut inside = self.inside;
        Guard::switch(&mut inside, phase.name());
        InPhase { phase, inside }
    }

    /// [`switch`](InPhase::switch), for tasks.
    ///
    /// # Cancel safety
    /// If the future is dropped, the old phase is left, and the new request is withdrawn.
    pub async fn switch_async<Q>(self, phase: Q) -> InPhase<Q, Guard<H, P::Name, C, Sharing<T>>>
    where
        Q: Phase<T, Name = P::Name>,
    {
        let mut inside = self.inside;
        Guard::switch_async(&mut inside, phase.name()).await;
        InPhase { phase, inside }
    }

    /// Opens the room to `phase`, as [`ExclusiveGuard::downgrade`](Guard::downgrade).
    pub fn downgrade(alone: Guard<H, P::Name, C, Alone<T>>, phase: P) -> Self {
        let inside = Guard::downgrade(alone, phase.name());
        InPhase { phase, inside }
    }
}

impl<P, T, H, C> fmt::Debug for InPhase<P, Guard<H, P::Name, C, Sharing<T>>>
where
    P: Phase<T, Name: fmt::Debug>,
    H: Handle<C>,
    C: Core<Session = P::Name>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Guard::session(&self.inside);
        f.debug_struct("PhaseGuard").field("name", name).finish_non_exhaustive()
    }
}

/// The future of [`Phased::enter_async`](super::Phased::enter_async). `R` waits for the session.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct EnterPhase<P, R> {
    /// `None` after the guard was made.
    phase: Option<P>,
    request: R,
}

impl<P, R> EnterPhase<P, R> {
    /// `request` is for the name of `phase`.
    pub(super) fn new(phase: P, request: R) -> Self {
        EnterPhase { phase: Some(phase), request }
    }
}

// The phase is not pinned.
impl<P, R: Unpin> Unpin for EnterPhase<P, R> {}

impl<P, R: Future + Unpin> Future for EnterPhase<P, R> {
    type Output = InPhase<P, R::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inside = ready!(Pin::new(&mut self.request).poll(cx));
        // The request panics if it is polled after it was ready.
        let phase = self.phase.take().expect("the future has the phase until the guard is made");
        Poll::Ready(InPhase { phase, inside })
    }
}
