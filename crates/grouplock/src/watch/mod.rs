//! Where the debug features look on. Without them, everything here is empty and compiles to nothing.
//!
//! A blocking call says where it was made ([`asks`]); who is inside keeps a [`Held`]; a thread that is about to sleep makes a [`Wait`], asks it
//! before each sleep, and ends it; a task keeps a [`TaskWait`].

#[cfg(not(all(feature = "deadlock_detection", not(any(loom, shuttle)))))]
mod no_deadlock;
#[cfg(not(all(feature = "tracing", not(any(loom, shuttle)))))]
mod no_tracing;

use std::sync::Arc;
use std::time::Instant;

#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
use crate::deadlock::watch as deadlock;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
use crate::long_waits as tracing;
#[cfg(not(all(feature = "deadlock_detection", not(any(loom, shuttle)))))]
use no_deadlock as deadlock;
#[cfg(not(all(feature = "tracing", not(any(loom, shuttle)))))]
use no_tracing as tracing;

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

/// A thread that sleeps until it is let in.
pub(crate) struct Wait {
    deadlock: deadlock::Wait,
    tracing: tracing::Wait,
}

impl Wait {
    /// `endless`: there is no deadline. `bound`: the wait cannot be given up.
    #[inline]
    pub(crate) fn begin(
        request: Request,
        signal: &Arc<Signal>,
        endless: bool,
        bound: bool,
    ) -> Self {
        Wait {
            deadlock: deadlock::Wait::begin(request, signal, endless, bound),
            tracing: tracing::Wait::begin(request),
        }
    }

    /// When to [`look`](Wait::look) again.
    #[inline]
    pub(crate) fn next_look(&self) -> Option<Instant> {
        match (self.deadlock.next_look(), self.tracing.next_look()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Tells whoever listens what is to be told. Runs foreign code: not to be called with the internal lock held. If it gives a reason, the wait
    /// is to be given up, and the caller to panic with it.
    #[inline]
    pub(crate) fn look(&mut self, crowd: impl FnOnce() -> Crowd) -> Option<GiveUp> {
        self.tracing.look(crowd);
        self.deadlock.look()
    }

    /// The lock turns to strict order because of this wait. May be called with the internal lock held.
    #[inline]
    pub(crate) fn turned_strict(&mut self) {
        self.tracing.turned_strict();
    }

    /// The wait is over; `inside` says how it ended. Runs foreign code.
    #[inline]
    pub(crate) fn end(self, inside: bool) {
        self.deadlock.end();
        self.tracing.end(inside);
    }
}
