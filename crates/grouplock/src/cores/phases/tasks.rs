//! Tasks that wait: they join the queue, and are polled again when they are inside.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::Phases;
use super::locked::Locked;
use super::queue::{Asked, WaiterId};
use super::waiter::{Kind, Signal, WaiterState};
use crate::foreign::discard;
use crate::watch;

/// A task that waits.
#[derive(Debug)]
pub struct Waiting {
    pub(super) id: WaiterId,
    pub(super) signal: Arc<Signal>,
    pub(super) watch: watch::TaskWait,
}

impl Waiting {
    /// The task joins the queue.
    pub(super) fn begin<S: Eq + Clone>(
        locked: &mut Locked<'_, S>,
        asked: Asked<'_, S>,
        now: Instant,
        cx: &Context<'_>,
    ) -> Self {
        let signal = Signal::of_task();
        let waker = Kind::Task(cx.waker().clone());
        let id = locked.push(asked, now, Arc::clone(&signal), waker);
        Waiting { id, signal, watch: watch::TaskWait::begin() }
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Polls a request that did not enter by the fast path.
    #[cold]
    pub(super) fn poll_slow(
        &self,
        session: Option<&S>,
        waiting: &mut Option<Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(Waiting { id, signal, watch }) = waiting else {
            let mut asked = session.map(Cow::Borrowed);
            let mut locked = self.lock();
            let now = Instant::now();
            if locked.admit(&mut asked, || now) {
                return Poll::Ready(());
            }
            *waiting = Some(Waiting::begin(&mut locked, asked, now, cx));
            return Poll::Pending;
        };
        if signal.state() != WaiterState::Granted {
            let mut locked = self.lock();
            if signal.state() != WaiterState::Granted {
                let old = locked.queue().replace_waker(*id, cx.waker());
                drop(locked);
                discard(old);
                return Poll::Pending;
            }
        }
        watch.end(watch::RequestInfo::of(self, session.is_none()), true);
        *waiting = None;
        Poll::Ready(())
    }
}
