//! Group mutual exclusion whose processes may die: a short form of the protocol of rooms in a
//! directory.
//!
//! Ours. All changes happen under a [latch](super::latch), a mutex that is taken from a dead owner.
//! A process that requests takes a place in a line. A process that leaves takes itself out of it. A
//! process that has changed the line admits the requests that may enter then (*settle*). **The
//! states of the places count**: the links follow from them and from the tickets. So an owner of
//! the latch sets `Armed` before its first change and clears it after its last one. If it dies
//! between the two, the next owner learns of the death from the latch, finds `Armed` set, and
//! rebuilds the links. Nothing is rolled back, and that one bit is the only log.
//!
//! * **Model.** Any number of processes may die, each before any of its steps, in any section. A
//!   system-wide oracle reports it ([`Deaths`]). A dead process does not return. Any waiter
//!   *buries* it (its place becomes `OUT`). Then the place may go to a new process. This is not the
//!   model of Golab and Ramaraju (2016). There, no process learns of a crash, and the same process
//!   returns to its own recovery section.
//! * **Promises** mutual exclusion, where a dead holder counts as inside until it is buried; that
//!   every process that requests and does not die enters, if deaths are finitely many and the
//!   latch is free of starvation; first come, first served, counted from line 5; concurrent
//!   occupancy; an exit that ends.
//! * **Costs**, over the latch, O(1) remote references amortised over requests, on both machine
//!   models: one exit may admit many. A process that attends to a death reads all N places. It
//!   rebuilds the links of N places if a death left `Armed` set.
//!
//! ```text
//! place p: State ∈ {OUT, WAIT, IN}, Session, Ticket, Prev, Next, go: bool, Dead: bool, which only the oracle writes
//! shared:  Latch, Armed: bool, Tickets, First, Last, Head: places, or 0
//!
//! First ──▶ place ⇄ place ⇄ place ⇄ place ◀── Last        the places that are not OUT, in the order of their tickets
//!           IN      IN      WAIT    WAIT
//!                           ▲ Head, the first that waits
//!
//! enter(s)                                      by the process at place p
//!  1  Session[p] := s; go[p] := false
//!  2  if acquire(Latch) reports a death: mend
//!  3  Armed := true
//!  4  Tickets := Tickets + 1; Ticket[p] := Tickets
//!  5  State[p] := WAIT                          doorway ends
//!  6  l := Last; Prev[p] := l; Next[p] := 0; Last := p
//!  7  if l = 0: First := p, else Next[l] := p
//!  8  if Head = 0: Head := p
//!  9  settle; Armed := false
//! 10  release(Latch)
//! 11  await go[p], or a report of a death; if not go[p]: attend, go to 11
//!
//! exit
//! 12  if acquire(Latch) reports a death: mend
//! 13  Armed := true; remove(p); settle; Armed := false
//! 14  release(Latch)
//!
//! attend
//! 15  if acquire(Latch) reports a death: mend
//! 16  for all q: if Dead[q] and State[q] ≠ OUT: Armed := true; remove(q); settle; Armed := false
//! 17  release(Latch)
//!
//! remove(q)
//! 18  State[q] := OUT
//! 19  a := Prev[q]; b := Next[q]
//! 20  if a = 0: First := b, else Next[a] := b
//! 21  if b = 0: Last := a, else Prev[b] := a
//! 22  if Head = q: Head := b                    behind one that waits everybody waits
//!
//! settle                                        admits all that may enter
//! 23  h := Head; if h = 0: done
//! 24  f := First; if f ≠ h and Session[f] ≠ Session[h]: done        f is IN, unless it is h
//! 25  Head := Next[h]
//! 26  State[h] := IN
//! 27  go[h] := true; go to 23
//!
//! mend                                          finishes what an owner of the latch that died has begun
//! 28  if not Armed: done
//! 29  line := all q with State[q] = IN, then those with State[q] = WAIT in the order of Ticket[q]
//! 30  for q in line: Prev[q], Next[q] := its neighbours in line, or 0
//! 31  First, Last, Head := the first, the last, the first that waits, or 0
//! 32  for q in line that is IN: go[q] := true
//! 33  settle; Armed := false
//! ```
//!
//! # Invariants
//! 1. *Only the owner of the latch* writes anything but line 1 and `Dead`.
//! 2. When no process owns the latch and `Armed` is false: the places that are IN are the longest
//!    beginning of the line that requests one session; `First`, `Last`, `Head`, `Prev` and `Next`
//!    agree with the states; `go` is set for every place that is IN and waits.
//! 3. At any time all places that are IN request one session.
//! 4. A place goes to a new process only when it is OUT and the latch does not name it.
//!
//! # Orderings
//! The latch guards everything but line 1 and the wait of line 11; these accesses are relaxed. The
//! release of the latch in line 10 publishes line 1. If the process dies, the oracle's release
//! publishes all that it wrote.

