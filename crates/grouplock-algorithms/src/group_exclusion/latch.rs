//! Mutual exclusion with detected deaths, for [`recoverable`](super::recoverable).
//!
//! A process may *die* before any of its steps. It takes no further step, and its private variables
//! are lost. Its writes stay. A *system-wide oracle* reports the death to all others at some later
//! time: each place of a lock has a register `Dead`, which only the oracle writes. On a real system
//! the oracle is the kernel, which drops the locks of a process however it ends.
//!
//! [`RecoverableMutex`] is a mutex for such processes. If its owner dies, the next process acquires
//! it and learns of the death.
//!
//! ```text
//! WordLatch   word: the name of the owner, 0 at first
//!
//! acquire                                  reports whether the owner before us died
//!  1  await word = 0 or Dead[owner of word]
//!  2  if CAS(word, 0, me): no
//!  3  w := word; if w ≠ 0 and Dead[owner of w] and CAS(word, w, me): yes, else go to 1
//! release
//!  4  word := 0
//! ```
//!
//! A name is never used twice: a place that goes to another process gets a new name. So line 3
//! takes the word from exactly the process that was found dead.

use core::fmt;

use crate::memory::Ordering::{Acquire, Release};
use crate::memory::{Memory, Register, Site};
use crate::prelude::*;

/// What the oracle reports: for each place, whether its process is dead.
#[derive(Debug)]
pub struct Deaths<M: Memory> {
    dead: Box<[M::Register<bool>]>,
}

impl<M: Memory> Deaths<M> {
    /// For this number of places, with all processes alive.
    pub fn new(places: usize) -> Self {
        let dead = |p| M::Register::new(Site::per_process("Dead", p), false);
        Deaths { dead: (0..places).map(dead).collect() }
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.dead.len()
    }

    /// Whether the process at place `p` is dead. An acquire, if it is: all its steps have happened.
    #[inline]
    #[track_caller]
    pub fn is_dead(&self, p: usize) -> bool {
        self.dead[p].read(Acquire) // 1: written by the oracle
    }

    /// Whether the process of this name is dead.
    #[inline]
    #[track_caller]
    pub fn has_died(&self, name: u64) -> bool {
        self.is_dead(self.place(name))
    }

    /// The place of the process of this name. Names are numbered from one.
    pub fn place(&self, name: u64) -> usize {
        (name - 1) as usize % self.places()
    }

    /// Writes the oracle's report on place `p`. A release: a process that learns of a death sees
    /// what the dead process did before.
    pub fn tell(&self, p: usize, dead: bool) {
        self.dead[p].write(dead, Release); // 1: read in `is_dead`
    }
}

/// A mutual exclusion algorithm with detected deaths.
pub trait RecoverableMutex<M: Memory>: Sized + Send + Sync + fmt::Debug {
    /// What is claimed for it while no process dies.
    fn claims() -> Claims;

    /// A mutex for this number of processes at once.
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] if it cannot serve so many, or so few.
    fn new(processes: usize) -> Result<Self, CapacityError>;

    /// The entry section of the process called `me`. Returns whether the owner before it died as
    /// the owner.
    ///
    /// # Safety
    /// `me` is the name of a living process, which does not own the mutex. `deaths` is that of all
    /// processes of the mutex.
    unsafe fn acquire(&self, me: u64, deaths: &Deaths<M>) -> bool;

    /// The exit section of the process called `me`.
    ///
    /// # Safety
    /// It owns the mutex.
    unsafe fn release(&self, me: u64);

    /// The name of its owner, dead or alive, or 0. While it names a dead process, the place of that
    /// process does not go to another.
    fn owner(&self) -> u64;
}

/// A word that names its owner: simple, and unfair. Rooms have a similar one.
#[derive(Debug)]
pub struct WordLatch<M: Memory> {
    word: M::Register<u64>,
}

impl<M: Memory> RecoverableMutex<M> for WordLatch<M> {
    fn claims() -> Claims {
        Claims {
            name: "word-latch",
            source: "ours: the latch of grouplock's rooms, in short",
            text: text!("latch.rs"),
            // The fastest process gets it.
            starvation_freedom: Claim::No,
            fcfs: Claim::No,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::Yes),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Unbounded),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Constant,
            primitives: &[Primitive::Read, Primitive::Write, Primitive::CompareAndSwap],
            processes: Limit::None,
            bounded_registers: Claim::No,
            ..Claims::MUTEX
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(WordLatch { word: M::Register::new(Site::shared("word"), 0) })
    }

    // With the location of the caller: from it `live` knows what follows.
    #[track_caller]
    unsafe fn acquire(&self, me: u64, deaths: &Deaths<M>) -> bool {
        loop {
            M::live(|| [me.word()]);
            M::await_until(|| {
                let owner = self.word.read(Acquire); // 1
                owner == 0 || deaths.has_died(owner)
            });
            let free = self.word.cas(0, me, Acquire); // 2: pairs with 4
            if free {
                return false;
            }
            let owner = self.word.read(Acquire); // 3
            let taken = owner != 0
                && deaths.has_died(owner) // 3: acquires what the dead did
                && self.word.cas(owner, me, Acquire); // 3
            if taken {
                return true;
            }
        }
    }

    unsafe fn release(&self, _: u64) {
        self.word.write(0, Release); // 4: pairs with 2
    }

    fn owner(&self) -> u64 {
        self.word.read(Acquire) // 3
    }
}
