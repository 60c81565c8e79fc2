//! What the lock is built on: std's atomics and parking, or the same things from loom or shuttle.
//!
//! This file is the whole difference between the lock that runs and the lock that is explored.

#[cfg(loom)]
pub(crate) use self::loom_seq_cst::AtomicUsize;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32};
#[cfg(all(loom, feature = "handover"))]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU64},
};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
#[cfg(all(shuttle, feature = "handover"))]
pub(crate) use shuttle::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU64},
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
#[cfg(all(not(any(loom, shuttle)), feature = "handover"))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicPtr, AtomicU64},
};

#[cfg(loom)]
use loom::thread;
#[cfg(shuttle)]
use shuttle::thread;
#[cfg(not(any(loom, shuttle)))]
use std::thread;

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

pub(crate) use thread::Thread;

/// A cell that others order the accesses to. Loom watches that they do.
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

    /// To be read through.
    #[inline]
    pub(crate) fn read(&self) -> *const T {
        #[cfg(loom)]
        self.watch.with(|_| ());
        self.value.get()
    }

    /// To be written through.
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

/// Whether `until` has come, for one who has slept. In a model, it always has.
pub(crate) fn is_over(until: Instant, now: Instant) -> bool {
    cfg!(any(loom, shuttle)) || now >= until
}

/// How often a thread looks again at a word before it sleeps. In a model once, so that sleeping is explored.
pub(crate) const PATIENT_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// How often a request that does not wait tries for the internal lock of another thread.
pub(crate) const TRY_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 32 };

/// After so many looks, a thread that asks to be alone reserves the room: just before it yields for
/// the first time. In a model, after the first look.
pub(crate) const LOOKS_BEFORE_RESERVATION: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 3 };

/// How often it calls [`relax`] before the reservation.
pub(crate) const PAUSE_BEFORE_RESERVATION: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };

/// How often it looks at a reserved room.
pub(crate) const RESERVATION_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// How many rounds a thread spins before it joins the queue.
///
/// A thread that joins the queue sleeps, and it takes a thread's waking up to hand it the room. If a thread that has just left joined at once, the
/// next one would find it there, and from then on every entry would take a change of threads. So it looks for long enough that another thread
/// wakes up, passes and leaves. Shuttle explores two rounds; loom none, or as many as a model says.
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
    /// For the model that is explored on this thread.
    pub static LOOM_SPIN_ROUNDS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// And for how long, at most. A thread that gives up its processor may not get it back for milliseconds. Nobody knows of it meanwhile, so it should not
/// do that twice. With a fifth of this time, threads begin to queue that had only to look once more.
const SPIN_TIME: Duration = Duration::from_micros(500);

/// The pauses between a thread's looks at the word.
pub(crate) struct Spin {
    round: u32,
    /// From the first round on that looks at the clock.
    until: Option<Instant>,
    deadline: Option<Instant>,
}

impl Spin {
    /// That ends at `deadline`, if it has not ended before.
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        Spin { round: 0, until: None, deadline }
    }

    /// Pauses before one more look. Each pause is twice as long as the one before, then the processor is given up. Whether there is to be a look.
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

/// Lets the processor, or the model, turn to another thread for a moment.
pub(crate) fn relax() {
    #[cfg(any(loom, shuttle))]
    thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
}

/// Gives the processor up once.
#[cfg(feature = "handover")]
pub(crate) fn yield_now() {
    thread::yield_now();
}

/// A number that threads can sleep on.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type Word = AtomicU32;
#[cfg(any(loom, shuttle))]
pub(crate) use self::model_word::Word;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use crate::futex::wait;

/// Wakes all that sleep on `word`.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn wake_all(word: &Word) {
    crate::futex::wake_all(word);
}

/// Sleeps while `word` holds `value`, or less.
#[cfg(any(loom, shuttle))]
pub(crate) fn wait(word: &Word, value: u32) {
    word.wait(value);
}

/// Wakes all that sleep on `word`.
#[cfg(any(loom, shuttle))]
pub(crate) fn wake_all(word: &Word) {
    word.wake_all();
}

/// What the operating system does for those who sleep on a word.
#[cfg(any(loom, shuttle))]
mod model_word {
    use std::ops::Deref;
    use std::sync::atomic::Ordering::Relaxed;

    use super::AtomicU32;
    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(shuttle)]
    use shuttle::sync::{Condvar, Mutex};

    pub(crate) struct Word {
        value: AtomicU32,
        /// Held from the look at the value until the thread sleeps, so that nobody wakes it in between.
        looking: Mutex<()>,
        woken: Condvar,
    }

    impl Word {
        pub(crate) fn new(value: u32) -> Self {
            Word { value: AtomicU32::new(value), looking: Mutex::new(()), woken: Condvar::new() }
        }

        pub(super) fn wait(&self, value: u32) {
            let looking = self.looking.lock().expect("nobody panics with it");
            // Relaxed: what was written before an earlier waking is seen, as that locked `looking` too.
            if self.value.load(Relaxed) == value {
                drop(self.woken.wait(looking));
            }
        }

        pub(super) fn wake_all(&self) {
            let looking = self.looking.lock().expect("nobody panics with it");
            self.woken.notify_all();
            drop(looking);
        }
    }

    impl Deref for Word {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.value
        }
    }
}

/// So many entries in a row without anybody waiting make the session of the last one the favoured one of a striped lock. In a model and under miri,
/// there are few.
pub(crate) const CALM: u32 = if cfg!(any(loom, shuttle, miri)) { 1 } else { 64 };

/// How many stripes a striped lock has: enough that threads that run at the same time rarely share one.
pub(crate) fn stripes() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * processors).next_power_of_two().clamp(8, 256)
}

/// A number for the thread that runs this. Threads get them in turn, so that few share a stripe.
#[cfg(not(any(loom, shuttle)))]
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

/// A number for the thread that runs this: in a model, the one that the model gave it, so that it is the same in every run.
#[cfg(any(loom, shuttle))]
pub(crate) fn stripe_of_this_thread() -> usize {
    let shown = format!("{:?}", thread::current().id());
    let digits: String = shown.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Loom takes sequentially consistent accesses for acquire and release, but models sequentially consistent fences. So an access is put between two:
/// where all accesses to the variables concerned are sequentially consistent, that allows the interleavings and nothing else.
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
