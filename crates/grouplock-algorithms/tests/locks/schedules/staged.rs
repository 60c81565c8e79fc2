//! Real memory for tests that place every step themselves: a thread can refuse to wait, and tell of
//! its doorway.

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

/// What a wait that must not be unwinds with.
struct Waits;

/// Runs `steps`. Returns nothing if they come to a point where the process has to wait.
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

/// The calling thread tells `whom` when it ends its next doorway.
pub(crate) fn tell_of_doorway_end(whom: Sender<()>) {
    TELL.set(Some(whom));
}

/// The calling thread tells `whom` when it has to wait for the first time.
pub(crate) fn tell_of_wait(whom: Sender<()>) {
    TELL_OF_WAIT.set(Some(whom));
}

fn about_to_wait() {
    if let Some(whom) = TELL_OF_WAIT.take() {
        // As below.
        _ = whom.send(());
    }
    if MUST_NOT_WAIT.get() {
        // Not a panic: no message.
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
            // Nobody may be listening any more; that is not this thread's business.
            _ = whom.send(());
        }
    }
}

/// A native flag that remembers its value, to tell whether waiting for another is a wait.
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
