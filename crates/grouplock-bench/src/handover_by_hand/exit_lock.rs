//! The exit lock by hand: Dvir and Taubenfeld's first algorithm in its
//! [swap form](grouplock_algorithms::dvir_taubenfeld_1_swap), with that text's line numbers and orderings.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use super::wait_bit::WaitBit;

/// In `status`: nobody waits behind this node.
const LOCKED: *mut QNode = ptr::null_mut();
/// In `status`: this node's user has left.
const UNLOCKED: *mut QNode = ptr::without_provenance_mut(1);

/// The lock.
#[derive(Debug)]
pub(super) struct ExitLock {
    t: AtomicPtr<QNode>,
    /// What `join` made from boxes, to be freed with the lock.
    owned: Mutex<Vec<*mut QNode>>,
}

/// A place in the queue. Its bit is set when the wait is over, the negation of the text's `locked`.
#[derive(Debug)]
#[repr(align(128))]
struct QNode {
    status: AtomicPtr<QNode>,
    unlocked: WaitBit,
}

/// A process: its two nodes, the next one to use first.
#[derive(Debug)]
pub(super) struct ExitProcess {
    n: *mut QNode,
    other: *mut QNode,
}

/// The node at `p`.
///
/// # Safety
/// `p` points to a node of a lock that lives throughout `'a`.
#[inline(always)]
unsafe fn at<'a>(p: *mut QNode) -> &'a QNode {
    // SAFETY: the caller's promise; nodes are only ever used through shared references.
    unsafe { &*p }
}

impl ExitLock {
    pub(super) const fn new() -> Self {
        ExitLock { t: AtomicPtr::new(ptr::null_mut()), owned: Mutex::new(Vec::new()) }
    }

    pub(super) fn join(&self) -> ExitProcess {
        let node = || {
            Box::into_raw(Box::new(QNode {
                status: AtomicPtr::new(LOCKED),
                unlocked: WaitBit::new(),
            }))
        };
        let [n, other] = [node(), node()];
        // A panic cannot leave this half done.
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).extend([n, other]);
        ExitProcess { n, other }
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
            // SAFETY: only nodes of this lock get into `t`, besides null.
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
        // The load only saves a compare-and-swap that must fail: relaxed, for line 7 acquires.
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

impl Drop for ExitLock {
    fn drop(&mut self) {
        let owned = self.owned.get_mut().unwrap_or_else(PoisonError::into_inner);
        for node in owned.drain(..) {
            // SAFETY: `join` made it from a box, and it is freed here only; whoever uses it borrows the lock.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}
