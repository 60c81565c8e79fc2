//! A word in front of a queue of phases: the protocol of `GroupLock`'s default core.
//!
//! No paper has this one. The crate `grouplock` keeps its queue in plain memory behind a bit of the
//! word. Here the same steps are written through [`Memory`], so that the lab can explore them.
//! `docs/algorithms/phases.md` says which line is which function there.
//!
//! * **Entering.** If the door is open, a process adds its count. From then on the name of the room
//!   cannot change, so the process compares it. If the name is its session, the process is inside.
//!   If not, and no other process is counted, it renames the room. Otherwise it undoes the count.
//! * **Reserving.** A process that asks to be alone and finds holders sets `RESERVED` for a moment.
//!   This shuts the door. The process takes the room if the holders leave meanwhile.
//! * **Leaving.** A holder undoes its count. If it was the last one and `NOTIFY` is set, it admits
//!   waiters.
//! * **Waiting.** A process joins the queue under the internal lock (`LOCKED`). Neighbours in the
//!   queue with the same session form a *phase*. If the room is empty, the process that releases
//!   the internal lock hands the room over to the first phase as a whole. But as long as the policy
//!   is not strict and the patience of no waiter is over, it only *invites* that phase to try for
//!   the room.
//! * **Promises** mutual exclusion, freedom from deadlock, concurrent occupancy; with
//!   [`Fifo`](crate::policy::Fifo) first come, first served and first in, first enabled. It does
//!   not promise freedom from starvation: the fastest process gets the internal lock.
//! * **Costs** two read-modify-writes for a passage through a room that has the name of its
//!   session, if no other process asks. Otherwise there is no bound, as processes compete for the
//!   internal lock.
//!
//! The numbers at the ends of lines are those of the pseudo-code in `docs/algorithms/phases.md`.
//!
//! # Orderings
//! As in `grouplock`: every write of the word is a read-modify-write, so each continues the release
//! sequences before it. Leaving (21) is a release. Entering (2), locking (23) and changing (4, 27,
//! 35) are acquires. The last unlock (40) or change of name (6) released what a process reads under
//! `LOCKED`. A waiter learns of a grant by an acquire (13) of what 38 released.

mod locked;
mod set_up;

use core::marker::PhantomData;

use self::locked::{Locked, Waiter};
use crate::memory::Ordering::{Acquire, Relaxed, Release};
use crate::memory::{Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::phases_word::{
    CHANGING, EXCLUSIVE, LIMITED, LOCKED, MUST_LOCK, NOTIFY, ONE_HOLDER, RESERVED, SET_UP,
    is_empty, is_open, must_admit_waiters, must_still_admit_waiters,
};
use crate::policy::{Eventual, Policy};
use crate::prelude::*;

/// The session of a request to be alone.
const ALONE: u64 = 0;

/// In `made`: the room is set up for no session.
const NOTHING: u64 = 0;

/// In `standing`: in the queue.
const WAITING: u64 = 0;
/// In `standing`: in the queue; the room was free a moment ago.
const INVITED: u64 = 1;
/// In `standing`: inside, counted, and no longer in the queue.
const GRANTED: u64 = 2;

/// Whether requests for these two can be in one phase.
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
    made: M::Register<u64>,
    policy: PhantomData<P>,
}

/// A process's record in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Record<M: Memory> {
    session: M::Register<u64>,
    next: M::Register<Ptr<Record<M>>>,
    standing: M::Register<u64>,
    late: M::Register<bool>,
    task: M::Register<bool>,
    set_up: M::Register<bool>,
}

impl<M: Memory> Record<M> {
    /// It is out of the queue: no other process reads it.
    fn leave_queue(&self) {
        self.session.forget();
        self.next.forget();
        self.task.forget();
        self.set_up.forget();
    }

    /// Its process does not wait. No process reads the record before that process writes it.
    fn forget(&self) {
        self.leave_queue();
        self.standing.forget();
        self.late.forget();
    }
}

/// A process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Process<M: Memory> {
    me: Ptr<Record<M>>,
    /// Whether it waits as a task, if waiters withdraw: every other passage.
    task: bool,
    /// Whether it will withdraw if it has to wait.
    gives_up: bool,
    /// Whether its patience is over, or has no end.
    late: bool,
    /// What it adds to the word when it is inside: with `EXCLUSIVE`, if alone.
    count: u32,
    /// How it asks.
    way: Way,
    /// Whether its set-up will fail.
    fails: bool,
    /// Whether the room was set up for its session when it entered.
    found: bool,
}

