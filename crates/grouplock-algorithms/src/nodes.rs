//! The store of the nodes of the queue locks.

use core::marker::PhantomData;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::{Memory, Ptr};

/// A store of objects that never move and are never freed before the store itself.
///
/// Queue algorithms read nodes that another process may no longer need. In such a *type-stable*
/// store the read may be stale, but never dangling.
///
/// `S` is what a process gets when it joins and returns when it leaves: its record and spare nodes.
/// A returned bundle goes to the next process unchanged. So a store holds no more bundles than the
/// largest number of processes at once.
///
/// This is book-keeping, not part of any algorithm: processes use it when they join and leave, and
/// a process that withdraws takes a new node. Its own words are not in [`Memory`], only the objects
/// are.
#[derive(Debug)]
pub struct Nodes<M: Memory, T, S> {
    inner: Mutex<Inner<T, S>>,
    memory: PhantomData<M>,
}

#[derive(Debug)]
struct Inner<T, S> {
    objects: Vec<NonNull<T>>,
    spare: Vec<S>,
    bundles: usize,
}

// SAFETY: the store owns its objects and gives out only addresses. So it may be sent if they may.
unsafe impl<T: Send, S: Send> Send for Inner<T, S> {}

impl<M: Memory, T, S> Nodes<M, T, S> {
    /// An empty store.
    pub const fn new() -> Self {
        Nodes {
            inner: Mutex::new(Inner { objects: Vec::new(), spare: Vec::new(), bundles: 0 }),
            memory: PhantomData,
        }
    }

    /// Stores the object that `make` builds.
    pub fn allocate(&self, make: impl FnOnce() -> T) -> Ptr<T> {
        let object = M::allocate(make);
        self.lock().objects.push(object);
        Ptr::to(object)
    }

    /// How many objects there are, in use or not. The number never falls.
    pub fn allocated(&self) -> usize {
        self.lock().objects.len()
    }

    /// A returned bundle, or a new one from `make`, which gets the number of bundles made before.
    pub fn take(&self, make: impl FnOnce(usize) -> S) -> S {
        let number = {
            let mut inner = self.lock();
            if let Some(bundle) = inner.spare.pop() {
                return bundle;
            }
            inner.bundles += 1;
            inner.bundles - 1
        };
        make(number)
    }

    /// Returns a bundle.
    pub fn give_back(&self, bundle: S) {
        self.lock().spare.push(bundle);
    }

    /// A panic leaves no partial change here.
    fn lock(&self) -> MutexGuard<'_, Inner<T, S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Memory, T, S> Default for Nodes<M, T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Memory, T, S> Drop for Nodes<M, T, S> {
    fn drop(&mut self) {
        for object in self.lock().objects.drain(..) {
            // SAFETY: `allocate` made it, and it is freed only here. All code that follows a
            // pointer to it promised not to do so after the store is gone.
            unsafe { M::free(object) };
        }
    }
}
