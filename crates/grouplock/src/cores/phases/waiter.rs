//! Waiters: threads that sleep and tasks that wait to be polled.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::Waker;
use std::time::Instant;

use super::queue::PhaseId;
use crate::foreign::{contain, discard};
use crate::sync::{self, AtomicU8, Thread};

/// The state of a waiter, which the waiter reads. Only a thread that holds the internal lock writes
/// it, or the waiter before it joins the queue.
#[derive(Debug)]
pub(crate) struct Signal {
    state: AtomicU8,
    /// The thread to wake. `None` for a task.
    thread: Option<Thread>,
}

/// The state of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WaiterState {
    /// In the queue, asleep.
    Waiting,
    /// In the queue. The room was free a moment ago, and the waiter may try to enter.
    Invited,
    /// Inside. The waiter has left the queue and is counted as a holder.
    Granted,
}

impl Signal {
    fn new(thread: Option<Thread>) -> Arc<Self> {
        Arc::new(Signal { state: AtomicU8::new(WaiterState::Waiting as u8), thread })
    }

    /// For a task.
    pub(super) fn of_task() -> Arc<Self> {
        Self::new(None)
    }

    /// For the calling thread. It waits for one lock at a time, so it rarely needs a second signal.
    pub(super) fn of_this_thread() -> Arc<Self> {
        #[cfg(not(any(loom, shuttle)))]
        {
            thread_local! {
                static MINE: Arc<Signal> = Signal::new(Some(sync::current()));
            }
            // The signal may be in use: while a thread is about to wait for this lock, a comparison
            // or a clone of a session may wait for another lock. And thread-local values are gone
            // late in the life of a thread. In both cases this wait gets a signal of its own.
            let mine = MINE
                .try_with(|mine| (Arc::strong_count(mine) == 1).then(|| Arc::clone(mine)))
                .ok()
                .flatten()
                .unwrap_or_else(|| Self::new(Some(sync::current())));
            // Relaxed: the next writer gets it from the queue, under the internal lock.
            mine.state.store(WaiterState::Waiting as u8, std::sync::atomic::Ordering::Relaxed);
            mine
        }
        #[cfg(any(loom, shuttle))]
        Self::new(Some(sync::current()))
    }

    /// The state of the waiter.
    pub(super) fn state(&self) -> WaiterState {
        // Acquire: pairs with the release in `set`. So the waiter sees what earlier holders did.
        match self.state.load(Acquire) {
            state if state == WaiterState::Granted as u8 => WaiterState::Granted,
            state if state == WaiterState::Invited as u8 => WaiterState::Invited,
            _ => WaiterState::Waiting,
        }
    }

    /// Returns whether the waiter is inside. It may not have woken up yet.
    #[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
    pub(crate) fn is_granted(&self) -> bool {
        self.state() == WaiterState::Granted
    }

    /// Changes the state. The caller wakes the waiter after it has released the internal lock.
    pub(super) fn set(&self, state: WaiterState) {
        // Release: pairs with the acquire in `state`.
        self.state.store(state as u8, Release);
    }
}

/// A waiter in the queue.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) phase: PhaseId,
    pub(super) arrived: Instant,
    pub(super) signal: Arc<Signal>,
    pub(super) kind: Kind,
    /// Whether it needs the room set up for its session, or must set it up.
    pub(super) set_up: bool,
}

impl Waiter {
    /// Makes the waiter a holder, and wakes it unless it is `running`. It has been counted before.
    pub(super) fn enter(self, running: bool, wakes: &mut Wakes) {
        if !running {
            match self.kind {
                Kind::Task(waker) => wakes.push(Wake::Task(waker)),
                Kind::Thread | Kind::Switching => wakes.thread(&self.signal),
            }
        }
        self.signal.set(WaiterState::Granted);
    }
}

/// What waits.
#[derive(Debug)]
pub(super) enum Kind {
    /// A thread. It can be invited to try for a free room. Another thread may then enter before it.
    Thread,
    /// A thread that has left its session for another. It must enter, so the room is handed to it.
    Switching,
    /// A task, and its waker. It may be polled late, or never, so the room is handed to it.
    Task(Waker),
}

impl Kind {
    /// Returns whether it can be invited.
    pub(super) fn can_be_invited(&self) -> bool {
        matches!(self, Kind::Thread)
    }
}

/// The waiters to wake after the internal lock was released: wakers run the code of executors.
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<Wake>);

#[derive(Debug)]
enum Wake {
    Thread(Thread),
    Task(Waker),
}

thread_local! {
    /// The vector that this thread used last, empty. So only the first use allocates.
    static SPARE: Cell<Vec<Wake>> = const { Cell::new(Vec::new()) };
}

/// A vector of this capacity is not kept.
const TOO_LARGE: usize = 1024;

impl Wakes {
    /// Adds the thread that reads `signal`. The thread may need the signal for its next wait before
    /// it is woken from this one, so the signal itself is not kept.
    pub(super) fn thread(&mut self, signal: &Signal) {
        if let Some(thread) = &signal.thread {
            self.push(Wake::Thread(thread.clone()));
        }
    }

    fn push(&mut self, wake: Wake) {
        if self.0.capacity() == 0 {
            // Thread-local values are gone late in the life of a thread.
            self.0 = SPARE.try_with(Cell::take).unwrap_or_default();
        }
        self.0.push(wake);
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        for wake in self.0.drain(..) {
            match wake {
                Wake::Thread(thread) => thread.unpark(),
                Wake::Task(waker) => contain(|| waker.wake()),
            }
        }
        if self.0.capacity() < TOO_LARGE {
            let spare = std::mem::take(&mut self.0);
            _ = SPARE.try_with(|kept| kept.set(spare));
        }
    }
}

/// Sessions that the lock no longer needs. They are dropped after the internal lock was released,
/// because their destructors are foreign code. There is rarely more than one.
#[derive(Debug)]
pub(super) struct Retired<S> {
    one: Option<S>,
    more: Vec<S>,
}

impl<S> Retired<S> {
    pub(super) const fn new() -> Self {
        Retired { one: None, more: Vec::new() }
    }

    pub(super) fn push(&mut self, name: Option<S>) {
        if !std::mem::needs_drop::<S>() {
        } else if self.one.is_none() {
            self.one = name;
        } else {
            self.more.extend(name);
        }
    }
}

impl<S> Drop for Retired<S> {
    fn drop(&mut self) {
        self.one.take().into_iter().chain(self.more.drain(..)).for_each(discard);
    }
}
