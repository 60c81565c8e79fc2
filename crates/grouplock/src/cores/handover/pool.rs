//! The pool of records. A record has what a request needs: above all a process of the algorithm. A
//! request takes a record, and a holder that leaves puts it back.

use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use super::{ALONE, Algorithm, Process, locked};
use crate::snapshot::{Snapshot, WaitingPhase};
use crate::sync::{AtomicPtr, AtomicU32, Mutex, stripe_of_this_thread, stripes};

/// One request or one holding owns a record, or the record is idle.
#[repr(align(128))]
pub(super) struct Record<S> {
    process: UnsafeCell<Process>,
    /// The name of the process in the algorithm.
    name: usize,
    /// The number of guards of the holding.
    guards: AtomicU32,
    /// The number of the session of the request. Only the owner uses it.
    number: Cell<u64>,
    shown: Mutex<Shown<S>>,
}

/// What a snapshot shows of a record.
#[derive(Clone, Copy, Debug)]
struct Shown<S> {
    number: u64,
    /// The session with that number. `None`: the owner asks to be alone.
    session: Option<S>,
    /// The time at which the owner began to wait.
    since: Option<Instant>,
}

// SAFETY: only the owner uses `process` and `number`. The other fields are mutexes or atomics.
unsafe impl<S: Send> Sync for Record<S> {}
// SAFETY: a process is `Send`.
unsafe impl<S: Send> Send for Record<S> {}

impl<S: Copy> Record<S> {
    /// The process of the algorithm.
    ///
    /// # Safety
    /// The caller owns the record and has no other reference to the process.
    #[allow(clippy::mut_from_ref, reason = "the owner has the only one")]
    pub(super) unsafe fn process(&self) -> &mut Process {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.process.get() }
    }

    /// The number of the session of the request.
    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Records the request of the owner. Most requests have the same number as the request before.
    #[inline]
    pub(super) fn set_request(&self, number: u64, session: Option<S>) {
        if self.number.replace(number) != number {
            *locked(&self.shown) = Shown { number, session, since: None };
        }
    }

    /// Records since when the owner waits; `None` if it does not wait.
    pub(super) fn set_waiting_since(&self, since: Option<Instant>) {
        locked(&self.shown).since = since;
    }

    /// Adds a guard of the holding.
    pub(super) fn add_guard(&self) {
        // Relaxed: the caller has a guard, so the holding does not end meanwhile.
        let guards = self.guards.fetch_add(1, Relaxed);
        if guards >= u32::MAX / 2 {
            // Only leaked guards can do that. The holding does not end then.
            self.guards.fetch_sub(1, Relaxed);
            panic!("too many guards of one holding");
        }
    }

    /// Sets the count, as leaked guards would.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn set_guards(&self, guards: u32) {
        self.guards.store(guards, Relaxed);
    }

    /// Returns whether the holding has one guard. The caller has a guard.
    pub(super) fn has_one_guard(&self) -> bool {
        // Acquire: pairs with the release of threads that dropped other guards.
        self.guards.load(Acquire) == 1
    }

    /// Drops a guard. Returns whether it was the last one. If so, the caller owns the record.
    pub(super) fn drop_guard(&self) -> bool {
        // AcqRel: what was done with any guard happens before the exit that the last one makes.
        let last = self.has_one_guard() || self.guards.fetch_sub(1, AcqRel) == 1;
        if last {
            // Relaxed: only the caller has the record.
            self.guards.store(1, Relaxed);
        }
        last
    }
}

/// A record that is in use. Its core lives longer.
pub(super) struct Owned<S>(NonNull<Record<S>>);

impl<S> Clone for Owned<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Owned<S> {}

// SAFETY: this is a shared reference to a record.
unsafe impl<S: Send> Send for Owned<S> {}
// SAFETY: as above.
unsafe impl<S: Send> Sync for Owned<S> {}

impl<S> std::ops::Deref for Owned<S> {
    type Target = Record<S>;

    #[inline]
    fn deref(&self) -> &Record<S> {
        // SAFETY: the core frees its records when it is dropped. It outlives passes and requests.
        unsafe { self.0.as_ref() }
    }
}

/// All records of a lock. A thread that leaves puts its record where it looks first the next time.
pub(super) struct Pool<S> {
    stripes: Box<[Stripe<S>]>,
    /// The records that no stripe has.
    rest: Mutex<Rest<S>>,
}

#[repr(align(128))]
struct Stripe<S>(AtomicPtr<Record<S>>);

