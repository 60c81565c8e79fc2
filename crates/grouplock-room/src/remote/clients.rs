//! One client per process and place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The clients of a process: at most one for each place. The backend defines what a place is.
///
/// A client stays as long as something holds it. A child process gets new clients after `fork`,
/// because the threads of the parent's clients do not exist in it.
#[derive(Debug)]
pub struct Clients<P, C> {
    /// Each with the process that made it.
    known: Mutex<Vec<(u32, P, Weak<C>)>>,
}

impl<P: PartialEq, C> Clients<P, C> {
    /// No clients.
    pub const fn new() -> Self {
        Clients { known: Mutex::new(Vec::new()) }
    }

    /// Returns the client for `place`. If there is none, `start` makes it. Other places need not
    /// wait meanwhile. If two threads make a client for the same place, both get the first one.
    ///
    /// # Errors
    /// That of `start`.
    pub fn at<E>(&self, place: P, start: impl FnOnce() -> Result<C, E>) -> Result<Arc<C>, E> {
        if let Some(client) = Self::find(&mut self.lock(), &place) {
            return Ok(client);
        }
        let new = Arc::new(start()?);
        let mut known = self.lock();
        if let Some(first) = Self::find(&mut known, &place) {
            return Ok(first);
        }
        known.push((std::process::id(), place, Arc::downgrade(&new)));
        Ok(new)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, P, Weak<C>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Also forgets the clients that have ended, and those of the parent process.
    fn find(known: &mut Vec<(u32, P, Weak<C>)>, place: &P) -> Option<Arc<C>> {
        let process = std::process::id();
        known.retain(|(owner, _, client)| *owner == process && client.strong_count() > 0);
        known.iter().filter(|(_, at, _)| at == place).find_map(|(_, _, client)| client.upgrade())
    }
}

impl<P: PartialEq, C> Default for Clients<P, C> {
    fn default() -> Self {
        Clients::new()
    }
}
