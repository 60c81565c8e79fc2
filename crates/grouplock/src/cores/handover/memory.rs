//! The memory of the algorithm. Registers are atomics. Sleeping threads and tasks wait on flags.
//!
//! | word of a flag | waiter |
//! |---|---|
//! | 0, 1 | none sleeps; the flag is false, true |
//! | `ASLEEP` | a thread that makes its next step itself after it was woken |
//! | `AWAY`, `TASK` | a thread that sleeps, a task: the signalling thread makes its next step |
//! | one of those + `STANDS_IN` | the same; a thread makes the step and will signal |
//! | `DONE` | the flag is true, and another thread has made the step |

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::Waker;

use grouplock_algorithms::memory::{Flag, Memory, Site, Value};
use grouplock_algorithms::raw::GiveUp;

use super::locked;
use crate::foreign::{contain, discard};
use crate::sync::{self, Mutex, PATIENT_LOOKS, Word};

#[derive(Clone, Copy, Debug)]
pub(super) struct Park;

impl Memory for Park {
    #[cfg(not(any(loom, shuttle)))]
    type Register<T: Value> = grouplock_algorithms::memory::NativeRegister<T>;
    #[cfg(any(loom, shuttle))]
    type Register<T: Value> = model::ModelRegister<T>;
    type Flag = Go;

    fn await_until(condition: impl Fn() -> bool) {
        while !condition() {
            sync::relax();
        }
    }
}

const ASLEEP: u32 = 2;
const AWAY: u32 = 3;
const TASK: u32 = 4;
const STANDS_IN: u32 = 8;
const DONE: u32 = 16;

pub(super) struct Go {
    word: Word,
    /// Wakes the task.
    waker: Mutex<Option<Waker>>,
}

impl Flag for Go {
    fn new(_: Site, initial: bool) -> Self {
        Go { word: Word::new(u32::from(initial)), waker: Mutex::new(None) }
    }

    #[inline]
    fn set(&self, value: bool) {
        // Relaxed: the caller's next release publishes it, as the trait demands.
        self.word.store(u32::from(value), Relaxed);
    }

    #[inline]
    fn signal(&self, value: bool) {
        // Relaxed: only this thread can have set `STANDS_IN`.
        let stands_in = self.word.load(Relaxed) & STANDS_IN != 0;
        let now = if stands_in { DONE } else { u32::from(value) };
        // Release: pairs with the acquire in `holds`.
        match self.word.swap(now, Release) & !STANDS_IN {
            ASLEEP | AWAY => sync::wake_all(&self.word),
            TASK => self.wake(),
            _ => {}
        }
    }

    #[inline]
    fn wait_for(&self, value: bool) {
        for _ in 0..PATIENT_LOOKS {
            if self.holds(value) {
                return;
            }
            sync::relax();
        }
        // Acquire on failure: the signal may have come. On success there is nothing to see yet.
        let sleeps = self.word.compare_exchange(u32::from(!value), ASLEEP, Relaxed, Acquire);
        while !self.holds(value) {
            match sleeps {
                Ok(_) => sync::wait(&self.word, ASLEEP),
                // This thread was away and came back to withdraw. A signal will come soon.
                Err(_) => sync::yield_now(),
            }
        }
    }

    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool {
        while !self.holds(value) {
            if give_up() {
                return false;
            }
            sync::relax();
        }
        true
    }

    #[inline]
    fn holds(&self, value: bool) -> bool {
        // Acquire: pairs with the release in `signal`.
        match self.word.load(Acquire) {
            DONE => value,
            word => word == u32::from(value),
        }
    }

    fn signal_unless_away(&self) -> bool {
        // Relaxed: the compare-and-swap decides. It fails at most once: the waiter sleeps.
        let mut word = self.word.load(Relaxed);
        loop {
            let away = matches!(word, AWAY | TASK);
            let now = if away { word | STANDS_IN } else { 1 };
            // Acquire: pairs with the release in `go_away`. The step for the waiter happens after
            // the steps of the waiter. Release: as in `signal`.
            match self.word.compare_exchange(word, now, AcqRel, Relaxed) {
                Ok(ASLEEP) => sync::wake_all(&self.word),
                Ok(_) => {}
                Err(changed) => {
                    word = changed;
                    continue;
                }
            }
            return !away;
        }
    }

    fn stood_in(&self) -> bool {
        // Relaxed: the caller has acquired the word.
        self.word.load(Relaxed) == DONE
    }

    fn comes_back(&self) -> bool {
        // Relaxed, both times: only success matters. The caller reads nothing because of it.
        let word = self.word.load(Relaxed);
        match word {
            AWAY | TASK => self.word.compare_exchange(word, 0, Relaxed, Relaxed).is_ok(),
            _ => word & STANDS_IN == 0,
        }
    }
}

impl Go {
    /// The waiter goes away, unless the signal has come. Returns whether it is away.
    fn go_away(&self, kind: u32) -> bool {
        // Release: pairs with the acquire in `signal_unless_away`.
        self.word.compare_exchange(0, kind, AcqRel, Acquire).is_ok()
    }

