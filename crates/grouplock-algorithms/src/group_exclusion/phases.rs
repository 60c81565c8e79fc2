//! A word in front of a queue of phases: the protocol of `GroupLock`'s default core.
//!
//! No paper has this one. The crate `grouplock` keeps its queue in plain memory behind a bit of the word; here the same steps are
//! written through [`Memory`], so that they can be explored. `docs/algorithms/phases.md` says which line is which function there.
//!
//! * **Coming.** If the door is open, count yourself in. From then on the name of the room cannot change: compare it. If it is
//!   yours you are inside; if not, and you are alone, give the room your name; else take the count back.
//! * **Leaving.** Take the count back. Who leaves the room empty while `NOTIFY` is set sees to those who wait.
//! * **Waiting.** Under the internal lock (`LOCKED`), join the queue. Those of one session who stand together there are a *phase*.
//!   Whoever releases the internal lock while the room is empty hands it to the first phase as a whole, or, as long as nobody has lost patience
//!   and the policy is not strict, only *invites* that phase to try for it.
//!
//! * **Promises** mutual exclusion, freedom from deadlock, concurrent occupancy; with [`Fifo`](crate::policy::Fifo) first come, first served and first in,
//!   first enabled. Not freedom from starvation: the internal lock goes to whoever is quickest.
//! * **Costs** two read-modify-writes for a passage through a room that has its session's name and that nobody else wants. Otherwise there
//!   is no bound, as the internal lock is contended for.
//!
//! The numbers at the ends of lines are those of the pseudo-code in `docs/algorithms/phases.md`.
//!
//! # Orderings
//! As in `grouplock`: every step on the word is a read-modify-write, so each continues the release sequences before it. Leaving (21) is a
//! release, coming (2), locking (23) and changing (4, 27, 35) are acquires. What is read under `LOCKED` was released by the last
//! unlock (40) or change of name (6). A waiter learns of a grant by an acquire (13) of what 38 released.

use core::marker::PhantomData;

use crate::memory::Ordering::{Acquire, Relaxed, Release};
use crate::memory::{Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::phases_word::{
    ASK, CHANGING, EXCLUSIVE, LIMITED, LOCKED, NOTIFY, ONE, holders, is_empty, is_joinable,
    is_open, left_work, needs_work,
};
use crate::policy::{Eventual, Policy};
use crate::prelude::*;

/// Stands for the session of a request that wants the room to itself.
const ALONE: u64 = 0;

/// In `standing`: in the queue.
const WAITING: u64 = 0;
/// In `standing`: in the queue; the room was free a moment ago.
const INVITED: u64 = 1;
/// In `standing`: inside, counted, and no longer in the queue.
const GRANTED: u64 = 2;

/// Whether requests for these can be of one phase.
const fn share(one: u64, other: u64) -> bool {
    one == other && one != ALONE
}

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Phases<M: Memory = Native, P: Policy = Eventual> {
    word: M::Register<u32>,
    name: M::Register<u64>,
    first: M::Register<Ptr<Record<M>>>,
    records: Nodes<M, Record<M>, Ptr<Record<M>>>,
    policy: PhantomData<P>,
}

/// A process's place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Record<M: Memory> {
    session: M::Register<u64>,
    next: M::Register<Ptr<Record<M>>>,
    standing: M::Register<u64>,
    late: M::Register<bool>,
    task: M::Register<bool>,
}

impl<M: Memory> Record<M> {
    /// It is out of the queue: nobody else looks at it.
    fn leave_queue(&self) {
        self.session.forget();
        self.next.forget();
        self.task.forget();
    }

    /// Its process does not wait: nobody looks at it before that writes it.
    fn forget(&self) {
        self.leave_queue();
        self.standing.forget();
        self.late.forget();
    }
}

/// A process.
#[derive(Debug)]
pub struct Process<M: Memory> {
    me: Ptr<Record<M>>,
    /// Whether it waits as a task, if waiters give up: every other passage.
    task: bool,
    /// Whether it will give up if it has to wait.
    gives_up: bool,
    /// Whether it has lost its patience, or has none to lose.
    late: bool,
    /// What it is counted by when it is inside: alone, with `EXCLUSIVE`.
    count: u32,
}

