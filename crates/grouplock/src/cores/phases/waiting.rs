//! Waiting: a thread spins for a moment, joins the queue, and sleeps.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::Phases;
use super::queue::{Asked, WaiterId};
use super::waiter::{Kind, Signal, WaiterState};
use super::word::{self, EXCLUSIVE, FULL, MUST_LOCK, ONE_HOLDER};
use crate::foreign::discard;
use crate::sync;
use crate::watch::{self, Observer as _};

/// A thread's request in the queue.
pub(super) struct QueuedThread {
    pub(super) id: WaiterId,
    pub(super) signal: Arc<Signal>,
    /// When the lock turns strict because of it, if the policy has such a time.
    pub(super) patience: Option<Instant>,
    pub(super) duty: Duty,
}

/// What a thread that waits owes to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Nothing: the request may be withdrawn.
    None,
    /// It must end inside.
    Enter,
    /// If the request is withdrawn, the thread must be a holder again as it was before.
    #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
    Return,
}

/// Withdraws a thread's request when dropped. So a thread that is inside, or has withdrawn the
/// request itself, forgets it.
struct Withdrawal<'a, S: Eq + Clone> {
    core: &'a Phases<S>,
    id: WaiterId,
    signal: &'a Signal,
}

impl<S: Eq + Clone> Drop for Withdrawal<'_, S> {
    fn drop(&mut self) {
        self.core.withdraw(self.id, self.signal);
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Removes a request from the queue; or leaves, if it has been granted the room meanwhile.
    pub(super) fn withdraw(&self, id: WaiterId, signal: &Signal) {
        let mut locked = self.lock();
        if signal.state() == WaiterState::Granted {
            drop(locked);
            // Relaxed: the thread that granted the room set this bit or found it clear. It has not
            // changed since.
            self.give_back(ONE_HOLDER | self.word.load(Relaxed) & EXCLUSIVE);
        } else {
            let waiter = locked.remove(id);
            drop(locked);
            discard(waiter);
        }
    }

    /// Spins for a while, as the room may soon be free. A request that must ask under the internal
    /// lock asks once.
    ///
    /// A request arrives when it joins the queue. So a request that joins while this one spins does
    /// not overtake it.
    fn spin(&self, asked: &mut Asked<'_, S>, deadline: Option<Instant>) -> bool {
        let (mut was_open, mut has_asked, mut looks) = (false, false, 0);
        let mut spin = sync::Spin::until(deadline);
        while spin.pause() {
            // Relaxed: only to see whether a try is worth it.
            let word = self.word.load(Relaxed);
            if word & FULL != 0 {
                // Further spinning is useless.
                return false;
            }
            if word & MUST_LOCK != 0 {
                if !has_asked && self.lock().admit(asked, Instant::now) {
                    return true;
                }
                has_asked = true;
                continue;
            }
            // An open room that was open before has been tried. Another try makes sense when it is
            // empty.
            let is_open = asked.is_some() && word::is_open(word);
            if (is_open && !was_open || word::is_empty(word)) && self.fast(asked) {
                return true;
            }
            was_open = is_open;
            looks += 1;
            if asked.is_none() && looks == sync::LOOKS_BEFORE_RESERVATION && self.reserve() {
                return true;
            }
        }
        false
    }

    /// Waits until inside, but not longer than until `deadline`. Calls `queued` before it sleeps.
    #[cold]
    pub(in crate::cores) fn wait(
        &self,
        mut asked: Asked<'_, S>,
        deadline: Option<Instant>,
        queued: impl FnOnce(),
    ) -> bool {
        let exclusive = asked.is_none();
        let is_past = |now: Instant| deadline.is_some_and(|deadline| now >= deadline);
        if deadline.is_some() && is_past(Instant::now()) {
            let inside = self.try_asked(&mut asked);
            discard(asked);
            return inside;
        }
        if self.spin(&mut asked, deadline) {
            discard(asked);
            return true;
        }
        let mut locked = self.lock();
        let now = Instant::now();
        let inside = locked.admit(&mut asked, || now);
        if inside || is_past(now) {
            drop(locked);
            discard(asked);
            return inside;
        }
        let thread = locked.push_thread(asked, now, Kind::Thread);
        drop(locked);
        queued();
        self.sleep(exclusive, thread, deadline)
    }

    /// Sleeps until inside, or until `deadline`. Turns the lock strict when its patience is over.
    pub(super) fn sleep(
        &self,
        exclusive: bool,
        thread: QueuedThread,
        deadline: Option<Instant>,
    ) -> bool {
        let QueuedThread { id, signal, mut patience, duty } = thread;
        // Reports below run foreign code. If it panics, the request is withdrawn.
        let request = Withdrawal { core: self, id, signal: &signal };
        let told = watch::RequestInfo::of(self, exclusive);
        let mut watch = watch::Wait::begin(told, &signal, deadline.is_none(), duty != Duty::None);
        let inside = loop {
            if let Some(reason) = watch.look(&|| self.lock().crowd()) {
                panic!("{reason}");
            }
            let until = [deadline, patience, watch.next_look()].into_iter().flatten().min();
            let mut state = signal.state();
            if state == WaiterState::Waiting {
                sync::park(until);
                state = signal.state();
            }
            let now = until.map(|_| Instant::now());
            let is_over = |time: Option<Instant>| {
                time.zip(now).is_some_and(|(time, now)| sync::is_over(time, now))
            };
            match state {
                WaiterState::Granted => break true,
                WaiterState::Waiting if !is_over(until) => {}
                WaiterState::Waiting | WaiterState::Invited => {
                    let mut locked = self.lock();
                    // It may have changed before the lock was taken.
                    if signal.state() == WaiterState::Invited {
                        signal.set(WaiterState::Waiting);
                        locked.accept(id);
                    }
                    if signal.state() == WaiterState::Granted {
                        break true;
                    }
                    if is_over(deadline) {
                        locked.remove(id);
                        #[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
                        if duty == Duty::Return {
                            locked.return_inside();
                        }
                        break false;
                    }
                    if is_over(patience) {
                        // The release of the lock finds that patience is over. From then on a free
                        // room is handed over.
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
