//! The MCS queue lock.
//!
//! J. M. Mellor-Crummey and M. L. Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", ACM Transactions on Computer Systems 9(1), 1991. The two algorithms of Dvir
//! and Taubenfeld start from this lock. It is here for comparison.
//!
//! * **Promises** mutual exclusion and FIFO order for any number of processes.
//! * **Costs** O(1) remote references on both machine models and one node per process.
//! * **Does not promise** a bounded exit: a process that leaves may have to wait until its
//!   successor, which is already in the queue, links itself (line 8).
//!
//! ```text
//! acquire                                         release
//!  1  n.next := NIL            (doorway)           6  if n.next = NIL:
//!  2  pred := FAS(Tail, n)     (doorway ends)      7      if CAS(Tail, n, NIL): return
//!  3  if pred ≠ NIL:                               8      await n.next ≠ NIL
//!  4      n.locked := true; pred.next := n         9  n.next.locked := false
//!  5      await not n.locked
//! ```
//!
//! # Orderings
//! A process initialises its node (lines 1, 4) and publishes it by the release in line 2 or 4. A
//! process that follows `Tail` or `next` acquires. The flag's release (line 9) and acquire (line
//! 5), or those of `Tail` (lines 7 and 2), hand over the critical section.

use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct Mcs<M: Memory = Native> {
    tail: M::Register<Ptr<Node<M>>>,
    nodes: Nodes<M, Node<M>, Process<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Node<M: Memory> {
    next: M::Register<Ptr<Node<M>>>,
    locked: M::Flag,
}

/// A process: its node.
#[derive(Debug)]
pub struct Process<M: Memory> {
    n: Ptr<Node<M>>,
}

impl<M: Memory> Mcs<M> {
    /// The node that `p` points to.
    fn at(&self, p: Ptr<Node<M>>) -> &Node<M> {
        // SAFETY: every pointer that is not NIL in a register or process of this lock came from
        // `self.nodes`, which outlives `&self`; nodes are made of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory> RawMutex<M> for Mcs<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "mcs",
            source: "Mellor-Crummey and Scott 1991",
            text: text!("mcs.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::TERMINATING,
            rmr_cc: Bound::of(Growth::Constant),
            rmr_dsm: Bound::of(Growth::Constant),
            space: Growth::Linear,
            primitives: &[
                Primitive::Read,
                Primitive::Write,
                Primitive::FetchAndStore,
                Primitive::CompareAndSwap,
            ],
            processes: Limit::None,
            bounded_registers: Claim::Yes,
            ..Claims::MUTEX
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(Mcs { tail: M::Register::new(Site::shared("Tail"), Ptr::NIL), nodes: Nodes::new() })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        Ok(self.nodes.take(|p| Process {
            n: self.nodes.allocate(|| Node {
                next: M::Register::new(Site::of(p, "next"), Ptr::NIL),
                locked: M::Flag::new(Site::of(p, "locked"), false),
            }),
        }))
    }

    unsafe fn leave(&self, me: Process<M>) {
        // A process that has left is out of the queue: no other process reads its node any more.
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process<M>) {
        let n = self.at(me.n);
        n.next.write(Ptr::NIL, Relaxed); // 1: published by line 2
        let pred = self.tail.fas(me.n, AcqRel); // 2: acquires line 7, releases line 1
        M::doorway_end();
        if !pred.is_nil() {
            n.locked.set(true); // 4: published by the next line
            self.at(pred).next.write(me.n, Release); // 4: pairs with lines 6 and 8
            n.locked.wait_for(false); // 5
        }
        n.locked.forget();
    }

    unsafe fn release(&self, me: &mut Process<M>) {
        let n = self.at(me.n);
        let mut next = n.next.read(Acquire); // 6: acquires line 4
        if next.is_nil() {
            let alone = self.tail.cas(me.n, Ptr::NIL, Release); // 7: pairs with line 2
            if alone {
                n.next.forget();
                return;
            }
            M::await_until(|| !n.next.read(Relaxed).is_nil()); // 8: line 9 reads it again
            next = n.next.read(Acquire); // 9: acquires line 4
        }
        n.next.forget();
        self.at(next).locked.signal(false); // 9
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("n", me.n.word());
    }
}
