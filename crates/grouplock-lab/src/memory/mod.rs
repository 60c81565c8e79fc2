//! Simulated memory: each access is a step that the caller of the process decides about.
//!
//! [`SimMemory`] implements [`Memory`] without contents. A register knows only its number. The
//! effect of an access depends on the context of the calling thread:
//!
//! | context | an access |
//! |---|---|
//! | set-up: the lock is made and its processes join | happens at once, and the layout is noted |
//! | a coroutine | suspends the process until the [meter](crate::rmr) performs the access, or an exploration gives the answer |
//! | none: the lock is being dropped | returns the register's first value |
//!
//! Code that can be suspended but not copied is still an automaton for an exploration: to learn its
//! next step, run it again from the start with one more answer.

pub(crate) mod context;
pub(crate) mod running;

use std::panic::Location;
use std::ptr::NonNull;

use grouplock_algorithms::memory::{
    Flag, Memory, Number, Ordering, Ptr, Register, Site, Value, Word,
};

use grouplock_algorithms::raw::GiveUp;

use context::{Cue, Operation, Suspension};

/// Runs `f`, which makes things on this memory.
#[doc(hidden)]
pub fn set_up<R>(f: impl FnOnce() -> R) -> R {
    context::set_up(f).0
}

/// A memory that exists only as the answers of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct SimMemory;

impl Memory for SimMemory {
    type Register<T: Value> = SimRegister<T>;
    type Flag = SimFlag;

    const GROWS: bool = false;

    /// Each read in a round is a step of its own. A round that fails leaves no mark, so it leads
    /// back to the place where it began; a round that succeeds leaves no mark but that.
    #[track_caller]
    fn await_until(condition: impl Fn() -> bool) {
        context::await_until(condition, Location::caller());
    }

    fn doorway_end() {
        context::ask(Suspension::DoorwayEnd);
    }

    #[track_caller]
    fn live<W: IntoIterator<Item = Word>>(words: impl FnOnce() -> W) {
        context::live(|| words().into_iter().collect(), Location::caller());
    }

    /// A lock under exploration may be broken in any way, so nothing is assumed. A pointer to
    /// nothing is a panic of the algorithm, and a finding.
    unsafe fn follow<'a, T>(pointer: Ptr<T>) -> &'a T {
        assert!(context::is_object(pointer.place()), "{pointer:?} is followed");
        // SAFETY: it points to a living object of the lock that is being run.
        unsafe { pointer.as_ref() }
    }

    fn allocate<T>(make: impl FnOnce() -> T) -> NonNull<T> {
        context::object(make)
    }
}

/// A register of [`SimMemory`]: its number in the order of creation.
#[derive(Debug)]
pub struct SimRegister<T: Value> {
    id: usize,
    /// Its first value, for reads while the lock is dropped.
    initial: T,
}

impl<T: Value> SimRegister<T> {
    /// The answer to the operation. `None` if the lock is being dropped.
    #[track_caller]
    fn ask(&self, operation: Operation, order: Ordering) -> Option<Cue> {
        context::operate(self.id, operation, order, Location::caller())
    }

    fn observed(&self, answer: Option<Cue>) -> T {
        match answer {
            Some(Cue::Value(word)) => T::from_word(word),
            Some(other) => unreachable!("{other:?} answers an operation that observes a value"),
            None => self.initial,
        }
    }

    /// Waits until the register holds `old` and writes `new`, all in one step.
    ///
    /// No machine has this. It makes locks that are correct by definition. An algorithm over such a
    /// lock can be explored separately from its real lock.
    #[track_caller]
    pub fn await_cas(&self, old: T, new: T) {
        self.ask(Operation::AwaitCas(old.word(), new.word()), Ordering::Acquire);
    }
}

impl<T: Value> Register<T> for SimRegister<T> {
    fn new(site: Site, initial: T) -> Self {
        SimRegister { id: context::create(site, initial.word()), initial }
    }

    #[track_caller]
    fn read(&self, order: Ordering) -> T {
        self.observed(self.ask(Operation::Read, order))
    }

    #[track_caller]
    fn write(&self, value: T, order: Ordering) {
        self.ask(Operation::Write(value.word()), order);
    }

    #[track_caller]
    fn fas(&self, value: T, order: Ordering) -> T {
        self.observed(self.ask(Operation::Fas(value.word()), order))
    }

    #[track_caller]
    fn cas(&self, old: T, new: T, order: Ordering) -> bool {
        match self.ask(Operation::Cas(old.word(), new.word()), order) {
            Some(Cue::Swapped(swapped)) => swapped,
            Some(other) => unreachable!("{other:?} answers a compare-and-swap"),
            None => false,
        }
    }

    #[track_caller]
    fn faa(&self, delta: T, order: Ordering) -> T
    where
        T: Number,
    {
        let Word::Number(delta) = delta.word() else { unreachable!("only numbers are added") };
        let bits = 8 * size_of::<T>() as u32;
        self.observed(self.ask(Operation::Faa(delta, bits), order))
    }

    /// The explorer or the scheduler decides, and `give_up` is not called.
    #[track_caller]
    fn await_other(&self, value: T, _: Ordering, _: GiveUp<'_>) -> Option<T> {
        let wait = Operation::WaitOther(value.word());
        match context::wait(self.id, wait, Location::caller())? {
            Cue::Value(held) => Some(T::from_word(held)),
            _ => None,
        }
    }

    fn forget(&self) {
        context::forget(self.id);
    }
}

/// A flag of [`SimMemory`]: a register on which waiting is one blocking step.
#[derive(Debug)]
pub struct SimFlag(SimRegister<bool>);

impl Flag for SimFlag {
    fn new(site: Site, initial: bool) -> Self {
        SimFlag(SimRegister::new(site, initial))
    }

    #[track_caller]
    fn set(&self, value: bool) {
        self.0.write(value, Ordering::Relaxed);
    }

    /// Exactly what the trait promises. Real flags release by a swap, which also waits for earlier
    /// writes.
    #[track_caller]
    fn signal(&self, value: bool) {
        self.0.write(value, Ordering::Release);
    }

    #[track_caller]
    fn wait_for(&self, value: bool) {
        context::wait(self.0.id, Operation::WaitFor(value.word()), Location::caller());
    }

    /// The explorer or the scheduler decides, and `give_up` is not called.
    #[track_caller]
    fn wait_unless(&self, value: bool, _: GiveUp<'_>) -> bool {
        let wait = Operation::WaitUnless(value.word());
        context::wait(self.0.id, wait, Location::caller()) == Some(Cue::Waited(true))
    }

    #[track_caller]
    fn holds(&self, value: bool) -> bool {
        self.0.read(Ordering::Acquire) == value
    }

    fn forget(&self) {
        self.0.forget();
    }
}
