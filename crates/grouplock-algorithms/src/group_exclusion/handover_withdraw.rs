//! [`handover`](super::handover) whose waiters can withdraw.
//!
//! Ours. Maor and Taubenfeld write that an abortable algorithm that keeps the properties of theirs
//! would be interesting (DISC 2021, section 5).
//!
//! A waiter that withdraws takes the exit lock and unlinks its node. So exits and withdrawals
//! exclude each other, and a withdrawal competes with two processes that hold no lock:
//!
//! * its **predecessor** in line 12, which may be enabling it: one compare-and-swap on `link`
//!   decides (line 27);
//! * a **late successor** between lines 2 and 7, which has swapped itself into `Tail` and has not
//!   linked itself yet: one compare-and-swap on `Tail` and one on `next` decide (lines 30 and 31).
//!   If the successor loses, it finds the mark `FORWARD` in line 7 and continues with the
//!   predecessor of its predecessor.
//!
//! * **Promises** what `handover` promises, with these differences. First-come-first-served holds
//!   for requests that are not withdrawn. A withdrawal ends, or the process is enabled after all;
//!   it is *group bounded*: some process can complete what it does by a bounded number of its own
//!   steps. Group bounded exit and group concurrent entering are promised while no process
//!   withdraws.
//! * **Costs** O(1) remote references amortised over requests, on both machine models: an entry
//!   follows one `FORWARD` for each predecessor that withdrew while it was between lines 2 and 7.
//!   Exit and withdrawal are O(1). Two nodes and a record per process, and a reserve of at most
//!   N(N-1)/2 nodes for N processes.
//!
//! ```text
//! node:   session, next ∈ {NIL, node, GONE, FORWARD}, link ∈ {NIL, node, ENABLED}, prev: node, user: process
//! me:     go: bool, ready: node, cool: node, passed: nodes
//! shared: Head, Tail (NIL at first), ExitLock, Reserve: nodes, which the exit lock guards
//!
//! enter(s)
//!  1  n := me.ready; n.session := s; n.next := NIL; n.link := NIL; n.user := me; me.go := false
//!  2  pred := FAS(Tail, n)                             doorway ends
//!  3  if pred = NIL: Head := n; go to 12
//!  4  same := (pred.session = s)
//!  5  enabled := same and FAS(pred.link, n) = ENABLED  else pred enables us when it is enabled
//!  6  n.prev := pred
//!  7  y := FAS(pred.next, n)                           last touch of pred, unless it has given up
//!  8  if y = FORWARD: add pred to me.passed; pred := pred.prev; go to 4
//!  9  if y = GONE: Head := n; if same and not enabled: await me.go      pred has sent it before it left
//! 10  else if not enabled: await me.go, or withdraw
//! 12  succ := FAS(n.link, ENABLED)                     last touch of n by us
//! 13  if succ ≠ NIL: succ.user.go := true              only same-session successors are in link
//!
//! exit
//! 14  acquire(ExitLock)
//! 15  move me.passed to Reserve
//! 16  h := Head
//! 17  if CAS(Tail, h, NIL): nothing is left to do
//! 18  else if not CAS(h.next, NIL, GONE):              h has a linked successor
//! 19      x := h.next; Head := x
//! 20      if x.session ≠ h.session: x.user.go := true  the signal awaited in line 10
//! 21  release(ExitLock)
//! 22  me.ready := me.cool; me.cool := h
//!
//! withdraw                                             tells whether we are enabled after all: then on to 12
//! 23  acquire(ExitLock)
//! 24  move me.passed to Reserve
//! 25  if me.go: release(ExitLock); enabled
//! 26  p := n.prev
//! 27  if p.session = s and not CAS(p.link, n, NIL): release(ExitLock); await me.go; enabled       p is in line 12 or 13
//! 28  q := n.next
//!     if q = NIL:
//! 29      p.next := NIL
//! 30      if CAS(Tail, n, p): go to 35                 we were the last
//! 31      if CAS(n.next, NIL, FORWARD): me.ready := a node of Reserve, or a new one; go to 35
//! 32      q := n.next                                  q has linked itself in the meantime
//! 33  q.prev := p; p.next := q
//! 34  if q.session = p.session and FAS(p.link, q) = ENABLED: q.user.go := true       q joins the session of p
//! 35  release(ExitLock); given up
//! ```
//!
//! # Invariants
//! The first three are those of `handover`.
//!
//! 1. *Nodes are type-stable*: every pointer to a node or record in a register of the lock came
//!    from its stores, which live as long as the lock.
//! 2. *Nodes are conserved*: a node is in the queue, marked `FORWARD`, in `Reserve`, or is the
//!    `ready`, `cool` or a `passed` node of one process.
//! 3. *A cool node rests for one completed passage.* A withdrawn request does not count.
//! 4. *The enabled requests are a prefix of the queue*, and `Head` is one of them. So a process
//!    that waits is strictly behind `Head`, and its `prev` is in the queue.
//! 5. *One late process only reads a node marked `FORWARD`*: the one that reaches it in lines 4-8.
//!    That process takes the node.
//! 6. *The reserve suffices.* Take the processes that hold passed nodes or will reach nodes marked
//!    `FORWARD`, in the order of the queue. The nodes of the i-th come from processes whose
//!    requests were directly before it, one from each, and none of these is one of the first i. So
//!    there are at most (N-1) + (N-2) + … = N(N-1)/2 nodes. Exploration checks this: its memory has
//!    exactly so many.
//!
//! # Orderings
//! As in `handover`, line 1 is relaxed, and the releases of lines 2, 5 and 7 publish it. The user
//! of a node writes `prev` before line 7; afterwards it is written under the exit lock. It is read
//! under that lock (26), or by the process that acquired `FORWARD` (8). What withdrawals write to
//! the queue is read under the exit lock, or after an acquire of line 30 or 31. The exit lock
//! guards `Reserve` and `prev` in it.

