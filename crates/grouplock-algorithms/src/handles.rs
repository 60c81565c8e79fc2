//! The locks as users see them: handles and guards over the raw algorithms.
//!
//! A lock gives one handle to each process. A handle gives a guard while its process is inside.
//! Handles borrow their lock, and guards borrow their handle. So the compiler rejects a handle that
//! outlives its lock, a second entry before the first exit, and an exit without an entry. A handle
//! cannot name another lock.

use core::fmt;
use core::marker::PhantomData;

use crate::memory::{Memory, Native};
use crate::raw::{RawGroup, RawMutex, WithdrawGroup, WithdrawMutex};
use crate::{CapacityError, EnterError, Session};

/// The private part of a process, and whether it is in a passage. If a passage did not end, the
/// process is never returned: what it owns may still be in use.
#[derive(Debug)]
pub(crate) struct Seat<P> {
    process: Option<P>,
    inside: bool,
}

impl<P> Seat<P> {
    /// For a process that has just joined.
    pub(crate) fn new(process: P) -> Self {
        Seat { process: Some(process), inside: false }
    }

    /// Begins the next passage. `inside` is set before the entry section begins, so that a panic in
    /// it cannot make the process look idle.
    pub(crate) fn start(&mut self) -> Result<&mut P, EnterError> {
        if self.inside {
            return Err(EnterError::StillInside);
        }
        self.inside = true;
        Ok(self.current())
    }

    pub(crate) fn current(&mut self) -> &mut P {
        self.process.as_mut().expect("only dropping a handle empties its seat")
    }

    /// The process is in its remainder section again.
    pub(crate) fn finish(&mut self) {
        self.inside = false;
    }

    /// The process, to return it, unless it is still in a passage.
    pub(crate) fn idle(&mut self) -> Option<P> {
        if self.inside { None } else { self.process.take() }
    }
}

/// Writes the handles and guards of one kind of lock.
macro_rules! handles {
    (
        lock: $(#[$lock_doc:meta])* $Lock:ident over $Raw:ident,
        process: $(#[$process_doc:meta])* $Process:ident,
        guard: $(#[$guard_doc:meta])* $Guard:ident by $exit:ident,
    ) => {
        $(#[$lock_doc])*
        pub struct $Lock<L, M: Memory = Native> {
            raw: L,
            memory: PhantomData<M>,
        }

        impl<M: Memory, L: $Raw<M>> $Lock<L, M> {
            /// A lock for at most `processes` processes at once. Algorithms that serve any number
            /// ignore this.
            ///
            /// # Errors
            /// [`CapacityError::Unsupported`] if the algorithm cannot serve so many, or so few.
            pub fn new(processes: usize) -> Result<Self, CapacityError> {
                Ok($Lock { raw: L::new(processes)?, memory: PhantomData })
            }

            /// A process joins. It leaves when the handle is dropped. Then its place or its nodes
            /// go to the next process that joins.
            ///
            /// # Errors
            /// [`CapacityError::Full`] if the lock has as many processes as it was made for.
            pub fn process(&self) -> Result<$Process<'_, L, M>, CapacityError> {
                Ok($Process { lock: &self.raw, seat: Seat::new(self.raw.join()?) })
            }

            /// The algorithm itself.
            pub fn raw(&self) -> &L {
                &self.raw
            }
        }

        impl<L, M: Memory> fmt::Debug for $Lock<L, M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Lock)).finish_non_exhaustive()
            }
        }

        $(#[$process_doc])*
        pub struct $Process<'l, L: $Raw<M>, M: Memory = Native> {
            lock: &'l L,
            seat: Seat<L::Process>,
        }

        impl<L: $Raw<M>, M: Memory> $Process<'_, L, M> {
            /// Whether the process is outside its remainder section. For a caller that has the
            /// handle, this means that the guard of an earlier passage was leaked.
            pub fn is_inside(&self) -> bool {
                self.seat.inside
            }
        }

        impl<L: $Raw<M>, M: Memory> Drop for $Process<'_, L, M> {
            fn drop(&mut self) {
                if let Some(process) = self.seat.idle() {
                    // SAFETY: it joined `self.lock`, and it is idle.
                    unsafe { self.lock.leave(process) };
                }
            }
        }

        impl<L: $Raw<M>, M: Memory> fmt::Debug for $Process<'_, L, M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Process))
                    .field("seat", &self.seat)
                    .finish_non_exhaustive()
            }
        }

        $(#[$guard_doc])*
        #[must_use = "the process leaves at once if the guard is dropped"]
        pub struct $Guard<'p, L: $Raw<M>, M: Memory = Native> {
            lock: &'p L,
            seat: &'p mut Seat<L::Process>,
        }

        impl<L: $Raw<M>, M: Memory> Drop for $Guard<'_, L, M> {
            fn drop(&mut self) {
                // SAFETY: the process joined `self.lock`, whose guard exists only in the critical
                // section.
                unsafe { self.lock.$exit(self.seat.current()) };
                self.seat.finish();
            }
        }

        impl<L: $Raw<M>, M: Memory> fmt::Debug for $Guard<'_, L, M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Guard)).finish_non_exhaustive()
            }
        }
    };
}

