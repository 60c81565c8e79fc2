//! [`handover_withdraw`](super::handover_withdraw) in steps, for a lock whose waiters may be tasks.
//!
//! The entry section, divided where a process waits: [`ask`](HandoverWithdraw::ask) makes lines
//! 1-9, [`look`](HandoverWithdraw::look) and [`give_up`](HandoverWithdraw::give_up) what may
//! follow. So a waiter need not be a thread.
//!
//! Besides the steps for waiters that sleep ([`Flag::signal_unless_away`]), it adds two things to
//! the algorithm:
//!
//! * **Trying.** A request whose line 2 is a compare-and-swap. It reads the last node first, and
//!   enters the queue only if that node was enabled and of its own session, or there was none. The
//!   read is a hint: it may be outdated when the swap succeeds, because nodes are used again. Then
//!   it is an ordinary request, and is withdrawn at once.
//! * **Changing the session.** A holder that is alone inside replaces the node at the head, `h`, by
//!   an enabled node of another session, `m`. It is a withdrawal of `h` with `m` as its predecessor
//!   (lines 28-34), by a process that holds the exit lock: `FORWARD` sends a late successor to `m`.
//!   For the processes behind, it is as if a request for the new session had arrived directly after
//!   `h`, and `h` had left.
//!
//! The tests of `GroupLock` over this algorithm check both, with loom and shuttle. The lab explores
//! them with waiters that sleep and have line 12 made for them (`tests/steps` of
//! `grouplock-mutants`): mutual exclusion, no state in which all wait, no read of dead contents.
//! Over the ideal exit lock:
//!
//! | besides waiting for one of two sessions, a process may | two processes | states | three, one passage each | states |
//! |---|---|---|---|---|
//! | do nothing else | any number of passages | 9,683 | | 14,136 |
//! | give up | any number | 54,404 | | 175,661 |
//! | enter alone and change to session 1 | any number | 182,235 | not in the tests | |
//! | change from a session to the other if it is the last | any number | 140,768 | not explored | |
//! | try | two passages each | 156,625 | | 91,619 |
//! | try session 1 | three passages each | 1,889,520 | not explored | |
//!
//! In its third passage a process uses its first node again. So in the last row requests that try
//! follow an outdated hint and are withdrawn. (A text that lets them enter is convicted there.) Two
//! processes were also explored over the published exit lock: waiting, 33,759 states, and giving
//! up, 340,006, in any number of passages, and trying in one passage, 4,751.

use super::handover_withdraw::{HandoverWithdraw, Node, Process};
use crate::Session;
use crate::memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::memory::{Flag, Memory, Ptr, Register};
use crate::prelude::*;

/// How often a request that tries repeats because another request was faster.
const TRIES: usize = 8;

impl<M: Memory, L: RawMutex<M>> HandoverWithdraw<M, L> {
    /// The flag on which `me` waits, from [`ask`](HandoverWithdraw::ask) on.
    pub fn flag(&self, me: &Process<M, L>) -> &M::Flag {
        &self.record(me.spare.me).go
    }

    /// The name of `me` in [`visit`](HandoverWithdraw::visit).
    pub fn name(me: &Process<M, L>) -> *const () {
        me.spare.me.place()
    }

    /// Requests `session`. Returns whether inside.
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section. If this returns false, it is waiting.
    #[inline]
    pub unsafe fn ask(&self, me: &mut Process<M, L>, session: Session) -> bool {
        self.initialise(me, session.get());
        let pred = self.tail.fas(me.spare.ready, AcqRel); // 2
        M::doorway_end();
        let enabled = self.arrive(me, session.get(), pred);
        if enabled {
            self.pass_on(me);
        }
        enabled
    }

    /// Enters `session` if that is inside and no process waits, or no process is inside. It waits
    /// for no holder. Very rarely it has to withdraw, and so to wait for the exit lock. Returns
    /// whether inside.
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section, and is so again if this returns
    /// false.
    #[inline]
    pub unsafe fn try_ask(&self, me: &mut Process<M, L>, session: Session) -> bool {
        let s = session.get();
        for tried in 0..TRIES {
            M::live(|| [tried.word()]);
            let pred = self.tail.read(Acquire); // 2
            // A hint: another process may already use the node.
            let open = pred.is_nil() || {
                let p = self.at(pred);
                p.session.read(Relaxed) == s && p.link.read(Relaxed) == Node::<M>::ENABLED // 4, 5
            };
            if !open {
                return false;
            }
            self.initialise(me, s);
            let came = self.tail.cas(pred, me.spare.ready, AcqRel); // 2
            if came {
                M::doorway_end();
                let inside = self.arrive(me, s, pred) || self.withdraw(me, s);
                if inside {
                    self.pass_on(me);
                }
                return inside;
            }
        }
        false
    }