use core::marker::PhantomData;

use crate::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use crate::handover::Handover;
use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;
use crate::raw::{GiveUp, WithdrawGroup};

/// The lock, over the exit lock `L`. See the [module](self).
#[derive(Debug)]
pub struct HandoverWithdraw<M: Memory = Native, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    pub(super) head: M::Register<Ptr<Node<M>>>,
    pub(super) tail: M::Register<Ptr<Node<M>>>,
    reserve: M::Register<Ptr<Node<M>>>,
    pub(super) exit_lock: L,
    nodes: Nodes<M, Node<M>, Spare<M>>,
    records: Nodes<M, Record<M>, ()>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct Node<M: Memory> {
    pub(super) session: M::Register<u64>,
    pub(super) next: M::Register<Ptr<Node<M>>>,
    pub(super) link: M::Register<Ptr<Node<M>>>,
    pub(super) prev: M::Register<Ptr<Node<M>>>,
    pub(super) user: M::Register<Ptr<Record<M>>>,
}

impl<M: Memory> Node<M> {
    /// In `next`: all up to this node have left, and no successor was known then.
    const GONE: Ptr<Self> = Ptr::MARK_1;
    /// In `next`: this node's user has withdrawn, and no successor was known then.
    pub(super) const FORWARD: Ptr<Self> = Ptr::MARK_2;
    /// In `link`: this node's user may enter.
    pub(super) const ENABLED: Ptr<Self> = Ptr::MARK_2;

    fn new(site: impl Fn(&'static str) -> Site) -> Self {
        Node {
            session: M::Register::new(site("session"), 0),
            next: M::Register::new(site("next"), Ptr::NIL),
            link: M::Register::new(site("link"), Ptr::NIL),
            prev: M::Register::new(site("prev"), Ptr::NIL),
            user: M::Register::new(site("user"), Ptr::NIL),
        }
    }

    /// No process reads this node before its next user has initialised it.
    #[inline(always)]
    fn forget(&self) {
        self.prev.forget();
        self.forget_but_prev();
    }

    /// The same, except for `prev`.
    #[inline(always)]
    pub(super) fn forget_but_prev(&self) {
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
    pub(super) go: M::Flag,
}

/// What a process has while it is idle. The next process to join gets it unchanged.
#[derive(Debug)]
pub(super) struct Spare<M: Memory> {
    pub(super) me: Ptr<Record<M>>,
    pub(super) ready: Ptr<Node<M>>,
    cool: Ptr<Node<M>>,
}

/// A process: its record, its nodes, and its part in the exit lock.
#[derive(Debug)]
pub struct Process<M: Memory, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    pub(super) spare: Spare<M>,
    /// The first and the last of the nodes that it has passed, linked by `prev`.
    passed: (Ptr<Node<M>>, Ptr<Node<M>>),
    pub(super) exit: L::Process,
    memory: PhantomData<M>,
}

impl<M: Memory, L: RawMutex<M>> HandoverWithdraw<M, L> {
    /// How many nodes there are: for N processes at once, at most 2N, N(N-1)/2 that late processes
    /// may hold, and N + 1 if holders change their session.
    pub fn nodes(&self) -> usize {
        self.nodes.allocated()
    }