handles! {
    lock:
    /// A mutual exclusion lock by the algorithm `L`.
    ///
    /// ```
    /// use grouplock_algorithms::{Mutual, mcs::Mcs};
    ///
    /// let lock = Mutual::<Mcs>::new(2)?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         let mut process = lock.process().expect("there is room for two");
    ///         scope.spawn(move || {
    ///             let held = process.acquire().expect("nothing was leaked");
    ///             // alone in here
    ///             drop(held);
    ///         });
    ///     }
    /// });
    /// # Ok::<(), grouplock_algorithms::CapacityError>(())
    /// ```
    ///
    /// The compiler rejects a second acquisition, and a release without a guard:
    ///
    /// ```compile_fail,E0499
    /// # use grouplock_algorithms::{Mutual, mcs::Mcs};
    /// let lock = Mutual::<Mcs>::new(2).unwrap();
    /// let mut process = lock.process().unwrap();
    /// let once = process.acquire();
    /// let twice = process.acquire(); // cannot borrow `process` as mutable more than once
    /// drop(once);
    /// ```
    Mutual over RawMutex,
    process:
    /// A process that has joined a [`Mutual`] lock.
    MutualProcess,
    guard:
    /// A process is in the critical section of a [`Mutual`] lock until this is dropped.
    ///
    /// Leaking it keeps the lock locked forever and does no other harm.
    Held by release,
}

impl<L: RawMutex<M>, M: Memory> MutualProcess<'_, L, M> {
    /// Waits for the critical section and enters it.
    ///
    /// # Errors
    /// [`EnterError::StillInside`] if the guard of an earlier passage was leaked.
    #[inline]
    pub fn acquire(&mut self) -> Result<Held<'_, L, M>, EnterError> {
        let process = self.seat.start()?;
        // SAFETY: the process joined `self.lock`, and `start` found it in its remainder section.
        unsafe { self.lock.acquire(process) };
        Ok(Held { lock: self.lock, seat: &mut self.seat })
    }
}

impl<L: WithdrawMutex<M>, M: Memory> MutualProcess<'_, L, M> {
    /// Waits for the critical section and enters it. If it has to wait and `give_up` says so, it
    /// withdraws and returns `None`. While it waits, it calls `give_up` about once in a
    /// millisecond, or more often.
    ///
    /// ```
    /// use grouplock_algorithms::{Mutual, jayanti_jayanti::JayantiJayanti};
    ///
    /// let lock = Mutual::<JayantiJayanti>::new(2)?;
    /// let (mut p, mut q) = (lock.process()?, lock.process()?);
    /// let held = p.acquire()?;
    /// assert!(q.acquire_unless(|| true)?.is_none());
    /// drop(held);
    /// assert!(q.acquire_unless(|| true)?.is_some()); // no need to wait
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_unless(
        &mut self,
        mut give_up: impl FnMut() -> bool,
    ) -> Result<Option<Held<'_, L, M>>, EnterError> {
        let process = self.seat.start()?;
        // SAFETY: as in `acquire`.
        let held = unsafe { self.lock.acquire_unless(process, &mut give_up) };
        if !held {
            self.seat.finish();
            return Ok(None);
        }
        Ok(Some(Held { lock: self.lock, seat: &mut self.seat }))
    }
}

