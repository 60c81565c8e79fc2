//! Group mutual exclusion at constant cost: the one to use.
//!
//! After L. Maor and G. Taubenfeld, "Constant RMR group mutual exclusion for arbitrarily many
//! processes and sessions", DISC 2021, whose algorithm [as printed](super::maor_taubenfeld) breaks
//! mutual exclusion. This one is corrected by three ideas from the literature:
//!
//! 1. **Hand over the node.** No process owns a node in the queue. A process that leaves takes the
//!    node that `Head` leaves behind, as in [Dvir and Taubenfeld's second
//!    algorithm](crate::dvir_taubenfeld_2).
//! 2. **Spin in one's own memory.** Nodes move between processes. So the bit that a process waits
//!    on is in its own record, and a node names its present user. Spinning stays local on machines
//!    with distributed memory.
//! 3. **One word per handshake.** `link` decides whether a predecessor of the same session is
//!    enabled, `next` decides which process moves `Head`. One atomic instruction on one word
//!    decides each. So exactly the passage that a signal is for awaits it.
//!
//! * **Promises** mutual exclusion, starvation freedom, first-come-first-served between sessions,
//!   first-in-first-enabled within one, strong group concurrent entering, group bounded exit. Any
//!   number of processes may join and leave, and use any sessions.
//! * **Costs** O(1) remote references per passage on both machine models, two nodes and a record
//!   per process.
//!
//! ```text
//! node:   session, next ∈ {NIL, node, GONE}, link ∈ {NIL, node, ENABLED}, user: process
//! me:     go: bool, ready: node, cool: node            two spare nodes while idle
//! shared: Head, Tail (NIL at first), ExitLock
//!
//! enter(s)
//!  1  n := me.ready; n.session := s; n.next := NIL; n.link := NIL; n.user := me; me.go := false
//!  2  pred := FAS(Tail, n)                             doorway ends
//!  3  if pred = NIL:           Head := n
//!  4  else if pred.session = s:
//!  5      enabled := FAS(pred.link, n) = ENABLED       else pred enables us when it is enabled
//!  6      if FAS(pred.next, n) = GONE: Head := n       last touch of pred
//!  7      if not enabled: await me.go
//!  8  else:
//!  9      if FAS(pred.next, n) = GONE: Head := n       everyone before us has left
//! 10      else: await me.go                            the last of them to leave tells us
//! 11  succ := FAS(n.link, ENABLED)                     last touch of n by us
//! 12  if succ ≠ NIL: succ.user.go := true              only same-session successors are in link
//!
//! exit
//! 13  acquire(ExitLock)
//! 14  h := Head
//! 15  if CAS(Tail, h, NIL): nothing is left to do      Head is written (line 3) before it is read again
//! 16  else if not CAS(h.next, NIL, GONE):              h has a linked successor
//! 17      x := h.next; Head := x
//! 18      if x.session ≠ h.session: x.user.go := true  the signal awaited in line 10
//! 19  release(ExitLock)
//! 20  me.ready := me.cool; me.cool := h
//! ```
//!
//! # Invariants
//! 1. *Nodes are type-stable*: every pointer to a node or record in a register of the lock came
//!    from its stores, which live as long as the lock.
//! 2. *Nodes are conserved*: a node is in the queue, or is the `ready` or `cool` node of one
//!    process. A passage puts `ready` in and takes one node out (line 20).
//! 3. *A cool node rests for one passage.* If line 16 found no linked successor, a late one may
//!    still access `h` (lines 4-6, 9). It has done so before any passage that began later is
//!    enabled, so before the next exit of its owner makes `h` ready again.
//!
//! # Orderings
//! Line 1 is relaxed, and the releases of lines 2, 5, 6 and 9 publish it: a process that finds a
//! node through `Tail`, `link`, `next` or `Head` acquires one of them. `Head` is written by release
//! and read by acquire, within the chain of hand-overs that admits the reader: line 3, 6 or 9 comes
//! before line 11 of the same process, line 11 (or the flag's release) before the entry of those it
//! enables, and line 17 before the release of the exit lock or of the flag.

use core::marker::PhantomData;

