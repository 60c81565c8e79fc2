//! The atomics and the parking of the lock: those of std, loom or shuttle.
//!
//! The lock that runs and the lock that a model explores differ in this file. They also differ in
//! limits, in whether a thread's signal is used again, and in the registers of `Handover`.

#[cfg(loom)]
use loom as base;
#[cfg(shuttle)]
use shuttle as base;
#[cfg(not(any(loom, shuttle)))]
use std as base;

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

#[cfg(loom)]
pub(crate) use self::loom_seq_cst::AtomicUsize;
#[cfg(not(loom))]
pub(crate) use base::sync::atomic::AtomicUsize;
pub(crate) use base::sync::atomic::{AtomicU8, AtomicU32};
#[cfg(feature = "handover")]
pub(crate) use base::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU64},
};
use base::thread;
#[cfg(feature = "handover")]
pub(crate) use base::thread::yield_now;
pub(crate) use base::thread::{Thread, current};

/// A cell. Its users order the accesses to it, and loom checks that.
pub(crate) struct Shared<T> {
    value: UnsafeCell<T>,
    #[cfg(loom)]
    watch: loom::cell::UnsafeCell<()>,
}

impl<T> Shared<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: T) -> Self {
        Shared { value: UnsafeCell::new(value) }
    }

    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Self {
        Shared { value: UnsafeCell::new(value), watch: loom::cell::UnsafeCell::new(()) }
    }

    /// A pointer for reading.
    #[inline]
    pub(crate) fn read(&self) -> *const T {
        #[cfg(loom)]
        self.watch.with(|_| ());
        self.value.get()
    }

    /// A pointer for writing.
    #[inline]
    pub(crate) fn write(&self) -> *mut T {
        #[cfg(loom)]
        self.watch.with_mut(|_| ());
        self.value.get()
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Sleeps until the thread is unparked, until `until`, or wakes for no reason.
///
/// A model has no clock: a wait with an end may end at once.
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

/// Returns whether `until` has come, for a thread that has slept. In a model, it always has.
pub(crate) fn is_over(until: Instant, now: Instant) -> bool {
    cfg!(any(loom, shuttle)) || now >= until
}

/// How often a thread looks at a word again before it sleeps. Once in a model, to explore sleep.
pub(crate) const PATIENT_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// How often a request that does not wait tries to take the internal lock.
pub(crate) const TRY_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 32 };

/// After so many looks, a thread that asks to be alone reserves the room: before it yields for the
/// first time, unless it had to ask first. In a model, after the first look.
pub(crate) const LOOKS_BEFORE_RESERVATION: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 3 };

/// How often it calls [`relax`] before the reservation.
pub(crate) const PAUSE_BEFORE_RESERVATION: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };

/// How often it looks at a reserved room.
pub(crate) const RESERVATION_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// How many rounds a thread spins before it joins the queue.
///
/// A thread that joins the queue sleeps, and must wake up before it can enter. If a thread that has
/// just left joined the queue at once, the next thread would find it there. From then on every
/// entry would need a thread to wake up. So a thread spins long enough for another thread to wake
/// up, enter and leave. Shuttle explores two rounds, loom as many as a model says.
#[cfg(not(loom))]
fn spin_rounds() -> u32 {
    if cfg!(shuttle) { 2 } else { 30 }
}

#[cfg(loom)]
fn spin_rounds() -> u32 {
    LOOM_SPIN_ROUNDS.get()
}

#[cfg(loom)]
std::thread_local! {
    /// For the model that runs on this thread.
    pub static LOOM_SPIN_ROUNDS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// How long a thread spins at most. A thread that yields its processor may not get it back for
/// milliseconds. It is not in the queue meanwhile, so it should not yield twice after such a pause.
/// With a fifth of this time, threads begin to queue that had only to look once more.
const SPIN_TIME: Duration = Duration::from_micros(500);

/// The pauses between the looks of a thread at the word.
pub(crate) struct Spin {
    round: u32,
    /// The end of the spinning. Set in the first round that reads the clock.
    until: Option<Instant>,
    deadline: Option<Instant>,
}

impl Spin {
    /// Spins at most until `deadline`.
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        Spin { round: 0, until: None, deadline }
    }

    /// Pauses before one more look. Each of the first pauses is twice as long as the one before.
    /// Later pauses yield the processor. Returns whether to look again.
    pub(crate) fn pause(&mut self) -> bool {
        if self.round == spin_rounds() {
            return false;
        }
        if self.round < 3 {
            (0..2 << self.round).for_each(|_| relax());
        } else if cfg!(any(loom, shuttle)) {
            thread::yield_now();
        } else {
            let now = Instant::now();
            let until = self.until.get_or_insert(now + SPIN_TIME);
            if now >= self.deadline.map_or(*until, |deadline| deadline.min(*until)) {
                return false;
            }
            thread::yield_now();
        }
        self.round += 1;
        true
    }
}

