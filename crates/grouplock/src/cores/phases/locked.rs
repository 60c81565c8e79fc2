//! The internal lock, held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::queue::Queue;
use super::waiter::{Kind, Signal, Standing, Waiter, Wakes, contain};
use super::word::{
    self, ASK, CHANGING, EXCLUSIVE, LOCKED, MOST_HOLDERS, NOTIFY, ONE, SLEEPER, UNNAMED,
};
use super::{Duty, Phases, Place};
use crate::watch::Crowd;
use crate::{Policy, Snapshot, sync};

/// The internal lock is held until this is dropped. Dropping it gives a free room to those who wait for it, sets the bits of the word as the
/// queue now demands, and only then wakes.
pub(super) struct Locked<'a, S: Eq> {
    pub(super) core: &'a Phases<S>,
    /// Names that were replaced: dropped when the lock is free, as that runs the user's code.
    retired: Vec<S>,
}

impl<'a, S: Eq> Locked<'a, S> {
    /// `LOCKED` has just been set by the caller.
    pub(super) fn new(core: &'a Phases<S>) -> Self {
        Locked { core, retired: Vec::new() }
    }

    /// The queue, which is made if there is none.
    pub(super) fn queue(&mut self) -> &mut Queue<S> {
        self.any_queue().get_or_insert_with(|| Box::new(Queue::new(Policy::EVENTUAL, None)))
    }

    /// The queue, if there is one.
    pub(super) fn any_queue(&mut self) -> &mut Option<Box<Queue<S>>> {
        // SAFETY: `LOCKED` is held (invariant 3), and `self` is borrowed for as long as the reference.
        unsafe { &mut *self.core.queue.write() }
    }

    /// The session inside or the last that was, if there was any, with the word.
    pub(super) fn name(&self) -> (u32, Option<&S>) {
        // Relaxed: `UNNAMED` and the name change only under the lock that we hold.
        let word = self.core.word.load(Relaxed);
        // SAFETY: `LOCKED` is held, so nobody writes the name.
        (word, (word & UNNAMED == 0).then(|| unsafe { self.core.name() }))
    }

