//! Connections that have not identified themselves: they are few, and the oldest makes room for the
//! newest.
//!
//! Refusing the newest instead would let silent connections keep all others out. An honest client
//! identifies itself within a few round trips, long before this many others arrive.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// See the module.
pub(super) struct Strangers {
    slots: Arc<Semaphore>,
    /// From this number on, the oldest must go. The remaining slots are for connections that are
    /// being closed.
    many: usize,
    oldest_first: Mutex<VecDeque<Arc<Notify>>>,
}

/// A slot, until it is dropped.
pub(super) struct Stranger {
    all: Arc<Strangers>,
    told: Arc<Notify>,
    _slot: OwnedSemaphorePermit,
}

impl Strangers {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let (slots, many) = (Arc::new(Semaphore::new(most)), most * 3 / 4);
        Arc::new(Strangers { slots, many, oldest_first: Mutex::new(VecDeque::new()) })
    }

    /// Takes a slot. If most are taken, the oldest connection must go. This waits only if all slots
    /// are taken. It never returns `None`: the slots live as long as `self`.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<Stranger> {
        let oldest = {
            let mut all = self.all();
            if all.len() >= self.many { all.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            oldest.notify_one();
        }
        let slot = self.slots.clone().acquire_owned().await.ok()?;
        let told = Arc::new(Notify::new());
        self.all().push_back(told.clone());
        Some(Stranger { all: self.clone(), told, _slot: slot })
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.oldest_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// Completes when the connection must go.
    pub(super) async fn evicted(&self) {
        self.told.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.all().retain(|other| !Arc::ptr_eq(other, &self.told));
    }
}
