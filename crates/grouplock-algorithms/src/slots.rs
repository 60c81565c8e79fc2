//! The places of a lock made for a fixed number of processes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::CapacityError;

/// Keeps the processes of a lock that has places for a fixed number of them, while they are not in use.
///
/// A process is handed out as it was brought back: whoever takes a place over goes on with the private variables that belong to it.
/// As with [`Nodes`](crate::nodes::Nodes), this is book-keeping for joining and leaving and no part of an algorithm.
#[derive(Debug)]
pub struct Slots<P> {
    processes: usize,
    free: Mutex<Vec<P>>,
}

impl<P> Slots<P> {
    /// Places for `processes` processes, each of which `make` makes from its number.
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] unless there are at least one and at most `most`.
    pub fn new(
        processes: usize,
        most: usize,
        make: impl FnMut(usize) -> P,
    ) -> Result<Self, CapacityError> {
        if processes == 0 || processes > most {
            return Err(CapacityError::Unsupported { asked: processes, most });
        }
        // Taken from the end, so at first in the order of their numbers.
        Ok(Slots { processes, free: Mutex::new((0..processes).rev().map(make).collect()) })
    }

    /// Takes a process that nobody uses.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if there is none.
    pub fn take(&self) -> Result<P, CapacityError> {
        self.lock().pop().ok_or(CapacityError::Full { processes: self.processes })
    }

    /// Brings a process back.
    pub fn give_back(&self, process: P) {
        self.lock().push(process);
    }

    /// Nothing in here can be left half done by a panic.
    fn lock(&self) -> MutexGuard<'_, Vec<P>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
