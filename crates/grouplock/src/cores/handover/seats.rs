//! Seats: what a request needs, a process of the algorithm first of all. Who leaves gives its seat to the next.

use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Instant;

use super::{Algorithm, Process, locked};
use crate::sync::{AtomicPtr, AtomicU32, Mutex, stripe_of_this_thread, stripes};

/// Owned by one request or stay at a time, or idle.
#[repr(align(128))]
pub(super) struct Seat<S> {
    process: UnsafeCell<Process>,
    /// By what name the algorithm calls the process.
    name: usize,
    /// How many guards there are of the stay.
    guards: AtomicU32,
    /// The number asked for. Its owner's.
    number: Cell<u64>,
    told: Mutex<Told<S>>,
}

/// What a snapshot shows of a seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<S> {
    pub(super) number: u64,
    /// What the session with that number is called. None is for one who asks to be alone.
    pub(super) session: Option<S>,
    /// Since when the owner has been waiting.
    pub(super) since: Option<Instant>,
}

// SAFETY: `process` and `number` are their owner's. The others are shared by a mutex or an atomic.
unsafe impl<S: Send> Sync for Seat<S> {}
// SAFETY: a process is `Send`.
unsafe impl<S: Send> Send for Seat<S> {}

impl<S: Copy> Seat<S> {
    /// The process of the algorithm.
    ///
    /// # Safety
    /// The caller owns the seat, and has no other such reference.
    #[allow(clippy::mut_from_ref, reason = "the owner has the only one")]
    pub(super) unsafe fn process(&self) -> &mut Process {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.process.get() }
    }

    /// The number that the owner asked for.
    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// The owner asks for the session with this number. Nearly always it is the same as last time.
    #[inline]
    pub(super) fn asks_for(&self, number: u64, session: Option<S>) {
        if self.number.replace(number) != number {
            *locked(&self.told) = Told { number, session, since: None };
        }
    }

    /// The owner waits from now on, or no more.
    pub(super) fn waits(&self, since: Option<Instant>) {
        locked(&self.told).since = since;
    }

    /// One more guard of the stay.
    pub(super) fn again(&self) {
        // Relaxed: whoever has a guard keeps the stay from ending meanwhile.
        let guards = self.guards.fetch_add(1, Relaxed);
        if guards >= u32::MAX / 2 {
            // That takes leaked guards. The stay does not end then, however often this is tried.
            self.guards.fetch_sub(1, Relaxed);
            panic!("too many guards of one stay");
        }
    }

    /// As if guards had been leaked until there were so many.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn has_guards(&self, guards: u32) {
        self.guards.store(guards, Relaxed);
    }

    /// Whether there is one guard only. Asked by one who has a guard.
    pub(super) fn is_single(&self) -> bool {
        // Acquire: pairs with the release of those who had the others.
        self.guards.load(Acquire) == 1
    }

    /// A guard is gone. Whether it was the last, and the caller owns the seat.
    pub(super) fn is_last(&self) -> bool {
        // AcqRel: what the holders of all guards did comes before the exit that the last makes.
        let last = self.is_single() || self.guards.fetch_sub(1, AcqRel) == 1;
        if last {
            // Relaxed: nobody else has the seat.
            self.guards.store(1, Relaxed);
        }
        last
    }
}

/// A seat that somebody has. The core that it belongs to lives longer.
pub(super) struct Owned<S>(NonNull<Seat<S>>);

impl<S> Clone for Owned<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Owned<S> {}

// SAFETY: it is a shared reference to a seat.
unsafe impl<S: Send> Send for Owned<S> {}
// SAFETY: as above.
unsafe impl<S: Send> Sync for Owned<S> {}

impl<S> std::ops::Deref for Owned<S> {
    type Target = Seat<S>;

    #[inline]
    fn deref(&self) -> &Seat<S> {
        // SAFETY: seats are freed with the core, and passes and requests are not used after that.
        unsafe { self.0.as_ref() }
    }
}

/// All seats of a lock. A thread that leaves puts its seat where it will look first.
pub(super) struct Seats<S> {
    stripes: Box<[Stripe<S>]>,
    rest: Mutex<Rest<S>>,
}

#[repr(align(128))]
struct Stripe<S>(AtomicPtr<Seat<S>>);

struct Rest<S> {
    idle: Vec<NonNull<Seat<S>>>,
    all: Vec<NonNull<Seat<S>>>,
}

// SAFETY: seats may be shared and sent.
unsafe impl<S: Send> Send for Rest<S> {}

impl<S: Copy> Seats<S> {
    /// A seat, idle until now.
    #[inline]
    pub(super) fn take(&self, algorithm: &Algorithm) -> Owned<S> {
        let stripe = &self.stripes[stripe_of_this_thread() % self.stripes.len()].0;
        // Acquire: pairs with the release in `put`.
        let seat = NonNull::new(stripe.swap(ptr::null_mut(), Acquire));
        Owned(seat.unwrap_or_else(|| self.take_rest(algorithm)))
    }

    #[cold]
    fn take_rest(&self, algorithm: &Algorithm) -> NonNull<Seat<S>> {
        use grouplock_algorithms::raw::RawGroup;

        let idle = locked(&self.rest).idle.pop();
        idle.unwrap_or_else(|| {
            let process = algorithm.join().expect("the algorithm serves any number of processes");
            let seat = NonNull::from(Box::leak(Box::new(Seat {
                name: Algorithm::name(&process).addr(),
                process: UnsafeCell::new(process),
                guards: AtomicU32::new(1),
                number: Cell::new(0),
                told: Mutex::new(Told { number: 0, session: None, since: None }),
            })));
            locked(&self.rest).all.push(seat);
            seat
        })
    }

    /// The seat is idle from now on.
    #[inline]
    pub(super) fn put(&self, seat: Owned<S>) {
        let stripe = &self.stripes[stripe_of_this_thread() % self.stripes.len()].0;
        // Release: pairs with the acquire in `take`. Relaxed on failure: then it is given by the mutex.
        let put = stripe.compare_exchange(ptr::null_mut(), seat.0.as_ptr(), Release, Relaxed);
        if put.is_err() {
            locked(&self.rest).idle.push(seat.0);
        }
    }

    /// What all seats tell, by the name of their process; and how many guards there are beyond one for each stay.
    pub(super) fn told(&self) -> (Vec<(usize, Told<S>)>, usize) {
        let rest = locked(&self.rest);
        let mut more = 0;
        let told = rest.all.iter().map(|seat| {
            let seat = Owned(*seat);
            more += seat.guards.load(Relaxed).saturating_sub(1) as usize;
            (seat.name, *locked(&seat.told))
        });
        (told.collect(), more)
    }

    /// How many there are.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn count(&self) -> usize {
        locked(&self.rest).all.len()
    }
}

impl<S> Seats<S> {
    pub(super) fn new() -> Self {
        Seats {
            stripes: (0..stripes()).map(|_| Stripe(AtomicPtr::new(ptr::null_mut()))).collect(),
            rest: Mutex::new(Rest { idle: Vec::new(), all: Vec::new() }),
        }
    }
}

impl<S> Drop for Seats<S> {
    fn drop(&mut self) {
        for seat in locked(&self.rest).all.drain(..) {
            // SAFETY: a box that `take_rest` leaked. Nobody uses it any more.
            drop(unsafe { Box::from_raw(seat.as_ptr()) });
        }
    }
}
