//! A bounded queue with two sessions: any number enqueue together, or dequeue together, but never both.
//!
//! It is the example with which Maor and Taubenfeld (DISC 2021) motivate group mutual exclusion, after Blelloch, Cheng and Gibbons (*Scalable room
//! synchronizations*, 2003): once the two are kept apart, "our only concern now is to implement concurrent enqueue operations and concurrent
//! dequeue operations", and each is a counter. Who enqueues takes the next free place and writes there; it need not tell anybody when it has
//! finished writing, since whoever reads comes in another phase.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use grouplock::views::{Inside, Phase};

/// A ring of places. Those numbered from `head` to `tail` are full; numbers wrap around, and place `n` is `n` modulo the capacity.
///
/// Relaxed accesses only: within a phase the counters need do no more than give each place to one thread, between phases the lock orders all.
pub(crate) struct Ring<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Constant while some enqueue.
    head: AtomicUsize,
    /// Constant while some dequeue.
    tail: AtomicUsize,
}

// SAFETY: the ring moves values between threads and shares none: a place is used by the one thread that took its number.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// With room for `capacity` values or a little more.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // A power of two, so that places stay in turn when the numbers wrap around.
        let places =
            (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Ring { places: places.collect(), head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    fn place(&self, number: usize) -> *mut MaybeUninit<T> {
        self.places[number & (self.places.len() - 1)].get()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (mut head, tail) = (*self.head.get_mut(), *self.tail.get_mut());
        while head != tail {
            let place = self.place(head);
            // SAFETY: we have the ring to ourselves.
            let place = unsafe { &mut *place };
            // SAFETY: from head to tail the places are full, and each is emptied once.
            unsafe { place.assume_init_drop() };
            head = head.wrapping_add(1);
        }
    }
}

/// The session of those who enqueue.
pub(crate) struct Enqueue;
/// The session of those who dequeue.
pub(crate) struct Dequeue;

pub(crate) struct Enqueuing<'a, T>(Inside<'a, Enqueue, Ring<T>>);
pub(crate) struct Dequeuing<'a, T>(Inside<'a, Dequeue, Ring<T>>);

impl<T> Phase<Ring<T>> for Enqueue {
    type Name = &'static str;
    type View<'a>
        = Enqueuing<'a, T>
    where
        T: 'a;

    fn name(&self) -> &'static str {
        "enqueue"
    }

    fn view<'a>(&'a self, inside: Inside<'a, Enqueue, Ring<T>>) -> Enqueuing<'a, T> {
        Enqueuing(inside)
    }
}

impl<T> Phase<Ring<T>> for Dequeue {
    type Name = &'static str;
    type View<'a>
        = Dequeuing<'a, T>
    where
        T: 'a;

    fn name(&self) -> &'static str {
        "dequeue"
    }

    fn view<'a>(&'a self, inside: Inside<'a, Dequeue, Ring<T>>) -> Dequeuing<'a, T> {
        Dequeuing(inside)
    }
}

impl<T> Enqueuing<'_, T> {
    /// Puts `value` at the end, or gives it back if the queue is full.
    pub(crate) fn enqueue(&self, value: T) -> Result<(), T> {
        let ring = self.0.data();
        let head = ring.head.load(Relaxed);
        let next = |tail: usize| {
            (tail.wrapping_sub(head) < ring.places.len()).then_some(tail.wrapping_add(1))
        };
        let Ok(number) = ring.tail.fetch_update(Relaxed, Relaxed, next) else { return Err(value) };
        let place = ring.place(number);
        // SAFETY: the place is empty, as the number is less than a round after `head`. It is ours alone: no other thread gets this number, and
        // nobody dequeues while an `Inside` for `Enqueue` exists. Who emptied it did so in an earlier phase.
        unsafe { place.write(MaybeUninit::new(value)) };
        Ok(())
    }
}

impl<T> Dequeuing<'_, T> {
    /// Takes the value at the front, if there is one.
    pub(crate) fn dequeue(&self) -> Option<T> {
        let ring = self.0.data();
        let tail = ring.tail.load(Relaxed);
        let next = |head: usize| (head != tail).then_some(head.wrapping_add(1));
        let number = ring.head.fetch_update(Relaxed, Relaxed, next).ok()?;
        let place = ring.place(number);
        // SAFETY: the place is ours alone: no other thread gets this number, and nobody enqueues while an `Inside` for `Dequeue` exists.
        let value = unsafe { place.read() };
        // SAFETY: the number lies between head and tail, so the place was filled in an earlier phase, and it is emptied by us only.
        Some(unsafe { value.assume_init() })
    }
}