/// How a process asks for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It takes the room as it is.
    Plain,
    /// It finds the room set up, or sets it up.
    SetUp,
    /// It asks to be alone, and then opens the room to its session.
    Downgrade,
}

/// What follows after a process takes or releases the internal lock. At a merge point there, a
/// process knows this and its handle, and nothing else.
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
    Open,
    Opened,
}

impl<M: Memory, P: Policy> Phases<M, P> {
    /// The record that `p` points to.
    #[inline(always)]
    fn at(&self, p: Ptr<Record<M>>) -> &Record<M> {
        // SAFETY: every pointer in a register of the lock came from `records`, which lives as long
        // as the lock. `&self` borrows the lock. Records consist of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }

    /// Takes an empty room alone.
    fn exclusive_fast(&self) -> bool {
        let mut inside = self.word.cas(0, EXCLUSIVE | ONE_HOLDER, Acquire); // 41: as 2
        if !inside {
            let w = self.word.read(Relaxed); // 42: only to see whether somebody waits and nobody is inside
            let free = w != 0 && w & !(SET_UP | NOTIFY) == 0;
            inside = free && self.word.cas(w, w | EXCLUSIVE | ONE_HOLDER, Acquire); // 42: as 2
        }
        if inside {
            M::doorway_end();
            return true;
        }
        M::live(|| []);
        false
    }

    /// Keeps new requests out for a moment, and takes the room alone if the holders leave.
    fn reserve(&self) -> bool {
        let mut goes_on = is_open(self.word.read(Relaxed)); // 52: it gives access to nothing
        let mut reserved = false;
        while goes_on && !reserved {
            M::live(|| []);
            let w = self.word.read(Relaxed); // 52
            goes_on = w & RESERVED == 0;
            reserved = goes_on && self.word.cas(w, w | RESERVED, Relaxed); // 52
        }
        M::live(|| [goes_on.word()]);
        if !goes_on {
            return false;
        }
        let w = self.word.read(Relaxed); // 53: only the step below gives access to anything
        let free = w & !(SET_UP | NOTIFY) == RESERVED;
        let inside = free && self.word.cas(w, w & !RESERVED | EXCLUSIVE | ONE_HOLDER, Acquire); // 53: as 2
        if inside {
            M::doorway_end();
            return true;
        }
        loop {
            M::live(|| []);
            let w = self.word.read(Relaxed); // 54
            let ended = w & RESERVED == 0 || self.word.cas(w, w & !RESERVED, Relaxed); // 54
            if ended {
                M::live(|| []);
                return false;
            }
        }
    }

    /// Enters if that needs neither waiting nor the internal lock.
    fn enter_fast(&self, s: u64) -> bool {
        if s == ALONE {
            return self.exclusive_fast() || self.reserve();
        }
        let open = is_open(self.word.read(Relaxed)); // 1: only to keep from disturbing a lock that is not
        M::live(|| [open.word()]);
        if !open {
            return false;
        }
        let before = self.word.faa(ONE_HOLDER, Acquire); // 2: what earlier holders did (21), and the name (6, 29, 37)
        if is_open(before) {
            let same = self.name.read(Relaxed) == s; // 3: acquired in line 2
            if same {
                M::doorway_end();
                return true;
            }
            let alone = is_empty(before) && before & LOCKED == 0;
            let change = before & !SET_UP | LOCKED | CHANGING;
            let changing = alone && self.word.cas(before + ONE_HOLDER, change, Acquire); // 4: as 2, 23
            if changing {
                self.name.write(s, Relaxed); // 5: published by line 6
                if before & NOTIFY == 0 {
                    self.word.faa(ONE_HOLDER.wrapping_sub(LOCKED | CHANGING), Release); // 6: for 2, 23
                    M::doorway_end();
                } else {
                    // A process waits, perhaps for this session.
                    self.word.faa(ONE_HOLDER.wrapping_sub(CHANGING), Release); // 6: for 2
                    self.locked(Then::Enter).unlock(Then::Enter); // 6
                }
                return true;
            }
        }
        M::live(|| []);
        self.give_back(ONE_HOLDER, Then::SeeToWaiters); // 7
        false
    }

    /// Undoes a count: of a holder that leaves, or of a process that may not enter.
    fn give_back(&self, count: u32, then: Then) {
        let before = self.word.faa(count.wrapping_neg(), Release); // 21: for 2, 4, 23, 27, 35, 42, 53
        if !must_admit_waiters(before, count) {
            return;
        }
        let was_alone = before & EXCLUSIVE;
        loop {
            M::live(|| [(then as u64).word(), was_alone.word()]);
            let w = self.word.read(Relaxed); // 22: only the step below gives access to anything
            if !must_still_admit_waiters(w, was_alone) {
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

    /// The caller has just set `LOCKED`.
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
            let set_up = P::SETS_UP && record.set_up.read(Relaxed); // 24
            queue.push(Waiter { who, session, invited, task, set_up });
            who = record.next.read(Relaxed); // 24
        }
        Locked { lock: self, queue }
    }

    /// Asks under the internal lock, and waits. Returns whether it is inside. If not, it withdrew.
    fn wait(&self, me: &mut Process<M>, s: u64) -> bool {
        let mut locked = self.lock(Then::Queue); // 8
        if locked.admit(s, me.way == Way::SetUp) {
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

    /// A thread waits until it is inside, or until its deadline has passed.
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
                let then = if over { Then::GiveUp } else { Then::Come };
                if locked.occupy(s, me.way == Way::SetUp, then) {
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
                let count = if P::SETS_UP { self.count_of_granted() } else { me.count };
                self.give_back(count, Then::Again); // 20
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

impl<M: Memory, P: Policy> RawGroup<M> for Phases<M, P> {
    type Process = Process<M>;

    fn claims() -> Claims {
        // A withdrawn request loses its position.
        let in_order = if P::STRICT && !P::GIVES_UP { Claim::Yes } else { Claim::No };
        // Where a session has a limit, one more request waits for its own session. So does a
        // request that must first be alone.
        let unlimited = |claim| if P::LIMITED || P::MIXED { Claim::No } else { claim };
        Claims {
            name: P::NAME,
            source: "ours: the protocol of grouplock's default core",
            text: Text { parts: &[locked::TEXT, set_up::TEXT], ..text!("phases.rs") },
            kind: Kind::Group,
            mutual_exclusion: Claim::Yes,
            deadlock_freedom: Claim::Yes,
            // The fastest process gets the internal lock.
            starvation_freedom: Claim::No,
            fcfs: in_order,
            strong_fifo: Claim::NotApplicable,
            // A process that has set up opens the room, and others may enter, before it releases
            // the internal lock.
            fife: if P::SETS_UP { Claim::No } else { unlimited(in_order) },
            entering: if P::LIMITED || P::MIXED {
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
        let at_first = if P::LIMITED { LIMITED | MUST_LOCK } else { 0 };
        Ok(Phases {
            word: M::Register::new(Site::shared("word"), at_first),
            name: M::Register::new(Site::shared("name"), 0),
            first: M::Register::new(Site::shared("first"), Ptr::NIL),
            records: Nodes::new(),
            made: M::Register::new(Site::shared("made"), NOTHING),
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
            set_up: M::Register::new(Site::of(p, "set_up"), false),
        };
        let me = self.records.take(|p| self.records.allocate(|| record(p)));
        self.at(me).forget();
        Ok(Process {
            me,
            task: false,
            gives_up: false,
            late: false,
            count: ONE_HOLDER,
            way: Way::Plain,
            fails: false,
            found: false,
        })
    }

    unsafe fn leave(&self, me: Process<M>) {
        self.records.give_back(me.me);
    }

    unsafe fn enter(&self, me: &mut Process<M>, session: Session) {
        me.task ^= P::GIVES_UP;
        me.gives_up = P::GIVES_UP;
        if P::SETS_UP {
            me.choose_way::<P>();
        }
        let alone = P::ALONE && session.get() == 1 || me.way == Way::Downgrade;
        let s = if alone { ALONE } else { session.get() };
        me.count = if alone { ONE_HOLDER | EXCLUSIVE } else { ONE_HOLDER };
        loop {
            M::live(|| []);
            let fast = if me.way == Way::SetUp { self.fast_set_up(s) } else { self.enter_fast(s) };
            if (fast || self.wait(me, s)) && (!P::SETS_UP || self.arrive(me, session.get(), fast)) {
                break;
            }
            // It withdrew, or the set-up failed. The next time it stays.
            me.gives_up = false;
            me.fails = false;
        }
        me.gives_up = false;
        me.fails = false;
    }

    unsafe fn exit(&self, me: &mut Process<M>) {
        if P::SETS_UP {
            self.look_back(me);
        }
        let count = core::mem::replace(&mut me.count, ONE_HOLDER);
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
        see("way", (me.way as u64).word());
    }
}
