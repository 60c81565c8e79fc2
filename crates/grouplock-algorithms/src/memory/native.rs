//! Real memory: a register is an atomic and nothing else.

use core::sync::atomic::{AtomicU32, Ordering};

use super::backoff::Backoff;
use super::{Atomic, Flag, Memory, Number, Register, Site, Value};
use crate::raw::GiveUp;

/// The machine's own memory.
///
/// A register is exactly an atomic of its type, and each of its methods is one call of that atomic.
/// Waiting spins for about a microsecond and then sleeps: on a [`NativeFlag`] until it is woken, on
/// other conditions for about a millisecond at a time, or less.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Memory for Native {
    type Register<T: Value> = NativeRegister<T>;
    type Flag = NativeFlag;

    #[inline]
    fn await_until(condition: impl Fn() -> bool) {
        let mut backoff = Backoff::new();
        while !condition() {
            backoff.pause_or_nap();
        }
    }
}

/// A register of [`Native`] memory.
#[repr(transparent)]
#[derive(Debug)]
pub struct NativeRegister<T: Value>(T::Atomic);

impl<T: Value> Register<T> for NativeRegister<T> {
    #[inline(always)]
    fn new(_: Site, initial: T) -> Self {
        NativeRegister(T::Atomic::new(initial))
    }

    #[inline(always)]
    fn read(&self, order: Ordering) -> T {
        self.0.load(order)
    }

    #[inline(always)]
    fn write(&self, value: T, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline(always)]
    fn fas(&self, value: T, order: Ordering) -> T {
        self.0.swap(value, order)
    }

    #[inline(always)]
    fn cas(&self, old: T, new: T, order: Ordering) -> bool {
        self.0.compare_exchange(old, new, order, load_part(order)).is_ok()
    }

    #[inline(always)]
    fn faa(&self, delta: T, order: Ordering) -> T
    where
        T: Number,
    {
        T::fetch_add(&self.0, delta, order)
    }

    #[inline]
    fn await_other(&self, value: T, order: Ordering, give_up: GiveUp<'_>) -> Option<T> {
        let mut backoff = Backoff::new();
        loop {
            let held = self.read(order);
            if held != value {
                return Some(held);
            }
            if give_up() {
                return None;
            }
            backoff.pause_or_nap();
        }
    }
}

/// What is left of `order` for a compare-and-swap that fails, and so only loads.
#[inline(always)]
const fn load_part(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        other => other,
    }
}

/// A flag of [`Native`] memory: a word on which the operating system lets a thread sleep.
///
/// | word | the flag is | a thread sleeps |
/// |---|---|---|
/// | 0, 1 | false, true | no |
/// | 2 | not what the sleeper waits for | yes, or is about to |
#[derive(Debug)]
pub struct NativeFlag(AtomicU32);

const ASLEEP: u32 = 2;

impl Flag for NativeFlag {
    #[inline(always)]
    fn new(_: Site, initial: bool) -> Self {
        NativeFlag(AtomicU32::new(u32::from(initial)))
    }

    #[inline(always)]
    fn set(&self, value: bool) {
        // Relaxed: published by the caller's next release, as the trait demands.
        self.0.store(u32::from(value), Ordering::Relaxed);
    }

    #[inline(always)]
    fn signal(&self, value: bool) {
        // Release: pairs with the acquire loads of `wait_for`.
        if self.0.swap(u32::from(value), Ordering::Release) == ASLEEP {
            // The waiter may already run, and its handle may be gone. The call below only uses the
            // address. A wake-up without a sleeper, or of the next user of the flag, does no harm.
            atomic_wait::wake_one(&raw const self.0);
        }
    }

    #[inline(always)]
    fn wait_for(&self, value: bool) {
        if !self.holds(value) {
            self.wait_in_turn(u32::from(value));
        }
    }

    /// For about a millisecond at a time, or less, because no thread wakes a sleeper when its time
    /// is over.
    #[inline]
    fn wait_unless(&self, value: bool, give_up: GiveUp<'_>) -> bool {
        let mut backoff = Backoff::new();
        while !self.holds(value) {
            if give_up() {
                return false;
            }
            backoff.pause_or_nap();
        }
        true
    }

    #[inline(always)]
    fn holds(&self, value: bool) -> bool {
        // Acquire: pairs with the release in `signal`.
        self.0.load(Ordering::Acquire) == u32::from(value)
    }
}

impl NativeFlag {
    /// The slow path of `wait_for`.
    #[cold]
    fn wait_in_turn(&self, value: u32) {
        let mut backoff = Backoff::new();
        while backoff.pause() {
            if self.0.load(Ordering::Acquire) == value {
                return;
            }
        }
        // Acquire on failure: then the signal has arrived. On success there is nothing to read yet.
        if self.0.compare_exchange(1 - value, ASLEEP, Ordering::Relaxed, Ordering::Acquire).is_ok()
        {
            while self.0.load(Ordering::Acquire) == ASLEEP {
                atomic_wait::wait(&self.0, ASLEEP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Ptr;

    #[test]
    fn a_register_is_as_large_as_what_it_holds() {
        assert_eq!(size_of::<NativeRegister<u64>>(), 8);
        assert_eq!(size_of::<NativeRegister<bool>>(), 1);
        assert_eq!(size_of::<NativeRegister<Ptr<u64>>>(), size_of::<usize>());
    }

    #[test]
    fn the_operations_are_those_of_the_papers() {
        let r = NativeRegister::<u64>::new(Site::shared("r"), 1);
        assert_eq!(r.fas(2, Ordering::SeqCst), 1);
        assert!(!r.cas(1, 9, Ordering::SeqCst));
        assert!(r.cas(2, 3, Ordering::AcqRel));
        assert_eq!(r.faa(4, Ordering::SeqCst), 3);
        assert_eq!(r.read(Ordering::SeqCst), 7);
        r.write(8, Ordering::SeqCst);
        assert_eq!(r.read(Ordering::SeqCst), 8);
    }

    #[test]
    fn a_sleeper_is_woken_either_way() {
        for value in [true, false] {
            let flag = NativeFlag::new(Site::shared("flag"), !value);
            std::thread::scope(|scope| {
                scope.spawn(|| flag.wait_for(value));
                // Wait until the other thread has really gone to sleep, so that the wake-up is
                // needed.
                while flag.0.load(Ordering::Relaxed) != ASLEEP {
                    std::thread::yield_now();
                }
                flag.signal(value);
            });
        }
    }
}
