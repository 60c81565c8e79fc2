//! [Handover](grouplock_algorithms::handover) in its default form, written by hand: atomics and raw
//! pointers, no traits, nothing that only another memory would need.
//!
//! It is a peer to measure against. So it does the same as the generic text, step by step, with the
//! same orderings; the line numbers and the reasons are those of that text. It leaves out what a
//! peer does not need: it does not use again what a process leaves behind, and frees it with the
//! lock.
//!
//! It is a [`RawGroup`] so that the same handle, the same loop and the same tests serve both.

mod exit_lock;
mod wait_bit;

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::memory::{Memory, Native, Word};
use grouplock_algorithms::raw::RawGroup;
use grouplock_algorithms::{CapacityError, Claims, Session};

use exit_lock::{ExitLock, ExitProcess};
use wait_bit::WaitBit;

/// In `next`: all processes up to this node have left, and no later node was known then.
const GONE: *mut Node = ptr::without_provenance_mut(1);
/// In `link`: the process of this node may enter.
const ENABLED: *mut Node = ptr::without_provenance_mut(2);

/// A group lock for any number of processes.
#[derive(Debug)]
pub(crate) struct HandoverByHand {
    head: AtomicPtr<Node>,
    tail: AtomicPtr<Node>,
    exit_lock: ExitLock,
    records: Owned<Record>,
    nodes: Owned<Node>,
}

/// An entry of the queue.
#[derive(Debug)]
#[repr(align(128))]
struct Node {
    session: AtomicU64,
    next: AtomicPtr<Node>,
    link: AtomicPtr<Node>,
    user: AtomicPtr<Record>,
}

/// What stays with a process: the bit that it waits on.
#[derive(Debug)]
#[repr(align(128))]
struct Record {
    go: WaitBit,
}

/// A process that has joined a [`HandoverByHand`].
#[derive(Debug)]
pub(crate) struct Process {
    me: *mut Record,
    ready: *mut Node,
    cool: *mut Node,
    exit: ExitProcess,
}

// SAFETY: the pointers lead to atomics that the lock owns. Only `enter` and `exit` follow them.
unsafe impl Send for Process {}

/// Boxes that live as long as the lock that made them. All access goes through the raw pointers.
#[derive(Debug)]
struct Owned<T>(Mutex<Vec<*mut T>>);