/// What comes after taking or releasing the internal lock: all that a process at a merge point there has to know besides its handle.
#[derive(Clone, Copy, Debug)]
enum Then {
    Queue,
    Sleep,
    Come,
    GiveUp,
    Again,
    Leave,
    Enter,
    EnterAtLast,
    SeeToWaiters,
}

/// One who waits, as the holder of the internal lock knows it.
#[derive(Debug)]
struct Waiter<M: Memory> {
    who: Ptr<Record<M>>,
    session: u64,
    invited: bool,
    task: bool,
}

/// The internal lock, held, and the queue as it is.
struct Locked<'a, M: Memory, P: Policy> {
    lock: &'a Phases<M, P>,
    queue: Vec<Waiter<M>>,
}

impl<M: Memory, P: Policy> Phases<M, P> {
    /// The record that `p` points to.
    #[inline(always)]
    fn at(&self, p: Ptr<Record<M>>) -> &Record<M> {
        // SAFETY: every pointer in a register of the lock came from `records`, which lives as long as the lock; `&self` holds the lock, and
        // records are made of registers, so `Sync`.
        unsafe { M::follow(p) }
    }

    /// Takes an idle room for itself.
    fn exclusive_fast(&self) -> bool {
        let mut inside = self.word.cas(0, EXCLUSIVE | ONE, Acquire); // 41: as 2
        if !inside {
            let w = self.word.read(Relaxed); // 42: only to see whether somebody waits and nobody is inside
            inside = w == NOTIFY && self.word.cas(w, w | EXCLUSIVE | ONE, Acquire); // 42: as 2
        }
        if inside {
            M::doorway_end();
            return true;
        }
        M::live(|| []);
        false
    }

    /// Enters if that takes no waiting and no asking.
    fn enter_fast(&self, s: u64) -> bool {
        if s == ALONE {
            return self.exclusive_fast();
        }
        let open = is_open(self.word.read(Relaxed)); // 1: only to keep from disturbing a lock that is not
        M::live(|| [open.word()]);
        if !open {
            return false;
        }
        let before = self.word.faa(ONE, Acquire); // 2: what earlier holders did (21), and the name (6, 29, 37)
        if is_open(before) {
            let same = self.name.read(Relaxed) == s; // 3: acquired in line 2
            if same {
                M::doorway_end();
                return true;
            }
            let alone = is_empty(before) && before & LOCKED == 0;
            let change = before | LOCKED | CHANGING;
            let changing = alone && self.word.cas(before + ONE, change, Acquire); // 4: as 2, 23
            if changing {
                self.name.write(s, Relaxed); // 5: published by line 6
                if before & NOTIFY == 0 {
                    self.word.faa(ONE.wrapping_sub(LOCKED | CHANGING), Release); // 6: for 2, 23
                    M::doorway_end();
                } else {
                    // Somebody waits, perhaps for this very session.
                    self.word.faa(ONE.wrapping_sub(CHANGING), Release); // 6: for 2
                    self.locked(Then::Enter).unlock(Then::Enter); // 6
                }
                return true;
            }
        }
        M::live(|| []);
        self.give_back(ONE, Then::SeeToWaiters); // 7
        false
    }

    /// Takes back a count: of a holder who leaves, or of one who came and may not stay.
    fn give_back(&self, count: u32, then: Then) {
        let before = self.word.faa(count.wrapping_neg(), Release); // 21: for 2, 4, 23, 27, 35, 42
        if !left_work(before) {
            return;
        }
        let was_alone = before & EXCLUSIVE;
        loop {
            M::live(|| [(then as u64).word(), was_alone.word()]);
            let w = self.word.read(Relaxed); // 22: only the step below gives access to anything
            if !needs_work(w, was_alone) {
                return;
            }
            let locked = self.word.cas(w, w | LOCKED, Acquire); // 22: as 23
            if locked {
                self.locked(then).unlock(then); // 22
                return;
            }
        }
    }

