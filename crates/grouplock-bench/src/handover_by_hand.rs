//! [Handover](grouplock_algorithms::handover) in its default form, written by hand: atomics and raw pointers,
//! no traits, nothing that a memory other than the machine's would need.
//!
//! It is a peer to measure against, so it does what the generic text does, step by step, with the same
//! orderings; the line numbers and the reasons are those of that text. What a peer does not need is left out:
//! what a process leaves behind is not used again, and stays until the lock is dropped.
//!
//! It is a [`RawGroup`] only so that the same handle and the same loop can go around both.

mod exit_lock;
#[cfg(test)]
mod tests;
mod wait_bit;

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::memory::{Native, Word};
use grouplock_algorithms::raw::RawGroup;
use grouplock_algorithms::{CapacityError, Claims, Session};

use exit_lock::{ExitLock, ExitProcess};
use wait_bit::WaitBit;

/// In `next`: everyone up to this node has left, and nobody behind it was known then.
const GONE: *mut Node = ptr::without_provenance_mut(1);
/// In `link`: this node's user may enter.
const ENABLED: *mut Node = ptr::without_provenance_mut(2);

/// A group lock for any number of processes.
///
/// ```
/// use grouplock_bench::handover_by_hand::HandoverByHand;
///
/// let lock = HandoverByHand::new();
/// let mut process = lock.join();
/// // SAFETY: the process joined this lock and is outside.
/// unsafe { lock.enter(&mut process, 7) };
/// // SAFETY: it is inside now.
/// unsafe { lock.exit(&mut process) };
/// ```
#[derive(Debug)]
pub struct HandoverByHand {
    head: AtomicPtr<Node>,
    tail: AtomicPtr<Node>,
    exit_lock: ExitLock,
    /// What `join` made, to be freed with the lock. Both pointers come from boxes.
    owned: Mutex<Vec<(*mut Record, [*mut Node; 2])>>,
}

// SAFETY: the pointers in `owned` are the lock's own boxes, made of atomics.
unsafe impl Send for HandoverByHand {}
// SAFETY: shared use goes through atomics, or through the mutex around `owned`.
unsafe impl Sync for HandoverByHand {}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
struct Node {
    session: AtomicU64,
    next: AtomicPtr<Node>,
    link: AtomicPtr<Node>,
    user: AtomicPtr<Record>,
}

/// What stays with a process: the bit it waits on.
#[derive(Debug)]
#[repr(align(128))]
struct Record {
    go: WaitBit,
}

/// A process that has joined a [`HandoverByHand`].
#[derive(Debug)]
pub struct Process {
    me: *mut Record,
    ready: *mut Node,
    cool: *mut Node,
    exit: ExitProcess,
}

// SAFETY: the pointers lead to atomics that the lock owns, and following them is up to `enter` and `exit`.
unsafe impl Send for Process {}

/// The node at `p`.
///
/// # Safety
/// `p` points to a node of a lock that lives throughout `'a`.
#[inline(always)]
unsafe fn at<'a>(p: *mut Node) -> &'a Node {
    // SAFETY: the caller's promise; nodes are only ever used through shared references.
    unsafe { &*p }
}

/// The wait bit of the process whose record is at `p`.
///
/// # Safety
/// `p` points to a record of a lock that lives throughout `'a`.
#[inline(always)]
unsafe fn go_of<'a>(p: *mut Record) -> &'a WaitBit {
    // SAFETY: the caller's promise; records are only ever used through shared references.
    let record = unsafe { &*p };
    &record.go
}

impl Node {
    fn boxed() -> *mut Node {
        Box::into_raw(Box::new(Node {
            session: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            link: AtomicPtr::new(ptr::null_mut()),
            user: AtomicPtr::new(ptr::null_mut()),
        }))
    }
}

impl HandoverByHand {
    /// A lock without processes.
    pub const fn new() -> Self {
        HandoverByHand {
            head: AtomicPtr::new(ptr::null_mut()),
            tail: AtomicPtr::new(ptr::null_mut()),
            exit_lock: ExitLock::new(),
            owned: Mutex::new(Vec::new()),
        }
    }

