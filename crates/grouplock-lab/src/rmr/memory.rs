//! The memory whose accesses are counted.

use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;

use grouplock_algorithms::memory::{Flag, Memory, Number, Ordering, Register, Site, Value, Word};

use super::context::{self, Access, Operation, Request};

/// A memory where every access to a register suspends the process until the scheduler performs it.
#[derive(Clone, Copy, Debug)]
pub struct CountedMemory;

impl Memory for CountedMemory {
    type Register<T: Value> = CountedRegister<T>;
    type Flag = CountedFlag;

    /// Each read is a step. After a round that failed, the process is blocked until one of the registers that it
    /// read is written: a process that spins would find them in its cache until then.
    fn await_until(condition: impl Fn() -> bool) {
        loop {
            context::ask(Request::RoundBegins);
            if condition() {
                return;
            }
            context::ask(Request::RoundFailed);
        }
    }

    fn doorway_end() {
        context::ask(Request::DoorwayEnd);
    }

    fn allocate<T>(make: impl FnOnce() -> T) -> NonNull<T> {
        let object = NonNull::from(Box::leak(Box::new(make())));
        context::place(object.as_ptr().addr());
        object
    }
}

/// A register of [`CountedMemory`]: its number in the order of making.
#[derive(Debug)]
pub struct CountedRegister<T: Value> {
    id: u32,
    /// What it held at first, for those who read while a lock is dropped.
    initial: Word,
    holds: PhantomData<T>,
}

impl<T: Value> CountedRegister<T> {
    fn access(&self, operation: Operation, at: &'static Location<'static>) -> T {
        let held = context::access(Access { register: self.id, operation, at });
        T::from_word(held.unwrap_or(self.initial))
    }
}

/// The sum of two values of `T`, as words.
fn sum<T: Number>(a: Word, b: Word) -> Word {
    T::from_word(a).plus(T::from_word(b)).word()
}

impl<T: Value> Register<T> for CountedRegister<T> {
    fn new(site: Site, initial: T) -> Self {
        let initial = initial.word();
        CountedRegister { id: context::create(site, initial), initial, holds: PhantomData }
    }

    #[track_caller]
    fn read(&self, _: Ordering) -> T {
        self.access(Operation::Read, Location::caller())
    }

    #[track_caller]
    fn write(&self, value: T, _: Ordering) {
        self.access(Operation::Write(value.word()), Location::caller());
    }

    #[track_caller]
    fn fas(&self, value: T, _: Ordering) -> T {
        self.access(Operation::Fas(value.word()), Location::caller())
    }

    #[track_caller]
    fn cas(&self, old: T, new: T, _: Ordering) -> bool {
        self.access(Operation::Cas(old.word(), new.word()), Location::caller()) == old
    }

    #[track_caller]
    fn faa(&self, delta: T, _: Ordering) -> T
    where
        T: Number,
    {
        self.access(Operation::Faa(delta.word(), sum::<T>), Location::caller())
    }
}

/// A flag of [`CountedMemory`].
#[derive(Debug)]
pub struct CountedFlag(CountedRegister<bool>);

impl Flag for CountedFlag {
    fn new(site: Site, initial: bool) -> Self {
        CountedFlag(CountedRegister::new(site, initial))
    }

    #[track_caller]
    fn set(&self, value: bool) {
        self.0.write(value, Ordering::SeqCst);
    }

    #[track_caller]
    fn signal(&self, value: bool) {
        self.0.write(value, Ordering::SeqCst);
    }

    #[track_caller]
    fn wait_for(&self, value: bool) {
        let at = Location::caller();
        CountedMemory::await_until(|| self.0.access(Operation::Read, at) == value);
    }
}