    /// Takes the internal lock.
    fn lock(&self, then: Then) -> Locked<'_, M, P> {
        loop {
            M::live(|| [(then as u64).word()]);
            let w = self.word.read(Relaxed); // 23: only the step below gives access to anything
            if w & LOCKED != 0 {
                M::live(|| [(then as u64).word()]);
                M::await_until(|| self.word.read(Relaxed) & LOCKED == 0); // 23
            } else {
                let locked = self.word.cas(w, w | LOCKED, Acquire); // 23: pairs with 6 and 40
                if locked {
                    return self.locked(then);
                }
            }
        }
    }

    /// `LOCKED` has just been set by the caller.
    fn locked(&self, then: Then) -> Locked<'_, M, P> {
        M::live(|| [(then as u64).word()]);
        let mut queue = Vec::new();
        let mut who = self.first.read(Relaxed); // 24: acquired in line 23, as all of the queue
        while !who.is_nil() {
            let record = self.at(who);
            let session = record.session.read(Relaxed); // 24
            // Only the first phase is ever invited.
            let first = queue.iter().all(|before: &Waiter<M>| share(before.session, session));
            let invited = !P::STRICT && first && record.standing.read(Relaxed) == INVITED; // 24
            let task = P::GIVES_UP && !P::STRICT && record.task.read(Relaxed); // 24
            queue.push(Waiter { who, session, invited, task });
            who = record.next.read(Relaxed); // 24
        }
        Locked { lock: self, queue }
    }

    /// Asks under the internal lock, and waits. Returns whether inside: else it has given up.
    fn wait(&self, me: &mut Process<M>, s: u64) -> bool {
        let mut locked = self.lock(Then::Queue); // 8
        if locked.admit(s) {
            locked.unlock(Then::Enter); // 9
            return true;
        }
        locked.push(me, s);
        locked.unlock(Then::Sleep); // 12
        me.late = !P::IMPATIENT;
        let inside = if me.task { self.poll(me) } else { self.sleep(me, s) };
        me.late = false;
        self.at(me.me).forget();
        inside
    }

    /// A thread waits until inside, or until its time is over.
    fn sleep(&self, me: &mut Process<M>, s: u64) -> bool {
        let record = self.at(me.me);
        loop {
            M::live(|| []);
            if me.late && !me.gives_up {
                M::await_until(|| record.standing.read(Acquire) != WAITING); // 13: nothing else ends the wait
            }
            let standing = record.standing.read(Acquire); // 13: pairs with 38
            if standing == GRANTED {
                return true;
            }
            let over = me.gives_up && me.late;
            if standing == WAITING && !me.late {
                record.late.write(true, Relaxed); // 14: a matter of time, not of order
                me.late = true;
            }
            M::live(|| [over.word()]);
            let mut locked = self.lock(if over { Then::GiveUp } else { Then::Come }); // 15
            let standing = record.standing.read(Relaxed); // 15: acquired in line 23
            if standing == GRANTED {
                locked.unlock(Then::EnterAtLast); // 15
                return true;
            }
            if standing == INVITED {
                if locked.occupy(s, if over { Then::GiveUp } else { Then::Come }) {
                    locked.remove(me.me); // 16
                    locked.unlock(Then::EnterAtLast); // 16
                    return true;
                }
                record.standing.write(WAITING, Relaxed); // 16: published by line 40
                locked.decline(me.me);
            }
            if over {
                locked.remove(me.me); // 17
                locked.unlock(Then::Again); // 17
                return false;
            }
            locked.unlock(Then::Sleep); // 18
        }
    }

    /// A task waits until it is granted the room, or is dropped.
    fn poll(&self, me: &mut Process<M>) -> bool {
        let record = self.at(me.me);
        M::live(|| []);
        if me.gives_up {
            let mut locked = self.lock(Then::GiveUp); // 19
            let standing = record.standing.read(Relaxed); // 19: acquired in line 23
            if standing == GRANTED {
                locked.unlock(Then::Leave); // 20
                M::live(|| []);
                self.give_back(me.count, Then::Again); // 20
            } else {
                locked.remove(me.me); // 20
                locked.unlock(Then::Again); // 20
            }
            return false;
        }
        if !me.late {
            record.late.write(true, Relaxed); // 14: others look at the clock
        }
        M::live(|| []);
        M::await_until(|| record.standing.read(Acquire) == GRANTED); // 13: pairs with 38
        true
    }
}

