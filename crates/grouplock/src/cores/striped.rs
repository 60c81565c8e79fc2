//! `striped`: many cache lines count the holders of the favoured session.
//!
//! ```text
//!   mode: OFF → ON → DRAINING → OFF …        central: a `Phases`
//!   ┌─────────┐ ┌─────────┐     ┌─────────┐
//!   │stripe 0 │ │stripe 1 │  …  │stripe n │  each on its own cache line
//!   └─────────┘ └─────────┘     └─────────┘
//! ```
//!
//! While the mode is ON, all stripes together are *one* holder of the central lock: the favoured
//! session is inside there, even if every stripe is empty. A request for that session adds its
//! count to a stripe and then reads the mode again. A request that must wait at the central lock
//! changes the mode to DRAINING. Then the last thread that leaves a stripe leaves the central lock
//! on behalf of all stripes. The central lock decides the order of the waiters, by its policy.
//!
//! # Invariants
//!
//! 1. The mode is ON or DRAINING exactly while the stripes hold the central lock. (Exception: for a
//!    moment at the beginning and at the end they hold it while the mode is OFF.)
//! 2. A thread that adds its count to a stripe and *then* finds the mode ON is a holder. Every
//!    other thread that adds a count undoes it, and reads nothing. (Exception: a holder on a stripe
//!    counts itself there once more.)
//! 3. The mode never becomes ON twice with the same epoch. So a thread that saw DRAINING and then
//!    finds all stripes empty ends that draining or none.
//!
//! # Memory orderings
//!
//! One thread adds its count and then reads the mode. Another sets the mode and then reads the
//! counts. This is Dekker's pattern, so all these steps are sequentially consistent. The step that
//! leaves a stripe is also a release. It pairs with the acquire of the thread that finds the stripe
//! empty. The mode becomes ON under the internal lock of the central lock, and only if no request
//! waits. A request joins the queue under the same lock and then reads the mode, so it sees an ON
//! that came before.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll};
use std::time::Instant;

use super::Core;
use super::phases::Phases;
use crate::foreign::discard;
use crate::sync::{AtomicU32, AtomicUsize, ENTRIES_TO_FAVOUR, stripe_of_this_thread, stripes};
use crate::{Policy, Snapshot};

const OFF: usize = 0;
const ON: usize = 1;
const DRAINING: usize = 2;
const STATE: usize = 3;
const EPOCH: usize = 4;

/// A stripe with so many holders admits no more. Only leaked guards can reach this number, where
/// `usize` has 32 bits.
const MOST_ON_STRIPE: usize = usize::MAX / 2;

/// A core for many processors that nearly always enter the same session. They rarely share a cache
/// line. Requests for other sessions, or to be alone, read every stripe, so they should be rare.
///
/// After many entries in a row without a waiter, the session of the last entry is favoured.
///
/// A holder that switches is counted at the central lock. If that has
/// [the maximum](crate::GroupLock::MOST_HOLDERS) of holders, the switch panics. A guard that the
/// switch borrows stays inside.
///
/// ```
/// use grouplock::GroupLock;
///
/// let lock = GroupLock::striped(vec![1]);
/// let reading = lock.enter("reading");
/// assert_eq!(reading[0], 1);
/// ```
pub struct Striped<S> {
    central: Phases<S>,
    /// The state in the low bits, above it the epoch.
    mode: AtomicUsize,
    /// The number of entries at the central lock since the mode was last ON or a request waited.
    entries: AtomicU32,
    stripes: Box<[Stripe]>,
}

/// Two cache lines, as processors fetch them in pairs.
#[repr(align(128))]
struct Stripe(AtomicUsize);

/// Which stripe counts a holder. `None`: the central lock does.
#[derive(Clone, Copy, Debug)]
pub struct Pass(Option<u32>);

const CENTRAL: Pass = Pass(None);

impl<S> Striped<S> {
    /// With `policy`.
    pub fn new(policy: Policy) -> Self {
        Striped {
            central: Phases::with_policy(policy),
            mode: AtomicUsize::new(OFF),
            entries: AtomicU32::new(0),
            stripes: (0..stripes()).map(|_| Stripe(AtomicUsize::new(0))).collect(),
        }
    }
}

impl<S: Eq + Clone> Striped<S> {
    #[inline]
    fn is_on(&self) -> bool {
        self.mode.load(SeqCst) & STATE == ON
    }

