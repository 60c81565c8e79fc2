//! Maor and Taubenfeld's algorithm, as printed. **A specimen: it does not work.**
//!
//! L. Maor and G. Taubenfeld, "Constant RMR group mutual exclusion for arbitrarily many processes
//! and sessions", DISC 2021, Algorithm 1. The line numbers are the paper's. Use
//! [`handover`](super::handover), which keeps its idea and corrects it.
//!
//! # The flaw
//! A process alternates between its two nodes, and each exit moves `Head` one node on, whichever
//! process leaves. A process that passes quickly through one session returns to a node that is
//! still between `Head` and `Tail`, and clears its `next`. The queue loses count of the holders. No
//! two steps need to overlap:
//!
//! | step | Head | Tail | in the critical section |
//! |---|---|---|---|
//! | a, b, p enter session s | a0 | p0 | a b p |
//! | p leaves, enters s again with node p1 | b0 | p1 | a b p |
//! | p leaves | p0 | p1 | a b |
//! | p enters s again: **p0 is reused while `Head` points at it** | p0 | p0 | a b p |
//! | a leaves: `CAS(Tail, Head, null)` succeeds, the queue looks empty | null | null | b p |
//! | r enters session t: no predecessor, walks in | r0 | r0 | b p, **and r** |
//!
//! The test `the_printed_algorithm_lets_two_sessions_in` runs this table. Three processes are
//! enough if a itself returns and requests t. After its queue is lost, the algorithm may follow a
//! null pointer (lines 40, 43, 47): this text panics there.
//!
//! # Orderings
//! Every access is sequentially consistent, as in the paper's model, except those to the flag `go`.
//! A specimen is not tuned.

use crate::dvir_taubenfeld_1_swap::DvirTaubenfeld1Swap;
use crate::memory::Ordering::SeqCst;
use crate::memory::{Flag, Memory, Native, Ptr, Register, Site, Word};
use crate::nodes::Nodes;
use crate::prelude::*;

/// The lock, over the exit lock `L`. See the [module](self) for why not to use it.
#[derive(Debug)]
pub struct MaorTaubenfeld<M: Memory = Native, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    head: M::Register<Ptr<QNode<M>>>,
    tail: M::Register<Ptr<QNode<M>>>,
    lock: L,
    nodes: Nodes<M, QNode<M>, Own<M>>,
}

/// A place in the queue.
#[derive(Debug)]
#[repr(align(128))]
pub struct QNode<M: Memory> {
    session: M::Register<u64>,
    go: M::Flag,
    next: M::Register<Ptr<QNode<M>>>,
    active: M::Register<u32>,
    status: M::Register<u32>,
}

// `active`
const YES: u32 = 0;
const NO: u32 = 1;
const HELP: u32 = 2;

// `status`
const WAIT: u32 = 0;
const ENABLED: u32 = 1;
const TRY_HELP: u32 = 2;
const NO_HELP: u32 = 3;

/// A process's two nodes and which of them is next.
#[derive(Debug)]
struct Own<M: Memory> {
    nodes: [Ptr<QNode<M>>; 2],
    current: usize,
}

/// A process: its two nodes, and its part in the exit lock.
#[derive(Debug)]
pub struct Process<M: Memory, L: RawMutex<M> = DvirTaubenfeld1Swap<M>> {
    own: Own<M>,
    exit: L::Process,
}

impl<M: Memory, L: RawMutex<M>> MaorTaubenfeld<M, L> {
    /// The node that `p` points to.
    fn at(&self, p: Ptr<QNode<M>>) -> &QNode<M> {
        assert!(
            !p.is_nil(),
            "the algorithm as printed has lost its queue and follows a null pointer"
        );
        // SAFETY: every other pointer in a register or process of this lock came from `self.nodes`,
        // which outlives `&self`; nodes are made of registers, so they are `Sync`.
        unsafe { M::follow(p) }
    }
}

impl<M: Memory, L: RawMutex<M>> RawGroup<M> for MaorTaubenfeld<M, L> {
    type Process = Process<M, L>;

