//! What a thread does while it holds the internal lock.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use super::arena::List;
use super::queue::{Asked, Overtaking, Queue, WaiterId};
use super::waiter::{Kind, Retired, Signal, Waiter, WaiterState, Wakes};
use super::word::{
    self, CHANGING, EXCLUSIVE, LIMITED, LOCKED, MOST_HOLDERS, MUST_LOCK, NOTIFY, ONE_HOLDER,
    RESERVED, SET_UP, SLEEPER,
};
use super::{Duty, Phases, QueuedThread};
use crate::foreign::contain;
use crate::watch::Crowd;
use crate::{Policy, Snapshot, sync};

/// What an empty room becomes.
enum NewRoom<S> {
    /// The room of another session.
    Of(S),
    /// The room of the session that it was.
    Same,
    /// The room of a holder that is alone.
    Exclusive,
    /// The room of a holder that is alone and sets it up. Until then it is set up for no session.
    BeingSetUp,
}

/// The internal lock is held until this is dropped. The drop admits waiters, sets the bits of the
/// word as the queue demands, releases the lock, and only then wakes threads and tasks and drops
/// names.
pub(super) struct Locked<'a, S: Eq + Clone> {
    pub(super) core: &'a Phases<S>,
    wakes: Wakes,
    retired: Retired<S>,
}

impl<'a, S: Eq + Clone> Locked<'a, S> {
    /// The caller has just set `LOCKED`.
    pub(super) fn new(core: &'a Phases<S>) -> Self {
        Locked { core, wakes: Wakes::default(), retired: Retired::new() }
    }

    /// Admits the waiters that can enter now, wakes them, and releases the lock.
    pub(super) fn admit_waiters(self) {
        // The release does all of it.
        drop(self);
    }

    /// The queue. Allocates it if there is none.
    pub(super) fn queue(&mut self) -> &mut Queue<S> {
        self.any_queue().get_or_insert_with(|| Box::new(Queue::new(Policy::EVENTUAL, None)))
    }

    /// The queue, if there is one.
    pub(super) fn any_queue(&mut self) -> &mut Option<Box<Queue<S>>> {
        // SAFETY: `LOCKED` is held (invariant 3), and `self` is borrowed as long as the reference.
        unsafe { &mut *self.core.queue.write() }
    }

    /// The word, and the session inside or last inside, if there was one.
    pub(super) fn name(&self) -> (u32, Option<&S>) {
        // Relaxed: while the lock is held, no other thread changes the name or what depends on it.
        let word = self.core.word.load(Relaxed);
        // SAFETY: `LOCKED` is held, so no thread writes the name.
        (word, unsafe { self.core.name() })
    }

    /// Sets `CHANGING` if the room is empty, and returns the word before that.
    fn start_change(&self) -> Option<u32> {
        let change = |word| word::is_empty(word).then_some(word | CHANGING);
        // Acquire: what the last holders did. Relaxed: only the step that succeeds matters.
        self.core.word.fetch_update(Acquire, Relaxed, change).ok()
    }

    /// Ends the change that began at `word`. Then `holders` are inside.
    fn end_change(&mut self, word: u32, room: NewRoom<S>, holders: u32) {
        let mut change = (holders * ONE_HOLDER).wrapping_sub(CHANGING);
        match room {
            NewRoom::Of(session) => {
                // SAFETY: `LOCKED` is held, and the step that set `CHANGING` left the count at
                // zero.
                let old = unsafe { self.core.rename(session) };
                self.retired.push(old);
                change = change.wrapping_sub(word & SET_UP);
            }
            NewRoom::Same => {}
            NewRoom::Exclusive => change = change.wrapping_add(EXCLUSIVE),
            NewRoom::BeingSetUp => {
                change = change.wrapping_add(EXCLUSIVE).wrapping_sub(word & SET_UP);
                if let Some(queue) = self.any_queue() {
                    queue.epoch += 1;
                }
            }
        }
        // Release: the name, for the threads that enter. Other threads may have added a count
        // meanwhile, so this is a sum and not a store.
        self.core.word.fetch_add(change, Release);
    }

