//! The group locks that people write by hand, with a mutex and a condition variable.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::comparison::lock::{Kind, Lock, held, lock};

macro_rules! by_hand {
    ($(#[$doc:meta])* $name:ident($lock:ty), $title:literal) => {
        lock!(
            $(#[$doc])* $name($lock) = <$lock>::default(), $title, Group,
            |lock, session, inside| {
                lock.enter(session);
                let result = inside();
                lock.leave();
                result
            }
        );
    };
}

by_hand!(
    /// The one that people write first: a thread enters if the room is empty or has its session,
    /// and the last holder wakes all waiters. Threads of the running session can exclude the others
    /// for ever.
    ByHand(Unfair<false>), "by hand, Mutex + Condvar"
);
by_hand!(
    /// The same, but the last holder wakes only if a thread waits. This is less obvious, and saves
    /// a system call: the condition variable of the standard library does not know its waiters.
    CountingByHand(Unfair<true>), "by hand, counts waiters"
);
by_hand!(
    /// Requests queue in the order of arrival. When the room is empty, the first of them enters,
    /// together with the requests behind it for the same session.
    FairByHand(Fair), "by hand, fair (FIFO)"
);

#[derive(Default)]
struct Unfair<const COUNTS: bool> {
    room: Mutex<Room>,
    emptied: Condvar,
}

#[derive(Default)]
struct Room {
    session: u64,
    inside: usize,
    waiting: usize,
}

impl<const COUNTS: bool> Unfair<COUNTS> {
    #[inline]
    fn enter(&self, session: u64) {
        let mut room = held(self.room.lock());
        while room.inside > 0 && room.session != session {
            room.waiting += 1;
            room = held(self.emptied.wait(room));
            room.waiting -= 1;
        }
        room.session = session;
        room.inside += 1;
    }

    #[inline]
    fn leave(&self) {
        let mut room = held(self.room.lock());
        room.inside -= 1;
        let wake = room.inside == 0 && (!COUNTS || room.waiting > 0);
        drop(room);
        if wake {
            self.emptied.notify_all();
        }
    }
}

#[derive(Default)]
struct Fair {
    room: Mutex<FairRoom>,
    admitted: Condvar,
}

#[derive(Default)]
struct FairRoom {
    session: u64,
    inside: usize,
    /// The sessions of the waiters, in the order of arrival.
    queue: VecDeque<u64>,
    /// The number of the first waiter. All requests before it were admitted.
    first: u64,
}

impl Fair {
    #[inline]
    fn enter(&self, session: u64) {
        let mut room = held(self.room.lock());
        if room.queue.is_empty() && (room.inside == 0 || room.session == session) {
            room.session = session;
            room.inside += 1;
            return;
        }
        let mine = room.first + room.queue.len() as u64;
        room.queue.push_back(session);
        while room.first <= mine {
            room = held(self.admitted.wait(room));
        }
    }

    #[inline]
    fn leave(&self) {
        let mut room = held(self.room.lock());
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
