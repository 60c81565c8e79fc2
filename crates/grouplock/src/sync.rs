//! What the lock is built on: std's atomics and parking, or the same things from loom or shuttle.
//!
//! This file is the whole difference between the lock that runs and the lock that is explored.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};

#[cfg(loom)]
use loom::thread;
#[cfg(shuttle)]
use shuttle::thread;
#[cfg(not(any(loom, shuttle)))]
use std::thread;

use std::time::Instant;

pub(crate) use thread::Thread;

/// The thread that runs this.
pub(crate) fn current() -> Thread {
    thread::current()
}

/// Sleeps until the thread is unparked, `until` has come, or for no reason.
///
/// In a model there is no clock: a wait that has an end may end at once.
pub(crate) fn park(until: Option<Instant>) {
    #[cfg(any(loom, shuttle))]
    match until {
        Some(_) => thread::yield_now(),
        None => thread::park(),
    }
    #[cfg(not(any(loom, shuttle)))]
    match until {
        Some(until) => thread::park_timeout(until.saturating_duration_since(Instant::now())),
        None => thread::park(),
    }
}

/// Whether `until` has come. In a model, it always has.
pub(crate) fn is_over(until: Instant, now: Instant) -> bool {
    cfg!(any(loom, shuttle)) || now >= until
}

/// How often a thread looks again at a word before it sleeps. A model gains nothing from looking again.
pub(crate) const PATIENT_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 100 };

/// How many rounds a thread spins before it joins the queue.
pub(crate) const SPIN_ROUNDS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 10 };

/// One round of spinning: each is twice as long as the one before, then the processor is given up.
pub(crate) fn spin(round: u32) {
    if round < 3 {
        for _ in 0..2 << round {
            relax();
        }
    } else {
        thread::yield_now();
    }
}

/// Lets the processor, or the model, turn to another thread for a moment.
pub(crate) fn relax() {
    #[cfg(any(loom, shuttle))]
    thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
}

/// Sleeps while `word` holds `value`, or less.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    #[cfg(any(loom, shuttle))]
    {
        let _ = (word, value);
        thread::yield_now();
    }
    #[cfg(not(any(loom, shuttle)))]
    atomic_wait::wait(word, value);
}

/// Wakes all that sleep on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    #[cfg(any(loom, shuttle))]
    let _ = word;
    #[cfg(not(any(loom, shuttle)))]
    atomic_wait::wake_all(word);
}

/// How many stripes a striped lock has: enough that threads that run at the same time rarely share one.
pub(crate) fn stripes() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * processors).next_power_of_two().clamp(8, 256)
}

/// A number for the thread that runs this. Threads get them in turn, so that few share a stripe.
pub(crate) fn stripe_of_this_thread() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Relaxed: the numbers need only be spread out.
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // Late in the life of a thread its locals are gone; any stripe will do.
    MINE.try_with(|mine| *mine).unwrap_or(0)
}
