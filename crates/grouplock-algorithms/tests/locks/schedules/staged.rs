//! Real memory for tests that place every step themselves. A thread can refuse to wait, and can
//! report the end of its doorway.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::Sender;

use grouplock_algorithms::memory::{Flag, Memory, Native, Site, Value};
use grouplock_algorithms::raw::GiveUp;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged;

thread_local! {
    static MUST_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
    static TELL: Cell<Option<Sender<()>>> = const { Cell::new(None) };
    static TELL_OF_WAIT: Cell<Option<Sender<()>>> = const { Cell::new(None) };
}

/// The payload of the unwinding when a wait is not allowed.
struct Waits;

/// Runs `steps`. Returns nothing if they reach a point where the process must wait.
pub(crate) fn unless_it_must_wait<R>(steps: impl FnOnce() -> R) -> Option<R> {
    MUST_NOT_WAIT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(steps));
    MUST_NOT_WAIT.set(false);
    match outcome {
        Ok(result) => Some(result),
        Err(reason) if reason.is::<Waits>() => None,
        Err(reason) => panic::resume_unwind(reason),
    }
}

/// The calling thread notifies `whom` when it ends its next doorway.
pub(crate) fn tell_of_doorway_end(whom: Sender<()>) {
    TELL.set(Some(whom));
}

/// The calling thread notifies `whom` when it must wait for the first time.
pub(crate) fn tell_of_wait(whom: Sender<()>) {
    TELL_OF_WAIT.set(Some(whom));
}

fn about_to_wait() {
    if let Some(whom) = TELL_OF_WAIT.take() {
        // As below.
        _ = whom.send(());
    }
    if MUST_NOT_WAIT.get() {
        // This is no panic: it prints no message.
        panic::resume_unwind(Box::new(Waits));
    }
}

impl Memory for Staged {
    type Register<T: Value> = <Native as Memory>::Register<T>;
    type Flag = StagedFlag;

    fn await_until(condition: impl Fn() -> bool) {
        if !condition() {
            about_to_wait();
            Native::await_until(condition);
        }
    }

    fn doorway_end() {
        if let Some(whom) = TELL.take() {
            // The receiver may be gone. This thread ignores that.
            _ = whom.send(());
        }
    }
}

/// A native flag that remembers its value, to know whether a wait for another value blocks.
#[derive(Debug)]
pub(crate) struct StagedFlag {
    value: AtomicBool,
    flag: <Native as Memory>::Flag,
}

impl Flag for StagedFlag {
    fn new(site: Site, initial: bool) -> Self {
        StagedFlag { value: initial.into(), flag: Flag::new(site, initial) }
    }

    fn set(&self, value: bool) {
        self.value.store(value, Ordering::SeqCst);
        self.flag.set(value);
    }

    fn signal(&self, value: bool) {
        self.value.store(value, Ordering::SeqCst);
        self.flag.signal(value);
    }

    fn wait_for(&self, value: bool) {
        if self.value.load(Ordering::SeqCst) != value {
            about_to_wait();
        }
        self.flag.wait_for(value);
    }

    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool {
        if self.value.load(Ordering::SeqCst) != value {
            about_to_wait();
        }
        self.flag.wait_unless(value, give_up)
    }

    fn holds(&self, value: bool) -> bool {
        self.flag.holds(value)
    }
}
