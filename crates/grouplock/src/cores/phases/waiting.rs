//! Waiting: a thread spins for a moment, joins the queue, and sleeps.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::Phases;
use super::queue::{Asked, Ticket};
use super::waiter::{Kind, Signal, Standing, discard};
use super::word::{self, ASK, EXCLUSIVE, FULL, ONE};
use crate::sync;
use crate::watch::{self, Observer as _};

/// What came of joining the queue.
pub(in crate::cores) enum QueueUp {
    Inside,
    TooLate,
    Queued(Place),
}

/// A thread's place in the queue.
pub(in crate::cores) struct Place {
    pub(super) ticket: Ticket,
    pub(super) signal: Arc<Signal>,
    /// When it will have waited for long enough, if the policy knows such a thing.
    pub(super) patience: Option<Instant>,
    pub(super) duty: Duty,
}

/// What a thread that waits owes those who asked it to, beyond coming back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cores) enum Duty {
    /// Nothing: the wait may be given up.
    None,
    /// It must end inside.
    Enter,
    /// If the wait is given up, it must be a holder again as it was before.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    Return,
}

/// A thread's request in the queue. Given up when dropped; so a thread that is inside, or has taken its request back itself, forgets it.
struct Request<'a, S: Eq + Clone> {
    core: &'a Phases<S>,
    ticket: Ticket,
    signal: &'a Signal,
}

impl<S: Eq + Clone> Drop for Request<'_, S> {
    fn drop(&mut self) {
        self.core.give_up(self.ticket, self.signal);
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Takes a request out of the queue; or leaves, if it has been granted the room meanwhile.
    pub(super) fn give_up(&self, ticket: Ticket, signal: &Signal) {
        let mut locked = self.lock();
        if signal.standing() == Standing::Granted {
            drop(locked);
            // Relaxed: the one who granted it the room set this bit, or found it clear. It is as it was then.
            self.give_back(ONE | self.word.load(Relaxed) & EXCLUSIVE);
        } else {
            let waiter = locked.remove(ticket);
            drop(locked);
            drop(waiter);
        }
    }
}

/// Whether there is no time to wait.
pub(in crate::cores) fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

impl<S: Eq + Clone> Phases<S> {
    /// Tries for a while, as a room that is taken may be free in a moment. A request that must ask before it enters asks once.
    ///
    /// A request arrives when it joins the queue. So a request that joins while this one spins does not overtake it.
    pub(in crate::cores) fn spin(
        &self,
        asked: &mut Asked<'_, S>,
        deadline: Option<Instant>,
    ) -> bool {
        let (mut was_open, mut has_asked) = (false, false);
        let mut spin = sync::Spin::until(deadline);
        while spin.pause() {
            // Relaxed: only to see whether it is worth trying.
            let word = self.word.load(Relaxed);
            if word & FULL != 0 {
                return false;
            }
            if word & ASK != 0 {
                if !has_asked && self.lock().admit(asked, Instant::now) {
                    return true;
                }
                has_asked = true;
                continue;
            }
            // A room that was open before has been tried. It becomes interesting again when it is empty.
            let is_open = asked.is_some() && word::is_open(word);
            if (is_open && !was_open || word::is_empty(word)) && self.fast(asked) {
                return true;
            }
            was_open = is_open;
        }
        false
    }

    /// Waits until inside, but not longer than until `deadline`.
    #[cold]
    pub(super) fn wait(&self, mut asked: Asked<'_, S>, deadline: Option<Instant>) -> bool {
        let exclusive = asked.is_none();
        if is_past(deadline) {
            return self.try_and_discard(asked);
        }
        if self.spin(&mut asked, deadline) {
            discard(asked);
            return true;
        }
        match self.queue_up(asked, deadline) {
            QueueUp::Inside => true,
            QueueUp::TooLate => false,
            QueueUp::Queued(place) => self.sleep(exclusive, place, deadline),
        }
    }

    /// Joins the queue, unless that is not needed after all or `deadline` has passed. Whoever is queued must [`sleep`](Phases::sleep) then.
    pub(in crate::cores) fn queue_up(
        &self,
        mut asked: Asked<'_, S>,
        deadline: Option<Instant>,
    ) -> QueueUp {
        let mut locked = self.lock();
        let now = Instant::now();
        if locked.admit(&mut asked, || now) {
            drop(locked);
            discard(asked);
            return QueueUp::Inside;
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            drop(locked);
            discard(asked);
            return QueueUp::TooLate;
        }
        QueueUp::Queued(locked.push_thread(asked, now, Kind::Thread))
    }

    /// Sleeps until granted the room, or until invited and there, or until `deadline`. Sees to it that the lock turns strict when patience is over.
    pub(in crate::cores) fn sleep(
        &self,
        exclusive: bool,
        place: Place,
        deadline: Option<Instant>,
    ) -> bool {
        let Place { ticket, signal, mut patience, duty } = place;
        // Foreign code runs below, where reports are made. If it panics, the request is given up.
        let request = Request { core: self, ticket, signal: &signal };
        let told = watch::Request::of(self, exclusive);
        let mut watch = watch::Wait::begin(told, &signal, deadline.is_none(), duty != Duty::None);
        let inside = loop {
            if let Some(reason) = watch.look(&|| self.lock().crowd()) {
                panic!("{reason}");
            }
            let until = [deadline, patience, watch.next_look()].into_iter().flatten().min();
            let mut standing = signal.standing();
            if standing == Standing::Waiting {
                sync::park(until);
                standing = signal.standing();
            }
            let now = until.map(|_| Instant::now());
            let is_over = |time: Option<Instant>| {
                time.zip(now).is_some_and(|(time, now)| sync::is_over(time, now))
            };
            match standing {
                Standing::Granted => break true,
                Standing::Waiting if !is_over(until) => {}
                Standing::Waiting | Standing::Invited => {
                    let mut locked = self.lock();
                    // It may have changed before the lock was ours.
                    if signal.standing() == Standing::Invited {
                        signal.set(Standing::Waiting);
                        locked.accept(ticket);
                    }
                    if signal.standing() == Standing::Granted {
                        break true;
                    }
                    if is_over(deadline) {
                        locked.remove(ticket);
                        #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
                        if duty == Duty::Return {
                            locked.return_inside();
                        }
                        break false;
                    }
                    if is_over(patience) {
                        // The release of the lock finds that the time is over. From then on the room is handed over.
                        patience = None;
                        watch.turned_strict();
                    }
                }
            }
        };
        mem::forget(request);
        watch.end(inside);
        inside
    }
}
