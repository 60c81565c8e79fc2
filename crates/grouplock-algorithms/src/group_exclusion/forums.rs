//! Forums by fetch-and-increment: batches that queue in an array.
//!
//! Ours, with the profile of A. Aravind and W. H. Hesselink's algorithm of 2019, as Maor and
//! Taubenfeld describe it (2021, section 1.4 and Table 1): constant cost with coherent caches by
//! fetch-and-increment, neither concurrent occupancy nor first-come-first-served, but first come
//! first served among forums, and all waiters of a forum accepted at once. **The text is not
//! theirs**, which we have not seen.
//!
//! * **Promises** mutual exclusion, starvation freedom, first-in-first-enabled and a bounded exit.
//!   Forums (that is, sessions) are served in the order in which the first process of each batch
//!   passes line 4. When a forum is served, all processes that wait for it at that moment are
//!   accepted together.
//! * **Costs** O(1) remote references with coherent caches and O(m) space for m forums, whatever
//!   the number of processes. On distributed memory the cost has no bound.
//! * **Does not promise** concurrent occupancy: a process that arrives after its batch waits for
//!   the next one. Nor first-come-first-served between single requests.
//!
//! Each forum counts the processes that arrived (`in`), were accepted (`open`) and left (`out`).
//! The process whose ticket is the next to be accepted leads the next batch: it queues in
//! [Anderson's array](crate::anderson) for its forum, and when its slot is set it accepts every
//! process that holds a ticket. The last process of a batch to leave sets the next slot.
//!
//! The line numbers are ours:
//!
//! ```text
//! shared: in[f], open[f], out[f] (0), tail, cur (0), Q[0..L-1] (true, false, false, …) where L > min(N, m)
//!
//! enter(f)                                                          exit(f)
//!  1  t := FAA(in[f], 1)                      doorway ends           9  if FAA(out[f], 1) + 1 = open[f]:
//!  2  await open[f] ≥ t                                             10      Q[(cur + 1) mod L] := true
//!  3  if open[f] > t: enter                   accepted with a batch
//!  4  pos := FAA(tail, 1)                     we lead the next one
//!  5  await Q[pos mod L]
//!  6  Q[pos mod L] := false
//!  7  cur := pos
//!  8  open[f] := in[f]                        all who have a ticket are accepted
//! ```
//!
//! Why L slots suffice: at most one process of each forum is between lines 4 and 6, and those that
//! are there have consecutive tickets. So no two of them have the same slot. The counters are 64
//! bits wide and only grow: at a billion passages a second they last five centuries.
//!
//! # Orderings
//! Line 9 releases what the holders did, and the last of them acquires it. The release of the flag
//! (line 10) and its acquire (line 5) pass it to the next leader. The release of line 8 and the
//! acquire of lines 2 and 3 pass it to the batch. Line 8 publishes `cur`. Lines 1 and 8 count, and
//! order nothing. The process that gets the same slot L tickets later must see line 6. Among L + 1
//! tickets two belong to one forum or to one process. The second of these is drawn after the first
//! was in line 8, by line 2 or by the process itself, and so after line 6. Line 4 releases that and
//! acquires it.

use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::memory::{Flag, Memory, Native, Register, Site, Word};
use crate::prelude::*;
use crate::slots::Slots;

/// The lock, for so many forums. See the [module](self).
#[derive(Debug)]
pub struct Forums<M: Memory = Native, const FORUMS: usize = 8> {
    each: [Forum<M>; FORUMS],
    tail: M::Register<u64>,
    cur: M::Register<u64>,
    q: Box<[Slot<M>]>,
    processes: Slots<Process>,
}

/// How many processes have arrived at a forum, were accepted, and have left.
#[derive(Debug)]
#[repr(align(128))]
struct Forum<M: Memory> {
    come: M::Register<u64>,
    open: M::Register<u64>,
    out: M::Register<u64>,
}

/// A slot, on which one leader at a time waits.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<M: Memory>(M::Flag);

/// A process: its forum while it is in a passage.
#[derive(Debug)]
pub struct Process {
    f: usize,
}

impl<M: Memory, const FORUMS: usize> RawGroup<M> for Forums<M, FORUMS> {
    const LARGEST_SESSION: u64 = FORUMS as u64;

    type Process = Process;

    fn claims() -> Claims {
        Claims {
            name: "forums",
            source: "ours, the profile of Aravind and Hesselink 2019",
            text: text!("forums.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::No,
            fife: Claim::Yes,
            entering: Entering::ROUNDS,
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Constant,
            primitives: &[Primitive::Read, Primitive::Write, Primitive::FetchAndAdd],
            processes: Limit::Fixed(u64::MAX),
            sessions: Limit::Fixed(FORUMS as u64),
            bounded_registers: Claim::No,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let forum = |f| Forum {
            come: M::Register::new(Site::element("in", f), 0),
            open: M::Register::new(Site::element("open", f), 0),
            out: M::Register::new(Site::element("out", f), 0),
        };
        let slot = |k| Slot(M::Flag::new(Site::element("Q", k), k == 0));
        let slots = processes.min(FORUMS) + 1;
        Ok(Forums {
            processes: Slots::new(processes, usize::MAX, |_| Process { f: 0 })?,
            each: core::array::from_fn(forum),
            tail: M::Register::new(Site::shared("tail"), 0),
            cur: M::Register::new(Site::shared("cur"), 0),
            q: (0..slots).map(slot).collect(),
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.processes.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.processes.give_back(me);
    }

    unsafe fn enter(&self, me: &mut Process, session: Session) {
        me.f = session.get() as usize - 1;
        let forum = &self.each[me.f];
        let t = forum.come.faa(1, Relaxed); // 1: counts, and nothing goes with it
        M::doorway_end();
        M::live(|| [t.word()]);
        M::await_until(|| forum.open.read(Acquire) >= t); // 2: acquires line 8
        let accepted = forum.open.read(Acquire) > t; // 3: acquires line 8
        if accepted {
            return;
        }
        M::live(|| []);
        let pos = self.tail.faa(1, AcqRel); // 4: see the module on orderings
        M::live(|| [pos.word()]);
        let Slot(mine) = &self.q[(pos % self.q.len() as u64) as usize];
        mine.wait_for(true); // 5: acquires line 10
        mine.set(false); // 6: published by line 8
        self.cur.write(pos, Relaxed); // 7: published by line 8
        M::live(|| []);
        let come = forum.come.read(Relaxed); // 8: counts, and nothing comes with it
        forum.open.write(come, Release); // 8: acquired in lines 2 and 3
    }

    unsafe fn exit(&self, me: &mut Process) {
        let forum = &self.each[me.f];
        let out = forum.out.faa(1, AcqRel) + 1; // 9: releases what we did, acquires what others did
        let last = out == forum.open.read(Relaxed); // 9: our own, or acquired in line 2
        me.f = 0;
        if last {
            M::live(|| []);
            let cur = self.cur.read(Relaxed); // 10: as `open`
            let Slot(next) = &self.q[((cur + 1) % self.q.len() as u64) as usize];
            next.signal(true); // 10
        }
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}
