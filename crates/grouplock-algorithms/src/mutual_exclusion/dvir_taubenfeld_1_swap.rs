//! Dvir and Taubenfeld's first algorithm with one word per hand-over.
//!
//! Ours, from [the printed form](super::dvir_taubenfeld_1). There, two words, `next` and `status`,
//! decide whether a process that leaves or its successor ends the wait. Here the successor swaps
//! *itself* into `status`, and the process that leaves swaps UNLOCKED into it. The second of the
//! two sees the word of the first.
//!
//! * **Promises** what the printed form does: mutual exclusion, FIFO order, wait-free exit, any
//!   number of processes.
//! * **Costs** O(1) remote references on both models, two nodes per process; fewer steps, no
//!   sequentially consistent fence.
//!
//! It is the default exit lock of [`handover`](crate::handover).
//!
//! ```text
//! node: status ∈ {LOCKED, node, UNLOCKED}, locked: bool
//! acquire                                             release
//!  1  n.status := LOCKED                               6  if n.status = LOCKED and CAS(T, n, NIL): goto 8
//!  2  pred := FAS(T, n)              (doorway ends)    7  succ := FAS(n.status, UNLOCKED)
//!  3  if pred ≠ NIL:  n.locked := true                    if succ ≠ LOCKED: succ.locked := false
//!  4      if FAS(pred.status, n) ≠ UNLOCKED:           8  (n, other) := (other, n)
//!  5          await not n.locked
//! ```
//!
//! # Orderings
//! `n.status` and `n.locked` are initialised relaxed. The releases of lines 2 and 4 publish them.
//! The critical section is handed over by line 4 reading line 7, by the flag, or by line 2 reading
//! line 6.

use crate::dvir_taubenfeld_1::DvirTaubenfeld1;
use crate::memory::Ordering::{AcqRel, Relaxed, Release};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct DvirTaubenfeld1Swap<M: Memory = Native> {
    t: M::Register<Ptr<QNode<M>>>,
    nodes: Nodes<M, QNode<M>, Process<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct QNode<M: Memory> {
    status: M::Register<Ptr<QNode<M>>>,
    locked: M::Flag,
}

impl<M: Memory> QNode<M> {
    const LOCKED: Ptr<Self> = Ptr::NIL;
    const UNLOCKED: Ptr<Self> = Ptr::MARK_1;
}

/// A process: its two nodes, the next one to use first.
#[derive(Debug)]
pub struct Process<M: Memory> {
    n: Ptr<QNode<M>>,
    other: Ptr<QNode<M>>,
}

impl<M: Memory> DvirTaubenfeld1Swap<M> {
    /// The node that `p` points to.
    #[inline(always)]
    fn at(&self, p: Ptr<QNode<M>>) -> &QNode<M> {
        // SAFETY: every pointer that is no mark in a register or process of this lock came from
        // `self.nodes`, which outlives `&self`; nodes are made of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory> RawMutex<M> for DvirTaubenfeld1Swap<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "dvir-taubenfeld-1-swap",
            source: "after Dvir and Taubenfeld 2017, Algorithm 1",
            text: text!("dvir_taubenfeld_1_swap.rs"),
            ..DvirTaubenfeld1::<M>::claims()
        }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(DvirTaubenfeld1Swap {
            t: M::Register::new(Site::shared("T"), Ptr::NIL),
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        let node = |p| {
            self.nodes.allocate(|| QNode {
                status: M::Register::new(Site::of(p, "status"), QNode::<M>::LOCKED),
                locked: M::Flag::new(Site::of(p, "locked"), false),
            })
        };
        Ok(self.nodes.take(|p| Process { n: node(p), other: node(p) }))
    }

    unsafe fn leave(&self, me: Process<M>) {
        // The next owner of these nodes uses `n` first, as this process would have: a late
        // successor may still read the other one, and it is inside before the next owner is.
        self.nodes.give_back(me);
    }

    #[inline]
    unsafe fn acquire(&self, me: &mut Process<M>) {
        let n = self.at(me.n);
        n.status.write(QNode::<M>::LOCKED, Relaxed); // 1: published by line 2
        let pred = self.t.fas(me.n, AcqRel); // 2: acquires line 6, releases line 1
        M::doorway_end();
        if !pred.is_nil() {
            n.locked.set(true); // 3: published by line 4
            let status = self.at(pred).status.fas(me.n, AcqRel); // 4: acquires line 7
            if status == QNode::<M>::UNLOCKED {
                self.at(pred).status.forget(); // both have been there
            } else {
                M::live(|| []);
                n.locked.wait_for(false); // 5
            }
        }
        n.locked.forget();
    }

    #[inline]
    unsafe fn release(&self, me: &mut Process<M>) {
        let n = self.at(me.n);
        // The read only saves a compare-and-swap that must fail: relaxed, for line 7 acquires.
        let claimed = n.status.read(Relaxed) != QNode::<M>::LOCKED; // 6
        let alone = !claimed && self.t.cas(me.n, Ptr::NIL, Release); // 6: pairs with 2
        if alone {
            n.status.forget(); // nobody will be there
        } else {
            let succ = n.status.fas(QNode::<M>::UNLOCKED, AcqRel); // 7: acquires line 4
            if succ != QNode::<M>::LOCKED {
                n.status.forget(); // both have been there
                self.at(succ).locked.signal(false); // 7
            }
        }
        core::mem::swap(&mut me.n, &mut me.other); // 8
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("n", me.n.word());
        see("other", me.other.word());
    }
}