use crate::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock, over the exit lock `L`. See the [module](self).
#[derive(Debug)]
pub struct Handover<M: Memory = Native, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    head: M::Register<Ptr<Node<M>>>,
    tail: M::Register<Ptr<Node<M>>>,
    exit_lock: L,
    nodes: Nodes<M, Node<M>, Spare<M>>,
    records: Nodes<M, Record<M>, ()>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Node<M: Memory> {
    session: M::Register<u64>,
    next: M::Register<Ptr<Node<M>>>,
    link: M::Register<Ptr<Node<M>>>,
    user: M::Register<Ptr<Record<M>>>,
}

impl<M: Memory> Node<M> {
    /// In `next`: all up to this node have left, and no successor was known then.
    const GONE: Ptr<Self> = Ptr::MARK_1;
    /// In `link`: this node's user may enter.
    const ENABLED: Ptr<Self> = Ptr::MARK_2;

    /// No process reads this node before its next user has initialised it.
    #[inline(always)]
    fn forget(&self) {
        self.session.forget();
        self.next.forget();
        self.link.forget();
        self.user.forget();
    }
}

/// What stays with a process: the bit it waits on.
#[derive(Debug)]
#[repr(align(128))]
pub struct Record<M: Memory> {
    go: M::Flag,
}

/// What a process has while it is idle. The next process to join gets it unchanged: the cool node
/// is cool for that process too (invariant 3).
#[derive(Debug)]
struct Spare<M: Memory> {
    me: Ptr<Record<M>>,
    ready: Ptr<Node<M>>,
    cool: Ptr<Node<M>>,
}

/// A process: its record, its spare nodes, and its part in the exit lock.
#[derive(Debug)]
pub struct Process<M: Memory, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    spare: Spare<M>,
    exit: L::Process,
    memory: PhantomData<M>,
}

impl<M: Memory, L: RawMutex<M>> Handover<M, L> {
    /// How many nodes there are: two for each process of the largest number at once.
    pub fn nodes(&self) -> usize {
        self.nodes.allocated()
    }

    /// The node that `p` points to.
    #[inline(always)]
    fn at(&self, p: Ptr<Node<M>>) -> &Node<M> {
        // SAFETY: invariant 1, and `&self` holds the lock; nodes are made of registers, so `Sync`.
        unsafe { M::follow(p) }
    }