    /// Enters on a stripe if `session` is the favoured one.
    #[inline]
    fn enter_stripe(&self, session: &S) -> Option<Pass> {
        if !self.is_on() {
            return None;
        }
        let number = stripe_of_this_thread() % self.stripes.len();
        let pin = Pin { lock: self, number };
        let before = self.stripes[number].0.fetch_add(1, SeqCst);
        let on = before < MOST_ON_STRIPE && self.is_on();
        // SAFETY: a holder on a stripe, with the mode ON, is a holder of the central lock.
        if on && unsafe { self.central.session(&()) } == session {
            std::mem::forget(pin);
            return Some(Pass(Some(number as u32)));
        }
        None
    }

    /// As [`enter_stripe`](Striped::enter_stripe), if the room is set up.
    fn enter_stripe_set_up(&self, session: &S) -> Option<Pass> {
        let pass = self.enter_stripe(session)?;
        if let (false, Some(number)) = (self.central.is_set_up(), pass.0) {
            self.leave_stripe(number as usize);
            return None;
        }
        Some(pass)
    }

    #[inline]
    fn leave_stripe(&self, number: usize) {
        // SeqCst, and so a release: pairs with the loads in `drain`.
        self.stripes[number].0.fetch_sub(1, SeqCst);
        let mode = self.mode.load(SeqCst);
        if mode & STATE == DRAINING {
            self.drain(mode);
        }
    }

    /// Ends the favour, because a request waits.
    fn revoke(&self) {
        let mode = self.mode.load(SeqCst);
        if mode & STATE == ON {
            let draining = mode - ON + DRAINING;
            if self.mode.compare_exchange(mode, draining, SeqCst, SeqCst).is_ok() {
                self.drain(draining);
            }
        }
    }

    /// Ends the favour, because a request waits, and begins to count entries again.
    fn revoke_and_restart(&self) {
        self.entries.store(0, Relaxed);
        self.revoke();
    }

    /// The caller has read `mode`, which is DRAINING. Empty stripes leave the central lock.
    #[cold]
    fn drain(&self, mode: usize) {
        let empty = self.stripes.iter().all(|stripe| stripe.0.load(SeqCst) == 0);
        let off = mode - DRAINING + OFF + EPOCH;
        if empty && self.mode.compare_exchange(mode, off, SeqCst, SeqCst).is_ok() {
            // SAFETY: the stripes held the central lock until this step ended DRAINING.
            unsafe { self.central.leave(&mut ()) };
        }
    }

    /// The caller has entered at the central lock. After enough entries, favours the session.
    #[inline]
    fn entered(&self, alone: bool) -> Pass {
        // Relaxed, and two steps: a lost count does no harm.
        let entries = if alone { 0 } else { self.entries.load(Relaxed) + 1 };
        self.entries.store(entries, Relaxed);
        if entries >= ENTRIES_TO_FAVOUR {
            self.favour();
        }
        CENTRAL
    }

    /// The caller is a holder of a session at the central lock. Favours it, unless a request waits.
    #[cold]
    fn favour(&self) {
        self.entries.store(0, Relaxed);
        let mode = self.mode.load(SeqCst);
        // Under the internal lock of the central lock: a waiter sees the mode, or is seen here.
        if mode & STATE == OFF {
            self.central.enter_again_if(|| {
                self.mode.compare_exchange(mode, mode - OFF + ON, SeqCst, SeqCst).is_ok()
            });
        }
    }

    /// Waits until inside, at most until `deadline`.
    #[inline]
    fn enter_by(&self, session: Option<S>, deadline: Option<Instant>) -> Option<Pass> {
        if let Some(pass) = session.as_ref().and_then(|session| self.enter_stripe(session)) {
            discard(session);
            return Some(pass);
        }
        let exclusive = session.is_none();
        let mut asked = session.map(Cow::Owned);
        let inside = if self.central.fast(&mut asked) {
            discard(asked);
            true
        } else {
            self.revoke_and_restart();
            // The mode may have become ON before the request joined the queue.
            self.central.wait(asked, deadline, || self.revoke())
        };
        inside.then(|| self.entered(exclusive))
    }

    /// Moves a holder from its stripe to the central lock. If that has too many holders, panics,
    /// and the holder stays on its stripe.
    fn move_to_central(&self, pass: &mut Pass) {
        if let Some(number) = pass.0 {
            self.central.enter_again();
            *pass = CENTRAL;
            self.leave_stripe(number as usize);
        }
    }