use std::sync::{Mutex, PoisonError};

use crate::latch::{Deaths, RecoverableMutex, WordLatch};
use crate::memory::Ordering::{Acquire, Relaxed};
use crate::memory::{Flag, Memory, Native, Register, Site, Word};
use crate::prelude::*;

const OUT: u64 = 0;
const WAIT: u64 = 1;
const IN: u64 = 2;

/// Where a process continues after a part of the text that is used in several places. Only
/// [`Memory::live`] needs this.
type Then = u64;
const ENTER: Then = 1;
const EXIT: Then = 2;
const ATTEND: Then = 3;
/// Plus one of those: the process mends, and then continues there.
const MEND: Then = 4;
/// While place 0 is buried, and one more for each place after it.
const BURY: Then = 8;

/// The lock, over the latch `L`. See the [module](self).
#[derive(Debug)]
pub struct Recoverable<M: Memory = Native, L: RecoverableMutex<M> = WordLatch<M>> {
    latch: L,
    armed: M::Register<bool>,
    tickets: M::Register<u64>,
    first: M::Register<u64>,
    last: M::Register<u64>,
    head: M::Register<u64>,
    places: Box<[Place<M>]>,
    deaths: Deaths<M>,
    /// The next processes for free places, and the remains of the dead. Book-keeping for joining,
    /// not part of the algorithm.
    free: Mutex<(Vec<Process>, Vec<Process>)>,
}

/// What a process leaves behind when it dies.
#[derive(Debug)]
#[repr(align(128))]
struct Place<M: Memory> {
    state: M::Register<u64>,
    session: M::Register<u64>,
    ticket: M::Register<u64>,
    prev: M::Register<u64>,
    next: M::Register<u64>,
    go: M::Flag,
}

impl<M: Memory> Place<M> {
    fn new(p: usize) -> Self {
        let site = |name| Site::per_process(name, p);
        let place = Place {
            state: M::Register::new(site("State"), OUT),
            session: M::Register::new(site("Session"), 0),
            ticket: M::Register::new(site("Ticket"), 0),
            prev: M::Register::new(site("Prev"), 0),
            next: M::Register::new(site("Next"), 0),
            go: M::Flag::new(site("go"), false),
        };
        place.forget_but_links();
        place.forget_links();
        place
    }

    /// No process reads a place that is OUT, except its state, and its links if it has just become
    /// OUT.
    fn forget_but_links(&self) {
        self.session.forget();
        self.ticket.forget();
        self.go.forget();
    }

    fn forget_links(&self) {
        self.prev.forget();
        self.next.forget();
    }
}

/// A process: its name, which is never used again, and its place.
#[derive(Debug)]
pub struct Process {
    /// One more than the place, plus the number of places for each earlier process of the place.
    name: u64,
    p: usize,
}

/// The word for a place.
#[inline(always)]
fn at(p: usize) -> u64 {
    p as u64 + 1
}

