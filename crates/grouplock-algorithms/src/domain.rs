//! Many locks of [Dvir and Taubenfeld's second algorithm](crate::dvir_taubenfeld_2) that share
//! their nodes.

use core::fmt;
use std::sync::Arc;

use crate::EnterError;
use crate::dvir_taubenfeld_2::{DvirTaubenfeld2, Process, Store};
use crate::handles::Seat;
use crate::memory::{Memory, Native};
use crate::raw::RawMutex;

/// A family of locks that share their nodes: L locks and n processes need L + n of them.
///
/// A process of a domain may use any of its locks, one at a time, and brings the node along.
///
/// ```
/// use grouplock_algorithms::dvir_taubenfeld_2::Domain;
///
/// let domain = Domain::new();
/// let locks: Vec<_> = (0..100).map(|_| domain.lock()).collect();
/// let mut process = domain.process();
/// for lock in &locks {
///     let held = process.acquire(lock)?;
///     drop(held);
/// }
/// assert_eq!(domain.nodes(), 101);
/// # Ok::<(), grouplock_algorithms::EnterError>(())
/// ```
pub struct Domain<M: Memory = Native> {
    store: Arc<Store<M>>,
}

impl Domain<Native> {
    /// A domain without locks or processes.
    pub fn new() -> Self {
        Self::with_memory()
    }
}

impl Default for Domain<Native> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Memory> Domain<M> {
    /// As [`Domain::new`], on any memory.
    pub fn with_memory() -> Self {
        Domain { store: Arc::new(Store::new()) }
    }

    /// A new lock, unlocked.
    pub fn lock(&self) -> DvirTaubenfeld2<M> {
        DvirTaubenfeld2::in_store(Arc::clone(&self.store))
    }

    /// A new process.
    pub fn process(&self) -> DomainProcess<M> {
        DomainProcess { seat: Seat::new(self.store.process()), store: Arc::clone(&self.store) }
    }

    /// How many nodes there are in all.
    pub fn nodes(&self) -> usize {
        self.store.nodes.allocated()
    }
}

impl<M: Memory> fmt::Debug for Domain<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("nodes", &self.nodes()).finish_non_exhaustive()
    }
}

/// A process that may use all locks of its [`Domain`], one at a time.
#[derive(Debug)]
pub struct DomainProcess<M: Memory = Native> {
    seat: Seat<Process<M>>,
    store: Arc<Store<M>>,
}

impl<M: Memory> DomainProcess<M> {
    /// Waits for `lock` and acquires it.
    ///
    /// # Errors
    /// [`EnterError::ForeignLock`] if the lock is of another domain, [`EnterError::StillInside`] if
    /// the guard of an earlier passage was leaked.
    pub fn acquire<'p>(
        &'p mut self,
        lock: &'p DvirTaubenfeld2<M>,
    ) -> Result<DomainGuard<'p, M>, EnterError> {
        if !Arc::ptr_eq(&self.store, &lock.store) {
            return Err(EnterError::ForeignLock);
        }
        let process = self.seat.start()?;
        // SAFETY: the process and the lock are of one domain, which is equivalent to one lock, and
        // `start` found the process in its remainder section.
        unsafe { lock.acquire(process) };
        Ok(DomainGuard { lock, seat: &mut self.seat })
    }
}

impl<M: Memory> Drop for DomainProcess<M> {
    fn drop(&mut self) {
        if let Some(process) = self.seat.idle() {
            self.store.records.give_back(process);
        }
    }
}

/// A lock of a [`Domain`] is held until this is dropped.
#[must_use = "the lock is released at once if the guard is dropped"]
#[derive(Debug)]
pub struct DomainGuard<'p, M: Memory = Native> {
    lock: &'p DvirTaubenfeld2<M>,
    seat: &'p mut Seat<Process<M>>,
}

impl<M: Memory> Drop for DomainGuard<'_, M> {
    fn drop(&mut self) {
        // SAFETY: a guard exists only while its process holds its lock.
        unsafe { self.lock.release(self.seat.current()) };
        self.seat.finish();
    }
}
