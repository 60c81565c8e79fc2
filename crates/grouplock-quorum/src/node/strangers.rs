//! Connections whose other side has not said who it is: few, and the oldest makes room for the newest.
//!
//! Refusing the newest instead would let silent connections keep everybody out for as long as they may be silent. Whoever means
//! it is known within a few round trips, long before so many others have come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// See the module.
pub(super) struct Strangers {
    most: usize,
    oldest_first: Mutex<VecDeque<Arc<Notify>>>,
}

/// A place among them, until it is dropped.
pub(super) struct Stranger {
    all: Arc<Strangers>,
    told: Arc<Notify>,
}

impl Strangers {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Strangers { most, oldest_first: Mutex::new(VecDeque::new()) })
    }

    /// Never waits: if there is no place, the oldest has to go.
    pub(super) fn admit(self: &Arc<Self>) -> Stranger {
        let told = Arc::new(Notify::new());
        let mut all = self.oldest_first.lock().unwrap_or_else(PoisonError::into_inner);
        while all.len() >= self.most
            && let Some(oldest) = all.pop_front()
        {
            oldest.notify_one();
        }
        all.push_back(told.clone());
        Stranger { all: self.clone(), told }
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
        let mut all = self.all.oldest_first.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, &self.told));
    }
}