impl<M: Memory, L: RecoverableMutex<M>> Recoverable<M, L> {
    /// The process `me` has died: the part of the oracle, for callers that run the lock.
    ///
    /// # Safety
    /// `me` joined this lock. Whatever it did has happened before this call, and it does nothing
    /// any more.
    pub unsafe fn died(&self, me: Process) {
        self.deaths.tell(me.p, true);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).1.push(me);
    }

    /// Whether there is a dead process that is not buried, or a latch that it left: the oracle's
    /// report to a waiter on real memory.
    #[cold]
    fn is_told(&self) -> bool {
        let owner = self.latch.owner();
        let left = |p: usize| owner != 0 && self.deaths.place(owner) == p;
        let lies = |p: usize| self.places[p].state.read(Relaxed) != OUT; // 11: read again in line 16
        (0..self.places.len()).any(|p| self.deaths.is_dead(p) && (lies(p) || left(p)))
    }

    /// The place that a word names.
    #[inline(always)]
    fn place(&self, word: u64) -> &Place<M> {
        &self.places[(word - 1) as usize]
    }

    #[inline]
    fn request(&self, me: &Process, s: u64) {
        let place = &self.places[me.p];
        place.session.write(s, Relaxed); // 1: published by line 10
        place.go.set(false); // 1
        self.latch(me, ENTER); // 2
        self.armed.write(true, Relaxed); // 3
        let ticket = self.tickets.read(Relaxed) + 1; // 4
        self.tickets.write(ticket, Relaxed); // 4
        place.ticket.write(ticket, Relaxed); // 4
        M::live(|| []);
        place.state.write(WAIT, Relaxed); // 5
        M::doorway_end();
        let last = self.last.read(Relaxed); // 6
        place.prev.write(last, Relaxed); // 6
        place.next.write(0, Relaxed); // 6
        self.last.write(at(me.p), Relaxed); // 6
        if last == 0 {
            self.first.write(at(me.p), Relaxed); // 7
        } else {
            self.place(last).next.write(at(me.p), Relaxed); // 7
        }
        let none_waits = self.head.read(Relaxed) == 0; // 8
        if none_waits {
            self.head.write(at(me.p), Relaxed); // 8
        }
        self.settle(ENTER);
        self.armed.write(false, Relaxed); // 9
        self.unlatch(me); // 10
        loop {
            M::live(|| []);
            let inside = place.go.wait_unless(true, &mut || self.is_told()); // 11: pairs with 27 and 32
            // An admitted process does not wait for further deaths.
            let inside = inside || place.go.holds(true); // 11
            if inside {
                break;
            }
            self.attend(me);
        }
        place.go.forget();
    }

    /// Takes the latch, and repairs what its last owner left behind if that died.
    #[inline]
    #[track_caller]
    fn latch(&self, me: &Process, then: Then) {
        // SAFETY: our process lives, and owns the latch only between this and `unlatch`.
        let died = unsafe { self.latch.acquire(me.name, &self.deaths) }; // 2, 12, 15
        if died {
            self.mend(MEND + then);
        }
        M::live(|| []);
    }

    #[inline]
    fn unlatch(&self, me: &Process) {
        M::live(|| []);
        // SAFETY: `latch` acquired it.
        unsafe { self.latch.release(me.name) }; // 10, 14, 17
    }

    /// Buries the dead.
    #[cold]
    fn attend(&self, me: &Process) {
        self.latch(me, ATTEND); // 15
        for q in 0..self.places.len() {
            M::live(|| [at(q).word()]);
            let lies_here = self.deaths.is_dead(q) && self.places[q].state.read(Relaxed) != OUT; // 16
            if lies_here {
                self.armed.write(true, Relaxed); // 16
                self.remove(q, BURY + q as Then);
                self.settle(BURY + q as Then);
                self.armed.write(false, Relaxed); // 16
            }
        }
        self.unlatch(me); // 17
    }

    /// Takes place `q` out of the line.
    #[inline]
    fn remove(&self, q: usize, then: Then) {
        let place = &self.places[q];
        place.state.write(OUT, Relaxed); // 18
        // If it was buried, a new process may have the place from now on, and do line 1.
        place.forget_but_links();
        let prev = place.prev.read(Relaxed); // 19
        let next = place.next.read(Relaxed); // 19
        place.forget_links();
        if prev == 0 {
            self.first.write(next, Relaxed); // 20
        } else {
            self.place(prev).next.write(next, Relaxed); // 20
        }
        if next == 0 {
            self.last.write(prev, Relaxed); // 21
        } else {
            self.place(next).prev.write(prev, Relaxed); // 21
        }
        M::live(|| [next.word(), then.word()]);
        let first_that_waits = self.head.read(Relaxed) == at(q); // 22
        if first_that_waits {
            self.head.write(next, Relaxed); // 22
        }
    }

    /// Admits the requests that may enter.
    #[inline]
    fn settle(&self, then: Then) {
        loop {
            M::live(|| [then.word()]);
            let head = self.head.read(Relaxed); // 23
            if head == 0 {
                return;
            }
            let waiter = self.place(head);
            let first = self.first.read(Relaxed); // 24
            if first != head {
                let inside = self.place(first).session.read(Relaxed); // 24
                let waits = waiter.session.read(Relaxed); // 24
                if inside != waits {
                    return;
                }
            }
            M::live(|| [head.word(), then.word()]);
            let next = waiter.next.read(Relaxed); // 25
            self.head.write(next, Relaxed); // 25
            waiter.state.write(IN, Relaxed); // 26
            waiter.ticket.forget();
            waiter.go.signal(true); // 27: awaited in line 11
        }
    }

    /// Finishes what a dead owner of the latch has begun.
    #[cold]
    fn mend(&self, then: Then) {
        let armed = self.armed.read(Relaxed); // 28
        if !armed {
            return;
        }
        self.first.forget();
        self.last.forget();
        self.head.forget();
        let (mut inside, mut waiting) = (Vec::new(), Vec::new());
        for (q, place) in self.places.iter().enumerate() {
            place.forget_links();
            let state = place.state.read(Relaxed); // 29
            if state == IN {
                inside.push(q);
            } else if state == WAIT {
                let ticket = place.ticket.read(Relaxed); // 29
                waiting.push((ticket, q));
            }
        }
        waiting.sort_unstable();
        let head = inside.len();
        let line: Vec<usize> = inside.into_iter().chain(waiting.into_iter().map(|w| w.1)).collect();
        let word = |i: usize| line.get(i).map_or(0, |&q| at(q));
        M::live(|| {
            let marks = [(head as u64).word(), then.word()];
            line.iter().map(|&q| at(q).word()).chain(marks).collect::<Vec<_>>()
        });
        for (i, &q) in line.iter().enumerate() {
            self.places[q].prev.write(i.checked_sub(1).map_or(0, word), Relaxed); // 30
            self.places[q].next.write(word(i + 1), Relaxed); // 30
        }
        self.first.write(word(0), Relaxed); // 31
        self.last.write(line.len().checked_sub(1).map_or(0, word), Relaxed); // 31
        self.head.write(word(head), Relaxed); // 31
        for &q in &line[..head] {
            self.places[q].go.signal(true); // 32: awaited in line 11
        }
        self.settle(then);
        self.armed.write(false, Relaxed); // 33
    }
}

