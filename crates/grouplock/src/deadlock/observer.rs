//! What the lock calls. `crate::watch` says when.

use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use super::registry::{self, Holding, NO_THREAD, Waiter};
use super::{Deadlock, cycles};
use crate::cores::Signal;
use crate::watch::{Crowd, Observer, RequestInfo};

/// The reason for a panic.
pub(crate) type PanicReason = Deadlock;

/// Records where the caller of the caller is about to wait.
#[track_caller]
pub(crate) fn about_to_wait() {
    registry::set_asked(Location::caller());
}

/// The lock was dropped.
pub(crate) fn gone(lock: usize) {
    registry::remove_lock(lock);
}

/// The part of a guard that registers its holding while the guard is inside.
#[derive(Debug)]
pub(crate) struct Held(Option<Arc<Holding>>);

impl Held {
    /// The calling thread has just entered.
    #[track_caller]
    pub(crate) fn new(lock: usize, exclusive: bool) -> Self {
        let owner = registry::this_thread();
        Held(Some(registry::add_holding(lock, exclusive, Location::caller(), owner)))
    }

    /// The guard belongs to a task, and so to no thread.
    pub(crate) fn of_task(&mut self) {
        if let Some(holding) = &self.0 {
            holding.set_owner(NO_THREAD);
        }
    }

    /// The calling thread uses the guard.
    pub(crate) fn touch(&self) {
        if let Some(holding) = &self.0 {
            let owner = holding.owner();
            let this = registry::this_thread();
            if owner != this && owner != NO_THREAD {
                holding.set_owner(this);
            }
        }
    }

    /// The guard is about to leave. Called before it leaves, so that the registry is true.
    pub(crate) fn leave(&mut self) {
        if let Some(holding) = self.0.take() {
            registry::remove_holding(&holding);
        }
    }

    /// The guard may be outside until the value is dropped.
    #[track_caller]
    pub(crate) fn away(&mut self) -> Away<'_> {
        self.touch();
        if let Some(holding) = &self.0 {
            registry::remove_holding(holding);
        }
        Away { held: self, at: Location::caller() }
    }

    /// The guard is now alone, or inside a session.
    #[track_caller]
    pub(crate) fn set_exclusive(&mut self, exclusive: bool) {
        self.touch();
        self.replace(exclusive, Location::caller());
    }

    fn replace(&mut self, exclusive: bool, at: &'static Location<'static>) {
        if let Some(holding) = self.0.take() {
            registry::remove_holding(&holding);
            let owner = holding.owner();
            self.0 = Some(registry::add_holding(holding.lock, exclusive, at, owner));
        }
    }
}

/// A guard that changes its session.
pub(crate) struct Away<'a> {
    held: &'a mut Held,
    at: &'static Location<'static>,
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        let exclusive = self.held.0.as_ref().is_some_and(|holding| holding.exclusive);
        self.held.replace(exclusive, self.at);
    }
}

/// A thread that sleeps until it is admitted.
pub(crate) struct Wait {
    thread: u64,
    /// `None` if the wait has a deadline, or if it is unknown where it was called.
    waiter: Option<Arc<Waiter>>,
    before: Option<Arc<Waiter>>,
    look_at: Option<Instant>,
    must_finish: bool,
}

impl Observer for Wait {
    fn begin(
        request: RequestInfo,
        signal: &Arc<Signal>,
        no_deadline: bool,
        must_finish: bool,
    ) -> Self {
        let thread = registry::this_thread();
        let at = registry::asked().filter(|_| no_deadline && thread != NO_THREAD);
        let waiter = at.map(|at| Arc::new(Waiter::new(request, at, Arc::clone(signal))));
        let before =
            waiter.as_ref().and_then(|waiter| registry::add_wait(thread, Arc::clone(waiter)));
        let look_at = waiter.as_ref().and_then(|_| Instant::now().checked_add(super::grace()));
        Wait { thread, waiter, before, look_at, must_finish }
    }

    fn next_look(&self) -> Option<Instant> {
        self.look_at
    }

    /// Looks for a deadlock if it is time. The last thread that began to wait reports it.
    fn look(&mut self, _crowd: &dyn Fn() -> Crowd) -> Option<PanicReason> {
        let now = Instant::now();
        let waiter = self.waiter.as_ref()?;
        if self.look_at.is_none_or(|time| now < time) {
            return None;
        }
        self.look_at = now.checked_add(super::grace());
        let cycle = cycles::through(self.thread)?;
        if cycle.iter().any(|step| step.waiter.number > waiter.number) {
            return None;
        }
        // One report is enough.
        self.look_at = None;
        super::act(Deadlock::new(&cycle), self.must_finish)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            registry::end_wait(self.thread, self.before.take());
        }
    }
}