    /// Hands the room over to the first phase, if the room is still empty. The waiter `running`
    /// is not woken.
    fn hand_over(&mut self, running: Option<WaiterId>) {
        let Some(word) = self.start_change() else { return };
        let same = self.first_is_of_the_session_inside();
        if !(same && word & SET_UP != 0)
            && let Some((id, waiter, name)) = self.queue().take_set_up()
        {
            // The others of the phase stay first in the queue, and join when the room is set up.
            self.end_change(word, NewRoom::BeingSetUp, 1);
            waiter.enter(running == Some(id), &mut self.wakes);
            self.retired.push(name);
            return;
        }
        if let Some((places, room)) = self.first_is_too_many(same) {
            self.end_change(word, room, places);
            self.enter_some(places, running);
            return;
        }
        let Some(phase) = self.queue().take_first() else { unreachable!("somebody waits") };
        let room = match phase.session {
            session @ Some(_) if same => {
                self.retired.push(session);
                NewRoom::Same
            }
            Some(session) => NewRoom::Of(session),
            None => NewRoom::Exclusive,
        };
        self.end_change(word, room, phase.waiters.len() as u32);
        self.grant(phase.waiters, running);
    }

    /// If not all of the first phase may enter an empty room: how many may, and what the room
    /// becomes. If the user's code panics, all enter, as the lock must be released in any case.
    fn first_is_too_many(&mut self, same: bool) -> Option<(u32, NewRoom<S>)> {
        let waiters = self.queue().first()?.waiters.len();
        let limit = self.limit(self.first_session());
        if waiters <= limit {
            return None;
        }
        let mut name = None;
        if !same {
            contain(|| name = self.first_session().cloned());
        }
        Some((limit as u32, if same { NewRoom::Same } else { NewRoom::Of(name?) }))
    }

    /// The session of the first phase.
    fn first_session(&self) -> Option<&S> {
        // SAFETY: `LOCKED` is held (invariant 3), and nothing else refers to the queue here.
        let queue = unsafe { &*self.core.queue.read() };
        queue.as_ref().and_then(|queue| queue.first()?.session.as_ref())
    }

    /// How many of `session` may be inside together. One, if the user's function panics.
    fn limit(&self, session: Option<&S>) -> usize {
        // SAFETY: as in `first_session`.
        let queue = unsafe { &*self.core.queue.read() };
        let most = queue.as_ref().and_then(|queue| queue.most.as_ref());
        let (Some(most), Some(session)) = (most, session) else { return MOST_HOLDERS };
        let mut limit = 1;
        contain(|| limit = most(session).clamp(1, MOST_HOLDERS));
        limit
    }

    /// Grants the room to the first `places` waiters of the first phase, which have been counted.
    /// The others stay first in the queue.
    fn enter_some(&mut self, places: u32, running: Option<WaiterId>) {
        for _ in 0..places {
            let Some(id) = self.queue().first().and_then(|first| first.waiters.first()) else {
                unreachable!("there are more")
            };
            let waiter = self.remove(id);
            waiter.enter(running == Some(id), &mut self.wakes);
        }
    }

    /// Whether the first phase is for the session that is inside, or was inside last. If the
    /// comparison panics, it is not, as the lock must be released in any case.
    fn first_is_of_the_session_inside(&self) -> bool {
        let ((_, name), first) = (self.name(), self.first_session());
        let mut same = false;
        contain(|| same = first.is_some() && first == name);
        same
    }

    fn grant(&mut self, waiters: List, running: Option<WaiterId>) {
        let mut wakes = mem::take(&mut self.wakes);
        self.queue().grant(waiters, running, &mut wakes);
        self.wakes = wakes;
    }

    /// Lets a phase of the session inside join the holders: the first, or another if the policy
    /// lets it overtake. Such a phase exists when those before it withdrew, and when the room was
    /// not handed over to its session but taken for it.
    fn join_inside(&mut self) -> bool {
        let (word, name) = self.name();
        let Some(name) = name.filter(|_| word::is_joinable(word)) else { return false };
        let places = self.limit(Some(name)).saturating_sub(word::holders(word));
        // SAFETY: `LOCKED` is held (invariant 3), and nothing else refers to the queue here.
        let Some(queue) = (unsafe { &*self.core.queue.read() }) else { return false };
        let mut found = None;
        // If a comparison panics, the lock must be released in any case.
        contain(|| found = queue.phase_of_session_inside(name, word & SET_UP != 0));
        let Some((phase_id, waiters)) = found else { return false };
        if waiters > places {
            if places == 0 || word & LIMITED == 0 || self.queue().first_id() != Some(phase_id) {
                return false;
            }
            // Acquire: as below.
            self.core.word.fetch_add(places as u32 * ONE_HOLDER, Acquire);
            self.enter_some(places as u32, None);
            return true;
        }
        let phase = self.queue().take_overtaking(phase_id);
        // Acquire: what earlier holders did. The name does not change, as in `occupy`.
        self.core.word.fetch_add(phase.waiters.len() as u32 * ONE_HOLDER, Acquire);
        self.grant(phase.waiters, None);
        self.retired.push(phase.session);
        true
    }

