//! The places of a lock made for a fixed number of processes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::CapacityError;

/// Hands out the numbers `0..processes`, each to one process at a time.
///
/// As with [`Nodes`](crate::nodes::Nodes), this is book-keeping for joining and leaving and no part of an algorithm.
#[derive(Debug)]
pub struct Slots {
    processes: usize,
    free: Mutex<Vec<usize>>,
}

impl Slots {
    /// Places for `processes` processes.
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] unless there are at least one and at most `most`.
    pub fn new(processes: usize, most: usize) -> Result<Self, CapacityError> {
        if processes == 0 || processes > most {
            return Err(CapacityError::Unsupported { asked: processes, most });
        }
        Ok(Slots { processes, free: Mutex::new((0..processes).rev().collect()) })
    }

    /// How many places there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.processes
    }

    /// Never true: a lock has at least one place.
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// Takes a free place, at first in the order of their numbers.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if there is none.
    pub fn take(&self) -> Result<usize, CapacityError> {
        self.lock().pop().ok_or(CapacityError::Full { processes: self.processes })
    }

    /// Gives a place back.
    pub fn give_back(&self, slot: usize) {
        self.lock().push(slot);
    }

    /// Nothing in here can be left half done by a panic.
    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