impl<M: Memory, L: RecoverableMutex<M>> RawGroup<M> for Recoverable<M, L> {
    type Process = Process;

    fn claims() -> Claims {
        let latch = L::claims();
        Claims {
            name: "recoverable",
            source: "ours: the protocol of grouplock's rooms in a directory",
            text: text!("recoverable.rs"),
            deadlock_freedom: latch.deadlock_freedom,
            starvation_freedom: latch.starvation_freedom,
            fcfs: Claim::Yes,
            // A process that attends to a death may have been admitted. It must acquire the latch
            // before it sees that.
            fife: Claim::No,
            // Entering and leaving need the latch.
            entering: Entering {
                concurrent_occupancy: latch.starvation_freedom,
                ..Entering::OCCUPANCY
            },
            exit: Exit { terminating: latch.starvation_freedom, ..Exit::TERMINATING },
            rmr_cc: latch.rmr_cc.and(Bound::of(Growth::Constant).amortised()),
            rmr_dsm: latch.rmr_dsm.and(Bound::of(Growth::Constant).amortised()),
            space: Growth::Linear,
            primitives: latch.primitives,
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::None,
            // Tickets grow without bound.
            bounded_registers: Claim::No,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        if processes == 0 {
            return Err(CapacityError::Unsupported { asked: 0, most: usize::MAX });
        }
        let shared = |name| M::Register::new(Site::shared(name), 0);
        // Taken from the end.
        let free = (0..processes).rev().map(|p| Process { name: at(p), p }).collect();
        Ok(Recoverable {
            latch: L::new(processes)?,
            armed: M::Register::new(Site::shared("Armed"), false),
            tickets: shared("Tickets"),
            first: shared("First"),
            last: shared("Last"),
            head: shared("Head"),
            places: (0..processes).map(Place::new).collect(),
            deaths: Deaths::new(processes),
            free: Mutex::new((free, Vec::new())),
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (idle, remains) = &mut *free;
        if let Some(process) = idle.pop() {
            return Ok(process);
        }
        // Acquire: the work of the process that buried it has happened.
        let buried = |dead: &Process| {
            let state = self.places[dead.p].state.read(Acquire); // 18
            state == OUT && self.latch.owner() != dead.name
        };
        let full = CapacityError::Full { processes: self.places.len() };
        let Process { name, p } = remains.swap_remove(remains.iter().position(buried).ok_or(full)?);
        self.deaths.tell(p, false);
        Ok(Process { name: name + self.places.len() as u64, p })
    }

    unsafe fn leave(&self, me: Process) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).0.push(me);
    }

    #[inline]
    unsafe fn enter(&self, me: &mut Process, session: Session) {
        self.request(me, session.get());
    }

    #[inline]
    unsafe fn exit(&self, me: &mut Process) {
        self.latch(me, EXIT); // 12
        self.armed.write(true, Relaxed); // 13
        self.remove(me.p, EXIT);
        self.settle(EXIT);
        self.armed.write(false, Relaxed); // 13
        self.unlatch(me); // 14
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("name", me.name.word());
    }
}
