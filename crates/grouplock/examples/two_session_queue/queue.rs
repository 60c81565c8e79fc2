//! A bounded queue with two sessions. Any number of threads enqueue together, or dequeue together,
//! but never both.
//!
//! Maor and Taubenfeld (DISC 2021) motivate group mutual exclusion with this example, after
//! Blelloch, Cheng and Gibbons (*Scalable room synchronizations*, 2003): once the two are kept
//! apart, "our only concern now is to implement concurrent enqueue operations and concurrent
//! dequeue operations", and each is a counter. A thread that enqueues takes the next free cell and
//! writes to it. It need not publish the end of its write, because readers come in another phase.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use grouplock::views::{Inside, Phase};

/// A ring of cells. The cells with the numbers from `head` to `tail` are full. Numbers wrap around,
/// and cell `n` is `n` modulo the capacity.
///
/// All accesses are relaxed: within a phase the counters only give each cell to one thread, and
/// between phases the lock orders everything.
pub(crate) struct Ring<T> {
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Constant during the phase `Enqueue`.
    head: AtomicUsize,
    /// Constant during the phase `Dequeue`.
    tail: AtomicUsize,
}

// SAFETY: the ring moves values between threads and shares none: only the thread that took the
// number of a cell uses the cell.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// A ring with room for `capacity` values or a little more.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        // A power of two, so that cells stay in order when the numbers wrap around.
        let cells =
            (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Ring { cells: cells.collect(), head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    fn cell(&self, number: usize) -> *mut MaybeUninit<T> {
        self.cells[number & (self.cells.len() - 1)].get()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (mut head, tail) = (*self.head.get_mut(), *self.tail.get_mut());
        while head != tail {
            let cell = self.cell(head);
            // SAFETY: `&mut self` is the only access to the ring.
            let cell = unsafe { &mut *cell };
            // SAFETY: the cells from head to tail are full, and each is emptied once.
            unsafe { cell.assume_init_drop() };
            head = head.wrapping_add(1);
        }
    }
}

/// The session of threads that enqueue.
pub(crate) struct Enqueue;
/// The session of threads that dequeue.
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
    /// Puts `value` at the end, or returns it if the queue is full.
    pub(crate) fn enqueue(&self, value: T) -> Result<(), T> {
        let ring = self.0.data();
        let head = ring.head.load(Relaxed);
        let next = |tail: usize| {
            (tail.wrapping_sub(head) < ring.cells.len()).then_some(tail.wrapping_add(1))
        };
        let Ok(number) = ring.tail.fetch_update(Relaxed, Relaxed, next) else { return Err(value) };
        let cell = ring.cell(number);
        // SAFETY: the cell is empty, because its number is less than a round after `head`. Only
        // this thread uses it: no other thread gets this number, and no thread dequeues while an
        // `Inside` for `Enqueue` exists. The thread that emptied it did so in an earlier phase.
        unsafe { cell.write(MaybeUninit::new(value)) };
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
        let cell = ring.cell(number);
        // SAFETY: only this thread uses the cell: no other thread gets this number, and no thread
        // enqueues while an `Inside` for `Dequeue` exists.
        let value = unsafe { cell.read() };
        // SAFETY: the number is between head and tail. So the cell was filled in an earlier phase,
        // and only this thread empties it.
        Some(unsafe { value.assume_init() })
    }
}
