//! Keane and Moir's group lock: any mutual exclusion lock, a count and a queue.
//!
//! P. Keane and M. Moir, "A simple local-spin group mutual exclusion algorithm", PODC 1999; the
//! line numbers are those of C. Chu's lecture notes on it (2009).
//!
//! * **Promises** mutual exclusion, lockout freedom and concurrent occupancy. When a session ends,
//!   the first waiter determines the next one, and *all* waiters of that session enter with it
//!   ("capturing"): fewer changes of session than first-come-first-served makes.
//! * **Costs** what its mutex costs, twice per passage, and O(N) when a session ends. While the
//!   mutex is held others wait, so neither entering nor leaving is bounded by a process's own
//!   steps.
//! * **Does not promise** any order between sessions.
//!
//! The notes number the processes, keep `Wait` and `Need` in arrays, and have an abstract queue.
//! Here a process's part of them is a record, and the queue is a list of records, so the lock
//! serves as many processes as its mutex does.
//!
//! # Orderings
//! `Session`, `Num`, the queue and `Need` are read and written only while the mutex is held (line 2
//! by its owner just before): relaxed, ordered by the mutex. The flag, which releases and acquires,
//! admits a captured process.

use core::marker::PhantomData;

use crate::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use crate::memory::Ordering::Relaxed;
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock, over the mutex `L`. See the [module](self).
#[derive(Debug)]
pub struct KeaneMoir<M: Memory = Native, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    m: L,
    session: M::Register<u64>,
    num: M::Register<u64>,
    q: Queue<M>,
    records: Nodes<M, Record<M>, Ptr<Record<M>>>,
}

/// The waiting processes, a list from the first to the last.
#[derive(Debug)]
struct Queue<M: Memory> {
    head: M::Register<Ptr<Record<M>>>,
    tail: M::Register<Ptr<Record<M>>>,
}

/// The part of a process that others may access.
#[derive(Debug)]
#[repr(align(128))]
pub struct Record<M: Memory> {
    need: M::Register<u64>,
    /// The next record in the queue. (It is not the last field: the size of the struct depends on
    /// its last field, and the type of this field refers to the struct.)
    behind: M::Register<Ptr<Record<M>>>,
    wait: M::Flag,
}

/// A process: its record, and its part in the mutex.
#[derive(Debug)]
pub struct Process<M: Memory, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    p: Ptr<Record<M>>,
    m: L::Process,
    memory: PhantomData<M>,
}

impl<M: Memory, L: RawMutex<M>> KeaneMoir<M, L> {
    /// The record that `p` points to.
    fn at(&self, p: Ptr<Record<M>>) -> &Record<M> {
        // SAFETY: every pointer that is not NIL in a register or process of this lock came from
        // `self.records`, which outlives `&self`; records are made of registers, so they are
        // `Sync`.
        unsafe { M::follow(p) }
    }

    /// Puts `p` at the end of the queue.
    fn enqueue(&self, p: Ptr<Record<M>>) {
        self.at(p).behind.write(Ptr::NIL, Relaxed); // 10
        let last = self.q.tail.read(Relaxed); // 10
        self.q.tail.write(p, Relaxed); // 10
        if last.is_nil() {
            self.q.head.write(p, Relaxed); // 10
        } else {
            self.at(last).behind.write(p, Relaxed); // 10
        }
    }

    /// Takes all waiters of `session` out of the queue and admits them. Returns how many.
    fn capture(&self, session: u64) -> u64 {
        let mut captured = 0;
        let mut before = Ptr::NIL;
        let mut v = self.q.head.read(Relaxed); // 17
        while !v.is_nil() {
            M::live(|| [captured.word(), before.word(), v.word()]);
            let record = self.at(v);
            let behind = record.behind.read(Relaxed); // 17
            let wanted = record.need.read(Relaxed) == session; // 18
            if wanted {
                if before.is_nil() {
                    self.q.head.write(behind, Relaxed); // 19
                } else {
                    self.at(before).behind.write(behind, Relaxed); // 19
                }
                if behind.is_nil() {
                    self.q.tail.write(before, Relaxed); // 19
                }
                captured += 1;
                record.behind.forget();
                record.wait.signal(false); // 21: from here on the record is its owner's
            } else {
                before = v;
            }
            v = behind;
        }
        captured
    }
}

