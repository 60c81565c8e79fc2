//! Those who wait: threads that sleep and tasks that are to be polled.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::Waker;
use std::time::Instant;

use super::arena::Slot;
use crate::sync::{self, AtomicU8, Thread};

/// What a waiter looks at to learn how it stands. Written only by who holds the internal lock.
#[derive(Debug)]
pub(crate) struct Signal {
    state: AtomicU8,
    /// The thread that sleeps, if it is one.
    thread: Option<Thread>,
}

/// How a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Standing {
    /// In the queue, asleep.
    Waiting,
    /// In the queue; the room was free a moment ago, and the waiter may try for it.
    Invited,
    /// Inside. The waiter has left the queue and counts as a holder.
    Granted,
}

impl Signal {
    fn new(thread: Option<Thread>) -> Arc<Self> {
        Arc::new(Signal { state: AtomicU8::new(Standing::Waiting as u8), thread })
    }

    /// For a task.
    pub(super) fn of_task() -> Arc<Self> {
        Self::new(None)
    }

    /// For the thread that runs this. A thread waits for one lock at a time, so it nearly always needs one signal in its life.
    pub(super) fn of_this_thread() -> Arc<Self> {
        #[cfg(not(any(loom, shuttle)))]
        {
            thread_local! {
                static MINE: Arc<Signal> = Signal::new(Some(sync::current()));
            }
            // It may be in use: comparing or cloning a session may wait for another lock while the thread is about to wait for this one. And
            // late in the life of a thread its locals are gone. Then one is made for this wait.
            let mine = MINE
                .try_with(|mine| (Arc::strong_count(mine) == 1).then(|| Arc::clone(mine)))
                .ok()
                .flatten()
                .unwrap_or_else(|| Self::new(Some(sync::current())));
            // Relaxed: the one who will write it next learns of it through the queue, under the internal lock.
            mine.state.store(Standing::Waiting as u8, std::sync::atomic::Ordering::Relaxed);
            mine
        }
        #[cfg(any(loom, shuttle))]
        Self::new(Some(sync::current()))
    }

    /// How the waiter stands.
    pub(super) fn standing(&self) -> Standing {
        // Acquire: pairs with the release in `set`, so that who finds itself inside sees what earlier holders did.
        match self.state.load(Acquire) {
            state if state == Standing::Granted as u8 => Standing::Granted,
            state if state == Standing::Invited as u8 => Standing::Invited,
            _ => Standing::Waiting,
        }
    }

    /// Whether the waiter is inside, and perhaps does not know yet.
    #[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
    pub(crate) fn is_granted(&self) -> bool {
        self.standing() == Standing::Granted
    }

    /// Tells the waiter. It is to be woken afterwards, once the internal lock is released.
    pub(super) fn set(&self, standing: Standing) {
        // Release: pairs with the acquire in `standing`.
        self.state.store(standing as u8, Release);
    }
}

/// One who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) phase: Slot,
    pub(super) arrived: Instant,
    pub(super) signal: Arc<Signal>,
    pub(super) kind: Kind,
    /// Whether it must find the room set up for its session, or do that.
    pub(super) set_up: bool,
}

impl Waiter {
    /// It is inside, and is woken unless it is `running`. It has been counted: from here on, it may leave again.
    pub(super) fn enter(self, running: bool, wakes: &mut Wakes) {
        if !running {
            match self.kind {
                Kind::Task(waker) => wakes.task(waker),
                Kind::Thread | Kind::Switching => wakes.thread(&self.signal),
            }
        }
        self.signal.set(Standing::Granted);
    }
}

/// Who waits.
#[derive(Debug)]
pub(super) enum Kind {
    /// A thread. It can be invited to try for a free room, and come too late.
    Thread,
    /// A thread that has given up its session for another. Whatever happens now must end inside: it is handed the room.
    Switching,
    /// A task, and how to have it polled. It may be polled late, or never: it is handed the room.
    Task(Waker),
}

impl Kind {
    /// Whether it can be invited.
    pub(super) fn can_try(&self) -> bool {
        matches!(self, Kind::Thread)
    }
}

/// Those to be woken when the internal lock has been released. Waking runs the code of executors.
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<Wake>);

#[derive(Debug)]
enum Wake {
    Thread(Thread),
    Task(Waker),
}

thread_local! {
    /// The vector that this thread used last, empty: waking allocates nothing, once a thread has done it.
    static SPARE: Cell<Vec<Wake>> = const { Cell::new(Vec::new()) };
}

/// A vector of this size is not kept.
const TOO_LARGE: usize = 1024;

impl Wakes {
    pub(super) fn task(&mut self, waker: Waker) {
        self.push(Wake::Task(waker));
    }

    /// The thread that looks at `signal`. The signal itself is left to the thread, which may need it for its next wait before it is woken from this one.
    pub(super) fn thread(&mut self, signal: &Signal) {
        if let Some(thread) = &signal.thread {
            self.push(Wake::Thread(thread.clone()));
        }
    }

    fn push(&mut self, wake: Wake) {
        if self.0.capacity() == 0 {
            // Late in the life of a thread its locals are gone.
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
            let _ = SPARE.try_with(|place| place.set(spare));
        }
    }
}

/// Names that the lock needs no more. They are dropped when the internal lock is free, as that runs the user's code. Nearly always there is one at most.
#[derive(Debug)]
pub(super) struct Retired<S> {
    one: Option<S>,
    more: Vec<S>,
}

impl<S> Retired<S> {
    pub(super) const fn new() -> Self {
        Retired { one: None, more: Vec::new() }
    }

    pub(super) fn push(&mut self, name: S) {
        if !std::mem::needs_drop::<S>() {
        } else if self.one.is_none() {
            self.one = Some(name);
        } else {
            self.more.push(name);
        }
    }
}

impl<S> Drop for Retired<S> {
    fn drop(&mut self) {
        self.one.take().into_iter().chain(self.more.drain(..)).for_each(discard);
    }
}

/// Drops a name. If that panics, it goes no further.
#[inline]
pub(crate) fn discard<S>(name: S) {
    if std::mem::needs_drop::<S>() {
        contain(|| drop(name));
    }
}

/// Runs foreign code on behalf of somebody else. If it panics, that has been reported by the panic hook, and goes no further: the thread that
/// runs it is about to enter or to leave, and others are still to be woken.
pub(crate) fn contain(foreign: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(foreign)) {
        // Dropping it might panic again.
        std::mem::forget(payload);
    }
}
