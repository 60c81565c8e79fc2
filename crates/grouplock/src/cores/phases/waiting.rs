//! Waiting: a thread spins for a moment, joins the queue, and sleeps.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::waiter::{Kind, Signal, Standing};
use super::word::{self, EXCLUSIVE, ONE};
use super::{Core, Phases};
use crate::{sync, watch};

/// What came of joining the queue.
pub(in crate::cores) enum QueueUp {
    Inside,
    TooLate,
    Queued(Place),
}

/// A thread's place in the queue.
pub(in crate::cores) struct Place {
    pub(super) ticket: u64,
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
struct Request<'a, S: Eq> {
    core: &'a Phases<S>,
    ticket: u64,
    exclusive: bool,
}

impl<S: Eq> Drop for Request<'_, S> {
    fn drop(&mut self) {
        let waited = self.core.lock().queue().remove(self.ticket).is_some();
        if !waited {
            // It has been granted the room meanwhile.
            self.core.give_back(if self.exclusive { ONE | EXCLUSIVE } else { ONE });
        }
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Tries for a while, as a room that is taken may be free in a moment.
    pub(in crate::cores) fn spin(&self, session: Option<&S>) -> bool {
        let mut closed = true;
        for round in 0..sync::SPIN_ROUNDS {
            // Relaxed: only to see whether it is worth trying.
            let word = self.word.load(Relaxed);
            if word::spinning_is_vain(word) {
                return false;
            }
            // An open room with another session inside has been tried: it becomes interesting when it is empty.
            let open = word::is_open(word);
            if open && (closed || word::is_empty(word)) && self.fast(session) {
                return true;
            }
            closed = !open;
            sync::spin(round);
        }
        false
    }

    /// Waits until inside, but not longer than until `deadline`.
    #[cold]
    pub(super) fn wait(&self, session: Option<&S>, deadline: Option<Instant>) -> bool {
        self.spin(session)
            || match self.queue_up(session, deadline) {
                QueueUp::Inside => true,
                QueueUp::TooLate => false,
                QueueUp::Queued(place) => self.sleep(session, place, deadline),
            }
    }

    /// Joins the queue, unless that is not needed after all or `deadline` has passed. Whoever is queued must [`sleep`](Phases::sleep) then.
    pub(in crate::cores) fn queue_up(
        &self,
        session: Option<&S>,
        deadline: Option<Instant>,
    ) -> QueueUp {
        let mut locked = self.lock();
        let now = Instant::now();
        if locked.admit(session, || now) {
            return QueueUp::Inside;
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            return QueueUp::TooLate;
        }
        QueueUp::Queued(locked.push_thread(session, now, Kind::Thread))
    }

    /// Sleeps until granted the room, or until invited and there, or until `deadline`. Sees to it that the lock turns strict when patience is over.
    pub(in crate::cores) fn sleep(
        &self,
        session: Option<&S>,
        place: Place,
        deadline: Option<Instant>,
    ) -> bool {
        let Place { ticket, signal, mut patience, duty } = place;
        // Foreign code runs below, when an invitation is accepted. If it panics, the request is given up.
        let request = Request { core: self, ticket, exclusive: session.is_none() };
        let told = self.request(session.is_none());
        let mut watch = watch::Wait::begin(told, &signal, deadline.is_none(), duty != Duty::None);
        let inside = loop {
            if let Some(reason) = watch.look(|| self.lock().crowd()) {
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
                    match signal.standing() {
                        Standing::Granted => break true,
                        Standing::Invited if locked.accept(session, ticket) => break true,
                        Standing::Invited => signal.set(Standing::Waiting),
                        Standing::Waiting => {}
                    }
                    if is_over(deadline) {
                        locked.queue().remove(ticket);
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

    /// A request of this lock, as reports tell of it.
    pub(super) fn request(&self, exclusive: bool) -> watch::Request {
        watch::Request { lock: self.address(), exclusive, sessions: std::any::type_name::<S>() }
    }
}