    /// Sets `CHANGING` if the room is empty, and tells the word before that.
    fn start_change(&self) -> Option<u32> {
        let mut word = self.core.word.load(Relaxed);
        while word::is_empty(word) {
            // Acquire: what the last holders did.
            match self.core.word.compare_exchange_weak(word, word | CHANGING, Acquire, Relaxed) {
                Ok(word) => return Some(word),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Ends the change that began at `word`: `holders` of `session` are inside.
    fn end_change(&mut self, word: u32, session: Option<S>, holders: u32) {
        let mut change = (holders * ONE).wrapping_sub(CHANGING);
        match session {
            Some(session) => {
                // SAFETY: `LOCKED` is held, and `CHANGING` was set when the count was zero.
                let old = unsafe { self.core.rename(word, session) };
                self.retired.extend(old);
                change = change.wrapping_sub(word & UNNAMED);
            }
            None => change = change.wrapping_add(EXCLUSIVE),
        }
        // Release: the name, for those who come. Others may have counted themselves in meanwhile, so this is a sum and not a store.
        self.core.word.fetch_add(change, Release);
    }

    /// Gives the room to the first phase, if it is still empty.
    fn hand_over(&mut self, wakes: &mut Wakes) {
        let Some(word) = self.start_change() else { return };
        let Some(phase) = self.queue().take_first() else { unreachable!("somebody waits") };
        self.end_change(word, phase.session, phase.waiters.len() as u32);
        grant(phase.waiters, wakes);
    }

    /// Lets the first phase join those inside, if it is for their session. It comes to that when those between have given up, and when
    /// the room has taken the session's name in another way than by being handed over.
    fn join_inside(&mut self, wakes: &mut Wakes) -> bool {
        let (word, name) = self.name();
        // SAFETY: `LOCKED` is held (invariant 3), and nothing else refers to the queue here.
        let Some(queue) = (unsafe { &*self.core.queue.read() }) else { return false };
        let Some(first) = queue.first() else { return false };
        let (Some(name), Some(session)) = (name, &first.session) else { return false };
        let fits = word::holders(word) + first.waiters.len() <= MOST_HOLDERS;
        let mut same = false;
        if word::is_joinable(word) && fits {
            // If the comparison panics, the lock must be released all the same.
            contain(|| same = name == session);
        }
        if !same {
            return false;
        }
        let Some(phase) = self.queue().take_first() else { unreachable!("there is a first") };
        // Acquire: what earlier holders did. The name stays, as in `occupy`.
        self.core.word.fetch_add(phase.waiters.len() as u32 * ONE, Acquire);
        self.retired.extend(phase.session);
        grant(phase.waiters, wakes);
        true
    }

    /// Tells the threads of the first phase that the room is free.
    fn invite(&mut self, wakes: &mut Wakes) {
        let Some(first) = self.queue().first_mut() else { return };
        first.invited = first.waiters.len();
        for waiter in &mut first.waiters {
            waiter.invited = true;
            waiter.signal.set(Standing::Invited);
            wakes.invited(waiter.signal.clone());
        }
    }

    /// Whether anybody is in the queue.
    pub(super) fn somebody_waits(&mut self) -> bool {
        self.any_queue().as_ref().is_some_and(|queue| !queue.is_empty())
    }

    /// Sees to those who wait, and releases the lock.
    fn release(&mut self) -> Wakes {
        let mut wakes = Wakes::default();
        loop {
            // Relaxed: what matters is the step that succeeds.
            let word = self.core.word.load(Relaxed);
            let mut bits = 0;
            if let Some(demands) = self.any_queue().as_ref().and_then(|queue| queue.demands()) {
                if word::is_empty(word) && demands.hand_over {
                    self.hand_over(&mut wakes);
                    continue;
                }
                if !word::is_empty(word) && self.join_inside(&mut wakes) {
                    continue;
                }
                if word::is_empty(word) && !demands.invited {
                    self.invite(&mut wakes);
                } else if demands.hand_over || !demands.invited {
                    bits |= NOTIFY;
                }
                if demands.ask {
                    bits |= ASK;
                }
            }
            let free = word & !(LOCKED | SLEEPER | NOTIFY | ASK) | bits;
            // Release: the queue and the name, for who locks next.
            if self.core.word.compare_exchange_weak(word, free, Release, Relaxed).is_ok() {
                if word & SLEEPER != 0 {
                    sync::wake_all(&self.core.word);
                }
                return wakes;
            }
        }
    }
}

/// Tells waiters that they are inside. They have been counted: from here on, some may be in and out again.
fn grant(waiters: VecDeque<Waiter>, wakes: &mut Wakes) {
    for waiter in &waiters {
        waiter.signal.set(Standing::Granted);
    }
    wakes.granted(waiters);
}

impl<S: Eq + Clone> Locked<'_, S> {
    /// The thread that runs this joins the queue.
    pub(super) fn push_thread(&mut self, session: Option<&S>, now: Instant, kind: Kind) -> Place {
        let signal = Signal::of_this_thread();
        let queue = self.queue();
        let duty = if kind.can_try() { Duty::None } else { Duty::Enter };
        let ticket = queue.push(session, now, Arc::clone(&signal), kind);
        Place { ticket, signal, patience: queue.patience(now), duty }
    }

    /// Enters if the room has a place for `session`, whoever waits.
    fn occupy(&mut self, session: Option<&S>) -> bool {
        let (word, name) = self.name();
        if session.is_some() && word::is_joinable(word) && name == session {
            // Acquire: what earlier holders did. The name stays, as the lock is ours, even if the last holder has left meanwhile; and
            // nobody takes the room for itself without the lock while it is locked.
            self.core.word.fetch_add(ONE, Acquire);
            return true;
        }
        if !word::is_empty(word) {
            return false;
        }
        let session = session.cloned();
        let Some(word) = self.start_change() else { return false };
        self.end_change(word, session, 1);
        true
    }

    /// Enters if the room has a place for `session`, and the policy lets it go before those who wait.
    pub(super) fn admit(&mut self, session: Option<&S>, now: impl FnOnce() -> Instant) -> bool {
        let waiting = self.somebody_waits();
        if waiting && !self.queue().may_overtake(session, now()) || !self.occupy(session) {
            return false;
        }
        if waiting {
            self.queue().overtook();
        }
        true
    }

    /// The caller is a holder. If it is the only one, and may go before those who wait, the room takes the name `session`.
    pub(super) fn rename_alone(&mut self, session: &S, now: Instant) -> bool {
        let waiting = self.somebody_waits();
        if waiting && !self.queue().may_overtake(Some(session), now) {
            return false;
        }
        let session = session.clone();
        let mut word = self.core.word.load(Relaxed);
        while word::holders(word) == 1 {
            // Acquire: what the other holders did. The count of the caller goes, so the count is zero.
            match self.core.word.compare_exchange_weak(
                word,
                (word - ONE) | CHANGING,
                Acquire,
                Relaxed,
            ) {
                Ok(word) => {
                    self.end_change(word, Some(session), 1);
                    if waiting {
                        self.queue().overtook();
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// The caller has the room to itself, and makes it the room of `session`.
    pub(super) fn downgrade(&mut self, session: S) {
        let word = self.core.word.load(Relaxed);
        // SAFETY: `LOCKED` is held, and the caller has the room to itself: the door has been shut since a step that found the count zero.
        let old = unsafe { self.core.rename(word, session) };
        self.retired.extend(old);
        // Release: the name, and what the holder did, for those who come.
        self.core.word.fetch_sub(EXCLUSIVE | word & UNNAMED, Release);
    }

    /// What is to be seen.
    pub(super) fn snapshot(&mut self) -> Snapshot<S> {
        let (word, name) = self.name();
        let exclusive = word & EXCLUSIVE != 0;
        let inside = name.filter(|_| !exclusive && !word::is_empty(word)).cloned();
        let now = Instant::now();
        let waiting = self.any_queue().as_ref().map_or_else(Vec::new, |queue| queue.snapshot(now));
        Snapshot { session: inside, exclusive, holders: word::holders(word), waiting }
    }

    /// How many there are, for reports.
    pub(super) fn crowd(&mut self) -> Crowd {
        let holders = word::holders(self.core.word.load(Relaxed));
        self.queue().crowd(holders)
    }

    /// The invited waiter with `ticket` has come: it enters and leaves the queue if the room is still free.
    pub(super) fn accept(&mut self, session: Option<&S>, ticket: u64) -> bool {
        if self.queue().may_accept(ticket) && self.occupy(session) {
            self.queue().remove(ticket);
            true
        } else {
            self.queue().declined(ticket);
            false
        }
    }
}

impl<S: Eq> Drop for Locked<'_, S> {
    fn drop(&mut self) {
        let wakes = self.release();
        drop(wakes);
        for name in self.retired.drain(..) {
            contain(|| drop(name));
        }
    }
}