    /// Whether a process that waits is inside now.
    ///
    /// # Safety
    /// `me` is waiting, and is so still if this returns false.
    #[inline]
    pub unsafe fn look(&self, me: &mut Process<M, L>) -> bool {
        let enabled = self.flag(me).holds(true); // 10
        if enabled {
            self.go_in(me);
        }
        enabled
    }

    /// Withdraws the request for `session`. Returns whether inside after all.
    ///
    /// # Safety
    /// `me` is waiting for `session`; if this returns false, it is in its remainder section.
    pub unsafe fn give_up(&self, me: &mut Process<M, L>, session: Session) -> bool {
        // If another process makes line 12 for us, processes behind us may enter and leave before
        // we are signalled. Then our predecessor may be out of the queue.
        let back = self.flag(me).comes_back();
        let enabled = if back {
            self.withdraw(me, session.get())
        } else {
            self.flag(me).wait_for(true); // 27
            true
        };
        if enabled {
            self.go_in(me);
        }
        enabled
    }

    /// The signal has arrived.
    fn go_in(&self, me: &Process<M, L>) {
        if !self.flag(me).stood_in() {
            self.pass_on(me);
        }
    }

    /// Changes the room to `session`, without leaving it. If `me` holds it as one of a session, it
    /// does so only if no other process is inside or waits; otherwise nothing happens. Returns
    /// whether it did.
    ///
    /// # Safety
    /// `me` is in its critical section, and no other process is or can be: its session is its own,
    /// or `if_last`.
    pub unsafe fn change(&self, me: &mut Process<M, L>, session: Session, if_last: bool) -> bool {
        // SAFETY: our part in the exit lock joined it when we joined, and is idle inside.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 23
        self.return_passed(me);
        let changed = self.replace_head(me, session.get(), if_last);
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 35
        changed
    }

    /// With the exit lock held.
    fn replace_head(&self, me: &Process<M, L>, s: u64, if_last: bool) -> bool {
        let head = self.head.read(Acquire); // 16
        let h = self.at(head);
        let new = self.spare_node();
        let m = self.at(new);
        m.session.write(s, Relaxed); // 1: published by line 30, 31 or 33, as the rest is
        m.next.write(Ptr::NIL, Relaxed); // 1
        m.link.write(Node::<M>::ENABLED, Relaxed); // 1
        m.user.write(me.spare.me, Relaxed); // 1
        h.prev.write(new, Relaxed); // 6: published by line 31
        let last = self.tail.cas(head, new, AcqRel); // 30: pairs with 2
        if !last && if_last {
            m.forget_but_prev();
            self.keep(new);
            return false;
        }
        self.head.write(new, Release); // 19: read in line 16
        // A late successor is sent on, and takes `h`.
        let forwards = !last && h.next.cas(Ptr::NIL, Node::<M>::FORWARD, AcqRel); // 31: pairs with 7
        if !last && !forwards {
            let next = h.next.read(Acquire); // 32: acquires line 7 of the successor
            let q = self.at(next);
            q.prev.write(new, Relaxed); // 33: guarded by the exit lock
            m.next.write(next, Release); // 33: acquired in line 19 or 28
            let joins = q.session.read(Relaxed) == s; // 34: as `q`
            if joins {
                self.enable(next); // 34
            }
        }
        if !forwards {
            h.forget_but_prev();
            self.keep(head);
        }
        true
    }

    /// Visits the queue from its head: for each request its session and the name of its process.
    /// The requests at the head that share a session are inside, or about to be; the name of such a
    /// request may be that of a process that has left. A request that is not linked yet is not
    /// visited.
    ///
    /// # Safety
    /// `me` joined this lock, and is not inside [`ask`](HandoverWithdraw::ask) or the like.
    pub unsafe fn visit(&self, me: &mut Process<M, L>, mut see: impl FnMut(u64, *const ())) {
        // SAFETY: our part in the exit lock joined it when we joined, and is idle.
        unsafe { self.exit_lock.acquire(&mut me.exit) }; // 23
        let last = self.tail.read(Acquire); // 2
        if !last.is_nil() {
            let mut node = self.head.read(Acquire); // 16
            while node.place().addr() > 2 {
                let n = self.at(node);
                let session = n.session.read(Relaxed); // 4
                let user = n.user.read(Relaxed); // 13
                see(session, user.place());
                node = n.next.read(Acquire); // 28
            }
        }
        // SAFETY: we acquired it above.
        unsafe { self.exit_lock.release(&mut me.exit) }; // 35
    }
}
