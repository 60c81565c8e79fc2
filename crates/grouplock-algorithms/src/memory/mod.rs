//! The shared memory of the papers.
//!
//! An algorithm in this crate is plain Rust, generic over [`Memory`]. It accesses shared memory
//! only through [`Register`] and [`Flag`], and keeps nothing in statics. So one text serves every
//! purpose:
//!
//! | memory | an access is | used for |
//! |---|---|---|
//! | [`Native`] | one atomic instruction | running the lock |
//! | [`Watched`](crate::monitor::Watched) | the same, and the end of the doorway is noted | tests with monitors on real threads |
//! | loom's (in this crate's tests) | one operation of a weak memory model | checking the orderings |
//! | a simulated one | one step of a scheduler | exploring every interleaving, counting remote references |
//!
//! # Calls for simulated memory, which real memory ignores
//!
//! Some calls cost nothing on [`Native`]. They tell an explorer what the author of the algorithm
//! knows:
//!
//! * [`Memory::doorway_end`] marks the last step of the doorway, from which first-come-first-served
//!   counts;
//! * [`Memory::live`] says which private variables are still needed at a point inside a passage;
//! * [`Register::forget`] says that a register's contents are dead until the next write;
//! * [`Memory::allocate`] says which registers were made together and where they are, and
//!   [`Memory::follow`] that a pointer to them is about to be used.
//!
//! With `live` and `forget`, two executions that differ only in dead values count as one. A memory
//! that merges because of `forget` must treat a read of forgotten contents as an error. A memory
//! that merges at `live` should check that the executions behave alike. Then it finds a false
//! statement.

mod backoff;
mod native;
mod value;

use core::fmt;
use core::ptr::NonNull;

pub use core::sync::atomic::Ordering;
pub use native::{Native, NativeFlag, NativeRegister};
pub use value::{Atomic, Number, Ptr, Value, Word};

use crate::raw::GiveUp;

/// A kind of shared memory: real or simulated.
pub trait Memory: Sized + Send + Sync + fmt::Debug + 'static {
    /// A shared register that holds a `T`.
    type Register<T: Value>: Register<T>;

    /// A boolean register on which one process waits.
    type Flag: Flag;

    /// Whether objects can be [allocated](Memory::allocate) after processes have joined. A
    /// simulated memory must know all registers in advance.
    const GROWS: bool = true;

    /// Waits until `condition` holds. The condition reads registers and has no other effect.
    ///
    /// This is the papers' `await` over any number of registers. For a single boolean a [`Flag`] is
    /// better, because the process that changes it knows that another may sleep there.
    fn await_until(condition: impl Fn() -> bool);

    /// The calling process has finished its doorway.
    #[inline(always)]
    fn doorway_end() {}

    /// From here to the end of the passage the calling process needs only its handle, the session
    /// it requested, and the private values that `words` lists.
    #[inline(always)]
    fn live<W: IntoIterator<Item = Word>>(_words: impl FnOnce() -> W) {}

    /// Gives the object that `make` builds a fixed address until [`Memory::free`].
    fn allocate<T>(make: impl FnOnce() -> T) -> NonNull<T> {
        NonNull::from(Box::leak(Box::new(make())))
    }

    /// The object that `pointer` points to.
    ///
    /// A simulated memory first checks that it points to an object: a lock that is explored may be
    /// broken.
    ///
    /// # Safety
    /// As [`Ptr::as_ref`].
    #[inline(always)]
    unsafe fn follow<'a, T>(pointer: Ptr<T>) -> &'a T {
        // SAFETY: the caller's promise.
        unsafe { pointer.as_ref() }
    }

    /// Frees an object.
    ///
    /// # Safety
    /// `object` came from [`Memory::allocate`] of the same memory, is freed once, and no process
    /// uses it afterwards.
    unsafe fn free<T>(object: NonNull<T>) {
        // SAFETY: `allocate` leaked a box, and the caller gives up the only use of it.
        drop(unsafe { Box::from_raw(object.as_ptr()) });
    }
}

/// A shared register: every method is one atomic step.
///
/// The orderings are those of the Rust memory model. An algorithm that needs the papers' atomic
/// registers as they are, where all steps form one order, uses [`Ordering::SeqCst`] throughout.
pub trait Register<T: Value>: Send + Sync + fmt::Debug {
    /// A register at `site` that holds `initial`.
    fn new(site: Site, initial: T) -> Self;

