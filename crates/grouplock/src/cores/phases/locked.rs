//! The internal lock, held.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::arena::List;
use super::queue::{Asked, Overtaking, Queue, Ticket};
use super::waiter::{Kind, Retired, Signal, Standing, Waiter, Wakes, contain};
use super::word::{
    self, ASK, CHANGING, EXCLUSIVE, LOCKED, MOST_HOLDERS, NOTIFY, ONE, SLEEPER, UNNAMED,
};
use super::{Duty, Phases, Place};
use crate::watch::Crowd;
use crate::{Policy, Snapshot, sync};

/// The internal lock is held until this is dropped. Dropping it gives a free room to those who wait for it, sets the bits of the word as the
/// queue now demands, and only then wakes threads and tasks and drops names.
pub(super) struct Locked<'a, S: Eq> {
    pub(super) core: &'a Phases<S>,
    wakes: Wakes,
    retired: Retired<S>,
}

impl<'a, S: Eq> Locked<'a, S> {
    /// `LOCKED` has just been set by the caller.
    pub(super) fn new(core: &'a Phases<S>) -> Self {
        Locked { core, wakes: Wakes::default(), retired: Retired::new() }
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
                if let Some(old) = old {
                    self.retired.push(old);
                }
                change = change.wrapping_sub(word & UNNAMED);
            }
            None => change = change.wrapping_add(EXCLUSIVE),
        }
        // Release: the name, for those who come. Others may have counted themselves in meanwhile, so this is a sum and not a store.
        self.core.word.fetch_add(change, Release);
    }

    /// Gives the room to the first phase, if it is still empty. The waiter with the ticket `running` is not woken.
    fn hand_over(&mut self, running: Option<Ticket>) {
        let Some(word) = self.start_change() else { return };
        let Some(phase) = self.queue().take_first() else { unreachable!("somebody waits") };
        self.end_change(word, phase.session, phase.waiters.len() as u32);
        self.grant(phase.waiters, running);
    }

    fn grant(&mut self, waiters: List, running: Option<Ticket>) {
        let mut wakes = mem::take(&mut self.wakes);
        self.queue().grant(waiters, running, &mut wakes);
        self.wakes = wakes;
    }

    /// Lets a phase join those inside, if it is for their session: the first, or another if the policy lets it overtake those before it. It comes to
    /// that when those between have given up, and when the room has got the session in another way than by being handed over.
    fn join_inside(&mut self) -> bool {
        let (word, name) = self.name();
        // SAFETY: `LOCKED` is held (invariant 3), and nothing else refers to the queue here.
        let Some(queue) = (unsafe { &*self.core.queue.read() }) else { return false };
        let Some(name) = name.filter(|_| word::is_joinable(word)) else { return false };
        let places = MOST_HOLDERS.saturating_sub(word::holders(word));
        let mut found = None;
        // If a comparison panics, the lock must be released all the same.
        contain(|| found = queue.fellows_inside(name, places));
        let Some(phase) = found.map(|phase| self.queue().take_overtaking(phase)) else {
            return false;
        };
        // Acquire: what earlier holders did. The name stays, as in `occupy`.
        self.core.word.fetch_add(phase.waiters.len() as u32 * ONE, Acquire);
        self.grant(phase.waiters, None);
        if let Some(name) = phase.session {
            self.retired.push(name);
        }
        true
    }

    /// Tells a thread of the first phase that the room is free.
    fn invite(&mut self) {
        let mut wakes = mem::take(&mut self.wakes);
        if let Some(signal) = self.queue().invite() {
            signal.set(Standing::Invited);
            wakes.thread(signal);
        }
        self.wakes = wakes;
    }

    /// The thread with `ticket` was invited and has come. If the room is still free, its phase enters.
    pub(super) fn accept(&mut self, ticket: Ticket) {
        if self.queue().invitation_ends(ticket) {
            self.hand_over(Some(ticket));
        }
    }

    /// Takes a waiter out of the queue. It is to be dropped without the internal lock.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Waiter {
        let (waiter, name) = self.queue().remove(ticket);
        if let Some(name) = name {
            self.retired.push(name);
        }
        waiter
    }

    /// Whether anybody is in the queue.
    pub(super) fn somebody_waits(&mut self) -> bool {
        self.any_queue().as_ref().is_some_and(|queue| !queue.is_empty())
    }

    /// Lets waiters in as far as they can enter now, and releases the lock.
    fn release(&mut self) {
        loop {
            // Relaxed: what matters is the step that succeeds.
            let word = self.core.word.load(Relaxed);
            let mut bits = 0;
            if let Some(demands) = self.any_queue().as_ref().and_then(|queue| queue.demands()) {
                if word::is_empty(word) && demands.hand_over {
                    self.hand_over(None);
                    continue;
                }
                if !word::is_empty(word) && self.join_inside() {
                    continue;
                }
                if word::is_empty(word) && !demands.invited {
                    self.invite();
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
                return;
            }
        }
    }
}

