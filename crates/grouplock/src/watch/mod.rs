//! The calls to the debug features. Without these features, everything here compiles to nothing.
//!
//! A blocking call records where it was made ([`about_to_wait`]). A guard keeps a [`Held`]. A
//! thread asks a [`Wait`] before each sleep. A task keeps a [`TaskWait`].

#[cfg(not(all(feature = "deadlock_detection", feature = "tracing", not(any(loom, shuttle)))))]
mod off;

use std::sync::Arc;
use std::time::Instant;

#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
use crate::deadlock::observer as deadlock;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
use crate::long_waits as tracing;
#[cfg(not(all(feature = "deadlock_detection", not(any(loom, shuttle)))))]
use off as deadlock;
#[cfg(not(all(feature = "tracing", not(any(loom, shuttle)))))]
use off as tracing;

pub(crate) use self::deadlock::{Held, PanicReason, about_to_wait, gone};
pub(crate) use self::tracing::TaskWait;
use crate::Policy;
use crate::cores::{Core, Signal};

/// A waiting request, as reports show it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    any(loom, shuttle, not(any(feature = "deadlock_detection", feature = "tracing"))),
    expect(dead_code, reason = "no feature reads them")
)]
pub(crate) struct RequestInfo {
    /// The address of the lock.
    pub(crate) lock: usize,
    /// Whether the request asks to be alone.
    pub(crate) exclusive: bool,
    /// The type of sessions.
    pub(crate) sessions: &'static str,
}

impl RequestInfo {
    #[inline]
    pub(crate) fn of<C: Core>(core: &C, exclusive: bool) -> Self {
        RequestInfo {
            lock: core.address(),
            exclusive,
            sessions: std::any::type_name::<C::Session>(),
        }
    }
}

/// The state of a lock that a thread waits for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    any(loom, shuttle, not(feature = "tracing")),
    expect(dead_code, reason = "no feature reads them")
)]
pub(crate) struct Crowd {
    pub(crate) policy: Policy,
    pub(crate) holders: usize,
    pub(crate) phases: usize,
    pub(crate) waiters: usize,
}

/// Observes a thread that sleeps until it is admitted. An observer implements only what it needs.
pub(crate) trait Observer: Sized {
    /// `no_deadline`: the wait has no deadline. `must_finish`: the thread cannot withdraw.
    fn begin(
        request: RequestInfo,
        signal: &Arc<Signal>,
        no_deadline: bool,
        must_finish: bool,
    ) -> Self;

    /// The time of the next [`look`](Observer::look).
    #[inline]
    fn next_look(&self) -> Option<Instant> {
        None
    }

    /// Makes the reports that are due. Runs foreign code: the caller must not hold the internal
    /// lock. If it returns a reason, the caller withdraws the request and panics with that reason.
    #[inline]
    fn look(&mut self, _crowd: &dyn Fn() -> Crowd) -> Option<PanicReason> {
        None
    }

    /// The lock turns to strict order because of this wait. The caller may hold the internal lock.
    #[inline]
    fn turned_strict(&mut self) {}

    /// Ends the wait. `inside` says whether the thread entered. Runs foreign code.
    #[inline]
    fn end(self, _inside: bool) {}
}

/// Both observers.
pub(crate) type Wait = (tracing::Wait, deadlock::Wait);

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn begin(
        request: RequestInfo,
        signal: &Arc<Signal>,
        no_deadline: bool,
        must_finish: bool,
    ) -> Self {
        (
            A::begin(request, signal, no_deadline, must_finish),
            B::begin(request, signal, no_deadline, must_finish),
        )
    }

    #[inline]
    fn next_look(&self) -> Option<Instant> {
        [self.0.next_look(), self.1.next_look()].into_iter().flatten().min()
    }

    #[inline]
    fn look(&mut self, crowd: &dyn Fn() -> Crowd) -> Option<PanicReason> {
        let reason = self.0.look(crowd);
        self.1.look(crowd).or(reason)
    }

    #[inline]
    fn turned_strict(&mut self) {
        self.0.turned_strict();
        self.1.turned_strict();
    }

    #[inline]
    fn end(self, inside: bool) {
        self.1.end(inside);
        self.0.end(inside);
    }
}