struct Rest<S> {
    idle: Vec<NonNull<Record<S>>>,
    all: Vec<NonNull<Record<S>>>,
}

// SAFETY: the pool owns all records, and a record may be sent.
unsafe impl<S: Send> Send for Rest<S> {}

impl<S: Copy> Pool<S> {
    /// Takes an idle record.
    #[inline]
    pub(super) fn take(&self, algorithm: &Algorithm) -> Owned<S> {
        let stripe = &self.stripes[stripe_of_this_thread() % self.stripes.len()].0;
        // Acquire: pairs with the release in `put`.
        let record = NonNull::new(stripe.swap(ptr::null_mut(), Acquire));
        Owned(record.unwrap_or_else(|| self.take_idle_or_new(algorithm)))
    }

    #[cold]
    fn take_idle_or_new(&self, algorithm: &Algorithm) -> NonNull<Record<S>> {
        use grouplock_algorithms::raw::RawGroup;

        let idle = locked(&self.rest).idle.pop();
        idle.unwrap_or_else(|| {
            let process = algorithm.join().expect("the algorithm serves any number of processes");
            let record = NonNull::from(Box::leak(Box::new(Record {
                name: Algorithm::name(&process).addr(),
                process: UnsafeCell::new(process),
                guards: AtomicU32::new(1),
                number: Cell::new(0),
                shown: Mutex::new(Shown { number: 0, session: None, since: None }),
            })));
            locked(&self.rest).all.push(record);
            record
        })
    }

    /// Puts a record back.
    #[inline]
    pub(super) fn put(&self, record: Owned<S>) {
        let stripe = &self.stripes[stripe_of_this_thread() % self.stripes.len()].0;
        // Release: pairs with the acquire in `take`. Relaxed on failure: then the mutex orders.
        let put = stripe.compare_exchange(ptr::null_mut(), record.0.as_ptr(), Release, Relaxed);
        if put.is_err() {
            locked(&self.rest).idle.push(record.0);
        }
    }

    /// The snapshot of a lock with these requests in its queue: the number and the process of each.
    pub(super) fn snapshot(&self, queue: &[(u64, usize)]) -> Snapshot<S> {
        let mut more_guards = 0;
        let show = |record: &NonNull<Record<S>>| {
            let record = Owned(*record);
            // Relaxed: the count is that of some moment.
            more_guards += record.guards.load(Relaxed).saturating_sub(1) as usize;
            (record.name, *locked(&record.shown))
        };
        let mut shown: Vec<_> = locked(&self.rest).all.iter().map(show).collect();
        shown.sort_unstable_by_key(|(name, _)| *name);
        let inside = queue.first().map_or(0, |(number, _)| *number);
        let holders = queue.iter().take_while(|(number, _)| *number == inside).count();
        // Holders exchange nodes, so the session inside is found by its number and not by a name.
        let session = shown.iter().find(|(_, shown)| shown.number == inside);
        let session = session.and_then(|(_, shown)| shown.session);
        let mut waiting: Vec<WaitingPhase<S>> = Vec::new();
        let mut before = inside;
        for (number, name) in &queue[holders..] {
            let index = shown.binary_search_by_key(name, |(name, _)| *name);
            let shown = index.map(|index| shown[index].1);
            let shown = shown.ok().filter(|shown| shown.number == *number);
            let age = shown.and_then(|shown| shown.since).map_or(Duration::ZERO, |at| at.elapsed());
            if *number != before {
                let session = shown.and_then(|shown| shown.session);
                waiting.push(WaitingPhase { session, waiters: 0, age });
                before = *number;
            }
            if let Some(phase) = waiting.last_mut() {
                phase.waiters += 1;
                phase.age = phase.age.max(age);
            }
        }
        Snapshot { session, exclusive: inside >= ALONE, holders: holders + more_guards, waiting }
    }

    /// The number of records.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn count(&self) -> usize {
        locked(&self.rest).all.len()
    }
}

impl<S> Pool<S> {
    pub(super) fn new() -> Self {
        Pool {
            stripes: (0..stripes()).map(|_| Stripe(AtomicPtr::new(ptr::null_mut()))).collect(),
            rest: Mutex::new(Rest { idle: Vec::new(), all: Vec::new() }),
        }
    }
}

impl<S> Drop for Pool<S> {
    fn drop(&mut self) {
        for record in locked(&self.rest).all.drain(..) {
            // SAFETY: the pointer is from a box that `take_idle_or_new` leaked.
            drop(unsafe { Box::from_raw(record.as_ptr()) });
        }
    }
}
