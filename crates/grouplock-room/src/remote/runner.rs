//! Threads that wait may run the tasks they wait for.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

/// Runs the tasks of a backend. Without one, a thread that waits sleeps, and the answer to its
/// request wakes it. With one, the thread runs the tasks itself, and is not woken for the answer.
pub trait Runner: Send + Sync {
    /// Runs tasks on this thread until `is_ready` returns `true`, at most until `until`. A task
    /// that changes the answer of `is_ready` wakes the last waker that it got.
    ///
    /// Returns `false` at once if this thread must not run tasks, another thread already does, or
    /// `until` has passed.
    fn run(
        &self,
        until: Option<Instant>,
        is_ready: &mut dyn FnMut(&mut Context<'_>) -> bool,
    ) -> bool;

    /// Makes sure that a thread of the backend runs the tasks until the result is dropped.
    fn keep_running(self: Arc<Self>) -> Running;
}

/// Something that waits for tasks and does not [run](Runner::run) them itself.
pub struct Running {
    _kept: Box<dyn Any + Send + Sync>,
}

impl Running {
    /// Keeps a value of the backend.
    pub fn new(kept: impl Any + Send + Sync) -> Self {
        Running { _kept: Box::new(kept) }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}
