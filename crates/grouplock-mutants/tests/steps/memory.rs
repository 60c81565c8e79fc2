//! Simulated memory whose waiters sleep, as those of `GroupLock` do.

use grouplock_algorithms::memory::Ordering::SeqCst;
use grouplock_algorithms::memory::{Flag, Memory, Ptr, Register, Site, Value, Word};
use grouplock_algorithms::raw::{GiveUp, RawMutex};
use grouplock_algorithms::{CapacityError, Claims};
use grouplock_lab::ideal::{self, IdealLock};
use grouplock_lab::memory::{SimMemory, SimRegister};
use std::ptr::NonNull;

/// The memory of the lab with other flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away;

impl Memory for Away {
    type Register<T: Value> = SimRegister<T>;
    type Flag = Go;

    const GROWS: bool = SimMemory::GROWS;

    #[track_caller]
    fn await_until(condition: impl Fn() -> bool) {
        SimMemory::await_until(condition);
    }

    fn doorway_end() {
        SimMemory::doorway_end();
    }

    #[track_caller]
    fn live<W: IntoIterator<Item = Word>>(words: impl FnOnce() -> W) {
        SimMemory::live(words);
    }

    unsafe fn follow<'a, T>(pointer: Ptr<T>) -> &'a T {
        // SAFETY: the caller's promise.
        unsafe { SimMemory::follow(pointer) }
    }

    fn allocate<T>(make: impl FnOnce() -> T) -> NonNull<T> {
        SimMemory::allocate(make)
    }
}

/// The word of a flag on which a waiter sleeps. The process that signals makes the waiter's next
/// step.
const AWAY: u64 = 2;
/// The same, and a process is about to signal.
const STANDS_IN: u64 = 3;
/// The signal has arrived, and the step has been made.
const DONE: u64 = 4;

/// A flag by the contract of the one that `GroupLock` uses: one word, which is 0, 1 or one of the
/// above.
///
/// Two of its calls read first and then swap. Here each is one step or two compare-and-swaps, which
/// is equivalent: once a waiter sleeps, only the process that signals changes the word, and there
/// is one such process at a time.
#[derive(Debug)]
pub(crate) struct Go(SimRegister<u64>);

impl Go {
    /// The waiter sleeps, unless the signal has arrived.
    #[track_caller]
    pub(crate) fn go_away(&self) {
        self.0.cas(0, AWAY, SeqCst);
    }
}

impl Flag for Go {
    fn new(site: Site, initial: bool) -> Self {
        Go(SimRegister::new(site, initial.into()))
    }

    #[track_caller]
    fn set(&self, value: bool) {
        self.0.write(value.into(), SeqCst);
    }

    #[track_caller]
    fn signal(&self, value: bool) {
        let stood_in = self.0.cas(STANDS_IN, DONE, SeqCst);
        if !stood_in {
            self.0.write(value.into(), SeqCst);
        }
    }

    #[track_caller]
    fn wait_for(&self, value: bool) {
        SimMemory::await_until(|| self.holds(value));
    }

    fn wait_unless(&self, _: bool, _: GiveUp<'_>) -> bool {
        unreachable!("who asks in steps waits by itself")
    }

    #[track_caller]
    fn holds(&self, value: bool) -> bool {
        match self.0.read(SeqCst) {
            DONE => value,
            word => word == u64::from(value),
        }
    }

    #[track_caller]
    fn signal_unless_away(&self) -> bool {
        // While a process waits it sleeps once, and wakes once.
        for _ in 0..3 {
            if self.0.cas(AWAY, STANDS_IN, SeqCst) {
                return false;
            }
            if self.0.cas(0, 1, SeqCst) {
                return true;
            }
        }
        unreachable!("the waiter goes away and comes back again and again")
    }

    #[track_caller]
    fn stood_in(&self) -> bool {
        self.0.read(SeqCst) == DONE
    }

    #[track_caller]
    fn comes_back(&self) -> bool {
        self.0.cas(AWAY, 0, SeqCst) || self.0.read(SeqCst) != STANDS_IN
    }

    fn forget(&self) {
        self.0.forget();
    }
}

/// The ideal lock of the lab on this memory.
#[derive(Debug)]
pub(crate) struct Ideal(IdealLock);

impl RawMutex<Away> for Ideal {
    type Process = ideal::Process;

    fn claims() -> Claims {
        IdealLock::claims()
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        IdealLock::new(processes).map(Ideal)
    }

    fn join(&self) -> Result<ideal::Process, CapacityError> {
        self.0.join()
    }

    unsafe fn leave(&self, me: ideal::Process) {
        // SAFETY: the caller's promise.
        unsafe { self.0.leave(me) };
    }

    #[track_caller]
    unsafe fn acquire(&self, me: &mut ideal::Process) {
        // SAFETY: the caller's promise.
        unsafe { self.0.acquire(me) };
    }

    #[track_caller]
    unsafe fn release(&self, me: &mut ideal::Process) {
        // SAFETY: the caller's promise.
        unsafe { self.0.release(me) };
    }

    fn inspect(me: &ideal::Process, see: &mut dyn FnMut(&'static str, Word)) {
        IdealLock::inspect(me, see);
    }
}