impl<M: Memory, P: Policy> Locked<'_, M, P> {
    /// What a process at a merge point knows.
    fn words(&self, then: Then) -> Vec<Word> {
        let waiter = |waiter: &Waiter<M>| {
            let Waiter { who, session, invited, task } = *waiter;
            [who.word(), session.word(), invited.word(), task.word()]
        };
        let known = self.queue.iter().flat_map(waiter);
        core::iter::once((then as u64).word()).chain(known).collect()
    }

    /// Whether anyone from place `from` of the queue on has lost patience.
    #[track_caller]
    fn is_late(&self, from: usize) -> bool {
        let mut late = false;
        for waiter in &self.queue[from..] {
            // Relaxed: a clock.
            late = late || P::IMPATIENT && self.lock.at(waiter.who).late.read(Relaxed); // 9, 11, 31
        }
        late
    }

    /// Enters if the room has a place for `s`, and the policy lets it go before those who wait.
    fn admit(&mut self, s: u64) -> bool {
        let may_overtake = self.queue.is_empty() || !P::STRICT && !self.is_late(0); // 9
        may_overtake && self.occupy(s, Then::Queue) // 9
    }

    /// Enters if the room has a place for `s`, whoever waits.
    fn occupy(&mut self, s: u64, then: Then) -> bool {
        let lock = self.lock;
        loop {
            M::live(|| self.words(then));
            let w = lock.word.read(Relaxed); // 25: the name and `EXCLUSIVE` change only under our lock
            let same = s != ALONE && is_joinable(w) && lock.name.read(Relaxed) == s; // 26
            if same {
                if holders(w) >= <Phases<M, P> as RawGroup<M>>::most(s) {
                    return false; // 26
                }
                lock.word.faa(ONE, Acquire); // 26: what earlier holders did
                return true;
            }
            if !is_empty(w) {
                return false; // 27
            }
            let changing = lock.word.cas(w, w | CHANGING, Acquire); // 27: what the last holders did
            if changing {
                self.change(s, 1); // 28, 29
                return true;
            }
        }
    }

    /// Gives the room, which is empty and changing, to `n` who ask for `s`.
    #[track_caller]
    fn change(&self, s: u64, n: usize) {
        let lock = self.lock;
        let mut end = (ONE * n as u32).wrapping_sub(CHANGING);
        if s == ALONE {
            end = end.wrapping_add(EXCLUSIVE);
        } else {
            lock.name.write(s, Relaxed); // 28, 36: published by line 29, 37
        }
        lock.word.faa(end, Release); // 29, 37: for 2, 23
    }

    /// The process joins the queue.
    fn push(&mut self, me: &Process<M>, s: u64) {
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
        record.next.write(self.who(place), Relaxed); // 11
        self.queue.insert(
            place,
            Waiter { who: me.me, session: s, invited: false, task: me.task && !P::STRICT },
        );
        self.link(place); // 11
    }

    /// Who stands at `place`.
    fn who(&self, place: usize) -> Ptr<Record<M>> {
        self.queue.get(place).map_or(Ptr::NIL, |waiter| waiter.who)
    }

    /// Makes the one before `place` point there.
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
    fn remove(&mut self, me: Ptr<Record<M>>) {
        if let Some(place) = self.queue.iter().position(|waiter| waiter.who == me) {
            self.queue.remove(place);
            self.link(place);
            self.lock.at(me).leave_queue();
        }
    }

    /// The waiter was invited and came too late.
    fn decline(&mut self, me: Ptr<Record<M>>) {
        if let Some(waiter) = self.queue.iter_mut().find(|waiter| waiter.who == me) {
            waiter.invited = false;
        }
    }

    /// Takes the first `n` out of the queue.
    #[track_caller]
    fn take(&mut self, n: usize) -> Vec<Waiter<M>> {
        let phase = self.queue.drain(..n).collect();
        self.link(0);
        phase
    }

    /// Tells those of `phase` that they are inside.
    fn tell(&self, phase: &[Waiter<M>]) {
        for waiter in phase {
            let record = self.lock.at(waiter.who);
            record.leave_queue();
            record.standing.write(GRANTED, Release); // 38: for line 13
        }
    }

    /// Sees to those who wait, and releases the internal lock.
    fn unlock(mut self, then: Then) {
        let lock = self.lock;
        loop {
            M::live(|| self.words(then));
            let w = lock.word.read(Relaxed); // 30: what matters is the step that succeeds
            let mut bits = if P::LIMITED { ASK } else { 0 };
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
                    if theirs && places > 0 {
                        let phase = self.take(places); // 33
                        lock.word.faa(ONE * places as u32, Acquire); // 33: what earlier holders did
                        self.tell(&phase); // 38
                        continue;
                    }
                } else if hand_over {
                    let changing = lock.word.cas(w, w | CHANGING, Acquire); // 35: as 27
                    if changing {
                        let phase = self.take(n.min(<Phases<M, P> as RawGroup<M>>::most(session))); // 36
                        self.change(session, phase.len()); // 36, 37
                        self.tell(&phase); // 38
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
                    bits |= ASK; // 39
                }
            }
            let free = w & !(LOCKED | NOTIFY | ASK) | bits;
            let unlocked = lock.word.cas(w, free, Release); // 40: the queue, for line 23
            if unlocked {
                // Whether for the first time in this passage or not, `words` does not tell; only the first time counts.
                if matches!(then, Then::Enter | Then::Sleep) {
                    M::doorway_end();
                }
                return;
            }
        }
    }
}

