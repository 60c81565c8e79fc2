//! Where the debug features look on. Without them, everything here is empty and compiles to nothing.
//!
//! A blocking call says where it was made ([`asks`]); a guard keeps a [`Held`]; a thread that is about to sleep makes a [`Wait`], asks it
//! before each sleep, and ends it; a task keeps a [`TaskWait`].

#[cfg(not(all(feature = "deadlock_detection", feature = "tracing", not(any(loom, shuttle)))))]
mod nobody;

use std::sync::Arc;
use std::time::Instant;

#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
use crate::deadlock::watch as deadlock;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
use crate::long_waits as tracing;
#[cfg(not(all(feature = "deadlock_detection", not(any(loom, shuttle)))))]
use nobody as deadlock;
#[cfg(not(all(feature = "tracing", not(any(loom, shuttle)))))]
use nobody as tracing;

pub(crate) use self::deadlock::{GiveUp, Held, asks, gone};
pub(crate) use self::tracing::TaskWait;
use crate::Policy;
use crate::cores::{Core, Signal};

/// A request that waits, as reports tell of it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    any(loom, shuttle, not(any(feature = "deadlock_detection", feature = "tracing"))),
    expect(dead_code, reason = "nobody looks on")
)]
pub(crate) struct Request {
    /// The address of the lock.
    pub(crate) lock: usize,
    /// Whether it asks to be alone.
    pub(crate) exclusive: bool,
    /// What type sessions have.
    pub(crate) sessions: &'static str,
}

impl Request {
    #[inline]
    pub(crate) fn of<C: Core>(core: &C, exclusive: bool) -> Self {
        Request { lock: core.address(), exclusive, sessions: std::any::type_name::<C::Session>() }
    }
}

/// The state of a lock that somebody waits for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    any(loom, shuttle, not(feature = "tracing")),
    expect(dead_code, reason = "nobody looks on")
)]
pub(crate) struct Crowd {
    pub(crate) policy: Policy,
    pub(crate) holders: usize,
    pub(crate) phases: usize,
    pub(crate) waiters: usize,
}

/// Looks on at a thread that sleeps until it is let in. What it does not care for, it leaves out.
pub(crate) trait Observer: Sized {
    /// `endless`: there is no deadline. `bound`: the wait cannot be given up.
    fn begin(request: Request, signal: &Arc<Signal>, endless: bool, bound: bool) -> Self;

    /// When to [`look`](Observer::look) again.
    #[inline]
    fn next_look(&self) -> Option<Instant> {
        None
    }

    /// Tells whoever listens what is to be told. Runs foreign code: not to be called with the internal lock held. If it gives a reason, the wait
    /// is to be given up, and the caller to panic with it.
    #[inline]
    fn look(&mut self, _crowd: &dyn Fn() -> Crowd) -> Option<GiveUp> {
        None
    }

    /// The lock turns to strict order because of this wait. May be called with the internal lock held.
    #[inline]
    fn turned_strict(&mut self) {}

    /// The wait is over; `inside` says how it ended. Runs foreign code.
    #[inline]
    fn end(self, _inside: bool) {}
}

/// What looks on.
pub(crate) type Wait = (tracing::Wait, deadlock::Wait);

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn begin(request: Request, signal: &Arc<Signal>, endless: bool, bound: bool) -> Self {
        (A::begin(request, signal, endless, bound), B::begin(request, signal, endless, bound))
    }

    #[inline]
    fn next_look(&self) -> Option<Instant> {
        [self.0.next_look(), self.1.next_look()].into_iter().flatten().min()
    }

    #[inline]
    fn look(&mut self, crowd: &dyn Fn() -> Crowd) -> Option<GiveUp> {
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