    /// Invites a thread of the first phase to try for the free room.
    fn invite(&mut self) {
        let mut wakes = mem::take(&mut self.wakes);
        if let Some(signal) = self.queue().invite() {
            signal.set(WaiterState::Invited);
            wakes.thread(signal);
        }
        self.wakes = wakes;
    }

    /// The thread `id` was invited and answers. If the room is still free, its phase enters.
    pub(super) fn accept(&mut self, id: WaiterId) {
        if self.queue().invitation_ends(id) {
            self.hand_over(Some(id));
        }
    }

    /// Removes a waiter from the queue. A task must be dropped without the internal lock.
    pub(super) fn remove(&mut self, id: WaiterId) -> Waiter {
        let (waiter, name) = self.queue().remove(id);
        self.retired.push(name);
        waiter
    }

    /// Whether the queue is not empty.
    pub(super) fn has_waiters(&mut self) -> bool {
        self.any_queue().as_ref().is_some_and(|queue| !queue.is_empty())
    }

    /// Admits the waiters that can enter now, and releases the lock.
    fn release(&mut self) {
        loop {
            // Relaxed: what matters is the step that succeeds.
            let word = self.core.word.load(Relaxed);
            let mut bits = if word & LIMITED == 0 { 0 } else { MUST_LOCK };
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
                if demands.must_lock {
                    bits |= MUST_LOCK;
                }
            }
            let free = word & !(LOCKED | SLEEPER | NOTIFY | MUST_LOCK | RESERVED) | bits;
            // Release: the queue and the name, for the thread that locks next.
            if self.core.word.compare_exchange_weak(word, free, Release, Relaxed).is_ok() {
                if word & SLEEPER != 0 {
                    sync::wake_all(&self.core.word);
                }
                return;
            }
        }
    }

    /// The calling thread joins the queue.
    pub(super) fn push_thread(
        &mut self,
        asked: Asked<'_, S>,
        now: Instant,
        kind: Kind,
    ) -> QueuedThread {
        let signal = Signal::of_this_thread();
        let duty = if kind.can_be_invited() { Duty::None } else { Duty::Enter };
        let id = self.push(asked, now, Arc::clone(&signal), kind);
        QueuedThread { id, signal, patience: self.queue().patience(now), duty }
    }

    /// A request joins the queue.
    pub(super) fn push(
        &mut self,
        asked: Asked<'_, S>,
        now: Instant,
        signal: Arc<Signal>,
        kind: Kind,
    ) -> WaiterId {
        let (id, unneeded) = self.queue().push(asked, now, signal, kind);
        if let Some(Cow::Owned(name)) = unneeded {
            self.retired.push(Some(name));
        }
        id
    }

    /// Enters if the room has a place for the request, and `overtaking` allows it. If the request
    /// needs `set_up` and the room is not set up, it enters alone.
    fn occupy(&mut self, asked: &mut Asked<'_, S>, set_up: bool, overtaking: Overtaking) -> bool {
        let (word, name) = self.name();
        if overtaking == Overtaking::Nobody {
            return false;
        }
        let same = asked.is_some() && word::is_joinable(word) && name == asked.as_deref();
        if same && word::holders(word) >= self.limit(name) {
            return false;
        }
        if same && (!set_up || word & SET_UP != 0) {
            // Acquire: what earlier holders did. The name does not change while the lock is held,
            // even if the last holder has left meanwhile. And while the lock is held, no other
            // thread takes the room alone.
            self.core.word.fetch_add(ONE_HOLDER, Acquire);
            return true;
        }
        let only_same = overtaking == Overtaking::PresentSession;
        if only_same && !same || !word::is_empty(word) {
            return false;
        }
        if set_up {
            let Some(word) = self.start_change() else { return false };
            self.end_change(word, NewRoom::BeingSetUp, 1);
            return true;
        }
        let session = asked.take().map(Cow::into_owned);
        let Some(word) = self.start_change() else {
            *asked = session.map(Cow::Owned);
            return false;
        };
        self.end_change(word, session.map_or(NewRoom::Exclusive, NewRoom::Of), 1);
        true
    }

    /// Enters if the room has a place for the request, and the policy lets it overtake the waiters.
    pub(super) fn admit(
        &mut self,
        asked: &mut Asked<'_, S>,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        self.admit_to(asked, false, now)
    }

    /// As [`admit`](Locked::admit). With `set_up`, the request must find the room set up, or set it
    /// up alone.
    pub(super) fn admit_to(
        &mut self,
        asked: &mut Asked<'_, S>,
        set_up: bool,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        let waiting = self.has_waiters();
        let overtaking = if waiting {
            self.queue().overtaking(asked.as_deref(), now())
        } else {
            Overtaking::Anybody
        };
        if !self.occupy(asked, set_up, overtaking) {
            return false;
        }
        if waiting {
            self.queue().overtook();
        }
        true
    }

    /// The caller is a holder. If it is the only one, and may overtake the waiters, renames the
    /// room to the session that it asks for.
    pub(super) fn rename_alone(&mut self, asked: &mut Asked<'_, S>, now: Instant) -> bool {
        let waiting = self.has_waiters();
        if waiting && self.queue().overtaking(asked.as_deref(), now) != Overtaking::Anybody {
            return false;
        }
        let session = asked.take().map(Cow::into_owned);
        let change = |word| (word::holders(word) == 1).then_some((word - ONE_HOLDER) | CHANGING);
        // Acquire: what the other holders did. The caller's count is removed, so it is zero.
        // Relaxed: only the step that succeeds matters.
        let Ok(word) = self.core.word.fetch_update(Acquire, Relaxed, change) else {
            *asked = session.map(Cow::Owned);
            return false;
        };
        self.end_change(word, session.map_or(NewRoom::Same, NewRoom::Of), 1);
        if waiting {
            self.queue().overtook();
        }
        true
    }

    /// The caller is alone, and opens the room to `session`. With `set_up`, it has set the room up.
    pub(super) fn open(&mut self, session: S, set_up: bool) {
        let (word, name) = self.name();
        let mut same = false;
        // If the comparison panics, the room must be opened in any case.
        contain(|| same = name == Some(&session));
        let mut bits = word & SET_UP;
        if same {
            self.retired.push(Some(session));
        } else {
            // SAFETY: `LOCKED` is held, and the caller is alone: the door has been shut since a
            // step that found the count zero.
            let old = unsafe { self.core.rename(session) };
            self.retired.push(old);
            bits = 0;
        }
        if set_up {
            bits |= SET_UP;
        }
        let change = bits.wrapping_sub(word & SET_UP).wrapping_sub(EXCLUSIVE);
        // Release: the name, and what the holder did, for the threads that enter.
        self.core.word.fetch_add(change, Release);
    }

    /// The state of the lock.
    pub(super) fn snapshot(&mut self) -> Snapshot<S> {
        // Relaxed: the name and the queue do not change while the lock is held, and the count is
        // that of some moment.
        let first = self.core.word.load(Relaxed);
        let now = Instant::now();
        let waiting = self.any_queue().as_ref().map_or_else(Vec::new, |queue| queue.snapshot(now));
        // A thread that only tries is counted for a moment too. It has had time to undo its count.
        // Not more than that: a try that finds this lock held fails.
        let (second, name) = self.name();
        let word = if word::holders(first) < word::holders(second) { first } else { second };
        let exclusive = word & EXCLUSIVE != 0;
        let inside = name.filter(|_| !exclusive && !word::is_empty(word)).cloned();
        Snapshot { session: inside, exclusive, holders: word::holders(word), waiting }
    }

    /// How many holders and waiters there are, for reports.
    pub(super) fn crowd(&mut self) -> Crowd {
        let holders = word::holders(self.core.word.load(Relaxed));
        self.queue().crowd(holders)
    }
}

impl<S: Eq + Clone> Drop for Locked<'_, S> {
    fn drop(&mut self) {
        // Afterwards the fields are dropped: that wakes threads and tasks, and then drops names.
        self.release();
    }
}