// SAFETY: the pointers are boxes of `T`, and `T` may move to and be used by other threads.
unsafe impl<T: Send + Sync> Send for Owned<T> {}
// SAFETY: as above, and the mutex guards the list.
unsafe impl<T: Send + Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
    const fn new() -> Self {
        Owned(Mutex::new(Vec::new()))
    }

    fn add(&self, value: T) -> *mut T {
        let pointer = Box::into_raw(Box::new(value));
        // A panic cannot interrupt a push.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pointer);
        pointer
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        for pointer in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: `add` made it from a box. All users borrow the lock, so there are none now.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

/// The object at `p`.
///
/// # Safety
/// `p` points to an object of a lock that lives throughout `'a`.
#[inline(always)]
unsafe fn at<'a, T>(p: *mut T) -> &'a T {
    // SAFETY: the caller's promise; these objects are only used through shared references.
    unsafe { &*p }
}

impl Node {
    fn new() -> Node {
        let [next, link] = [ptr::null_mut(), ptr::null_mut()].map(AtomicPtr::new);
        Node { session: AtomicU64::new(0), next, link, user: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// The memory only marks the end of the doorway, which takes no time in [`Native`].
impl<M: Memory> RawGroup<M> for HandoverByHand {
    type Process = Process;

    fn claims() -> Claims {
        Claims { name: "handover-by-hand", ..<Handover as RawGroup<Native>>::claims() }
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let [head, tail] = [ptr::null_mut(), ptr::null_mut()].map(AtomicPtr::new);
        let exit_lock = ExitLock::new();
        Ok(HandoverByHand { head, tail, exit_lock, records: Owned::new(), nodes: Owned::new() })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        let me = self.records.add(Record { go: WaitBit::new() });
        let [ready, cool] = [Node::new(), Node::new()].map(|node| self.nodes.add(node));
        Ok(Process { me, ready, cool, exit: self.exit_lock.join() })
    }

    unsafe fn leave(&self, _: Process) {}

    #[inline]
    unsafe fn enter(&self, me: &mut Process, session: Session) {
        // SAFETY: `me` joined this lock, which owns its record.
        let go = unsafe { &at(me.me).go };
        let node = me.ready;
        // SAFETY: a process's spare nodes are nodes of its lock.
        let n = unsafe { at(node) };
        let session = session.get();
        n.session.store(session, Relaxed); // 1: published by line 2, as the rest of 1 is
        n.next.store(ptr::null_mut(), Relaxed); // 1
        n.link.store(ptr::null_mut(), Relaxed); // 1
        n.user.store(me.me, Relaxed); // 1
        go.clear(); // 1
        let pred = self.tail.swap(node, AcqRel); // 2: acquires pred's line 1, or line 15
        M::doorway_end();
        if pred.is_null() {
            self.head.store(node, Release); // 3: read in line 14, by those we enable in 11
        } else {
            // SAFETY: `tail` holds nodes of this lock, or null.
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
            // SAFETY: line 5 puts nodes of this lock into `link`, and no other line writes ours.
            let succ = unsafe { at(succ) };
            let user = succ.user.load(Relaxed); // 12: acquired with `succ` in line 11
            // SAFETY: line 1 of the successor put the record of a process of this lock there.
            unsafe { at(user) }.go.signal(); // 12: awaited in line 7
        }
    }

    #[inline]
    unsafe fn exit(&self, me: &mut Process) {
        // SAFETY: `me.exit` joined the exit lock, and holds it in this function only.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 13
        let head = self.head.load(Acquire); // 14
        // SAFETY: while a process is inside, `head` is a node of this lock.
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
                unsafe { at(user) }.go.signal(); // 18: awaited in line 10
            }
        }
        // SAFETY: `me.exit` acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 19
        me.ready = me.cool; // 20
        me.cool = head; // 20
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::thread;

    use grouplock_algorithms::Group;
    use grouplock_algorithms::monitor::Workout;

    use super::*;

    /// Without exclusion, order and sharing, the speed of the lock would mean nothing.
    #[test]
    fn it_excludes_orders_and_shares() {
        for sessions in [1, 3, 7] {
            let workout = Workout { threads: 4, sessions, passages: 2_000, ..Workout::default() };
            let report =
                workout.group::<HandoverByHand>().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(report.entries, 4 * 2_000);
            assert!(sessions > 1 || report.most_inside > 1, "{report}");
        }
    }

    /// Only the lock orders the accesses to this.
    struct Plain(UnsafeCell<u64>);

    // SAFETY: the test shows whether the lock keeps the threads apart.
    unsafe impl Sync for Plain {}

    #[test]
    fn sessions_of_their_own_protect_plain_data() {
        const PASSAGES: u64 = 20_000;
        let lock = Group::<HandoverByHand>::new(4).expect("it serves any number");
        let counter = Plain(UnsafeCell::new(0));
        thread::scope(|scope| {
            for session in 1..=4 {
                let (lock, counter) = (&lock, &counter);
                scope.spawn(move || {
                    let mut process = lock.process().expect("it serves any number");
                    for k in 0..PASSAGES {
                        let inside = process.enter(session).expect("nothing was leaked");
                        let at = counter.0.get();
                        // SAFETY: no other thread is inside.
                        let seen = unsafe { at.read_volatile() };
                        // On few cores, threads seldom meet otherwise.
                        if k.is_multiple_of(64) {
                            thread::yield_now();
                        }
                        // SAFETY: as above.
                        unsafe { at.write_volatile(seen + 1) };
                        drop(inside);
                    }
                });
            }
        });
        assert_eq!(counter.0.into_inner(), 4 * PASSAGES);
    }
}