    /// The record that `p` points to.
    #[inline(always)]
    fn record(&self, p: Ptr<Record<M>>) -> &Record<M> {
        // SAFETY: invariant 1, and `&self` holds the lock; records are made of flags, so `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory, L: RawMutex<M>> RawGroup<M> for Handover<M, L> {
    type Process = Process<M, L>;

    fn claims() -> Claims {
        let exit_lock = L::claims();
        Claims {
            name: "handover",
            source: "after Maor and Taubenfeld 2021, corrected",
            text: text!("handover.rs"),
            starvation_freedom: exit_lock.starvation_freedom,
            fcfs: Claim::Yes,
            fife: Claim::Yes,
            entering: Entering::STRONG_GROUP,
            exit: Exit::through(&exit_lock),
            rmr_cc: exit_lock.rmr_cc,
            rmr_dsm: exit_lock.rmr_dsm,
            space: Growth::Linear,
            primitives: &[
                Primitive::Read,
                Primitive::Write,
                Primitive::FetchAndStore,
                Primitive::CompareAndSwap,
            ],
            processes: exit_lock.processes,
            sessions: Limit::None,
            bounded_registers: exit_lock.bounded_registers,
            ..Claims::GROUP
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(Handover {
            head: M::Register::new(Site::shared("Head"), Ptr::NIL),
            tail: M::Register::new(Site::shared("Tail"), Ptr::NIL),
            exit_lock: L::new(processes)?,
            nodes: Nodes::new(),
            records: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Process<M, L>, CapacityError> {
        let exit = self.exit_lock.join()?;
        let node = |p| {
            self.nodes.allocate(|| Node {
                session: M::Register::new(Site::of(p, "session"), 0),
                next: M::Register::new(Site::of(p, "next"), Ptr::NIL),
                link: M::Register::new(Site::of(p, "link"), Ptr::NIL),
                user: M::Register::new(Site::of(p, "user"), Ptr::NIL),
            })
        };
        let spare = self.nodes.take(|p| Spare {
            me: self.records.allocate(|| Record { go: M::Flag::new(Site::of(p, "go"), false) }),
            ready: node(p),
            cool: node(p),
        });
        Ok(Process { spare, exit, memory: PhantomData })
    }

    unsafe fn leave(&self, me: Process<M, L>) {
        self.nodes.give_back(me.spare);
        // SAFETY: it joined with us, and is idle as we are.
        unsafe { self.exit_lock.leave(me.exit) };
    }

    #[inline]
    unsafe fn enter(&self, me: &mut Process<M, L>, session: Session) {
        let s = session.get();
        let go = &self.record(me.spare.me).go;
        let node = me.spare.ready;
        let n = self.at(node);
        n.session.write(s, Relaxed); // 1: published by line 2, as the rest of 1 is
        n.next.write(Ptr::NIL, Relaxed); // 1
        n.link.write(Ptr::NIL, Relaxed); // 1
        n.user.write(me.spare.me, Relaxed); // 1
        go.set(false); // 1
        let pred = self.tail.fas(node, AcqRel); // 2: acquires pred's line 1, or line 15
        M::doorway_end();
        if pred.is_nil() {
            self.head.write(node, Release); // 3: read in line 14, by those we enable in 11
        } else {
            let pred = self.at(pred);
            let same = pred.session.read(Relaxed) == s; // 4: acquired with `pred` in line 2
            if same {
                let enabled = pred.link.fas(node, AcqRel) == Node::<M>::ENABLED; // 5: pairs with 11
                if enabled {
                    pred.link.forget(); // both of us have been there
                }
                let gone = pred.next.fas(node, AcqRel) == Node::<M>::GONE; // 6: pairs with 16
                if gone {
                    pred.forget();
                    self.head.write(node, Release); // 6
                }
                if !enabled {
                    M::live(|| []);
                    go.wait_for(true); // 7
                }
            } else {
                let gone = pred.next.fas(node, AcqRel) == Node::<M>::GONE; // 9: pairs with 16
                if gone {
                    pred.forget();
                    self.head.write(node, Release); // 9
                } else {
                    M::live(|| []);
                    go.wait_for(true); // 10
                }
            }
        }
        go.forget();
        M::live(|| []);
        let succ = n.link.fas(Node::<M>::ENABLED, AcqRel); // 11: pairs with 5
        n.user.forget(); // only those who are not enabled are signalled
        if !succ.is_nil() {
            n.link.forget(); // our one successor has been there
            let user = self.at(succ).user.read(Relaxed); // 12: acquired with `succ` in line 11
            self.record(user).go.signal(true); // 12: awaited in line 7
        }
    }

    #[inline]
    unsafe fn exit(&self, me: &mut Process<M, L>) {
        // SAFETY: our part in the exit lock joined it when we joined, and is idle outside this
        // function.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 13
        let head = self.head.read(Acquire); // 14
        let h = self.at(head);
        let last = self.tail.cas(head, Ptr::NIL, AcqRel); // 15: pairs with line 2
        if last {
            self.head.forget(); // nobody is inside: line 3 comes before the next look at it
            h.forget();
        } else {
            let linked = !h.next.cas(Ptr::NIL, Node::<M>::GONE, AcqRel); // 16: pairs with 6, 9
            if linked {
                let x = h.next.read(Acquire); // 17: acquires line 6 or 9
                self.head.write(x, Release); // 17: read in line 14
                let x = self.at(x);
                let other = x.session.read(Relaxed) != h.session.read(Relaxed); // 18: as `x` and `h`
                if other {
                    let user = x.user.read(Relaxed); // 18: acquired with `x` in line 17
                    self.record(user).go.signal(true); // 18: awaited in line 10
                }
                h.forget();
            }
        }
        M::live(|| [head.word()]);
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 19
        me.spare.ready = me.spare.cool; // 20
        me.spare.cool = head; // 20
    }

    fn inspect(me: &Process<M, L>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.spare.me.word());
        see("ready", me.spare.ready.word());
        see("cool", me.spare.cool.word());
        L::inspect(&me.exit, see);
    }
}