    /// The node that `p` points to.
    #[inline(always)]
    pub(super) fn at(&self, p: Ptr<Node<M>>) -> &Node<M> {
        // SAFETY: invariant 1, and `&self` holds the lock; nodes are made of registers, so `Sync`.
        unsafe { M::follow(p) }
    }

    /// The record that `p` points to.
    #[inline(always)]
    pub(super) fn record(&self, p: Ptr<Record<M>>) -> &Record<M> {
        // SAFETY: invariant 1, and `&self` holds the lock; records are made of flags, so `Sync`.
        unsafe { M::follow(p) }
    }

    /// Requests session `s`. Returns whether the process is inside. Otherwise it has withdrawn.
    #[inline]
    fn request(&self, me: &mut Process<M, L>, s: u64, give_up: Option<GiveUp<'_>>) -> bool {
        self.initialise(me, s);
        let pred = self.tail.fas(me.spare.ready, AcqRel); // 2: acquires pred's line 1, or line 17 or 30
        M::doorway_end();
        if !self.arrive(me, s, pred) {
            let go = &self.record(me.spare.me).go;
            M::live(|| []);
            match give_up {
                None => go.wait_for(true), // 10
                Some(give_up) => {
                    let enabled = go.wait_unless(true, give_up); // 10
                    if !enabled && !self.withdraw(me, s) {
                        return false;
                    }
                }
            }
        }
        self.pass_on(me);
        true
    }

    /// Initialises the ready node for session `s`.
    #[inline]
    pub(super) fn initialise(&self, me: &Process<M, L>, s: u64) {
        let n = self.at(me.spare.ready);
        n.session.write(s, Relaxed); // 1: published by line 2, as the rest of 1 is
        n.next.write(Ptr::NIL, Relaxed); // 1
        n.link.write(Ptr::NIL, Relaxed); // 1
        n.user.write(me.spare.me, Relaxed); // 1
        self.record(me.spare.me).go.set(false); // 1
    }

    /// Enters the queue behind `pred`. Returns whether enabled.
    #[inline]
    pub(super) fn arrive(&self, me: &mut Process<M, L>, s: u64, pred: Ptr<Node<M>>) -> bool {
        if !pred.is_nil() {
            return self.line_up(me, s, pred);
        }
        self.head.write(me.spare.ready, Release); // 3: read in line 16, by those we enable in 12
        true
    }

    /// The process is enabled. It enables its successor, if that is of the same session.
    #[inline]
    pub(super) fn pass_on(&self, me: &Process<M, L>) {
        let n = self.at(me.spare.ready);
        self.record(me.spare.me).go.forget();
        n.prev.forget(); // only those who wait are asked for it
        M::live(|| []);
        let succ = n.link.fas(Node::<M>::ENABLED, AcqRel); // 12: pairs with 5, 27 and 34
        n.user.forget(); // only those who are not enabled are signalled
        if !succ.is_nil() {
            self.enable(succ); // 13
        }
    }

    /// Signals the user of `node`. If that process sleeps, this makes its line 12 first, and so on:
    /// processes of a session enter together, however long one of them sleeps.
    pub(super) fn enable(&self, mut node: Ptr<Node<M>>) {
        while !node.is_nil() {
            let n = self.at(node);
            let user = n.user.read(Relaxed); // 13, 20, 34: acquired with `node`
            let go = &self.record(user).go;
            if go.signal_unless_away() {
                return; // 13, 20, 34: awaited in lines 9, 10 and 27
            }
            node = n.link.fas(Node::<M>::ENABLED, AcqRel); // 12: pairs with 5, 27 and 34
            go.signal(true); // 13, 20, 34
        }
    }

    /// Links itself behind `pred`. Returns whether enabled.
    fn line_up(&self, me: &mut Process<M, L>, s: u64, mut pred: Ptr<Node<M>>) -> bool {
        let go = &self.record(me.spare.me).go;
        let node = me.spare.ready;
        let n = self.at(node);
        let (same, enabled, gone) = loop {
            M::live(|| [pred.word()]);
            let p = self.at(pred);
            let same = p.session.read(Relaxed) == s; // 4: acquired with `pred` in line 2 or 7
            let enabled = same && p.link.fas(node, AcqRel) == Node::<M>::ENABLED; // 5: pairs with 12
            if enabled {
                p.link.forget(); // both of us have been there
            }
            n.prev.write(pred, Relaxed); // 6: published by line 7
            let next = p.next.fas(node, AcqRel); // 7: pairs with 18 and 31
            if next != Node::<M>::FORWARD {
                break (same, enabled, next == Node::<M>::GONE);
            }
            let before = p.prev.read(Relaxed); // 8: acquired in line 7
            p.forget();
            self.pass(me, pred);
            pred = before;
        };
        if gone {
            self.at(pred).forget();
            M::live(|| [(same && !enabled).word()]);
            self.head.write(node, Release); // 9: read in line 16
            if same && !enabled {
                M::live(|| []);
                go.wait_for(true); // 9
            }
        }
        gone || enabled
    }

