//! What a process does while it holds the internal lock: the queue, and the release that admits
//! waiters.

use super::{ALONE, GRANTED, INVITED, Phases, Process, Record, Then, WAITING, Way, share};
use crate::memory::Ordering::{Acquire, Relaxed, Release};
use crate::memory::{Memory, Ptr, Register, Word};
use crate::phases_word::{
    CHANGING, EXCLUSIVE, LOCKED, MUST_LOCK, NOTIFY, ONE_HOLDER, RESERVED, SET_UP, holders,
    is_empty, is_joinable,
};
use crate::policy::Policy;
use crate::prelude::*;

pub(super) const TEXT: Text = text!("locked.rs");

/// What an empty room becomes.
#[derive(Clone, Copy, Debug)]
enum Room {
    /// The room of a session.
    Of(u64),
    /// The room of the session that it was.
    Same,
    /// The room of a holder that is alone.
    Alone,
    /// The room of a holder that is alone and sets it up. Until then it is set up for no session.
    BeingSetUp,
}

impl Room {
    fn of(s: u64) -> Self {
        if s == ALONE { Room::Alone } else { Room::Of(s) }
    }
}

/// A waiter, as the process with the internal lock knows it.
#[derive(Debug)]
pub(super) struct Waiter<M: Memory> {
    pub(super) who: Ptr<Record<M>>,
    pub(super) session: u64,
    pub(super) invited: bool,
    pub(super) task: bool,
    pub(super) set_up: bool,
}

/// The internal lock is held. The queue, as it is now.
pub(super) struct Locked<'a, M: Memory, P: Policy> {
    pub(super) lock: &'a Phases<M, P>,
    pub(super) queue: Vec<Waiter<M>>,
}

