//! Entering a room that must be set up for the session.
//!
//! A request *with set-up* shares the room only if `SET_UP` is set. If it is not set, the request
//! enters alone, with `EXCLUSIVE` set and `SET_UP` clear. The room keeps its old name. Then there
//! are two ways to end. The request opens the room to its session and sets `SET_UP`, and the
//! waiters of its phase join. Or it leaves, and the room is not set up.
//!
//! `SET_UP` belongs to the name: a thread that renames the room clears it.

use std::borrow::Cow;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use super::entering::Pin;
use super::waiter::Kind;
use super::word::{self, EXCLUSIVE, ONE_HOLDER, SET_UP};
use super::{Core, Phases, Waiting};

impl<S: Eq + Clone> Phases<S> {
    /// Enters if the room is set up for `session`, without the internal lock and without a wait.
    #[inline]
    pub(in crate::cores) fn fast_set_up(&self, session: &S) -> bool {
        // Acquire: what earlier holders did, and the name.
        let before = self.word.fetch_add(ONE_HOLDER, Acquire);
        let pin = Pin(self);
        let ready = word::is_open(before) && before & SET_UP != 0;
        // SAFETY: the caller added its count in a step that found the door open.
        let inside = ready && unsafe { self.name() } == Some(session);
        if inside {
            mem::forget(pin);
        }
        inside
    }

    /// Returns whether the room is set up. The caller is a holder of a session.
    pub(in crate::cores) fn is_set_up(&self) -> bool {
        // Relaxed: the bit does not change while the caller is inside.
        self.word.load(Relaxed) & SET_UP != 0
    }

    /// Returns whether the caller, which entered with set-up, is alone and must set the room up.
    fn is_alone(&self) -> bool {
        // Relaxed: the bit does not change while the caller is inside.
        self.word.load(Relaxed) & EXCLUSIVE != 0
    }

    /// Waits until inside. Calls `queued` before it sleeps. Returns whether the caller must set up.
    #[cold]
    pub(in crate::cores) fn wait_set_up(&self, session: &S, queued: impl FnOnce()) -> bool {
        let mut asked = Some(Cow::Borrowed(session));
        let mut locked = self.lock();
        let now = Instant::now();
        if locked.admit_to(&mut asked, true, || now) {
            drop(locked);
        } else {
            let thread = locked.push_thread(asked, now, Kind::Thread);
            locked.queue().needs_set_up(thread.id);
            drop(locked);
            queued();
            let inside = self.sleep(false, thread, None);
            debug_assert!(inside, "without a deadline, waiting ends inside");
        }
        self.is_alone()
    }

    /// As [`wait_set_up`](Phases::wait_set_up), for a task.
    pub(in crate::cores) fn poll_set_up(
        &self,
        session: &S,
        waiting: &mut Option<Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        if waiting.is_some() {
            return self.poll_enter(Some(session), waiting, cx).map(|()| self.is_alone());
        }
        if self.fast_set_up(session) {
            return Poll::Ready(false);
        }
        let mut asked = Some(Cow::Borrowed(session));
        let mut locked = self.lock();
        let now = Instant::now();
        if locked.admit_to(&mut asked, true, || now) {
            drop(locked);
            return Poll::Ready(self.is_alone());
        }
        let task = Waiting::begin(&mut locked, asked, now, cx);
        locked.queue().needs_set_up(task.id);
        *waiting = Some(task);
        Poll::Pending
    }
}