    /// A process joins.
    pub fn join(&self) -> Process {
        let me = Box::into_raw(Box::new(Record { go: WaitBit::new() }));
        let [ready, cool] = [Node::boxed(), Node::boxed()];
        // A panic cannot leave a push half done.
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).push((me, [ready, cool]));
        Process { me, ready, cool, exit: self.exit_lock.join() }
    }

    /// Waits until `session` can be attended, and enters.
    ///
    /// # Safety
    /// `me` joined this lock and is not inside.
    #[inline]
    pub unsafe fn enter(&self, me: &mut Process, session: u64) {
        // SAFETY: `me` joined this lock, which owns its record.
        let go = unsafe { go_of(me.me) };
        let node = me.ready;
        // SAFETY: a process's spare nodes are nodes of its lock.
        let n = unsafe { at(node) };
        n.session.store(session, Relaxed); // 1: published by line 2, as the rest of 1 is
        n.next.store(ptr::null_mut(), Relaxed); // 1
        n.link.store(ptr::null_mut(), Relaxed); // 1
        n.user.store(me.me, Relaxed); // 1
        go.clear(); // 1
        let pred = self.tail.swap(node, AcqRel); // 2: acquires pred's line 1, or line 15
        if pred.is_null() {
            self.head.store(node, Release); // 3: read in line 14, by those we enable in 11
        } else {
            // SAFETY: only nodes of this lock get into `tail`, besides null.
            let pred = unsafe { at(pred) };
            if pred.session.load(Relaxed) == session {
                let enabled = pred.link.swap(node, AcqRel) == ENABLED; // 5: pairs with 11
                if pred.next.swap(node, AcqRel) == GONE {
                    self.head.store(node, Release); // 6: the swap pairs with 16
                }
                if !enabled {
                    go.wait(); // 7
                }
            } else if pred.next.swap(node, AcqRel) == GONE {
                self.head.store(node, Release); // 9: the swap pairs with 16
            } else {
                go.wait(); // 10
            }
        }
        let succ = n.link.swap(ENABLED, AcqRel); // 11: pairs with 5
        if !succ.is_null() {
            // SAFETY: line 5 puts nodes of this lock into `link`, and nobody else wrote ours.
            let succ = unsafe { at(succ) };
            let user = succ.user.load(Relaxed); // 12: acquired with `succ` in line 11
            // SAFETY: line 1 of the successor put the record of a process of this lock there.
            unsafe { go_of(user) }.signal(); // 12: awaited in line 7
        }
    }

    /// Leaves.
    ///
    /// # Safety
    /// `me` joined this lock and is inside.
    #[inline]
    pub unsafe fn exit(&self, me: &mut Process) {
        // SAFETY: our part in the exit lock joined it with us, and holds it only in this function.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 13
        let head = self.head.load(Acquire); // 14
        // SAFETY: while somebody is inside, `head` is a node of this lock.
        let h = unsafe { at(head) };
        // 15: pairs with line 2. 16: pairs with 6 and 9
        if self.tail.compare_exchange(head, ptr::null_mut(), AcqRel, Acquire).is_err()
            && h.next.compare_exchange(ptr::null_mut(), GONE, AcqRel, Acquire).is_err()
        {
            let x = h.next.load(Acquire); // 17: acquires line 6 or 9
            self.head.store(x, Release); // 17: read in line 14
            // SAFETY: it is not null, and lines 6 and 9 put nodes of this lock into `next`.
            let x = unsafe { at(x) };
            if x.session.load(Relaxed) != h.session.load(Relaxed) {
                let user = x.user.load(Relaxed); // 18: acquired with `x` in line 17
                // SAFETY: line 1 of its user put the record of a process of this lock there.
                unsafe { go_of(user) }.signal(); // 18: awaited in line 10
            }
        }
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 19
        me.ready = me.cool; // 20
        me.cool = head; // 20
    }
}

/// Each method is one of the lock's own.
impl RawGroup<Native> for HandoverByHand {
    type Process = Process;

    fn claims() -> Claims {
        Claims { name: "handover-by-hand", ..<Handover as RawGroup<Native>>::claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(HandoverByHand::new())
    }

    fn join(&self) -> Result<Process, CapacityError> {
        Ok(HandoverByHand::join(self))
    }

    unsafe fn leave(&self, _: Process) {}

    #[inline(always)]
    unsafe fn enter(&self, me: &mut Process, session: Session) {
        // SAFETY: the caller's promise.
        unsafe { HandoverByHand::enter(self, me, session.get()) };
    }

    #[inline(always)]
    unsafe fn exit(&self, me: &mut Process) {
        // SAFETY: the caller's promise.
        unsafe { HandoverByHand::exit(self, me) };
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}

impl Default for HandoverByHand {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HandoverByHand {
    fn drop(&mut self) {
        let owned = self.owned.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (record, nodes) in owned.drain(..) {
            // SAFETY: `join` made it from a box; whoever enters or exits borrows the lock, so nobody does.
            drop(unsafe { Box::from_raw(record) });
            for node in nodes {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(node) });
            }
        }
    }
}
