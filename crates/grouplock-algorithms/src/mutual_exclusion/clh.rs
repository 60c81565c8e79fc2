//! The CLH queue lock.
//!
//! T. S. Craig, "Building FIFO and priority-queuing spin locks from atomic swap", University of
//! Washington TR 93-02-02, 1993, and, independently, P. Magnusson, A. Landin and E. Hagersten,
//! "Queue locks on cache coherent multiprocessors", IPPS 1994. Section 5 of Dvir's thesis (2018)
//! describes it. As in the thesis's second lock, a process that leaves takes its predecessor's node
//! along.
//!
//! * **Promises** mutual exclusion, FIFO order and a bounded exit for any number of processes.
//! * **Costs** O(1) remote references with coherent caches and one node per process and one more.
//!   On distributed memory the cost has no bound: a process waits on its *predecessor's* node,
//!   wherever that lies.
//!
//! The line numbers are ours:
//!
//! ```text
//! acquire                                         release
//!  1  n.locked := true                             4  n.locked := false
//!  2  pred := FAS(Tail, n)     (doorway ends)      5  n := pred
//!  3  await not pred.locked
//! ```
//!
//! # Orderings
//! The release in line 2 publishes line 1, and the next process acquires it. The flag's release
//! (line 4) and acquire (line 3) hand over the critical section.

use crate::memory::Ordering::AcqRel;
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Clh<M: Memory = Native> {
    tail: M::Register<Ptr<Node<M>>>,
    nodes: Nodes<M, Node<M>, Process<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Node<M: Memory> {
    locked: M::Flag,
}

/// A process: its node, and while it is in a passage, its predecessor's.
#[derive(Debug)]
pub struct Process<M: Memory> {
    n: Ptr<Node<M>>,
    pred: Ptr<Node<M>>,
}

impl<M: Memory> Clh<M> {
    /// The node that `p` points to.
    fn at(&self, p: Ptr<Node<M>>) -> &Node<M> {
        // SAFETY: every pointer that is not NIL in a register or process of this lock came from
        // `self.nodes`, which outlives `&self`; nodes are made of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory> RawMutex<M> for Clh<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "clh",
            source: "Craig 1993; Magnusson, Landin and Hagersten 1994",
            text: text!("clh.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Unbounded),
            space: Growth::Linear,
            primitives: &[Primitive::Read, Primitive::Write, Primitive::FetchAndStore],
            processes: Limit::None,
            bounded_registers: Claim::Yes,
            ..Claims::MUTEX
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let nodes = Nodes::new();
        // As if a process had been inside and left.
        let dummy = nodes.allocate(|| Node { locked: M::Flag::new(Site::shared("locked"), false) });
        Ok(Clh { tail: M::Register::new(Site::shared("Tail"), dummy), nodes })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        Ok(self.nodes.take(|p| Process {
            n: self.nodes.allocate(|| Node { locked: M::Flag::new(Site::of(p, "locked"), false) }),
            pred: Ptr::NIL,
        }))
    }

    unsafe fn leave(&self, me: Process<M>) {
        // Its node was its predecessor's, which no longer needs it: no other process reads it.
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process<M>) {
        self.at(me.n).locked.set(true); // 1: published by line 2
        me.pred = self.tail.fas(me.n, AcqRel); // 2: releases line 1, acquires the predecessor's
        M::doorway_end();
        let pred = self.at(me.pred);
        pred.locked.wait_for(false); // 3: acquires line 4
        pred.locked.forget();
    }

    unsafe fn release(&self, me: &mut Process<M>) {
        self.at(me.n).locked.signal(false); // 4
        me.n = me.pred; // 5
        me.pred = Ptr::NIL;
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("n", me.n.word());
    }
}
