//! The group locks people write by hand, of a mutex and a condition variable.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::comparison::lock::{Kind, Lock};

/// The one that is written first: whoever finds the room empty or of its own session goes in, and the last one out
/// wakes everybody. Newcomers of the running session keep the others out for ever.
///
/// With `COUNTS`, the last one out wakes only if somebody waits: less obvious, and it saves a system call, for
/// the standard library's condition variable does not know whether anybody waits.
#[derive(Debug)]
pub struct ByHand<const COUNTS: bool> {
    room: Mutex<Room>,
    emptied: Condvar,
}

#[derive(Debug)]
struct Room {
    session: u64,
    inside: usize,
    waiting: usize,
}

impl<const COUNTS: bool> Lock for ByHand<COUNTS> {
    const NAME: &'static str =
        if COUNTS { "by hand, counts waiters" } else { "by hand, Mutex + Condvar" };
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        let room = Mutex::new(Room { session: 0, inside: 0, waiting: 0 });
        ByHand { room, emptied: Condvar::new() }
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        self.enter(session);
        let result = inside();
        self.leave();
        result
    }
}

impl<const COUNTS: bool> ByHand<COUNTS> {
    #[inline]
    fn enter(&self, session: u64) {
        let mut room = locked(&self.room);
        while room.inside > 0 && room.session != session {
            room.waiting += 1;
            room = self.emptied.wait(room).unwrap_or_else(PoisonError::into_inner);
            room.waiting -= 1;
        }
        room.session = session;
        room.inside += 1;
    }

    #[inline]
    fn leave(&self) {
        let mut room = locked(&self.room);
        room.inside -= 1;
        let wake = room.inside == 0 && (!COUNTS || room.waiting > 0);
        drop(room);
        if wake {
            self.emptied.notify_all();
        }
    }
}

/// The fair one: requests queue in the order they came, and when the room is empty the first of them goes in,
/// together with those behind it that ask for the same session.
#[derive(Debug)]
pub struct FairByHand {
    room: Mutex<FairRoom>,
    admitted: Condvar,
}

#[derive(Debug)]
struct FairRoom {
    session: u64,
    inside: usize,
    /// Sessions of those who wait, in the order they came.
    queue: VecDeque<u64>,
    /// The number of the first in the queue: all before it were admitted.
    first: u64,
}

impl Lock for FairByHand {
    const NAME: &'static str = "by hand, fair (FIFO)";
    const KIND: Kind = Kind::Group;
    type Local = ();

    fn new() -> Self {
        let room = FairRoom { session: 0, inside: 0, queue: VecDeque::new(), first: 0 };
        FairByHand { room: Mutex::new(room), admitted: Condvar::new() }
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        self.enter(session);
        let result = inside();
        self.leave();
        result
    }
}

impl FairByHand {
    #[inline]
    fn enter(&self, session: u64) {
        let mut room = locked(&self.room);
        if room.queue.is_empty() && (room.inside == 0 || room.session == session) {
            room.session = session;
            room.inside += 1;
            return;
        }
        let mine = room.first + room.queue.len() as u64;
        room.queue.push_back(session);
        while room.first <= mine {
            room = self.admitted.wait(room).unwrap_or_else(PoisonError::into_inner);
        }
    }

    #[inline]
    fn leave(&self) {
        let mut room = locked(&self.room);
        room.inside -= 1;
        if room.inside > 0 {
            return;
        }
        let Some(&session) = room.queue.front() else { return };
        room.session = session;
        while room.queue.front() == Some(&session) {
            room.queue.pop_front();
            room.first += 1;
            room.inside += 1;
        }
        drop(room);
        self.admitted.notify_all();
    }
}

/// A panic inside is the harness's own, and ends the run.
#[inline]
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