handles! {
    lock:
    /// A group mutual exclusion lock by the algorithm `L`.
    ///
    /// ```
    /// use grouplock_algorithms::{Group, handover::Handover};
    ///
    /// let lock = Group::<Handover>::new(2)?;
    /// let (mut p, mut q) = (lock.process()?, lock.process()?);
    /// let reader = p.enter(7)?;
    /// let another = q.enter(7)?; // the same session: both are inside
    /// # drop((reader, another));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A handle belongs to the lock that made it and cannot outlive it:
    ///
    /// ```compile_fail,E0505
    /// # use grouplock_algorithms::{Group, handover::Handover};
    /// let lock = Group::<Handover>::new(2).unwrap();
    /// let mut process = lock.process().unwrap();
    /// drop(lock); // cannot move out of `lock` because it is borrowed
    /// process.enter(7);
    /// ```
    Group over RawGroup,
    process:
    /// A process that has joined a [`Group`] lock.
    GroupProcess,
    guard:
    /// A process is in the critical section of a [`Group`] lock until this is dropped.
    ///
    /// Leaking it keeps other sessions out forever and does no other harm.
    Inside by exit,
}

impl<L: RawGroup<M>, M: Memory> GroupProcess<'_, L, M> {
    /// Waits until it can enter `session`, and enters.
    ///
    /// # Errors
    /// [`EnterError::SessionZero`] and [`EnterError::SessionTooLarge`] for a session that the
    /// algorithm cannot name, [`EnterError::StillInside`] if the guard of an earlier passage was
    /// leaked.
    #[inline]
    pub fn enter(&mut self, session: u64) -> Result<Inside<'_, L, M>, EnterError> {
        let session = Self::session(session)?;
        let process = self.seat.start()?;
        // SAFETY: the process joined `self.lock`, `start` found it in its remainder section, and
        // the session is not above the largest.
        unsafe { self.lock.enter(process, session) };
        Ok(Inside { lock: self.lock, seat: &mut self.seat })
    }

    /// The session of this number, if the algorithm can name it.
    #[inline]
    fn session(number: u64) -> Result<Session, EnterError> {
        if number > L::LARGEST_SESSION {
            let (session, largest) = (number, L::LARGEST_SESSION);
            return Err(EnterError::SessionTooLarge { session, largest });
        }
        Session::new(number)
    }
}

impl<L: WithdrawGroup<M>, M: Memory> GroupProcess<'_, L, M> {
    /// Waits until it can enter `session`, and enters. If it has to wait and `give_up` says so, it
    /// withdraws and returns `None`. While it waits, it calls `give_up` about once in a
    /// millisecond, or more often.
    ///
    /// ```
    /// use grouplock_algorithms::{Group, handover_withdraw::HandoverWithdraw};
    ///
    /// let lock = Group::<HandoverWithdraw>::new(2)?;
    /// let (mut p, mut q) = (lock.process()?, lock.process()?);
    /// let inside = p.enter(1)?;
    /// assert!(q.enter_unless(2, || true)?.is_none()); // another session is inside
    /// drop(inside);
    /// assert!(q.enter_unless(2, || true)?.is_some()); // no need to wait
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn enter_unless(
        &mut self,
        session: u64,
        mut give_up: impl FnMut() -> bool,
    ) -> Result<Option<Inside<'_, L, M>>, EnterError> {
        let session = Self::session(session)?;
        let process = self.seat.start()?;
        // SAFETY: as in `enter`.
        let inside = unsafe { self.lock.enter_unless(process, session, &mut give_up) };
        if !inside {
            self.seat.finish();
            return Ok(None);
        }
        Ok(Some(Inside { lock: self.lock, seat: &mut self.seat }))
    }
}
