//! Connections whose other side has not said who it is: few, and the oldest makes room for the newest.
//!
//! Refusing the newest instead would let silent connections keep everybody out for as long as they may be silent. Whoever means
//! it is known within a few round trips, long before so many others have come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// See the module.
pub(super) struct Strangers {
    places: Arc<Semaphore>,
    /// When so many are there, the oldest is told to go. The rest of the places is for those on their way out.
    many: usize,
    oldest_first: Mutex<VecDeque<Arc<Notify>>>,
}

/// A place among them, until it is dropped.
pub(super) struct Stranger {
    all: Arc<Strangers>,
    told: Arc<Notify>,
    _place: OwnedSemaphorePermit,
}

impl Strangers {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let (places, many) = (Arc::new(Semaphore::new(most)), most * 3 / 4);
        Arc::new(Strangers { places, many, oldest_first: Mutex::new(VecDeque::new()) })
    }

    /// When most places are taken, the oldest has to go; waits only if it has not gone by the time that all are. `None` is never
    /// returned: the places are there as long as this is.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<Stranger> {
        let oldest = {
            let mut all = self.all();
            if all.len() >= self.many { all.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            oldest.notify_one();
        }
        let place = self.places.clone().acquire_owned().await.ok()?;
        let told = Arc::new(Notify::new());
        self.all().push_back(told.clone());
        Some(Stranger { all: self.clone(), told, _place: place })
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.oldest_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// Returns when it has to go.
    pub(super) async fn evicted(&self) {
        self.told.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.all().retain(|other| !Arc::ptr_eq(other, &self.told));
    }
}
