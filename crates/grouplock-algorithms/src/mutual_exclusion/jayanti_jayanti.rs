//! Jayanti and Jayanti's abortable queue lock, for coherent caches.
//!
//! P. Jayanti and S. Jayanti, "Constant amortized RMR abortable mutex for CC and DSM", PODC 2019.
//! We have not seen the paper: **the program text is a restatement** of the form for coherent
//! caches, and the claims are ours for that text. The line numbers are ours.
//!
//! * **Promises** mutual exclusion, starvation freedom, a bounded exit, and withdrawal by a single
//!   write, for any number of processes.
//! * **Costs** O(1) remote references with coherent caches, amortised over requests, and one node
//!   per process and one more. On distributed memory the cost has no bound: a process waits on its
//!   *predecessor's* node.
//! * **Order**: first come, first served, while no process withdraws. A process that withdrew may
//!   return to its old position, before processes that arrived in the meantime.
//!
//! As in [`clh`](super::clh), a process waits on the node of its predecessor and takes that node
//! along when it leaves. A node is one word. A process that withdraws writes a pointer to its
//! predecessor's node into its own node, so that its successor can pass it. Two processes may swap
//! that word away. If the successor does so first (lines 3 and 5), the process that withdrew must
//! queue again (line 2). If the process that withdrew returns first (line 1), it still has its
//! position.
//!
//! ```text
//! node: NIL, TOKEN, or a node      shared: Tail, a node that holds TOKEN at first      process: mynode, mypred (both its own node, which holds NIL)
//!
//! acquire                                                       release
//!  1  if FAS(*mynode, NIL) ≠ mypred:                             6  *mynode := TOKEN
//!  2      mypred := FAS(Tail, mynode)                            7  mynode := mypred
//!     (else the place left earlier is still ours; doorway ends)
//!  3  v := FAS(*mypred, NIL); if v is a node: mypred := v       give up, where line 4 waits
//!     while v ≠ TOKEN:                                           8  *mynode := mypred
//!  4      await *mypred ≠ NIL; v := *mypred
//!  5      if v is a node: v := FAS(*mypred, NIL); if v is a node: mypred := v
//! ```
//!
//! # Orderings
//! The token hands over the critical section: line 6 releases it, line 3, 4 or 5 acquires it. A
//! pointer to a node comes with the writes to that node: lines 2 and 8 release it, lines 2, 3 and 5
//! acquire it.

use core::marker::PhantomData;

use crate::memory::Ordering::{AcqRel, Acquire, Release};
use crate::memory::{Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;
use crate::raw::{GiveUp, WithdrawMutex};

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct JayantiJayanti<M: Memory = Native> {
    tail: M::Register<Ptr<Node<M>>>,
    nodes: Nodes<M, Node<M>, Process<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Node<M: Memory> {
    word: M::Register<Ptr<Node<M>>>,
    /// If the last field were a register of pointers to this type, its size would depend on itself.
    memory: PhantomData<M>,
}

impl<M: Memory> Node<M> {
    fn new(site: Site, word: Ptr<Self>) -> Self {
        Node { word: M::Register::new(site, word), memory: PhantomData }
    }

    /// The process of this node has left: a process that waits on it may enter.
    const TOKEN: Ptr<Self> = Ptr::MARK_1;
}

/// A process: its node, and its predecessor's. They are the same unless it is in a passage or
/// withdrew its last request.
#[derive(Debug)]
pub struct Process<M: Memory> {
    mynode: Ptr<Node<M>>,
    mypred: Ptr<Node<M>>,
}

impl<M: Memory> JayantiJayanti<M> {
    /// The node that `p` points to.
    fn at(&self, p: Ptr<Node<M>>) -> &Node<M> {
        // SAFETY: every pointer that is neither NIL nor TOKEN in a register or process of this lock
        // came from `self.nodes`, which outlives `&self`; nodes are made of registers, so they are
        // `Sync`.
        unsafe { M::follow(p) }
    }

    /// Returns whether the process is inside. Otherwise it has withdrawn.
    #[inline]
    fn request(&self, me: &mut Process<M>, mut give_up: Option<GiveUp<'_>>) -> bool {
        let is_node = |v: Ptr<Node<M>>| !v.is_nil() && v != Node::<M>::TOKEN;
        let mine = self.at(me.mynode);
        let left = mine.word.fas(Ptr::NIL, AcqRel); // 1: pairs with 3 and 5 of a successor
        if left != me.mypred {
            me.mypred = self.tail.fas(me.mynode, AcqRel); // 2: acquires 2 of the predecessor
        }
        M::doorway_end();
        M::live(|| []);
        let mut v = self.at(me.mypred).word.fas(Ptr::NIL, AcqRel); // 3: acquires line 6 or 8
        if is_node(v) {
            me.mypred = v;
        }
        while v != Node::<M>::TOKEN {
            M::live(|| []);
            let word = &self.at(me.mypred).word;
            if let Some(give_up) = &mut give_up {
                let seen = word.await_other(Ptr::NIL, Acquire, give_up); // 4: acquires line 6 or 8
                let Some(seen) = seen else {
                    mine.word.write(me.mypred, Release); // 8: acquired in line 3 or 5
                    return false;
                };
                v = seen;
            } else {
                M::await_until(|| !word.read(Acquire).is_nil()); // 4
                v = word.read(Acquire); // 4: acquires line 6 or 8
            }
            if is_node(v) {
                M::live(|| []);
                v = word.fas(Ptr::NIL, AcqRel); // 5: acquires line 6 or 8
                if is_node(v) {
                    me.mypred = v;
                }
            }
        }
        true
    }
}

impl<M: Memory> RawMutex<M> for JayantiJayanti<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "jayanti-jayanti",
            source: "Jayanti and Jayanti 2019, CC form, restated",
            text: text!("jayanti_jayanti.rs"),
            starvation_freedom: Claim::Yes,
            // A process may return to its old position: see the module.
            fcfs: Claim::No,
            strong_fifo: Claim::No,
            entering: Entering::alone(Claim::No),
            exit: Exit::BOUNDED,
            group_bounded_abort: Claim::Yes,
            rmr_cc: Bound::of(Growth::Constant).amortised(),
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
        let dummy = nodes.allocate(|| Node::new(Site::shared("node"), Node::<M>::TOKEN));
        Ok(JayantiJayanti { tail: M::Register::new(Site::shared("Tail"), dummy), nodes })
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        Ok(self.nodes.take(|p| {
            let mynode = self.nodes.allocate(|| Node::new(Site::of(p, "node"), Ptr::NIL));
            Process { mynode, mypred: mynode }
        }))
    }

    unsafe fn leave(&self, me: Process<M>) {
        // If it withdrew, its node may still be in the queue. The next process to join continues
        // with it, as this process would have.
        self.nodes.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process<M>) {
        self.request(me, None);
    }

    unsafe fn release(&self, me: &mut Process<M>) {
        self.at(me.mynode).word.write(Node::<M>::TOKEN, Release); // 6: acquired in line 3, 4 or 5
        me.mynode = me.mypred; // 7
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("mynode", me.mynode.word());
        see("mypred", me.mypred.word());
    }
}

impl<M: Memory> WithdrawMutex<M> for JayantiJayanti<M> {
    unsafe fn acquire_unless(&self, me: &mut Process<M>, give_up: GiveUp<'_>) -> bool {
        self.request(me, Some(give_up))
    }
}