    /// A snapshot of the central lock, plus the holders on the stripes.
    fn with_stripes(&self, mut seen: Snapshot<S>) -> Snapshot<S> {
        if self.mode.load(SeqCst) & STATE != OFF {
            let on_stripes = self.stripes.iter().map(|stripe| stripe.0.load(SeqCst));
            let holders = on_stripes.fold(seen.holders, usize::saturating_add);
            seen.holders = holders.saturating_sub(1);
            seen.session = seen.session.filter(|_| seen.holders > 0);
        }
        seen
    }
}

/// A count on a stripe. Undone when dropped, also if a comparison panics.
struct Pin<'a, S: Eq + Clone> {
    lock: &'a Striped<S>,
    number: usize,
}

impl<S: Eq + Clone> Drop for Pin<'_, S> {
    fn drop(&mut self) {
        self.lock.leave_stripe(self.number);
    }
}

// SAFETY: by invariants 1 and 2, the central lock has a holder for all holders on stripes. Requests
// wait at the central lock, which can withdraw them.
unsafe impl<S: Eq + Clone> Core for Striped<S> {
    type Session = S;
    type Pass = Pass;
    type Waiting = <Phases<S> as Core>::Waiting;

    #[inline]
    fn enter(&self, session: Option<S>) -> Pass {
        let pass = self.enter_by(session, None);
        pass.expect("without a deadline, waiting ends inside")
    }

    #[inline]
    unsafe fn leave(&self, pass: &mut Pass) {
        match pass.0 {
            Some(number) => self.leave_stripe(number as usize),
            // SAFETY: the caller's promise.
            None => unsafe { self.central.leave(&mut ()) },
        }
    }

    #[inline]
    unsafe fn leave_exclusive(&self, _pass: &mut Pass) {
        // SAFETY: the caller's promise. No holder is alone on a stripe.
        unsafe { self.central.leave_exclusive(&mut ()) };
    }

    #[inline]
    unsafe fn session<'a>(&'a self, _pass: &'a Pass) -> &'a S {
        // SAFETY: the caller's promise. The session on the stripes is that of the central lock.
        unsafe { self.central.session(&()) }
    }

    /// The address of the central lock, where requests wait.
    fn address(&self) -> usize {
        self.central.address()
    }

    fn try_snapshot(&self) -> Option<Snapshot<S>> {
        self.central.try_snapshot().map(|seen| self.with_stripes(seen))
    }

    #[inline]
    fn try_enter(&self, session: Option<S>) -> Option<Pass> {
        if let Some(pass) = session.as_ref().and_then(|session| self.enter_stripe(session)) {
            discard(session);
            return Some(pass);
        }
        let exclusive = session.is_none();
        let mut asked = session.map(Cow::Owned);
        let inside = self.central.try_asked(&mut asked) || {
            // Perhaps the room is empty, and only the favour prevents the entry.
            self.revoke();
            self.central.try_asked(&mut asked)
        };
        discard(asked);
        inside.then(|| self.entered(exclusive))
    }

    fn enter_until(&self, session: Option<S>, deadline: Instant) -> Option<Pass> {
        self.enter_by(session, Some(deadline))
    }