    /// Reads the register.
    fn read(&self, order: Ordering) -> T;

    /// Writes the register.
    fn write(&self, value: T, order: Ordering);

    /// Fetch-and-store: writes `value` and returns what was there.
    fn fas(&self, value: T, order: Ordering) -> T;

    /// Compare-and-swap: writes `new` if the register holds `old`, and returns whether it did. As
    /// in the papers, a failure does not return the value; it orders memory as a load of strength
    /// `order` can.
    fn cas(&self, old: T, new: T, order: Ordering) -> bool;

    /// Fetch-and-add, wrapping: adds `delta` and returns what was there.
    fn faa(&self, delta: T, order: Ordering) -> T
    where
        T: Number;

    /// Waits until the register holds another value than `value`, and returns that; or `None` if
    /// `give_up` says so first.
    fn await_other(&self, value: T, order: Ordering, give_up: GiveUp<'_>) -> Option<T>;

    /// No process reads this register before the next write.
    ///
    /// This is not a step: it holds from the calling process's last step on.
    #[inline(always)]
    fn forget(&self) {}
}

/// A boolean register that one process at a time waits on: the `go`, `locked` or `wait` bit of the
/// local-spin algorithms.
///
/// It differs from a register because a waiter may sleep: the process that ends a wait must wake
/// it, at no cost if no process sleeps. It has the orderings that all its uses need:
/// [`signal`](Flag::signal) releases, [`wait_for`](Flag::wait_for) acquires, [`set`](Flag::set)
/// does neither.
pub trait Flag: Send + Sync + fmt::Debug {
    /// A flag at `site` that holds `initial`.
    fn new(site: Site, initial: bool) -> Self;

    /// Writes the flag while no process waits on it. Relaxed: the process that sets its flag
    /// publishes this with the rest of its doorway, by a later release.
    fn set(&self, value: bool);

    /// Writes the flag and wakes the process that waits on it, if any. A release.
    fn signal(&self, value: bool);

    /// Waits until the flag holds `value`. An acquire.
    fn wait_for(&self, value: bool);

    /// Waits until the flag holds `value`, an acquire, or until `give_up` says so. Returns whether
    /// it holds.
    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool;

    /// Whether the flag holds `value`. An acquire, if it does.
    fn holds(&self, value: bool) -> bool;

    /// [Signals](Flag::signal) `true`, unless the process that waits here sleeps or is not being
    /// run. Returns whether it did. Otherwise the caller makes the next step for that process, and
    /// then signals. On a memory whose waiters make their own steps it always signals.
    #[inline(always)]
    fn signal_unless_away(&self) -> bool {
        self.signal(true);
        true
    }

    /// Whether another process made our next step before it signalled.
    #[inline(always)]
    fn stood_in(&self) -> bool {
        false
    }

    /// The process that waits here is running again, to withdraw. Returns false if another process
    /// acts for it or has signalled: then the signal arrives in any case.
    #[inline(always)]
    fn comes_back(&self) -> bool {
        true
    }

    /// As [`Register::forget`].
    #[inline(always)]
    fn forget(&self) {}
}

/// The home and the name of a register; without effect on real memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The variable's name in the paper.
    pub name: &'static str,
    /// Its place in an array, if the variable is one.
    pub index: Option<usize>,
    /// The process whose memory it is in, on a machine with distributed shared memory.
    pub home: Home,
}

impl Site {
    /// A variable that belongs to no process in particular.
    pub const fn shared(name: &'static str) -> Self {
        Site { name, index: None, home: Home::Shared }
    }

    /// A variable in the memory of `process`.
    pub const fn of(process: usize, name: &'static str) -> Self {
        Site { name, index: None, home: Home::Process(process) }
    }

    /// Element `index` of an array that belongs to no process in particular.
    pub const fn element(name: &'static str, index: usize) -> Self {
        Site { name, index: Some(index), home: Home::Shared }
    }

    /// Element `process` of an array that has one element in the memory of each process.
    pub const fn per_process(name: &'static str, process: usize) -> Self {
        Site { name, index: Some(process), home: Home::Process(process) }
    }
}

/// The memory that a register is in, in the model of distributed shared memory (DSM).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// Remote to every process.
    Shared,
    /// Local to the process of this number, counted from zero in the order of joining the lock.
    Process(usize),
}
