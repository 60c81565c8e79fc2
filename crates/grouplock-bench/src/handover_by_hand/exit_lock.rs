//! The exit lock by hand: Dvir and Taubenfeld's first algorithm in its [swap
//! form](grouplock_algorithms::dvir_taubenfeld_1_swap), with the line numbers and orderings of that
//! text.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use super::wait_bit::WaitBit;
use super::{Owned, at};

/// In `status`: no process waits behind this node.
const LOCKED: *mut QNode = ptr::null_mut();
/// In `status`: the process of this node has left.
const UNLOCKED: *mut QNode = ptr::without_provenance_mut(1);

#[derive(Debug)]
pub(super) struct ExitLock {
    t: AtomicPtr<QNode>,
    nodes: Owned<QNode>,
}

/// An entry of the queue. Its bit is set when the wait is over: it is the negation of the text's
/// `locked`.
#[derive(Debug)]
#[repr(align(128))]
struct QNode {
    status: AtomicPtr<QNode>,
    unlocked: WaitBit,
}

/// A process: the node that it uses next, and the other one.
#[derive(Debug)]
pub(super) struct ExitProcess {
    n: *mut QNode,
    other: *mut QNode,
}

impl ExitLock {
    pub(super) const fn new() -> Self {
        ExitLock { t: AtomicPtr::new(ptr::null_mut()), nodes: Owned::new() }
    }

    pub(super) fn join(&self) -> ExitProcess {
        let node = || QNode { status: AtomicPtr::new(LOCKED), unlocked: WaitBit::new() };
        ExitProcess { n: self.nodes.add(node()), other: self.nodes.add(node()) }
    }

    /// # Safety
    /// `me` joined this lock and does not hold it.
    #[inline]
    pub(super) unsafe fn acquire(&self, me: &mut ExitProcess) {
        // SAFETY: a process's nodes are nodes of its lock.
        let n = unsafe { at(me.n) };
        n.status.store(LOCKED, Relaxed); // 1: published by line 2
        let pred = self.t.swap(me.n, AcqRel); // 2: acquires line 6, releases line 1
        if !pred.is_null() {
            n.unlocked.clear(); // 3: published by line 4
            // SAFETY: `t` holds nodes of this lock, or null.
            let pred = unsafe { at(pred) };
            if pred.status.swap(me.n, AcqRel) != UNLOCKED {
                n.unlocked.wait(); // 5: line 4 would have acquired line 7
            }
        }
    }

    /// # Safety
    /// `me` joined this lock and holds it.
    #[inline]
    pub(super) unsafe fn release(&self, me: &mut ExitProcess) {
        // SAFETY: a process's nodes are nodes of its lock.
        let n = unsafe { at(me.n) };
        // The load only saves a compare-and-swap that must fail. Relaxed: line 7 acquires.
        let claimed = n.status.load(Relaxed) != LOCKED; // 6
        let alone =
            !claimed && self.t.compare_exchange(me.n, ptr::null_mut(), Release, Relaxed).is_ok(); // 6: pairs with 2
        if !alone {
            let succ = n.status.swap(UNLOCKED, AcqRel); // 7: acquires line 4
            if succ != LOCKED {
                // SAFETY: line 4 puts nodes of this lock into `status`.
                let succ = unsafe { at(succ) };
                succ.unlocked.signal(); // 7
            }
        }
        core::mem::swap(&mut me.n, &mut me.other); // 8
    }
}