impl<S: Eq + Clone> Locked<'_, S> {
    /// The thread that runs this joins the queue.
    pub(super) fn push_thread(&mut self, asked: Asked<'_, S>, now: Instant, kind: Kind) -> Place {
        let signal = Signal::of_this_thread();
        let duty = if kind.can_try() { Duty::None } else { Duty::Enter };
        let ticket = self.push(asked, now, Arc::clone(&signal), kind);
        Place { ticket, signal, patience: self.queue().patience(now), duty }
    }

    /// A request joins the queue.
    pub(super) fn push(
        &mut self,
        asked: Asked<'_, S>,
        now: Instant,
        signal: Arc<Signal>,
        kind: Kind,
    ) -> Ticket {
        let (ticket, unneeded) = self.queue().push(asked, now, signal, kind);
        if let Some(Cow::Owned(name)) = unneeded {
            self.retired.push(name);
        }
        ticket
    }

    /// Enters if the room has a place for the request, whoever waits. It changes the session of an empty room only if it `may_change` it.
    fn occupy(&mut self, asked: &mut Asked<'_, S>, may_change: bool) -> bool {
        let (word, name) = self.name();
        if asked.is_some() && word::is_joinable(word) && name == asked.as_deref() {
            // Acquire: what earlier holders did. The name stays, as the lock is ours, even if the last holder has left meanwhile; and
            // nobody takes the room for itself without the lock while it is locked.
            self.core.word.fetch_add(ONE, Acquire);
            return true;
        }
        if !may_change || !word::is_empty(word) {
            return false;
        }
        let session = asked.take().map(Cow::into_owned);
        let Some(word) = self.start_change() else {
            *asked = session.map(Cow::Owned);
            return false;
        };
        self.end_change(word, session, 1);
        true
    }

    /// Enters if the room has a place for the request, and the policy lets it go before those who wait.
    pub(super) fn admit(
        &mut self,
        asked: &mut Asked<'_, S>,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        let waiting = self.somebody_waits();
        let overtaking = match waiting {
            true => self.queue().overtaking(asked.as_deref(), now()),
            false => Overtaking::Anybody,
        };
        if overtaking == Overtaking::Nobody
            || !self.occupy(asked, overtaking == Overtaking::Anybody)
        {
            return false;
        }
        if waiting {
            self.queue().overtook();
        }
        true
    }

    /// The caller is a holder. If it is the only one, and may go before those who wait, the room takes the name that it asks for.
    pub(super) fn rename_alone(&mut self, asked: &mut Asked<'_, S>, now: Instant) -> bool {
        let waiting = self.somebody_waits();
        if waiting && self.queue().overtaking(asked.as_deref(), now) != Overtaking::Anybody {
            return false;
        }
        let session = asked.take().map(Cow::into_owned);
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
                    self.end_change(word, session, 1);
                    if waiting {
                        self.queue().overtook();
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
        *asked = session.map(Cow::Owned);
        false
    }

    /// The caller has the room to itself, and makes it the room of `session`.
    pub(super) fn downgrade(&mut self, session: S) {
        let word = self.core.word.load(Relaxed);
        // SAFETY: `LOCKED` is held, and the caller has the room to itself: the door has been shut since a step that found the count zero.
        let old = unsafe { self.core.rename(word, session) };
        if let Some(old) = old {
            self.retired.push(old);
        }
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
}

impl<S: Eq> Drop for Locked<'_, S> {
    fn drop(&mut self) {
        // The fields are dropped afterwards: that wakes, and then drops names.
        self.release();
    }
}
