//! Switching: a holder leaves its session for another. Its request arrives before it leaves.

use std::borrow::Cow;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::task::{Context, Poll};
use std::time::Instant;

use super::locked::Locked;
use super::queue::Asked;
use super::waiter::Kind;
use super::word::{self, ONE_HOLDER};
use super::{Phases, Waiting};
use crate::foreign::discard;

impl<S: Eq + Clone> Phases<S> {
    /// Changes the session at once, if the caller is the only holder and may enter before the
    /// waiters. Otherwise `push` puts a request into the queue, and then the caller leaves.
    ///
    /// # Safety
    /// The caller is a holder of a session. Afterwards it holds the new session, or has left.
    unsafe fn leave_for<'s, P>(
        &self,
        mut asked: Asked<'s, S>,
        push: impl FnOnce(&mut Locked<'_, S>, Asked<'s, S>, Instant) -> P,
    ) -> Option<P> {
        // SAFETY: a holder of a session is counted.
        if unsafe { self.name() } == asked.as_deref() {
            discard(asked);
            return None;
        }
        let mut locked = self.lock();
        let now = Instant::now();
        if locked.rename_alone(&mut asked, now) {
            return None;
        }
        let pushed = push(&mut locked, asked, now);
        // Release: as in `give_back`. The release of the internal lock admits waiters.
        self.word.fetch_sub(ONE_HOLDER, Release);
        Some(pushed)
    }

    /// Calls `queued` before it sleeps. Returns whether the caller is inside.
    ///
    /// # Safety
    /// As [`Core::switch`](super::Core::switch).
    pub(in crate::cores) unsafe fn switch_by(
        &self,
        session: S,
        deadline: Option<Instant>,
        queued: impl FnOnce(),
    ) -> bool {
        let push = |locked: &mut Locked<'_, S>, asked: Asked<'_, S>, now| {
            locked.push_thread(asked, now, Kind::Switching)
        };
        // SAFETY: the caller's promise.
        let thread = unsafe { self.leave_for(Some(Cow::Owned(session)), push) };
        let Some(thread) = thread else { return true };
        queued();
        self.sleep(false, thread, deadline)
    }

    /// # Safety
    /// As [`Core::poll_switch`](super::Core::poll_switch).
    pub(super) unsafe fn switch_task(
        &self,
        session: &S,
        waiting: &mut Option<Waiting>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let push = |locked: &mut Locked<'_, S>, asked: Asked<'_, S>, now| {
            Waiting::begin(locked, asked, now, cx)
        };
        // SAFETY: the caller's promise.
        *waiting = unsafe { self.leave_for(Some(Cow::Borrowed(session)), push) };
        if waiting.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// # Safety
    /// As [`Core::try_switch`](super::Core::try_switch).
    pub(in crate::cores) unsafe fn switch_at_once(&self, session: S) -> bool {
        let mut asked = Some(Cow::Owned(session));
        // SAFETY: a holder of a session is counted.
        let stays = unsafe { self.name() } == asked.as_deref();
        let inside = stays
            || self
                .try_lock()
                .is_some_and(|mut lock| lock.rename_alone(&mut asked, Instant::now()));
        discard(asked);
        inside
    }

    /// The caller is a holder of a session, and enters it once more.
    pub(in crate::cores) fn enter_again(&self) {
        // Relaxed: the caller is inside already.
        if word::is_full(self.word.fetch_add(ONE_HOLDER, Relaxed)) {
            self.give_back(ONE_HOLDER);
            panic!("too many holders");
        }
    }
}