impl<M: Memory, P: Policy> RawGroup<M> for Phases<M, P> {
    type Process = Process<M>;

    fn claims() -> Claims {
        // Who gives up loses its place.
        let in_order = if P::STRICT && !P::GIVES_UP { Claim::Yes } else { Claim::No };
        // Where a session has a limit, one more waits for its own.
        let unlimited = |claim| if P::LIMITED { Claim::No } else { claim };
        Claims {
            name: P::NAME,
            source: "ours: the protocol of grouplock's default core",
            text: text!("phases.rs"),
            kind: Kind::Group,
            mutual_exclusion: Claim::Yes,
            deadlock_freedom: Claim::Yes,
            // The internal lock goes to whoever is quickest.
            starvation_freedom: Claim::No,
            fcfs: in_order,
            strong_fifo: Claim::NotApplicable,
            fife: unlimited(in_order),
            entering: if P::LIMITED {
                Entering { concurrent_occupancy: Claim::No, ..Entering::OCCUPANCY }
            } else {
                Entering::OCCUPANCY
            },
            exit: Exit { terminating: Claim::No, group_bounded: Claim::No, bounded: Claim::No },
            group_bounded_abort: Claim::NotApplicable,
            rmr_cc: Bound::of(Growth::Unbounded),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[
                Primitive::Read,
                Primitive::Write,
                Primitive::CompareAndSwap,
                Primitive::FetchAndAdd,
            ],
            processes: Limit::None,
            sessions: Limit::None,
            bounded_registers: Claim::Yes,
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let at_first = if P::LIMITED { LIMITED | ASK } else { 0 };
        Ok(Phases {
            word: M::Register::new(Site::shared("word"), at_first),
            name: M::Register::new(Site::shared("name"), 0),
            first: M::Register::new(Site::shared("first"), Ptr::NIL),
            records: Nodes::new(),
            policy: PhantomData,
        })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        let record = |p| Record {
            session: M::Register::new(Site::of(p, "session"), 0),
            next: M::Register::new(Site::of(p, "next"), Ptr::NIL),
            standing: M::Register::new(Site::of(p, "standing"), WAITING),
            late: M::Register::new(Site::of(p, "late"), false),
            task: M::Register::new(Site::of(p, "task"), false),
        };
        let me = self.records.take(|p| self.records.allocate(|| record(p)));
        self.at(me).forget();
        Ok(Process { me, task: false, gives_up: false, late: false, count: ONE })
    }

    unsafe fn leave(&self, me: Process<M>) {
        self.records.give_back(me.me);
    }

    unsafe fn enter(&self, me: &mut Process<M>, session: Session) {
        me.gives_up = P::GIVES_UP;
        me.task ^= P::GIVES_UP;
        let alone = P::ALONE && session.get() == 1;
        let s = if alone { ALONE } else { session.get() };
        me.count = if alone { ONE | EXCLUSIVE } else { ONE };
        loop {
            M::live(|| []);
            if self.enter_fast(s) || self.wait(me, s) {
                break;
            }
            // Given up. The next time it stays.
            me.gives_up = false;
        }
        me.gives_up = false;
    }

    unsafe fn exit(&self, me: &mut Process<M>) {
        let count = core::mem::replace(&mut me.count, ONE);
        self.give_back(count, Then::SeeToWaiters);
    }

    fn conflict(one: u64, other: u64) -> bool {
        one != other || P::ALONE && one == 1
    }

    fn most(session: u64) -> usize {
        if P::LIMITED { session as usize } else { usize::MAX }
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.me.word());
        see("task", me.task.word());
    }
}