    fn poll_enter(
        &self,
        session: Option<&S>,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<Pass> {
        if waiting.is_none()
            && let Some(pass) = session.and_then(|session| self.enter_stripe(session))
        {
            return Poll::Ready(pass);
        }
        if self.central.poll_enter(session, waiting, cx).is_ready() {
            return Poll::Ready(self.entered(session.is_none()));
        }
        self.revoke_and_restart();
        Poll::Pending
    }

    fn cancel(&self, waiting: Self::Waiting, exclusive: bool) {
        self.central.cancel(waiting, exclusive);
    }

    unsafe fn switch(&self, pass: &mut Pass, session: S, deadline: Option<Instant>) -> bool {
        // SAFETY: the caller's promise.
        if unsafe { self.session(pass) } == &session {
            discard(session);
            return true;
        }
        self.move_to_central(pass);
        self.revoke_and_restart();
        // SAFETY: the caller's promise. The caller is a holder of the central lock now.
        unsafe { self.central.switch_by(session, deadline, || self.revoke()) }
    }

    unsafe fn try_switch(&self, pass: &mut Pass, session: S) -> bool {
        // SAFETY: the caller's promise.
        if unsafe { self.session(pass) } == &session {
            discard(session);
            return true;
        }
        self.move_to_central(pass);
        self.revoke();
        // SAFETY: the caller's promise. The caller is a holder of the central lock now.
        unsafe { self.central.switch_at_once(session) }
    }

    unsafe fn poll_switch(
        &self,
        pass: &mut Pass,
        session: &S,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // SAFETY: the caller's promise.
        if unsafe { self.session(pass) } == session {
            return Poll::Ready(());
        }
        self.move_to_central(pass);
        self.revoke_and_restart();
        // SAFETY: the caller's promise. The caller is a holder of the central lock now.
        let switched = unsafe { self.central.poll_switch(&mut (), session, waiting, cx) };
        if switched.is_pending() {
            self.revoke();
        }
        switched
    }

    unsafe fn again(&self, pass: &Pass) -> Pass {
        match pass.0 {
            // There is a holder on the stripe, so one more is inside at once.
            Some(number) => {
                let before = self.stripes[number as usize].0.fetch_add(1, SeqCst);
                if before >= MOST_ON_STRIPE {
                    self.leave_stripe(number as usize);
                    panic!("too many holders");
                }
            }
            None => self.central.enter_again(),
        }
        *pass
    }

    fn enter_with(&self, session: &S) -> (Pass, bool) {
        if let Some(pass) = self.enter_stripe_set_up(session) {
            return (pass, false);
        }
        let alone = !self.central.fast_set_up(session) && {
            self.revoke_and_restart();
            self.central.wait_set_up(session, || self.revoke())
        };
        (self.entered(alone), alone)
    }

    fn poll_enter_with(
        &self,
        session: &S,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<(Pass, bool)> {
        if waiting.is_none()
            && let Some(pass) = self.enter_stripe_set_up(session)
        {
            return Poll::Ready((pass, false));
        }
        if let Poll::Ready(alone) = self.central.poll_set_up(session, waiting, cx) {
            return Poll::Ready((self.entered(alone), alone));
        }
        self.revoke_and_restart();
        Poll::Pending
    }

    unsafe fn finish_set_up(&self, _pass: &mut Pass, session: S) {
        // SAFETY: the caller's promise. No holder is alone on a stripe.
        unsafe { self.central.finish_set_up(&mut (), session) };
    }

    fn epoch(&self) -> u64 {
        self.central.epoch()
    }

    unsafe fn downgrade(&self, _pass: &mut Pass, session: S) {
        // SAFETY: the caller's promise. No holder is alone on a stripe.
        unsafe { self.central.downgrade(&mut (), session) };
    }

    fn snapshot(&self) -> Snapshot<S> {
        self.with_stripes(self.central.snapshot())
    }
}

impl<S: Eq + Clone + fmt::Debug> fmt::Debug for Striped<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("Striped");
        match self.try_snapshot() {
            Some(snapshot) => form.field("snapshot", &snapshot).finish(),
            None => form.finish_non_exhaustive(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A lock with a holder of session 1 on a stripe.
    fn with_holder_on_stripe() -> (Striped<u8>, Pass) {
        let lock = Striped::new(Policy::EVENTUAL);
        for _ in 0..=2 * ENTRIES_TO_FAVOUR {
            let mut pass = lock.enter(Some(1));
            if pass.0.is_some() {
                return (lock, pass);
            }
            // SAFETY: it is inside.
            unsafe { lock.leave(&mut pass) };
        }
        panic!("the session was never favoured");
    }

    /// If the count of a stripe started again from zero, the stripe would seem empty.
    #[test]
    fn a_stripe_does_not_count_more_than_fit() {
        let (lock, pass) = with_holder_on_stripe();
        let stripe = &lock.stripes[pass.0.expect("it is on a stripe") as usize].0;
        stripe.store(MOST_ON_STRIPE, SeqCst);
        assert!(lock.enter(Some(1)).0.is_none(), "the central lock counts it");
        // SAFETY: it is inside.
        let again = catch_unwind(AssertUnwindSafe(|| unsafe { lock.again(&pass) }));
        assert!(again.is_err(), "one too many");
        assert_eq!(stripe.load(SeqCst), MOST_ON_STRIPE);
    }

    /// If the count of the central lock overflowed, the room would seem empty.
    #[cfg(not(miri))]
    #[test]
    fn a_holder_that_the_central_lock_cannot_count_stays_on_its_stripe() {
        let (lock, mut pass) = with_holder_on_stripe();
        // One holder stands for all stripes.
        for _ in 1..crate::cores::MOST_HOLDERS {
            lock.central.enter_again();
        }
        let switch = || {
            // SAFETY: it is inside.
            unsafe { lock.try_switch(&mut pass, 2) }
        };
        assert!(catch_unwind(AssertUnwindSafe(switch)).is_err(), "one too many");
        assert!(pass.0.is_some(), "it is on its stripe");
        assert_eq!(lock.central.snapshot().holders, crate::cores::MOST_HOLDERS);
    }
}
