//! Who holds a guard is inside, and sees what the phase lets it see.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::{Inside, Phase};
use crate::cores::{Cancellable, Core, Phases};
use crate::{ExclusiveGuard, OwnedSessionGuard, SessionGuard};

/// Inside phase `P`, until dropped. By [`Phased::enter`](super::Phased::enter) and its kin.
#[must_use = "the phase is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct PhaseGuard<
    'a,
    P: Phase<T>,
    T,
    C: Core<Session = P::Name> = Phases<<P as Phase<T>>::Name>,
> {
    phase: P,
    inside: SessionGuard<'a, P::Name, T, C>,
}

impl<'a, P: Phase<T>, T, C: Core<Session = P::Name>> PhaseGuard<'a, P, T, C> {
    /// `inside` was given to a request for the name of `phase`.
    #[inline]
    pub(super) fn new(phase: P, inside: SessionGuard<'a, P::Name, T, C>) -> Self {
        PhaseGuard { phase, inside }
    }

    /// What this phase may do with the data. It borrows the guard: the phase is not left while a view is in use.
    #[inline]
    pub fn view(&self) -> P::View<'_> {
        self.phase.view(Inside::new(&*self.inside))
    }

    /// The phase one is inside.
    #[inline]
    pub fn phase(&self) -> &P {
        &self.phase
    }
}

impl<'a, P: Phase<T>, T, C: Cancellable<Session = P::Name>> PhaseGuard<'a, P, T, C> {
    /// Leaves this phase and waits for `phase`, as [`SessionGuard::switch`]; nothing happens if the two have the same name.
    ///
    /// Nothing learnt from the data before the call need be true after it: others may have been inside.
    ///
    /// If the name of `phase` cannot be made or cloned, the panic goes on and the old phase is left.
    pub fn switch<Q: Phase<T, Name = P::Name>>(self, phase: Q) -> PhaseGuard<'a, Q, T, C> {
        let mut inside = self.inside;
        inside.switch(phase.name());
        PhaseGuard { phase, inside }
    }
}

/// A [`PhaseGuard`] that owns a share of its lock instead of borrowing it. By [`Phased::enter_arc`](super::Phased::enter_arc).
#[must_use = "the phase is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct OwnedPhaseGuard<
    P: Phase<T>,
    T,
    C: Core<Session = P::Name> = Phases<<P as Phase<T>>::Name>,
> {
    phase: P,
    inside: OwnedSessionGuard<P::Name, T, C>,
}

impl<P: Phase<T>, T, C: Core<Session = P::Name>> OwnedPhaseGuard<P, T, C> {
    /// `inside` was given to a request for the name of `phase`.
    pub(super) fn new(phase: P, inside: OwnedSessionGuard<P::Name, T, C>) -> Self {
        OwnedPhaseGuard { phase, inside }
    }

    /// As [`PhaseGuard::view`].
    #[inline]
    pub fn view(&self) -> P::View<'_> {
        self.phase.view(Inside::new(&*self.inside))
    }

    /// The phase one is inside.
    #[inline]
    pub fn phase(&self) -> &P {
        &self.phase
    }
}

impl<P: Phase<T>, T, C: Cancellable<Session = P::Name>> OwnedPhaseGuard<P, T, C> {
    /// As [`PhaseGuard::switch`].
    pub fn switch<Q: Phase<T, Name = P::Name>>(self, phase: Q) -> OwnedPhaseGuard<Q, T, C> {
        let mut inside = self.inside;
        inside.switch(phase.name());
        OwnedPhaseGuard { phase, inside }
    }
}

/// Alone inside, with the data to oneself, until dropped. By [`Phased::exclusive`](super::Phased::exclusive) and its kin.
#[must_use = "the room is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct AloneGuard<'a, N, T, C: Core<Session = N> = Phases<N>>(ExclusiveGuard<'a, N, T, C>);

impl<'a, N, T, C: Core<Session = N>> AloneGuard<'a, N, T, C> {
    #[inline]
    pub(super) fn new(alone: ExclusiveGuard<'a, N, T, C>) -> Self {
        AloneGuard(alone)
    }
}

impl<'a, N: Eq + Clone, T, C: Cancellable<Session = N>> AloneGuard<'a, N, T, C> {
    /// Opens the room to `phase` without leaving it, as [`ExclusiveGuard::downgrade`]: nobody else is inside in between.
    ///
    /// An associated function, so that it does not hide a method of the data: `AloneGuard::downgrade(guard, phase)`.
    pub fn downgrade<P: Phase<T, Name = N>>(this: Self, phase: P) -> PhaseGuard<'a, P, T, C> {
        let inside = ExclusiveGuard::downgrade(this.0, phase.name());
        PhaseGuard { phase, inside }
    }
}

impl<N, T, C: Core<Session = N>> Deref for AloneGuard<'_, N, T, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<N, T, C: Core<Session = N>> DerefMut for AloneGuard<'_, N, T, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<P: Phase<T>, T, C: Core<Session = P::Name>> fmt::Debug for PhaseGuard<'_, P, T, C>
where
    P::Name: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaseGuard").field("name", self.inside.session()).finish_non_exhaustive()
    }
}

impl<P: Phase<T>, T, C: Core<Session = P::Name>> fmt::Debug for OwnedPhaseGuard<P, T, C>
where
    P::Name: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("OwnedPhaseGuard");
        form.field("name", self.inside.session()).finish_non_exhaustive()
    }
}

impl<N, T: fmt::Debug, C: Core<Session = N>> fmt::Debug for AloneGuard<'_, N, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AloneGuard").field("data", &**self).finish()
    }
}