    /// Sleeps until the signal comes.
    pub(super) fn sleep(&self) {
        if !self.go_away(AWAY) {
            return;
        }
        loop {
            let word = self.word.load(Acquire);
            if word & !STANDS_IN != AWAY {
                return;
            }
            sync::wait(&self.word, word);
        }
    }

    /// Returns whether the signal has come. If not, the signal will wake the waker.
    pub(super) fn poll(&self, waker: impl FnOnce() -> Waker) -> bool {
        if self.holds(true) {
            return true;
        }
        let waker = waker();
        let old = locked(&self.waker).replace(waker);
        discard(old);
        // Relaxed: only the waiter itself goes away. If it is away already, the signalling thread
        // finds the waker, or the waiter sees the signal below.
        if self.word.load(Relaxed) == 0 {
            self.go_away(TASK);
        }
        let holds = self.holds(true);
        if holds {
            self.forget_waker();
        }
        holds
    }

    /// Drops the waker.
    pub(super) fn forget_waker(&self) {
        let old = locked(&self.waker).take();
        discard(old);
    }

    /// Wakes the task later, after the exit lock was released: a waker runs foreign code.
    #[cold]
    fn wake(&self) {
        let waker = locked(&self.waker).take();
        // The waker may belong to the next waiter of this flag, which then wakes without a reason.
        // On some systems no thread-local value outlives the destructors. There, the task is woken
        // now.
        let late = waker.and_then(|waker| {
            let mut waker = Some(waker);
            _ = TO_WAKE.try_with(|list| list.borrow_mut().extend(waker.take()));
            waker
        });
        if let Some(waker) = late {
            contain(|| waker.wake());
        }
    }
}

thread_local! {
    /// The tasks that this thread has admitted and not woken yet. The list has no destructor, so it
    /// exists when a destructor of another thread-local value leaves a room. Empty, it owns no
    /// memory.
    static TO_WAKE: RefCell<ManuallyDrop<VecDeque<Waker>>> =
        const { RefCell::new(ManuallyDrop::new(VecDeque::new())) };
}

/// Wakes the tasks that this thread has admitted. The caller must not hold the exit lock.
#[inline]
pub(super) fn wake_tasks() {
    while let Ok(Some(waker)) = TO_WAKE.try_with(next_to_wake) {
        contain(|| waker.wake());
    }
}

#[inline]
fn next_to_wake(list: &RefCell<ManuallyDrop<VecDeque<Waker>>>) -> Option<Waker> {
    let mut list = list.borrow_mut();
    let next = list.pop_front()?;
    if list.is_empty() {
        **list = VecDeque::new();
    }
    Some(next)
}

impl fmt::Debug for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Go").field(&self.word.load(Relaxed)).finish()
    }
}

/// Registers of a model. Each value fits into a pointer. Numbers have no provenance.
#[cfg(any(loom, shuttle))]
mod model {
    use std::marker::PhantomData;
    use std::ptr;
    use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};

    use grouplock_algorithms::memory::{Number, Register, Site, Value, Word};
    use grouplock_algorithms::raw::GiveUp;

    use crate::sync::AtomicPtr;

    #[derive(Debug)]
    pub(crate) struct ModelRegister<T> {
        cell: AtomicPtr<()>,
        is_pointer: bool,
        holds: PhantomData<fn() -> T>,
    }

    impl<T: Value> ModelRegister<T> {
        fn pack(value: T) -> *mut () {
            match value.word() {
                Word::Pointer(pointer) => pointer.cast_mut(),
                Word::Number(number) => ptr::without_provenance_mut(
                    usize::try_from(number).expect("models run on 64-bit machines"),
                ),
            }
        }

        fn unpack(&self, pointer: *mut ()) -> T {
            T::from_word(if self.is_pointer {
                Word::Pointer(pointer)
            } else {
                Word::Number(pointer.addr() as u64)
            })
        }
    }

    impl<T: Value> Register<T> for ModelRegister<T> {
        fn new(_: Site, initial: T) -> Self {
            let is_pointer = matches!(initial.word(), Word::Pointer(_));
            let cell = AtomicPtr::new(Self::pack(initial));
            ModelRegister { cell, is_pointer, holds: PhantomData }
        }

        fn read(&self, order: Ordering) -> T {
            self.unpack(self.cell.load(order))
        }

        fn write(&self, value: T, order: Ordering) {
            self.cell.store(Self::pack(value), order);
        }

        fn fas(&self, value: T, order: Ordering) -> T {
            self.unpack(self.cell.swap(Self::pack(value), order))
        }

        fn cas(&self, old: T, new: T, order: Ordering) -> bool {
            let failure = if matches!(order, AcqRel | Acquire) { Acquire } else { Relaxed };
            self.cell.compare_exchange(Self::pack(old), Self::pack(new), order, failure).is_ok()
        }

        fn faa(&self, _delta: T, _order: Ordering) -> T
        where
            T: Number,
        {
            unreachable!("the algorithm does not add")
        }

        fn await_other(&self, _value: T, _order: Ordering, _give_up: GiveUp<'_>) -> Option<T> {
            unreachable!("the algorithm waits on flags only")
        }
    }
}