    fn claims() -> Claims {
        const REFUTED: Claim = Claim::Refuted("docs/algorithms/maor_taubenfeld.md");
        let exit_lock = L::claims();
        Claims {
            name: "maor-taubenfeld",
            source: "Maor and Taubenfeld 2021, Algorithm 1",
            text: text!("maor_taubenfeld.rs"),
            mutual_exclusion: REFUTED,
            starvation_freedom: exit_lock.starvation_freedom,
            fcfs: REFUTED,
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
        Ok(MaorTaubenfeld {
            head: M::Register::new(Site::shared("Head"), Ptr::NIL),
            tail: M::Register::new(Site::shared("Tail"), Ptr::NIL),
            lock: L::new(processes)?,
            nodes: Nodes::new(),
        })
    }

    fn join(&self) -> Result<Process<M, L>, CapacityError> {
        let exit = self.lock.join()?;
        let node = |p| {
            self.nodes.allocate(|| QNode {
                session: M::Register::new(Site::of(p, "session"), 0),
                go: M::Flag::new(Site::of(p, "go"), false),
                next: M::Register::new(Site::of(p, "next"), Ptr::NIL),
                active: M::Register::new(Site::of(p, "active"), NO),
                status: M::Register::new(Site::of(p, "status"), WAIT),
            })
        };
        let own = self.nodes.take(|p| Own { nodes: [node(p), node(p)], current: 0 });
        Ok(Process { own, exit })
    }

    unsafe fn leave(&self, me: Process<M, L>) {
        self.nodes.give_back(me.own);
        // SAFETY: it joined with us, and is idle as we are.
        unsafe { self.lock.leave(me.exit) };
    }

    unsafe fn enter(&self, me: &mut Process<M, L>, session: Session) {
        let s = session.get();
        let node_p = me.own.nodes[me.own.current]; // 1
        let node = self.at(node_p);
        node.session.write(s, SeqCst); // 2
        node.go.set(false); // 3
        node.next.write(Ptr::NIL, SeqCst); // 4
        node.status.write(WAIT, SeqCst); // 5
        node.active.write(YES, SeqCst); // 6
        let pred = self.tail.fas(node_p, SeqCst); // 7
        M::doorway_end();
        if pred.is_nil() {
            self.head.write(node_p, SeqCst); // 9
        } else {
            let pred = self.at(pred);
            pred.next.write(node_p, SeqCst); // 11
            let same = pred.session.read(SeqCst) == s; // 12
            if same {
                let enabled = pred.status.cas(ENABLED, NO_HELP, SeqCst); // 13
                if enabled {
                    let active = pred.active.cas(YES, HELP, SeqCst); // 15
                    if !active {
                        self.head.write(node_p, SeqCst); // 16
                    }
                } else {
                    M::live(|| []);
                    node.go.wait_for(true); // 14
                }
            } else {
                let active = pred.active.cas(YES, HELP, SeqCst); // 19
                if active {
                    M::live(|| []);
                    node.go.wait_for(true); // 20
                } else {
                    self.head.write(node_p, SeqCst); // 22
                }
            }
        }
        M::live(|| []);
        node.status.write(ENABLED, SeqCst); // 26
        let next = node.next.read(SeqCst); // 27
        if !next.is_nil() {
            let same = self.at(next).session.read(SeqCst) == s; // 29
            if same {
                let helping = node.status.cas(ENABLED, TRY_HELP, SeqCst); // 30
                if helping {
                    self.at(next).go.signal(true); // 31
                }
            }
        }
    }

    unsafe fn exit(&self, me: &mut Process<M, L>) {
        // SAFETY: our part in the exit lock joined it when we joined, and is idle outside this
        // function.
        unsafe { self.lock.acquire(&mut me.exit) }; // 36
        let temp_head_p = self.head.read(SeqCst); // 37
        let only = self.tail.cas(temp_head_p, Ptr::NIL, SeqCst); // 38
        if only {
            self.head.cas(temp_head_p, Ptr::NIL, SeqCst); // 39
        } else {
            let temp_head = self.at(temp_head_p);
            let linked = !temp_head.next.read(SeqCst).is_nil(); // 40
            if linked {
                let temp_head = temp_head.next.read(SeqCst); // 41
                self.head.write(temp_head, SeqCst); // 42
                self.at(temp_head).go.signal(true); // 43
            } else {
                let inactive = temp_head.active.cas(YES, NO, SeqCst); // 44
                if !inactive {
                    let temp_head = temp_head.next.read(SeqCst); // 45
                    self.head.write(temp_head, SeqCst); // 46
                    self.at(temp_head).go.signal(true); // 47
                }
            }
        }
        M::live(|| []);
        // SAFETY: we acquired it above.
        unsafe { self.lock.release(&mut me.exit) }; // 49
        me.own.current = 1 - me.own.current; // 50
    }

    fn inspect(me: &Process<M, L>, see: &mut dyn FnMut(&'static str, Word)) {
        see("current node", me.own.nodes[me.own.current].word());
        see("other node", me.own.nodes[1 - me.own.current].word());
        L::inspect(&me.exit, see);
    }
}
