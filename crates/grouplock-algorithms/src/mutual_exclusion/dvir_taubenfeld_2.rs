//! Dvir and Taubenfeld's second algorithm: one node per process, for any number of locks.
//!
//! R. Dvir and G. Taubenfeld, "Mutual exclusion algorithms with constant RMR complexity and
//! wait-free exit code"; R. Dvir's M.Sc. thesis, IDC Herzliya, 2018, Figure 3. The line numbers
//! below are the figure's.
//!
//! * **Promises** mutual exclusion, FIFO order and a wait-free exit for any number of processes.
//! * **Costs** O(1) remote references on both machine models. L locks and n processes that each
//!   hold one lock at a time need L + n nodes, where the first algorithm needs 2·L·n.
//!
//! No process owns a node in the queue. A process that leaves takes its predecessor's node and
//! leaves its own behind, as the dummy that admits the next process. So a process need not know
//! which locks it will use: it carries one node from lock to lock. [`Domain`] makes locks that
//! share their nodes.
//!
//! Since nodes move, the bit that a process spins on is in its own record, and a node names its
//! present user. `status` holds the name of the process that left, not a plain UNLOCKED. A slow
//! process may access its node (lines 12, 13) when that already serves another process, and must
//! not take the other's word for its own. As section 4.3 of the thesis suggests, the name of a
//! process is the address of its record.
//!
//! # Orderings
//! Lines 7 and 9 against lines 11 and 12 are a store-then-load pattern on `next` and `status` (as
//! in the first algorithm), so those are sequentially consistent. Line 6 publishes a node's initial
//! values. The critical section is handed over by line 9 reading line 11, or by the flag.

use std::sync::Arc;

pub use crate::domain::{Domain, DomainGuard, DomainProcess};
use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// One lock. See the [module](self).
#[derive(Debug)]
pub struct DvirTaubenfeld2<M: Memory = Native> {
    t: M::Register<Ptr<QNode<M>>>,
    pub(crate) store: Arc<Store<M>>,
}

/// The nodes and records of all locks in a domain.
#[derive(Debug)]
pub(crate) struct Store<M: Memory> {
    /// Its spare bundles are the dummies of locks that are gone.
    pub(crate) nodes: Nodes<M, QNode<M>, Ptr<QNode<M>>>,
    /// Its spare bundles are processes that have left.
    pub(crate) records: Nodes<M, LocalNode<M>, Process<M>>,
}

/// A place in a queue, for any process.
#[derive(Debug)]
#[repr(align(128))]
pub struct QNode<M: Memory> {
    next: M::Register<Ptr<QNode<M>>>,
    local: M::Register<Ptr<LocalNode<M>>>,
    status: M::Register<Ptr<LocalNode<M>>>,
    pid: M::Register<Ptr<LocalNode<M>>>,
}

/// What stays with a process: the bit it waits on. Its address is the process's name.
#[derive(Debug)]
#[repr(align(128))]
pub struct LocalNode<M: Memory> {
    locked: M::Flag,
}

/// No process.
const fn zero<M: Memory>() -> Ptr<LocalNode<M>> {
    Ptr::NIL
}

/// A process: its record, the node it owns, and while it is inside, its predecessor's.
#[derive(Debug)]
pub struct Process<M: Memory> {
    q: Ptr<LocalNode<M>>,
    qnode: Ptr<QNode<M>>,
    pred: Ptr<QNode<M>>,
}

impl<M: Memory> Store<M> {
    pub(crate) fn new() -> Self {
        Store { nodes: Nodes::new(), records: Nodes::new() }
    }

    /// A node of no particular process.
    fn node(&self) -> Ptr<QNode<M>> {
        self.nodes.allocate(|| QNode {
            next: M::Register::new(Site::shared("next"), Ptr::NIL),
            local: M::Register::new(Site::shared("local"), Ptr::NIL),
            status: M::Register::new(Site::shared("status"), zero::<M>()),
            pid: M::Register::new(Site::shared("pid"), zero::<M>()),
        })
    }

    /// A process: one that has left, or a new one.
    pub(crate) fn process(&self) -> Process<M> {
        self.records.take(|p| Process {
            q: self
                .records
                .allocate(|| LocalNode { locked: M::Flag::new(Site::of(p, "locked"), false) }),
            qnode: self.node(),
            pred: Ptr::NIL,
        })
    }
}

