//! What the lock calls. `crate::watch` says when.

use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use super::registry::{self, Hold, NOBODY, Waiter};
use super::{Deadlock, cycles};
use crate::cores::Signal;
use crate::watch::{Crowd, Observer, Request};

/// The reason for a panic.
pub(crate) type GiveUp = Deadlock;

/// The caller's caller is about to wait.
#[track_caller]
pub(crate) fn asks() {
    registry::set_asked(Location::caller());
}

/// The lock is no more.
pub(crate) fn gone(lock: usize) {
    registry::remove_lock(lock);
}

/// What a guard keeps: registers its hold as long as it is inside.
#[derive(Debug)]
pub(crate) struct Held(Option<Arc<Hold>>);

impl Held {
    /// The thread that runs this is inside since a moment ago.
    #[track_caller]
    pub(crate) fn new(request: Request) -> Self {
        let hold = Arc::new(Hold::new(request, Location::caller(), registry::this_thread()));
        registry::add_hold(&hold);
        Held(Some(hold))
    }

    /// The guard is a task's, and a task is on no thread.
    pub(crate) fn of_task(&mut self) {
        if let Some(hold) = &self.0 {
            hold.set_owner(NOBODY);
        }
    }

    /// The thread that runs this has the guard.
    pub(crate) fn touch(&self) {
        if let Some(hold) = &self.0 {
            let owner = hold.owner();
            let this = registry::this_thread();
            if owner != this && owner != NOBODY {
                hold.set_owner(this);
            }
        }
    }

    /// The guard is about to leave. Called before it does, so that what is registered is true.
    pub(crate) fn leave(&mut self) {
        if let Some(hold) = self.0.take() {
            registry::remove_hold(&hold);
        }
    }

    /// The guard may be outside until the value is dropped.
    #[track_caller]
    pub(crate) fn away(&mut self) -> Away<'_> {
        self.touch();
        if let Some(hold) = &self.0 {
            registry::remove_hold(hold);
        }
        Away { held: self, at: Location::caller() }
    }

    /// The guard is inside in another way now.
    #[track_caller]
    pub(crate) fn now(&mut self, exclusive: bool) {
        self.touch();
        self.replace(exclusive, Location::caller());
    }

    fn replace(&mut self, exclusive: bool, at: &'static Location<'static>) {
        if let Some(hold) = self.0.take() {
            registry::remove_hold(&hold);
            let request = Request { lock: hold.lock, exclusive, sessions: "" };
            let hold = Arc::new(Hold::new(request, at, hold.owner()));
            registry::add_hold(&hold);
            self.0 = Some(hold);
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
        let exclusive = self.held.0.as_ref().is_some_and(|hold| hold.exclusive);
        self.held.replace(exclusive, self.at);
    }
}

/// A thread that sleeps until it is let in.
pub(crate) struct Wait {
    thread: u64,
    /// `None` if it has a deadline, or if it cannot be told where it was called.
    waiter: Option<Arc<Waiter>>,
    before: Option<Arc<Waiter>>,
    look_at: Option<Instant>,
    bound: bool,
}

impl Observer for Wait {
    fn begin(request: Request, signal: &Arc<Signal>, endless: bool, bound: bool) -> Self {
        let thread = registry::this_thread();
        let at = registry::asked().filter(|_| endless && thread != NOBODY);
        let waiter = at.map(|at| Arc::new(Waiter::new(request, at, Arc::clone(signal))));
        let before =
            waiter.as_ref().and_then(|waiter| registry::add_wait(thread, Arc::clone(waiter)));
        let look_at = waiter.as_ref().and_then(|_| Instant::now().checked_add(super::grace()));
        Wait { thread, waiter, before, look_at, bound }
    }

    fn next_look(&self) -> Option<Instant> {
        self.look_at
    }

    /// Looks for a deadlock if it is time. The last to come tells of it.
    fn look(&mut self, _crowd: &dyn Fn() -> Crowd) -> Option<GiveUp> {
        let now = Instant::now();
        let waiter = self.waiter.as_ref()?;
        if self.look_at.is_none_or(|time| now < time) {
            return None;
        }
        self.look_at = now.checked_add(super::grace());
        let cycle = cycles::through(self.thread)?;
        if cycle.iter().any(|step| step.waiter.turn > waiter.turn) {
            return None;
        }
        // Once is enough.
        self.look_at = None;
        super::act(Deadlock::new(&cycle), self.bound)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            registry::end_wait(self.thread, self.before.take());
        }
    }
}
