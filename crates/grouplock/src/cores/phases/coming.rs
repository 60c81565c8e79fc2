//! Coming: the fast path, and what is next to it when the first look was not enough.

use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::Phases;
use super::locked::Locked;
use super::word::{self, CHANGING, EXCLUSIVE, LOCKED, NOTIFY, ONE, SLEEPER, UNNAMED};
use crate::sync;

/// What came of looking at the name.
pub(super) enum Look {
    /// It is ours: we are inside.
    Inside,
    /// It is another. We have counted ourselves in, and the word was `before`.
    Other { before: u32 },
    /// There was no looking.
    Closed,
}

/// Somebody counted in to look at the name. Taken back when dropped, also when the comparison panics.
struct Pin<'a, S: Eq>(&'a Phases<S>);

impl<S: Eq> Drop for Pin<'_, S> {
    fn drop(&mut self) {
        self.0.give_back(ONE);
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Counts itself in if the door is open, and looks at the name.
    #[inline]
    fn look(&self, session: &S) -> Look {
        // Relaxed: only to keep from disturbing a lock that is not open.
        if !word::is_open(self.word.load(Relaxed)) {
            return Look::Closed;
        }
        // Acquire: what earlier holders did, and the name.
        let before = self.word.fetch_add(ONE, Acquire);
        if !word::is_open(before) {
            self.give_back(ONE);
            return Look::Closed;
        }
        let pin = Pin(self);
        // SAFETY: counted in by a step that found the door open, and so the room named.
        let same = unsafe { self.name() } == session;
        mem::forget(pin);
        if same { Look::Inside } else { Look::Other { before } }
    }

    /// Enters if that takes no waiting and no asking.
    #[inline]
    fn enter_fast(&self, session: &S) -> bool {
        match self.look(session) {
            Look::Inside => true,
            Look::Closed => false,
            Look::Other { before } => self.enter_other(before, session),
        }
    }

    /// The caller has counted itself in and found another name. Gives the room the name `session` if nobody else is inside; else takes the count
    /// back.
    #[cold]
    fn enter_other(&self, before: u32, session: &S) -> bool {
        let pin = Pin(self);
        let renamed = word::is_empty(before) && self.enter_renamed(before, session);
        if renamed {
            mem::forget(pin);
        }
        renamed
    }

    /// What is left of entering when the first look was not enough.
    #[cold]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a reference would keep the caller from having it in a register"
    )]
    fn enter_slow(&self, session: Option<S>, look: Look, deadline: Option<Instant>) -> bool {
        let session = session.as_ref();
        if let (Look::Other { before }, Some(session)) = (look, session)
            && self.enter_other(before, session)
        {
            return true;
        }
        self.wait(session, deadline)
    }

    /// The first look, for a session or for the whole room.
    #[inline]
    pub(super) fn look_for(&self, session: Option<&S>) -> Look {
        match session {
            Some(session) => self.look(session),
            None if self.exclusive_fast() => Look::Inside,
            None => Look::Closed,
        }
    }

    /// Waits until inside, but not longer than until `deadline`. The session stays in registers, if it can, until there is more to do than a look.
    #[inline]
    pub(super) fn enter_by(&self, session: Option<S>, deadline: Option<Instant>) -> bool {
        let look = self.look_for(session.as_ref());
        matches!(look, Look::Inside) || self.enter_slow(session, look, deadline)
    }

    /// What is left of trying when the first look was not enough.
    #[cold]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a reference would keep the caller from having it in a register"
    )]
    pub(super) fn try_slow(&self, session: Option<S>, look: Look) -> bool {
        let session = session.as_ref();
        if let (Look::Other { before }, Some(session)) = (look, session)
            && self.enter_other(before, session)
        {
            return true;
        }
        self.lock().admit(session, Instant::now)
    }

    /// The room was empty, `before` the caller counted itself in, and has another name: gives it `session`, unless somebody came.
    fn enter_renamed(&self, before: u32, session: &S) -> bool {
        if before & LOCKED != 0 {
            return false;
        }
        let session = session.clone();
        let change = before | LOCKED | CHANGING;
        // Acquire: as `lock`, and as every step that sets `CHANGING`. The count of the caller goes, so the count is zero.
        if self.word.compare_exchange(before + ONE, change, Acquire, Relaxed).is_err() {
            return false;
        }
        // SAFETY: `LOCKED` is held and `CHANGING` was set when the count was zero.
        let old = unsafe { self.rename(before, session) };
        if before & NOTIFY != 0 {
            // Somebody waits, perhaps for the session that the room now has: whoever left the room empty may have looked while it had its old name.
            // Release: the name, for those who come. Releasing the internal lock lets fellows in.
            self.word.fetch_add(ONE.wrapping_sub(CHANGING), Release);
            drop(Locked::new(self));
        } else {
            // Release: the name, for those who come, and the queue as it was, for those who lock. Others may have counted themselves in or gone
            // to sleep meanwhile, so this is a sum and not a store.
            let end = self.word.fetch_add(ONE.wrapping_sub(LOCKED | CHANGING), Release);
            if end & SLEEPER != 0 {
                self.wake_sleepers();
            }
        }
        drop(old);
        true
    }

    #[cold]
    fn wake_sleepers(&self) {
        // Relaxed: whoever is woken looks at the word again.
        self.word.fetch_and(!SLEEPER, Relaxed);
        sync::wake_all(&self.word);
    }

    /// Takes the room for itself if nobody is inside and nobody waits.
    #[inline]
    fn exclusive_fast(&self) -> bool {
        // Acquire: what earlier holders did. An idle lock is all zeros, but for one that has never had a session inside.
        let taken = self.word.compare_exchange(0, EXCLUSIVE | ONE, Acquire, Relaxed);
        let unnamed = |word| {
            word == UNNAMED
                && self
                    .word
                    .compare_exchange(word, word | EXCLUSIVE | ONE, Acquire, Relaxed)
                    .is_ok()
        };
        taken.is_ok() || taken.is_err_and(unnamed)
    }

    #[inline]
    pub(in crate::cores) fn fast(&self, session: Option<&S>) -> bool {
        match session {
            Some(session) => self.enter_fast(session),
            None => self.exclusive_fast(),
        }
    }
}