impl<M: Memory> DvirTaubenfeld2<M> {
    /// An unlocked lock whose nodes come from `store`.
    pub(crate) fn in_store(store: Arc<Store<M>>) -> Self {
        let node_0 = store.nodes.take(|_| store.node());
        // SAFETY: it was just taken from `store.nodes`, which we hold.
        let dummy = unsafe { node_0.as_ref() };
        // No process has left, and zero names no process: the first process may enter. Relaxed: no
        // other process knows the node yet, and sharing the lock publishes it.
        dummy.status.write(zero::<M>(), Relaxed);
        dummy.pid.write(zero::<M>(), Relaxed);
        DvirTaubenfeld2 { t: M::Register::new(Site::shared("T"), node_0), store }
    }

    /// The node that `p` points to.
    fn at(&self, p: Ptr<QNode<M>>) -> &QNode<M> {
        // SAFETY: every pointer to a node in a register or process of this lock came from
        // `self.store.nodes`, which outlives `&self`; nodes are made of registers, so they are
        // `Sync`.
        unsafe { M::follow(p) }
    }

    /// The record that `p` points to.
    fn record(&self, p: Ptr<LocalNode<M>>) -> &LocalNode<M> {
        // SAFETY: as for `at`, with `self.store.records`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory> RawMutex<M> for DvirTaubenfeld2<M> {
    type Process = Process<M>;

    fn claims() -> Claims {
        Claims {
            name: "dvir-taubenfeld-2",
            source: "Dvir and Taubenfeld 2017, Algorithm 2",
            text: text!("dvir_taubenfeld_2.rs"),
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
        Ok(DvirTaubenfeld2::in_store(Arc::new(Store::new())))
    }

    fn join(&self) -> Result<Process<M>, CapacityError> {
        Ok(self.store.process())
    }

    unsafe fn leave(&self, me: Process<M>) {
        self.store.records.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process<M>) {
        let q = self.record(me.q);
        let qnode = self.at(me.qnode);
        qnode.next.write(Ptr::NIL, Relaxed); // 1: published by line 6, as 2-5 are
        qnode.pid.write(me.q, Relaxed); // 2
        qnode.local.write(me.q, Relaxed); // 3
        qnode.status.write(zero::<M>(), Relaxed); // 4
        q.locked.set(true); // 5
        me.pred = self.t.fas(me.qnode, AcqRel); // 6
        M::doorway_end();
        let pred = self.at(me.pred);
        pred.next.write(me.qnode, SeqCst); // 7: before line 9; pairs with 12 and 14
        let pred_pid = pred.pid.read(Relaxed); // 8: acquired with `pred` in line 6
        let free = pred.status.cas(pred_pid, zero::<M>(), SeqCst); // 9: pairs with 11
        if !free {
            q.locked.wait_for(false); // 10
        }
        q.locked.forget();
    }

    unsafe fn release(&self, me: &mut Process<M>) {
        let qnode = self.at(me.qnode);
        qnode.status.write(me.q, SeqCst); // 11: before line 12; pairs with 9
        let has_successor = !qnode.next.read(SeqCst).is_nil(); // 12: pairs with 7
        if has_successor {
            let waits = qnode.status.cas(me.q, zero::<M>(), AcqRel); // 13: pairs with 9
            if waits {
                let next = qnode.next.read(Acquire); // 14: acquires line 7
                let local = self.at(next).local.read(Relaxed); // 14: acquired with `next`
                self.record(local).locked.signal(false); // 14
            }
        }
        me.qnode = me.pred; // 15
        me.pred = Ptr::NIL;
    }

    fn inspect(me: &Process<M>, see: &mut dyn FnMut(&'static str, Word)) {
        see("q", me.q.word());
        see("qnode", me.qnode.word());
    }
}

impl<M: Memory> Drop for DvirTaubenfeld2<M> {
    /// Returns the last node to the domain, if it is a dummy. If the lock was leaked while held, or
    /// its holder was leaked, the lock keeps its node as long as the domain lives.
    fn drop(&mut self) {
        // All accesses are relaxed: with `&mut self`, all other processes are done, and we know of
        // it.
        let last = self.t.read(Relaxed);
        let dummy = self.at(last);
        if dummy.status.read(Relaxed) == dummy.pid.read(Relaxed) {
            self.store.nodes.give_back(last);
        }
    }
}