    /// Takes a node that was marked `FORWARD` (invariant 5).
    fn pass(&self, me: &mut Process<M, L>, node: Ptr<Node<M>>) {
        let (first, last) = me.passed;
        self.at(node).prev.write(first, Relaxed); // 8: ours until line 15 or 24
        me.passed = (node, if first.is_nil() { node } else { last });
    }

    /// Moves the nodes that this process has passed to the reserve.
    #[track_caller]
    pub(super) fn return_passed(&self, me: &mut Process<M, L>) {
        let (first, last) = core::mem::replace(&mut me.passed, (Ptr::NIL, Ptr::NIL));
        if !first.is_nil() {
            let reserve = self.reserve.read(Relaxed); // 15, 24: guarded by the exit lock, as the rest is
            self.at(last).prev.write(reserve, Relaxed); // 15, 24
            self.reserve.write(first, Relaxed); // 15, 24
        }
    }

    /// Gives a node to the reserve. With the exit lock held.
    pub(super) fn keep(&self, node: Ptr<Node<M>>) {
        let reserve = self.reserve.read(Relaxed); // 31: guarded by the exit lock, as the rest is
        self.at(node).prev.write(reserve, Relaxed); // 31
        self.reserve.write(node, Relaxed); // 31
    }

    /// An unused node.
    pub(super) fn spare_node(&self) -> Ptr<Node<M>> {
        let first = self.reserve.read(Relaxed); // 31: guarded by the exit lock, as the rest is
        if first.is_nil() {
            return self.nodes.allocate(|| Node::new(Site::shared));
        }
        let next = self.at(first).prev.read(Relaxed); // 31
        self.at(first).forget();
        self.reserve.write(next, Relaxed); // 31
        first
    }

    /// Withdraws the request. Returns whether it is enabled after all.
    #[cold]
    pub(super) fn withdraw(&self, me: &mut Process<M, L>, s: u64) -> bool {
        let go = &self.record(me.spare.me).go;
        let node = me.spare.ready;
        let n = self.at(node);
        // SAFETY: our part in the exit lock joined it when we joined, and is idle outside `exit`
        // and this function.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 23
        self.return_passed(me);
        let enabled = go.holds(true); // 25: pairs with 20 and 34
        if enabled {
            M::live(|| []);
            // SAFETY: we acquired it above.
            unsafe { self.exit_lock.release(&mut me.exit) }; // 25
            return true;
        }
        let pred = n.prev.read(Relaxed); // 26: our own write, or guarded by the exit lock
        let p = self.at(pred);
        let same = p.session.read(Relaxed) == s; // 27: in the queue, as `n` is
        let enabling = same && !p.link.cas(node, Ptr::NIL, AcqRel); // 27: pairs with 12
        if enabling {
            p.link.forget(); // both of us have been there
            M::live(|| []);
            // SAFETY: we acquired it above.
            unsafe { self.exit_lock.release(&mut me.exit) }; // 27
            M::live(|| []);
            go.wait_for(true); // 27
            return true;
        }
        let mut next = n.next.read(Acquire); // 28: acquires line 7 of the successor
        if next.is_nil() {
            p.next.write(Ptr::NIL, Relaxed); // 29: published by line 30, 31 or 35
            let last = self.tail.cas(node, pred, AcqRel); // 30: pairs with 2
            if last {
                n.forget();
            } else {
                let forwards = n.next.cas(Ptr::NIL, Node::<M>::FORWARD, AcqRel); // 31: pairs with 7
                if forwards {
                    n.user.forget();
                    M::live(|| []);
                    me.spare.ready = self.spare_node();
                } else {
                    next = n.next.read(Acquire); // 32: acquires line 7 of the successor
                }
            }
        }
        if !next.is_nil() {
            n.forget();
            let q = self.at(next);
            q.prev.write(pred, Relaxed); // 33: guarded by the exit lock
            p.next.write(next, Release); // 33: acquired in line 19 or 28
            let joins = q.session.read(Relaxed) == p.session.read(Relaxed); // 34: as `q` and `p`
            let enabled = joins && p.link.fas(next, AcqRel) == Node::<M>::ENABLED; // 34: pairs with 12
            if enabled {
                p.link.forget(); // both of them have been there
                self.enable(next); // 34
            }
        }
        go.forget();
        M::live(|| []);
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 35
        false
    }
}

impl<M: Memory, L: RawMutex<M>> RawGroup<M> for HandoverWithdraw<M, L> {
    type Process = Process<M, L>;

