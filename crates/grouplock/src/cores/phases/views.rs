//! What a mutex and a readers-writers lock need beyond sessions: leaving in order, and becoming alone without leaving.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::locked::Locked;
use super::waiter::{Kind, Signal};
use super::word::{self, ASK, EXCLUSIVE, LOCKED, NOTIFY, ONE};
use super::{Duty, Phases, Place};
use crate::sync::{self, Shared, Word};

impl<S> Phases<S> {
    /// A lock whose last session was `name`: the first who comes for it finds it as all others will.
    pub(crate) const fn named(name: S) -> Self {
        Phases {
            word: Word::new(0),
            named: Shared::new(true),
            queue: Shared::new(None),
            name: Shared::new(MaybeUninit::new(name)),
        }
    }

    /// Whether anybody is inside, and whether it is alone. Out of date at once.
    pub(crate) fn is_held(&self) -> (bool, bool) {
        // Relaxed: nothing is concluded from it.
        let word = self.word.load(Relaxed);
        (!word::is_empty(word), word & EXCLUSIVE != 0)
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Leaves, and if somebody waits, promises the room to the first phase: nobody who comes later goes before it.
    ///
    /// # Safety
    /// The caller is a holder, of the whole room if `exclusive`, and is none afterwards.
    pub(crate) unsafe fn leave_fairly(&self, exclusive: bool) {
        let count = if exclusive { ONE | EXCLUSIVE } else { ONE };
        // Relaxed: only to see whether anybody waits in the queue, or is about to. Threads that were invited do not count: they are awake.
        let word = self.word.load(Relaxed);
        // Release: as in `give_back`.
        if word & (LOCKED | NOTIFY | ASK) == 0
            && self.word.compare_exchange(word, word - count, Release, Relaxed).is_ok()
        {
            return;
        }
        let mut locked = self.lock();
        if let Some(queue) = locked.any_queue() {
            queue.promise();
        }
        self.leave_behind(&locked, count);
    }

    /// Takes back `count` with the door shut. If that leaves the room empty, the first phase gets it when the internal lock is released.
    fn leave_behind(&self, _locked: &Locked<'_, S>, count: u32) {
        // Relaxed: who comes by a later step finds the door shut, and asks. The release of the internal lock opens it if nobody waits.
        self.word.fetch_or(ASK, Relaxed);
        // Release: as in `give_back`.
        self.word.fetch_sub(count, Release);
    }

    /// Makes a holder who is the only one alone in the room, if it is.
    ///
    /// # Safety
    /// The caller is a holder of a session. It has the room to itself afterwards if this says so.
    pub(crate) unsafe fn try_upgrade(&self) -> bool {
        self.lock().close()
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// If somebody waits, lets them in, in order, and comes back after them.
    ///
    /// # Safety
    /// The caller is a holder of `session`, or of the whole room if that is `None`, and is one afterwards.
    pub(crate) unsafe fn make_way(&self, session: Option<&S>) {
        let place = {
            let mut locked = self.lock();
            if !locked.somebody_waits() {
                return;
            }
            locked.queue().promise();
            let place =
                locked.push_thread(session.map(Cow::Borrowed), Instant::now(), Kind::Switching);
            self.leave_behind(&locked, if session.is_some() { ONE } else { ONE | EXCLUSIVE });
            place
        };
        let inside = self.sleep(session.is_none(), place, None);
        debug_assert!(inside, "without a deadline, waiting ends inside");
    }

    /// Waits, but not longer than until `deadline`, until all other holders have left, and is alone then. Nobody goes before the caller; but
    /// it is the caller's business that no two holders do this at the same time, as the second would go before the first.
    ///
    /// The caller gives its count back and takes the first place in the queue, which is the same as being inside: the room goes to nobody else.
    ///
    /// # Safety
    /// The caller is a holder of a session. It has the room to itself afterwards if this says so; if not, it is what it was.
    pub(crate) unsafe fn upgrade(&self, deadline: Option<Instant>) -> bool {
        let place = {
            let mut locked = self.lock();
            if locked.close() {
                return true;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| sync::is_over(deadline, now)) {
                return false;
            }
            let signal = Signal::of_this_thread();
            let ticket = locked.queue().push_first(now, signal.clone());
            self.leave_behind(&locked, ONE);
            let duty = if deadline.is_some() { Duty::Return } else { Duty::Enter };
            Place { ticket, signal, patience: None, duty }
        };
        self.sleep(true, place, deadline)
    }
}

impl<S: Eq + Clone> Locked<'_, S> {
    /// The caller is a holder. If it is the only one, it has the room to itself from now on.
    fn close(&self) -> bool {
        let mut word = self.core.word.load(Relaxed);
        while word::holders(word) == 1 {
            // Acquire: what the other holders did.
            match self.core.word.compare_exchange_weak(word, word | EXCLUSIVE, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The caller waited at the head of the queue to be alone, and is a holder of the session again. That is inside still, or was last: nobody else
    /// has been let in.
    pub(super) fn return_inside(&mut self) {
        // Relaxed: nobody has written since the caller was inside.
        self.core.word.fetch_add(ONE, Relaxed);
    }
}
