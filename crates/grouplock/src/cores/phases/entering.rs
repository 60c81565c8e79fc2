//! Entering without waiting: the fast path, and what follows when it does not suffice.

use std::borrow::Cow;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::Phases;
use super::locked::Locked;
use super::queue::Asked;
use super::word::{self, CHANGING, EXCLUSIVE, FULL, LOCKED, NOTIFY, ONE_HOLDER, SET_UP, SLEEPER};
use crate::foreign::discard;
use crate::sync;

/// The result of looking at the name.
pub(super) enum Look {
    /// It is the caller's session: the caller is inside.
    Inside,
    /// It is another session. The caller has added its count, and the word was `before`.
    Other { before: u32 },
    /// The door is shut. The name was not read.
    Closed,
}

/// A thread's count while it reads the name. Undone when dropped, also if the comparison panics.
pub(super) struct Pin<'a, S: Eq + Clone>(pub(super) &'a Phases<S>);

impl<S: Eq + Clone> Drop for Pin<'_, S> {
    fn drop(&mut self) {
        self.0.give_back(ONE_HOLDER);
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Adds the caller's count if the door is open, and compares the name.
    #[inline]
    fn look(&self, session: &S) -> Look {
        // Relaxed: only to avoid a write to a word whose door is shut.
        if word::is_open(self.word.load(Relaxed)) {
            self.look_at_once(session)
        } else {
            Look::Closed
        }
    }

    /// As [`look`](Phases::look), but adds the count without a load before. That saves a step where
    /// the door is open, and it nearly always is when a thread asks for the first time. Where the
    /// door is shut, it disturbs other threads; so a thread does it once.
    #[inline]
    fn look_at_once(&self, session: &S) -> Look {
        // Acquire: what earlier holders did, and the name.
        let before = self.word.fetch_add(ONE_HOLDER, Acquire);
        if !word::is_open(before) {
            self.give_back(ONE_HOLDER);
            return Look::Closed;
        }
        let pin = Pin(self);
        // SAFETY: the caller added its count in a step that found the door open.
        let same = unsafe { self.name() } == Some(session);
        mem::forget(pin);
        if same { Look::Inside } else { Look::Other { before } }
    }

    /// Enters if that needs neither waiting nor the internal lock.
    #[inline]
    pub(in crate::cores) fn fast(&self, asked: &mut Asked<'_, S>) -> bool {
        let look = match asked.as_deref() {
            Some(session) => self.look(session),
            None => return self.exclusive_fast(),
        };
        match look {
            Look::Inside => true,
            Look::Closed => false,
            Look::Other { before } => self.enter_other(before, asked),
        }
    }

    /// The caller has added its count and found another name. Renames the room to the session that
    /// the caller asks for if nobody else is inside. Otherwise undoes the count.
    #[cold]
    fn enter_other(&self, before: u32, asked: &mut Asked<'_, S>) -> bool {
        let pin = Pin(self);
        let renamed = word::is_empty(before) && self.enter_renamed(before, asked);
        if renamed {
            mem::forget(pin);
        }
        renamed
    }

    /// Enters after a first look that did not suffice.
    #[cold]
    fn enter_slow(&self, session: Option<S>, look: &Look, deadline: Option<Instant>) -> bool {
        let mut asked = session.map(Cow::Owned);
        if let Look::Other { before } = *look
            && self.enter_other(before, &mut asked)
        {
            return true;
        }
        self.wait(asked, deadline, || ())
    }

    /// Waits until inside, but not longer than until `deadline`. The session stays in registers, if
    /// possible, until there is more to do than a look.
    #[inline]
    pub(super) fn enter_by(&self, session: Option<S>, deadline: Option<Instant>) -> bool {
        let look = match &session {
            Some(session) => self.look_at_once(session),
            None if self.exclusive_fast() => Look::Inside,
            None => Look::Closed,
        };
        if let Look::Inside = look {
            discard(session);
            return true;
        }
        self.enter_slow(session, &look, deadline)
    }

    /// Enters if that needs no waiting.
    #[inline]
    pub(super) fn try_by(&self, session: Option<S>) -> bool {
        let look = match &session {
            Some(session) => self.look(session),
            None if self.exclusive_fast() => Look::Inside,
            None => Look::Closed,
        };
        // Most tries end here, with success or without.
        let failed = matches!(look, Look::Other { before } if !word::is_empty(before));
        if failed {
            self.give_back(ONE_HOLDER);
        }
        if failed || matches!(look, Look::Inside) {
            discard(session);
            return !failed;
        }
        let mut asked = session.map(Cow::Owned);
        let inside = self.try_slow(&mut asked, &look);
        discard(asked);
        inside
    }

    /// As [`try_by`](Phases::try_by), for a request that may be tried again.
    pub(in crate::cores) fn try_asked(&self, asked: &mut Asked<'_, S>) -> bool {
        let look = match asked.as_deref() {
            Some(session) => self.look(session),
            None if self.exclusive_fast() => Look::Inside,
            None => Look::Closed,
        };
        matches!(look, Look::Inside) || self.try_slow(asked, &look)
    }

    /// Tries after a first look that did not suffice. Never waits: if the internal lock stays held,
    /// the try fails.
    fn try_slow(&self, asked: &mut Asked<'_, S>, look: &Look) -> bool {
        if let Look::Other { before } = *look {
            if self.enter_other(before, asked) {
                return true;
            }
            if !word::is_empty(before) {
                return false;
            }
        }
        for _ in 0..sync::TRY_LOOKS {
            // Relaxed: only to see whether the internal lock is worth taking.
            let word = self.word.load(Relaxed);
            let taken = asked.is_none() && !word::is_empty(word);
            if taken || word & (EXCLUSIVE | FULL) != 0 {
                return false;
            }
            if let Some(mut locked) = self.try_lock() {
                return locked.admit(asked, Instant::now);
            }
            sync::relax();
        }
        false
    }

    /// The room was empty when the caller added its count, and has another name. The word was
    /// `before`. Renames the room to the session asked for, unless another thread came.
    fn enter_renamed(&self, before: u32, asked: &mut Asked<'_, S>) -> bool {
        if before & LOCKED != 0 {
            return false;
        }
        let Some(session) = asked.take().map(Cow::into_owned) else { return false };
        let change = before & !SET_UP | LOCKED | CHANGING;
        // Acquire: as `lock`, and as every step that sets `CHANGING`. The caller's count is
        // removed, so the count is zero.
        if self.word.compare_exchange(before + ONE_HOLDER, change, Acquire, Relaxed).is_err() {
            *asked = Some(Cow::Owned(session));
            return false;
        }
        // SAFETY: `LOCKED` is held, and the step that set `CHANGING` left the count at zero.
        let old = unsafe { self.rename(session) };
        if before & NOTIFY != 0 {
            // The queue is not empty. Perhaps somebody waits for the new session: the thread that
            // left the room empty may have looked while the room had its old name. Release: the
            // name, for the threads that enter.
            self.word.fetch_add(ONE_HOLDER.wrapping_sub(CHANGING), Release);
            Locked::new(self).admit_waiters();
        } else {
            // Release: the name, for the threads that enter, and the queue, for the threads that
            // lock. Other threads may have added a count or `SLEEPER` meanwhile, so this is a sum
            // and not a store.
            let end = self.word.fetch_add(ONE_HOLDER.wrapping_sub(LOCKED | CHANGING), Release);
            if end & SLEEPER != 0 {
                self.wake_sleepers();
            }
        }
        discard(old);
        true
    }

    #[cold]
    fn wake_sleepers(&self) {
        // Relaxed: a thread that is woken reads the word again.
        self.word.fetch_and(!SLEEPER, Relaxed);
        sync::wake_all(&self.word);
    }

    /// Takes the room alone if nobody is inside, and no waiter is there that must not be overtaken.
    /// If somebody waits, the caller admits them when it leaves.
    #[inline]
    pub(super) fn exclusive_fast(&self) -> bool {
        let take = |word| {
            // Acquire: what earlier holders did.
            self.word.compare_exchange(word, word | EXCLUSIVE | ONE_HOLDER, Acquire, Relaxed)
        };
        // Without a load first: that would cost a step where the room is empty, and would fetch the
        // word from another processor twice where it is not.
        match take(0) {
            Ok(_) => true,
            // The room may be set up, and somebody may wait: these bits stay as they are.
            Err(word) => word & !(SET_UP | NOTIFY) == 0 && take(word).is_ok(),
        }
    }
}