    fn claims() -> Claims {
        let handover = Handover::<M, L>::claims();
        Claims {
            name: "handover-withdraw",
            source: "ours, after Maor and Taubenfeld 2021",
            text: text!("handover_withdraw.rs"),
            group_bounded_abort: handover.exit.group_bounded,
            rmr_cc: handover.rmr_cc.amortised(),
            rmr_dsm: handover.rmr_dsm.amortised(),
            space: Growth::Quadratic,
            ..handover
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let lock = HandoverWithdraw {
            head: M::Register::new(Site::shared("Head"), Ptr::NIL),
            tail: M::Register::new(Site::shared("Tail"), Ptr::NIL),
            reserve: M::Register::new(Site::shared("Reserve"), Ptr::NIL),
            exit_lock: L::new(processes)?,
            nodes: Nodes::new(),
            records: Nodes::new(),
        };
        if !M::GROWS {
            // As many as can be needed (invariant 6), but not more than a meter with many processes
            // needs.
            for _ in 0..(processes * processes.saturating_sub(1) / 2).min(4 * processes) {
                let node = lock.nodes.allocate(|| Node::new(Site::shared));
                lock.at(node).forget_but_prev();
                lock.keep(node);
            }
        }
        Ok(lock)
    }

    fn join(&self) -> Result<Process<M, L>, CapacityError> {
        let exit = self.exit_lock.join()?;
        let node = |p| self.nodes.allocate(|| Node::new(|name| Site::of(p, name)));
        let spare = self.nodes.take(|p| Spare {
            me: self.records.allocate(|| Record { go: M::Flag::new(Site::of(p, "go"), false) }),
            ready: node(p),
            cool: node(p),
        });
        Ok(Process { spare, passed: (Ptr::NIL, Ptr::NIL), exit, memory: PhantomData })
    }

    unsafe fn leave(&self, me: Process<M, L>) {
        self.nodes.give_back(me.spare);
        // SAFETY: it joined with us, and is idle as we are.
        unsafe { self.exit_lock.leave(me.exit) };
    }

    #[inline]
    unsafe fn enter(&self, me: &mut Process<M, L>, session: Session) {
        self.request(me, session.get(), None);
    }

    #[inline]
    unsafe fn exit(&self, me: &mut Process<M, L>) {
        // SAFETY: our part in the exit lock joined it when we joined, and is idle outside
        // `withdraw` and this function.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 14
        self.return_passed(me);
        let head = self.head.read(Acquire); // 16
        let h = self.at(head);
        let last = self.tail.cas(head, Ptr::NIL, AcqRel); // 17: pairs with line 2
        if last {
            self.head.forget(); // nobody is inside: line 3 comes before the next look at it
            h.forget();
        } else {
            let linked = !h.next.cas(Ptr::NIL, Node::<M>::GONE, AcqRel); // 18: pairs with 7
            if linked {
                let next = h.next.read(Acquire); // 19: acquires line 7 or 33
                self.head.write(next, Release); // 19: read in line 16
                let x = self.at(next);
                let other = x.session.read(Relaxed) != h.session.read(Relaxed); // 20: as `x` and `h`
                if other {
                    self.enable(next); // 20
                }
                h.forget();
            }
        }
        M::live(|| [head.word()]);
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 21
        me.spare.ready = me.spare.cool; // 22
        me.spare.cool = head; // 22
    }

    fn inspect(me: &Process<M, L>, see: &mut dyn FnMut(&'static str, Word)) {
        see("me", me.spare.me.word());
        see("ready", me.spare.ready.word());
        see("cool", me.spare.cool.word());
        L::inspect(&me.exit, see);
    }
}

impl<M: Memory, L: RawMutex<M>> WithdrawGroup<M> for HandoverWithdraw<M, L> {
    #[inline]
    unsafe fn enter_unless(
        &self,
        me: &mut Process<M, L>,
        session: Session,
        give_up: GiveUp<'_>,
    ) -> bool {
        self.request(me, session.get(), Some(give_up))
    }
}
