//! What feature `lock_api` needs beyond sessions: fair exits, and upgrades from a session to alone.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::locked::Locked;
use super::waiter::{Kind, Signal};
use super::word::{self, EXCLUSIVE, LOCKED, MUST_LOCK, NOTIFY, ONE_HOLDER};
use super::{Duty, Phases, QueuedThread};
use crate::sync::{self, Shared, Word};

impl<S> Phases<S> {
    /// A lock whose last session was `name`, so that the first request is like later ones.
    pub(crate) const fn named(name: S) -> Self {
        Phases {
            word: Word::new(0),
            named: Shared::new(true),
            queue: Shared::new(None),
            name: Shared::new(MaybeUninit::new(name)),
        }
    }

    /// Returns whether there is a holder, and whether it is alone. Out of date at once.
    pub(crate) fn is_held(&self) -> (bool, bool) {
        // Relaxed: the caller concludes nothing from it.
        let word = self.word.load(Relaxed);
        (!word::is_empty(word), word & EXCLUSIVE != 0)
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Leaves. If requests wait, promises the room to the first phase: no later request passes it.
    ///
    /// # Safety
    /// The caller is a holder, alone if `exclusive`. It is not a holder afterwards.
    pub(crate) unsafe fn leave_fairly(&self, exclusive: bool) {
        let count = if exclusive { ONE_HOLDER | EXCLUSIVE } else { ONE_HOLDER };
        // Relaxed: only to see whether a request waits, or is about to. Invited threads are awake.
        let word = self.word.load(Relaxed);
        // Release: as in `give_back`.
        if word & (LOCKED | NOTIFY | MUST_LOCK) == 0
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

    /// Undoes `count` with the door shut. The internal lock's release hands an empty room over.
    pub(super) fn leave_behind(&self, _locked: &Locked<'_, S>, count: u32) {
        // Relaxed: a request with a later step finds the door shut, and asks. If no request waits,
        // the release of the internal lock opens the door.
        self.word.fetch_or(MUST_LOCK, Relaxed);
        // Release: as in `give_back`.
        self.word.fetch_sub(count, Release);
    }

    /// Makes the holder alone if it is the only one. Returns whether it is alone.
    ///
    /// # Safety
    /// The caller is a holder of a session. If this returns `true`, it is alone afterwards.
    pub(crate) unsafe fn try_upgrade(&self) -> bool {
        self.lock().close()
    }

    /// If requests wait, leaves, lets them enter in order, and enters again after them.
    ///
    /// # Safety
    /// The caller is a holder of `session`, or alone if that is `None`. It is one afterwards, too.
    pub(crate) unsafe fn make_way(&self, session: Option<&S>) {
        let queued = {
            let mut locked = self.lock();
            if !locked.has_waiters() {
                return;
            }
            locked.queue().promise();
            let queued =
                locked.push_thread(session.map(Cow::Borrowed), Instant::now(), Kind::Switching);
            self.leave_behind(
                &locked,
                if session.is_some() { ONE_HOLDER } else { ONE_HOLDER | EXCLUSIVE },
            );
            queued
        };
        let inside = self.sleep(session.is_none(), queued, None);
        debug_assert!(inside, "without a deadline, waiting ends inside");
    }

    /// Waits until all other holders have left, at most until `deadline`. Then the caller is alone.
    /// No request enters before it. Two holders must not do this at once: the second would pass the
    /// first.
    ///
    /// The caller undoes its count and becomes the first in the queue. That is equal to being
    /// inside: no other request gets the room.
    ///
    /// # Safety
    /// The caller is a holder of a session. If this returns `true`, it is alone afterwards. If not,
    /// it is still a holder of the session.
    pub(crate) unsafe fn upgrade(&self, deadline: Option<Instant>) -> bool {
        let queued = {
            let mut locked = self.lock();
            if locked.close() {
                return true;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| sync::is_over(deadline, now)) {
                return false;
            }
            let signal = Signal::of_this_thread();
            let id = locked.queue().push_first(now, signal.clone());
            self.leave_behind(&locked, ONE_HOLDER);
            let duty = if deadline.is_some() { Duty::Return } else { Duty::Enter };
            QueuedThread { id, signal, patience: None, duty }
        };
        self.sleep(true, queued, deadline)
    }
}

impl<S: Eq + Clone> Locked<'_, S> {
    /// The caller is a holder. If it is the only one, it is alone from now on.
    fn close(&self) -> bool {
        let close = |word| (word::holders(word) == 1).then_some(word | EXCLUSIVE);
        // Acquire: what the other holders did. Relaxed: only the step that succeeds matters.
        self.core.word.fetch_update(Acquire, Relaxed, close).is_ok()
    }

    /// The caller waited at the head of the queue to be alone, and becomes a holder of its session
    /// again. That session is still inside, or was inside last: no other request has entered.
    pub(super) fn return_inside(&mut self) {
        // Relaxed: no thread has written since the caller was inside.
        self.core.word.fetch_add(ONE_HOLDER, Relaxed);
    }
}
