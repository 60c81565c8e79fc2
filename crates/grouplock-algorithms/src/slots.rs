//! The places of a lock made for a fixed number of processes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::CapacityError;

/// Keeps the unused processes of a lock with a fixed number of places.
///
/// A process is given out unchanged: its next user continues with its private variables. As with
/// [`Nodes`](crate::nodes::Nodes), this is book-keeping for joining and leaving, not part of an
/// algorithm.
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

    /// Takes an unused process.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if there is none.
    pub fn take(&self) -> Result<P, CapacityError> {
        self.lock().pop().ok_or(CapacityError::Full { processes: self.processes })
    }

    /// Returns a process.
    pub fn give_back(&self, process: P) {
        self.lock().push(process);
    }

    /// A panic leaves no partial change here.
    fn lock(&self) -> MutexGuard<'_, Vec<P>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
