//! Dvir and Taubenfeld's first algorithm, as printed.
//!
//! R. Dvir and G. Taubenfeld, "Mutual exclusion algorithms with constant RMR complexity and
//! wait-free exit code"; R. Dvir's M.Sc. thesis, IDC Herzliya, 2018, Figure 2. The line numbers
//! below are the figure's.
//!
//! * **Promises** mutual exclusion, FIFO order and a wait-free exit for any number of processes.
//! * **Costs** O(1) remote references on both machine models, two nodes per process and lock.
//!
//! It is the MCS lock without the wait in the exit. A process that leaves writes UNLOCKED into its
//! own node first, and only then reads whether it has a successor. If the successor has not linked
//! itself, it will find UNLOCKED and go ahead. If it has, the two compete for the word by
//! compare-and-swap, and exactly one of them learns that the successor is free. A process
//! alternates between two nodes, because a late successor may still have to read the last one.
//!
//! # Orderings
//! Lines 7-8 against lines 10-11 are the store-then-load pattern of Dekker's algorithm. Each side
//! writes its word, then reads the other's, and one of them must see the other. So those four are
//! sequentially consistent. The [swap form](super::dvir_taubenfeld_1_swap) has one word in place of
//! two, and does not need this. Lines 4 and 7 publish a node's initial values (lines 2, 3, 6). The
//! critical section is handed over by line 8 reading line 10, by the flag, or by line 4 reading
//! line 12.

use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct DvirTaubenfeld1<M: Memory = Native> {
    t: M::Register<Ptr<QNode<M>>>,
    nodes: Nodes<M, QNode<M>, Process<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct QNode<M: Memory> {
    next: M::Register<Ptr<QNode<M>>>,
    locked: M::Flag,
    status: M::Register<u32>,
}

const LOCKED: u32 = 0;
const UNLOCKED: u32 = 1;

/// A process: its two nodes and which of them is next.
#[derive(Debug)]
pub struct Process<M: Memory> {
    q: [Ptr<QNode<M>>; 2],
    current: usize,
}

impl<M: Memory> DvirTaubenfeld1<M> {
    /// The node that `p` points to.
    fn at(&self, p: Ptr<QNode<M>>) -> &QNode<M> {
        // SAFETY: every pointer that is not NIL in a register or process of this lock came from
        // `self.nodes`, which outlives `&self`; nodes are made of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory> RawMutex<M> for DvirTaubenfeld1<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "dvir-taubenfeld-1",
            source: "Dvir and Taubenfeld 2017, Algorithm 1",
            text: text!("dvir_taubenfeld_1.rs"),
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            strong_fifo: Claim::Yes,
            entering: Entering::alone(Claim::Yes),
            exit: Exit::BOUNDED,
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
        Ok(DvirTaubenfeld1 {
            t: M::Register::new(Site::shared("T"), Ptr::NIL),
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        let node = |p| {
            self.nodes.allocate(|| QNode {
                next: M::Register::new(Site::of(p, "next"), Ptr::NIL),
                locked: M::Flag::new(Site::of(p, "locked"), false),
                status: M::Register::new(Site::of(p, "status"), LOCKED),
            })
        };
        Ok(self.nodes.take(|p| Process { q: [node(p), node(p)], current: 0 }))
    }

    unsafe fn leave(&self, me: Process<M>) {
        // The next owner of these nodes uses `current` first, as this process would have: a late
        // successor may still read the other one, and it is inside before the next owner is.
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process<M>) {
        let mynode = self.at(me.q[me.current]); // 1
        mynode.next.write(Ptr::NIL, Relaxed); // 2: published by line 4
        mynode.status.write(LOCKED, Relaxed); // 3: published by line 4
        let pred = self.t.fas(me.q[me.current], AcqRel); // 4: acquires line 12 or the last one's 2-3
        M::doorway_end();
        if !pred.is_nil() {
            let pred = self.at(pred); // 5
            mynode.locked.set(true); // 6: published by line 7
            pred.next.write(me.q[me.current], SeqCst); // 7: before line 8; pairs with 11, 14
            let free = pred.status.cas(UNLOCKED, LOCKED, SeqCst); // 8: after line 7
            if !free {
                M::live(|| []);
                mynode.locked.wait_for(false); // 9
            }
        }
        mynode.locked.forget();
    }

    unsafe fn release(&self, me: &mut Process<M>) {
        let mynode = self.at(me.q[me.current]);
        mynode.status.write(UNLOCKED, SeqCst); // 10: before line 11; pairs with 8
        let has_successor = !mynode.next.read(SeqCst).is_nil(); // 11: after line 10
        if has_successor {
            let waits = mynode.status.cas(UNLOCKED, LOCKED, AcqRel); // 13: pairs with 8
            if waits {
                let succ = mynode.next.read(Acquire); // 14: acquires line 7, as 11 did
                self.at(succ).locked.signal(false); // 15
            }
        } else {
            self.t.cas(me.q[me.current], Ptr::NIL, Release); // 12: pairs with line 4
        }
        me.current = 1 - me.current; // 16
        let reused = self.at(me.q[me.current]);
        reused.next.forget(); // its successor has come and gone
        reused.status.forget();
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("current node", me.q[me.current].word());
        see("other node", me.q[1 - me.current].word());
    }
}