impl<M: Memory, P: Policy> Locked<'_, M, P> {
    /// What a process at a merge point knows.
    fn words(&self, then: Then) -> Vec<Word> {
        let waiter = |waiter: &Waiter<M>| {
            let Waiter { who, session, invited, task, set_up } = *waiter;
            [who.word(), session.word(), invited.word(), task.word(), set_up.word()]
        };
        let known = self.queue.iter().flat_map(waiter);
        core::iter::once((then as u64).word()).chain(known).collect()
    }

    /// Whether the patience of a waiter is over, from position `from` of the queue on.
    #[track_caller]
    fn is_late(&self, from: usize) -> bool {
        let mut late = false;
        for waiter in &self.queue[from..] {
            // Relaxed: a clock.
            late = late || P::IMPATIENT && self.lock.at(waiter.who).late.read(Relaxed); // 9, 11, 31
        }
        late
    }

    /// Enters if the room can take `s`, and the policy lets the request overtake the waiters.
    pub(super) fn admit(&mut self, s: u64, set_up: bool) -> bool {
        let may_overtake = self.queue.is_empty() || !P::STRICT && !self.is_late(0); // 9
        may_overtake && self.occupy(s, set_up, Then::Queue) // 9
    }

    /// Enters if the room can take `s`, past all waiters. Enters alone if the request needs a
    /// set-up that the room lacks.
    pub(super) fn occupy(&mut self, s: u64, set_up: bool, then: Then) -> bool {
        let lock = self.lock;
        loop {
            M::live(|| self.words(then));
            let w = lock.word.read(Relaxed); // 25: the name changes only under our lock; a holder may clear `EXCLUSIVE`
            let same = s != ALONE && is_joinable(w) && lock.name.read(Relaxed) == s; // 26
            if same && holders(w) >= <Phases<M, P> as RawGroup<M>>::most(s) {
                return false; // 26
            }
            if same && (!set_up || w & SET_UP != 0) {
                lock.word.faa(ONE_HOLDER, Acquire); // 26: what earlier holders did
                return true;
            }
            if !is_empty(w) {
                return false; // 27
            }
            let changing = lock.word.cas(w, w | CHANGING, Acquire); // 27: what the last holders did
            if changing {
                self.change(w, if set_up { Room::BeingSetUp } else { Room::of(s) }, 1); // 28, 29
                return true;
            }
        }
    }

    /// Gives the room, which was empty at `w` and is changing, to `n` processes.
    #[track_caller]
    fn change(&self, w: u32, room: Room, n: usize) {
        let lock = self.lock;
        let mut end = (ONE_HOLDER * n as u32).wrapping_sub(CHANGING);
        match room {
            Room::Of(s) => {
                lock.name.write(s, Relaxed); // 28, 36: published by line 29, 37
                end = end.wrapping_sub(w & SET_UP);
            }
            Room::Same => {}
            Room::Alone => end = end.wrapping_add(EXCLUSIVE),
            Room::BeingSetUp => end = end.wrapping_add(EXCLUSIVE).wrapping_sub(w & SET_UP),
        }
        lock.word.faa(end, Release); // 29, 37: for 2, 23, 43
    }

    /// The process joins the queue.
    pub(super) fn push(&mut self, me: &Process<M>, s: u64) {
        let record = self.lock.at(me.me);
        let length = self.queue.len();
        let ends_a_phase = |&i: &usize| {
            share(self.queue[i].session, s) && self.queue.get(i + 1).is_none_or(|w| w.session != s)
        };
        let phase = if P::STRICT {
            None
        } else {
            (0..length).filter(ends_a_phase).find(|&i| !self.is_late(i + 1)) // 11
        };
        let place = phase.map_or(length, |i| i + 1);
        record.session.write(s, Relaxed); // 10: published by line 40, as all of the queue
        record.standing.write(WAITING, Relaxed); // 10
        record.late.write(false, Relaxed); // 10
        record.task.write(me.task, Relaxed); // 10
        let set_up = me.way == Way::SetUp;
        if P::SETS_UP {
            record.set_up.write(set_up, Relaxed); // 10
        }
        record.next.write(self.who(place), Relaxed); // 11
        let task = me.task && !P::STRICT;
        self.queue.insert(place, Waiter { who: me.me, session: s, invited: false, task, set_up });
        self.link(place); // 11
    }

    /// The process at position `place`.
    fn who(&self, place: usize) -> Ptr<Record<M>> {
        self.queue.get(place).map_or(Ptr::NIL, |waiter| waiter.who)
    }

    /// Makes the record before position `place` point there.
    #[track_caller]
    fn link(&self, place: usize) {
        let who = self.who(place);
        // Relaxed: published by line 40, as all of the queue.
        if let Some(before) = place.checked_sub(1) {
            self.lock.at(self.queue[before].who).next.write(who, Relaxed); // 11, 16, 17, 20
        } else {
            self.lock.first.write(who, Relaxed); // 11, 16, 17, 20, 33, 36
        }
    }

    /// Takes the waiter out of the queue.
    #[track_caller]
    pub(super) fn remove(&mut self, me: Ptr<Record<M>>) {
        if let Some(place) = self.queue.iter().position(|waiter| waiter.who == me) {
            self.queue.remove(place);
            self.link(place);
            self.lock.at(me).leave_queue();
        }
    }

    /// The waiter was invited and was too late.
    pub(super) fn decline(&mut self, me: Ptr<Record<M>>) {
        if let Some(waiter) = self.queue.iter_mut().find(|waiter| waiter.who == me) {
            waiter.invited = false;
        }
    }

    /// Takes the first `n` waiters out of the queue.
    #[track_caller]
    fn take(&mut self, n: usize) -> Vec<Waiter<M>> {
        let phase = self.queue.drain(..n).collect();
        self.link(0);
        phase
    }

    /// Notifies the waiters of `phase` that they are inside.
    fn tell(&self, phase: &[Waiter<M>]) {
        for waiter in phase {
            let record = self.lock.at(waiter.who);
            record.leave_queue();
            record.standing.write(GRANTED, Release); // 38: for line 13
        }
    }

    /// Gives the room, which was empty at `w` and is changing, to the first phase, of `n` waiters;
    /// or to one of them that sets it up.
    #[track_caller]
    fn hand_over(&mut self, w: u32, n: usize) {
        let session = self.queue[0].session;
        let same = P::SETS_UP && session != ALONE && self.lock.name.read(Relaxed) == session; // 36: it changes only under our lock
        let alone = self.queue[..n].iter().position(|waiter| waiter.set_up);
        if let Some(alone) = alone.filter(|_| !(same && w & SET_UP != 0)) {
            // The others stay first in the queue, and join when the room is set up.
            let waiter = self.queue.remove(alone);
            self.link(alone); // 36
            self.change(w, Room::BeingSetUp, 1); // 37
            self.tell(&[waiter]); // 38
        } else {
            let phase = self.take(n.min(<Phases<M, P> as RawGroup<M>>::most(session))); // 36
            let room = if same { Room::Same } else { Room::of(session) };
            self.change(w, room, phase.len()); // 36, 37
            self.tell(&phase); // 38
        }
    }

    /// Admits waiters that can enter, and releases the internal lock.
    pub(super) fn unlock(mut self, then: Then) {
        let lock = self.lock;
        loop {
            M::live(|| self.words(then));
            let w = lock.word.read(Relaxed); // 30: what matters is the step that succeeds
            let mut bits = if P::LIMITED { MUST_LOCK } else { 0 };
            if let Some(session) = self.queue.first().map(|first| first.session) {
                let theirs = |waiter: &&Waiter<M>| share(waiter.session, session);
                let n = self.queue.iter().take_while(theirs).count().max(1);
                let strict = P::STRICT || self.is_late(0); // 31
                let hand_over = strict || self.queue[..n].iter().any(|waiter| waiter.task);
                if !is_empty(w) {
                    let joinable = session != ALONE && is_joinable(w);
                    let theirs = joinable && lock.name.read(Relaxed) == session; // 32: it changes only under our lock
                    let places = n.min(
                        <Phases<M, P> as RawGroup<M>>::most(session).saturating_sub(holders(w)),
                    );
                    let set_up = w & SET_UP != 0 || !self.queue[..n].iter().any(|it| it.set_up);
                    if theirs && set_up && places > 0 {
                        let phase = self.take(places); // 33
                        lock.word.faa(ONE_HOLDER * places as u32, Acquire); // 33: what earlier holders did
                        self.tell(&phase); // 38
                        continue;
                    }
                } else if hand_over {
                    let changing = lock.word.cas(w, w | CHANGING, Acquire); // 35: as 27
                    if changing {
                        self.hand_over(w, n); // 36, 37
                    }
                    continue;
                }
                let invited = self.queue[..n].iter().any(|waiter| waiter.invited);
                if is_empty(w) && !invited {
                    for waiter in &mut self.queue[..n] {
                        waiter.invited = true;
                        lock.at(waiter.who).standing.write(INVITED, Release); // 39: for line 13
                    }
                } else if hand_over || !invited {
                    bits |= NOTIFY; // 39
                }
                if strict || self.queue.iter().any(|waiter| waiter.task) {
                    bits |= MUST_LOCK; // 39
                }
            }
            let free = w & !(LOCKED | NOTIFY | MUST_LOCK | RESERVED) | bits;
            let unlocked = lock.word.cas(w, free, Release); // 40: the queue, for line 23
            if unlocked {
                // `words` does not say whether this is the first time in the passage. Only the
                // first time counts.
                if matches!(then, Then::Enter | Then::Sleep) {
                    M::doorway_end();
                }
                return;
            }
        }
    }
}