impl<M: Memory, L: RawMutex<M>> RawGroup<M> for KeaneMoir<M, L> {
    type Process = Process<M, L>;

    fn claims() -> Claims {
        let mutex = L::claims();
        Claims {
            name: "keane-moir",
            source: "Keane and Moir 1999",
            text: text!("keane_moir.rs"),
            starvation_freedom: mutex.starvation_freedom,
            fcfs: Claim::No,
            fife: Claim::No,
            // Entering and leaving need the mutex.
            entering: Entering {
                concurrent_occupancy: mutex.starvation_freedom,
                ..Entering::OCCUPANCY
            },
            exit: Exit { terminating: mutex.starvation_freedom, ..Exit::TERMINATING },
            rmr_cc: mutex.rmr_cc.and(Bound::of(Growth::Linear)),
            rmr_dsm: mutex.rmr_dsm.and(Bound::of(Growth::Linear)),
            space: Growth::Linear,
            primitives: mutex.primitives,
            processes: mutex.processes,
            sessions: Limit::None,
            bounded_registers: mutex.bounded_registers,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(KeaneMoir {
            m: L::new(processes)?,
            session: M::Register::new(Site::shared("Session"), 1),
            num: M::Register::new(Site::shared("Num"), 0),
            q: Queue {
                head: M::Register::new(Site::shared("Q.head"), Ptr::NIL),
                tail: M::Register::new(Site::shared("Q.tail"), Ptr::NIL),
            },
            records: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Process<M, L>, CapacityError> {
        let m = self.m.join()?;
        let p = self.records.take(|p| {
            self.records.allocate(|| Record {
                wait: M::Flag::new(Site::of(p, "Wait"), false),
                need: M::Register::new(Site::of(p, "Need"), 0),
                behind: M::Register::new(Site::of(p, "behind"), Ptr::NIL),
            })
        });
        Ok(Process { p, m, memory: PhantomData })
    }

    unsafe fn leave(&self, me: Process<M, L>) {
        self.records.give_back(me.p);
        // SAFETY: it joined with us, and is idle as we are.
        unsafe { self.m.leave(me.m) };
    }

    unsafe fn enter(&self, me: &mut Process<M, L>, session: Session) {
        let t = session.get(); // 0
        let p = self.at(me.p);
        p.wait.set(false); // 1
        p.need.write(t, Relaxed); // 2
        M::doorway_end();
        // SAFETY: our part in the mutex joined it when we joined, and is idle here.
        unsafe { self.m.acquire(&mut me.m) }; // 3
        let current = self.session.read(Relaxed) == t; // 4
        let (joins, opens) = if current {
            (self.q.head.read(Relaxed).is_nil(), false) // 4
        } else {
            (false, self.num.read(Relaxed) == 0) // 6
        };
        if joins {
            let num = self.num.read(Relaxed); // 5
            self.num.write(num + 1, Relaxed); // 5
        } else if opens {
            self.session.write(t, Relaxed); // 7
            self.num.write(1, Relaxed); // 8
        } else {
            p.wait.set(true); // 9
            self.enqueue(me.p); // 10
        }
        // SAFETY: we acquired it in line 3.
        unsafe { self.m.release(&mut me.m) }; // 11
        p.wait.wait_for(false); // 12
        p.wait.forget();
        p.need.forget();
    }

    unsafe fn exit(&self, me: &mut Process<M, L>) {
        // SAFETY: as in `enter`.
        unsafe { self.m.acquire(&mut me.m) }; // 13
        let num = self.num.read(Relaxed) - 1; // 14
        self.num.write(num, Relaxed); // 14
        let first = self.q.head.read(Relaxed); // 15
        if !first.is_nil() && num == 0 {
            let session = self.at(first).need.read(Relaxed); // 16
            self.session.write(session, Relaxed); // 16
            let captured = self.capture(session); // 17-21
            self.num.write(captured, Relaxed); // 20
        }
        // SAFETY: we acquired it in line 13.
        unsafe { self.m.release(&mut me.m) }; // 22
    }

    fn inspect(me: &Process<M, L>, see: &mut dyn FnMut(&'static str, Word)) {
        see("p", me.p.word());
        L::inspect(&me.m, see);
    }
}