/// Pauses for a moment. In a model, another thread runs.
pub(crate) fn relax() {
    #[cfg(any(loom, shuttle))]
    thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
}

/// A word that threads can sleep on.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type Word = AtomicU32;
#[cfg(any(loom, shuttle))]
pub(crate) use self::model_word::{Word, wait, wake_all};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use crate::futex::wait;

/// Wakes all threads that sleep on `word`.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn wake_all(word: &Word) {
    crate::futex::wake_all(word);
}

/// The model of the operating system's calls to sleep on a word.
#[cfg(any(loom, shuttle))]
mod model_word {
    use std::ops::Deref;
    use std::sync::atomic::Ordering::Relaxed;

    use super::AtomicU32;
    use super::base::sync::{Condvar, Mutex};

    pub(crate) struct Word {
        value: AtomicU32,
        /// Held from the look at the value until the sleep, so that no wake-up is lost.
        looking: Mutex<()>,
        woken: Condvar,
    }

    impl Word {
        pub(crate) fn new(value: u32) -> Self {
            Word { value: AtomicU32::new(value), looking: Mutex::new(()), woken: Condvar::new() }
        }
    }

    /// Sleeps while `word` has `value`. May return early.
    pub(crate) fn wait(word: &Word, value: u32) {
        let looking = word.looking.lock().expect("no thread panics while it holds it");
        // Relaxed: waking locks `looking` too. So this thread sees what was written before.
        if word.value.load(Relaxed) == value {
            drop(word.woken.wait(looking));
        }
    }

    /// Wakes all threads that sleep on `word`.
    pub(crate) fn wake_all(word: &Word) {
        let looking = word.looking.lock().expect("no thread panics while it holds it");
        word.woken.notify_all();
        drop(looking);
    }

    impl Deref for Word {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.value
        }
    }
}

/// After so many entries in a row without a waiter, a striped lock favours the last session.
pub(crate) const ENTRIES_TO_FAVOUR: u32 = if cfg!(any(loom, shuttle, miri)) { 1 } else { 64 };

/// The number of stripes of a striped lock: enough that concurrent threads rarely share one.
pub(crate) fn stripes() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * processors).next_power_of_two().clamp(8, 256)
}

/// The stripe of the calling thread. Threads get numbers in turn, so that few share a stripe.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn stripe_of_this_thread() -> usize {
    number_of_this_thread().unwrap_or(0)
}

/// The number of the calling thread. `None` late in its life, when thread-local values are gone.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn number_of_this_thread() -> Option<usize> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        // Relaxed: the numbers need only differ.
        static MINE: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    MINE.try_with(|mine| *mine).ok()
}

/// The number of the calling thread. A model gives the number, so that it is the same in every run.
#[cfg(any(loom, shuttle))]
pub(crate) fn stripe_of_this_thread() -> usize {
    let shown = format!("{:?}", thread::current().id());
    let digits: String = shown.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Loom treats sequentially consistent accesses as acquire and release, but it models sequentially
/// consistent fences. So each access here is between two fences. If all accesses to the variables
/// are sequentially consistent, that allows exactly the interleavings.
#[cfg(loom)]
mod loom_seq_cst {
    use loom::sync::atomic::fence;
    use std::sync::atomic::Ordering::{self, AcqRel, Acquire, SeqCst};

    pub(crate) struct AtomicUsize(loom::sync::atomic::AtomicUsize);

    fn between_fences<R>(order: Ordering, step: impl FnOnce() -> R) -> R {
        assert_eq!(order, SeqCst, "the model knows nothing weaker");
        fence(SeqCst);
        let result = step();
        fence(SeqCst);
        result
    }

    impl AtomicUsize {
        pub(crate) fn new(value: usize) -> Self {
            AtomicUsize(loom::sync::atomic::AtomicUsize::new(value))
        }

        pub(crate) fn load(&self, order: Ordering) -> usize {
            between_fences(order, || self.0.load(Acquire))
        }

        pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            between_fences(order, || self.0.fetch_add(value, AcqRel))
        }

        pub(crate) fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
            between_fences(order, || self.0.fetch_sub(value, AcqRel))
        }

        pub(crate) fn compare_exchange(
            &self,
            old: usize,
            new: usize,
            order: Ordering,
            _failure: Ordering,
        ) -> Result<usize, usize> {
            between_fences(order, || self.0.compare_exchange(old, new, AcqRel, Acquire))
        }
    }
}
