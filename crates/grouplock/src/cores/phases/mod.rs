//! `phases`: an atomic word in front of a queue of phases.
//!
//! # Why not a mutex and a condition variable
//!
//! They would work, but slowly. Each entry and each exit would take the mutex, so holders of one
//! session would wait for each other. A broadcast wakes every waiter, and all but one session go
//! back to sleep. Nothing bounds how often a waiter is overtaken, and a task cannot wait. Here a
//! passage that meets no other session takes two steps on one word; a waiter is woken when it is
//! inside, or when it may try; and a policy says who goes next.
//!
//! # What it is
//!
//! ```text
//!            word                      name                         queue
//!  ┌───────────────────────┐   ┌───────────────────┐   ┌─────────┐ ┌─────────┐ ┌─────────┐
//!  │ holders │ door │ lock │   │ session inside, or│   │ phase B │ │ phase C │ │ phase A │
//!  │         │ bits │ bit  │   │ the last that was │   │ t1 t4 t5│ │ t2      │ │ t3 t6   │
//!  └───────────────────────┘   └───────────────────┘   └─────────┘ └─────────┘ └─────────┘
//! ```
//!
//! * **Entering.** A thread adds itself to the count in one step. If the door was open, the name
//!   cannot change from then on, and the thread compares it. If it is the thread's session, the
//!   thread is inside. If not, and nobody else is counted, the thread may give the room its name.
//!   Otherwise it undoes its count.
//! * **Leaving.** A thread subtracts itself from the count in one step. If `NOTIFY` is set, and the
//!   room is now empty, the thread was alone, or sessions have a limit, the thread takes the
//!   internal lock and admits waiters. If another thread holds the internal lock, that thread
//!   admits them. So leaving never waits.
//! * **Trying.** A try that needs the internal lock looks for it a bounded number of times. Then it
//!   fails. So a try never waits.
//! * **Waiting.** A thread spins for a while. Then it takes the internal lock, joins a phase of the
//!   queue, and sleeps. When the room is handed over, all waiters of a phase are counted in one
//!   step. They are woken after the internal lock is released.
//! * **Inviting.** Where the policy allows overtaking, an empty room is not handed over to a phase
//!   of threads. One of them is woken. If the room is still empty when that thread runs, its phase
//!   enters. If not, it sleeps again.
//! * **Reserving.** A thread that asks to be alone shuts the door for a few microseconds before it
//!   yields its processor, and takes the room if the holders leave (`reserving.rs`).
//!
//! The name stays when the room becomes empty. A session that returns to an empty room needs no
//! more than the two steps.
//!
//! # Invariants
//!
//! 1. Only the thread that holds `LOCKED`, and set `CHANGING` in a step that left the count at 0,
//!    writes the name. (Or a holder that is alone, and holds `LOCKED`.)
//! 2. A thread reads the name only while it holds `LOCKED`, or while it is counted by a step that
//!    found the door open or that was made under `LOCKED`.
//! 3. Only the thread that holds `LOCKED` touches the queue.
//! 4. While a bit of `DOOR` is set, the door is shut. A thread that adds its count then, without
//!    `LOCKED`, must not read the name, and must undo the count. (Exceptions: a holder counts
//!    itself once more for its own session; the thread that set `RESERVED` takes the empty room.)
//! 5. When `LOCKED` is released and the queue is not empty, `NOTIFY` is set and somebody is
//!    counted; or a thread has been invited, and will take `LOCKED`.
//! 6. A waiter's signal becomes `Granted` after the waiter was removed from the queue and counted.
//!
//! By 5, no wake-up is lost. The step that releases `LOCKED` compares the whole word. So it fails
//! if the last holder left meanwhile, and the thread looks again. A thread that undoes a count
//! checks `NOTIFY`, as a leaving thread does.
//!
//! # Memory orderings
//!
//! Every write of the word is a read-modify-write, so each continues the release sequences of those
//! before it. Leaving is a release. Entering, locking, and the step that sets `CHANGING` are
//! acquires, and so see what all earlier holders did. The step that ends a change of name is a
//! release, and pairs with entering. A waiter learns that it is inside by an acquire of its
//! [`Signal`]. The thread that admitted it had acquired the word, and wrote the signal with a
//! release.

mod arena;
mod entering;
mod locked;
mod queue;
mod reserving;
mod set_up;
mod switching;
mod tasks;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
mod upgrade;
mod waiter;
mod waiting;
#[expect(unreachable_pub, reason = "the same file stands where the lab needs it public")]
mod word;

use std::borrow::Cow;
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll};
use std::time::Instant;

use self::locked::Locked;
use self::queue::Queue;
use self::waiting::{Duty, QueuedThread};
use self::word::{EXCLUSIVE, LIMITED, LOCKED, MUST_LOCK, NOTIFY, ONE_HOLDER, SLEEPER};
use super::Core;
use crate::sync::{self, Shared, Word};
use crate::{Policy, Snapshot, watch};

pub(crate) use self::queue::Priorities;
pub(crate) use self::tasks::Waiting;
pub(crate) use self::waiter::Signal;
pub(crate) use self::word::MOST_HOLDERS;

/// The default core: an atomic word in front of a queue of phases, with the policies of [`Policy`].
///
/// A passage that meets no other session takes two atomic steps. Threads and tasks wait in one
/// queue.
pub struct Phases<S> {
    word: Word,
    /// Allocated for the first waiter; at once if the policy is not the default.
    queue: Shared<Option<Box<Queue<S>>>>,
    /// Whether there is a name. There is none until a session has been inside. Guarded as the name
    /// is. It lies in the padding behind the word.
    named: Shared<bool>,
    /// The session inside, or the last session that was inside.
    name: Shared<MaybeUninit<S>>,
}

// SAFETY: the lock owns sessions, and the thread that owns the lock drops them; the handles of
// threads and tasks in the queue are `Send`.
unsafe impl<S: Send> Send for Phases<S> {}
// SAFETY: threads compare and clone the session inside at the same time (`Sync`), and drop a
// session that another thread put there (`Send`). The word orders all other access to the cells, as
// the invariants say.
unsafe impl<S: Send + Sync> Sync for Phases<S> {}

impl<S> Phases<S> {
    /// With the default policy. Allocates nothing.
    #[cfg(not(any(loom, shuttle)))]
    pub const fn new() -> Self {
        Phases {
            word: Word::new(0),
            named: Shared::new(false),
            queue: Shared::new(None),
            name: Shared::new(MaybeUninit::uninit()),
        }
    }

    /// With the default policy. Allocates nothing.
    #[cfg(any(loom, shuttle))]
    pub fn new() -> Self {
        Phases {
            word: Word::new(0),
            named: Shared::new(false),
            queue: Shared::new(None),
            name: Shared::new(MaybeUninit::uninit()),
        }
    }

    /// With `policy`.
    pub fn with_policy(policy: Policy) -> Self {
        if policy == Policy::EVENTUAL {
            Self::new()
        } else {
            Self::with_queue(Queue::new(policy, None))
        }
    }

    /// With [`Policy::Priority`] and a priority for each session; `None` means exclusive requests.
    pub(crate) fn with_priorities(aging: std::time::Duration, priorities: Priorities<S>) -> Self {
        Self::with_queue(Queue::new(Policy::Priority { aging }, Some(priorities)))
    }

    /// As [`GroupLock::at_most`](crate::GroupLock::at_most).
    #[must_use]
    pub fn at_most(mut self, most: impl Fn(&S) -> usize + Send + Sync + 'static) -> Self {
        let queue = self.queue.get_mut();
        queue.get_or_insert_with(|| Box::new(Queue::new(Policy::EVENTUAL, None))).most =
            Some(Box::new(most));
        // Relaxed: no other thread has the lock yet.
        self.word.fetch_or(LIMITED | MUST_LOCK, Relaxed);
        self
    }

    fn with_queue(queue: Queue<S>) -> Self {
        let mut phases = Self::new();
        *phases.queue.get_mut() = Some(Box::new(queue));
        phases
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// Subtracts a count: of a holder that leaves, or of a thread that may not enter.
    #[inline]
    fn give_back(&self, count: u32) {
        // Release: a thread that acquires the word later sees what the holder did.
        let word = self.word.fetch_sub(count, Release);
        if word & NOTIFY != 0 {
            self.admit_waiters(word, count);
        }
    }

    /// Admits waiters, if there is room for them and the internal lock is free. Never waits.
    #[cold]
    fn admit_waiters(&self, before: u32, count: u32) {
        if !word::must_admit_waiters(before, count) {
            return;
        }
        let lock = |word| word::must_still_admit_waiters(word, before).then_some(word | LOCKED);
        // Acquire: as in `lock`. Relaxed: only the step that succeeds matters.
        if self.word.fetch_update(Acquire, Relaxed, lock).is_ok() {
            Locked::new(self).admit_waiters();
        }
    }

    /// Takes the internal lock.
    fn lock(&self) -> Locked<'_, S> {
        let mut looks = 0;
        // Relaxed: only the step below that succeeds gives access to anything.
        let mut word = self.word.load(Relaxed);
        loop {
            if word & LOCKED == 0 {
                // Acquire: pairs with the release in `Locked::release`, for the queue and the name.
                match self.word.compare_exchange_weak(word, word | LOCKED, Acquire, Relaxed) {
                    Ok(_) => return Locked::new(self),
                    Err(now) => word = now,
                }
            } else if looks < sync::PATIENT_LOOKS {
                looks += 1;
                sync::relax();
                word = self.word.load(Relaxed);
            } else if word & SLEEPER == 0 {
                // Relaxed: only a notice to the thread that releases.
                word = match self.word.compare_exchange_weak(word, word | SLEEPER, Relaxed, Relaxed)
                {
                    Ok(_) => word | SLEEPER,
                    Err(now) => now,
                };
            } else {
                sync::wait(&self.word, word);
                word = self.word.load(Relaxed);
            }
        }
    }

    /// Takes the internal lock if it is free.
    fn try_lock(&self) -> Option<Locked<'_, S>> {
        let word = self.word.load(Relaxed);
        let free = word & LOCKED == 0;
        // Acquire: as in `lock`.
        (free && self.word.compare_exchange(word, word | LOCKED, Acquire, Relaxed).is_ok())
            .then(|| Locked::new(self))
    }
}

impl<S> Phases<S> {
    /// The name of the session inside.
    ///
    /// # Safety
    /// The caller may read the name by invariant 2 for as long as it uses the reference.
    #[inline]
    unsafe fn name(&self) -> Option<&S> {
        // SAFETY: no thread writes it meanwhile, by invariants 1 and 2.
        let named = unsafe { *self.named.read() };
        // SAFETY: as above.
        let name = unsafe { &*self.name.read() };
        // SAFETY: there is a name.
        named.then(|| unsafe { name.assume_init_ref() })
    }

    /// Replaces the name, and returns the old one if there was one.
    ///
    /// # Safety
    /// The caller may write the name by invariant 1.
    unsafe fn rename(&self, name: S) -> Option<S> {
        // SAFETY: `LOCKED` is held (invariants 1 and 3).
        if let Some(queue) = unsafe { &mut *self.queue.write() } {
            queue.epoch += 1;
        }
        // SAFETY: no other thread reads or writes the name meanwhile.
        let place = unsafe { &mut *self.name.write() };
        let old = mem::replace(place, MaybeUninit::new(name));
        // SAFETY: as above.
        let named = mem::replace(unsafe { &mut *self.named.write() }, true);
        // SAFETY: there was a name.
        named.then(|| unsafe { old.assume_init() })
    }
}

impl<S: Eq + Clone> Phases<S> {
    /// The caller is a holder of a session. It enters once more if nobody waits and `confirm`
    /// agrees. `confirm` runs under the internal lock: a thread that joins the queue later sees
    /// what it did.
    pub(super) fn enter_again_if(&self, confirm: impl FnOnce() -> bool) {
        let mut locked = self.lock();
        if locked.has_waiters() {
            return;
        }
        // Relaxed, both times: the caller is inside already, and stays inside.
        self.word.fetch_add(ONE_HOLDER, Relaxed);
        if !confirm() {
            self.word.fetch_sub(ONE_HOLDER, Relaxed);
        }
    }
}

impl<S> Drop for Phases<S> {
    fn drop(&mut self) {
        watch::gone(ptr::from_ref(self).addr());
        if *self.named.get_mut() {
            // SAFETY: there is a name, and no thread will read it again.
            unsafe { self.name.get_mut().assume_init_drop() };
        }
    }
}

// SAFETY: the invariants above. A holder may read `name`, as it is counted. A request that is
// cancelled is removed from the queue under the internal lock; if it was granted the room, it
// leaves.
unsafe impl<S: Eq + Clone> Core for Phases<S> {
    type Session = S;
    type Pass = ();
    type Waiting = Waiting;

    #[inline]
    fn enter(&self, session: Option<S>) {
        let inside = self.enter_by(session, None);
        debug_assert!(inside, "without a deadline, waiting ends inside");
    }

    #[inline]
    unsafe fn leave(&self, (): &mut ()) {
        self.give_back(ONE_HOLDER);
    }

    #[inline]
    unsafe fn leave_exclusive(&self, (): &mut ()) {
        self.give_back(ONE_HOLDER | EXCLUSIVE);
    }

    #[inline]
    unsafe fn session<'a>(&'a self, (): &'a ()) -> &'a S {
        // SAFETY: a holder of a session is counted.
        unsafe { self.name() }.expect("the room has had a name since the holder entered")
    }

    fn try_snapshot(&self) -> Option<Snapshot<S>> {
        self.try_lock().map(|mut locked| locked.snapshot())
    }

    #[inline]
    fn try_enter(&self, session: Option<S>) -> Option<()> {
        self.try_by(session).then_some(())
    }

    #[inline]
    fn enter_until(&self, session: Option<S>, deadline: Instant) -> Option<()> {
        self.enter_by(session, Some(deadline)).then_some(())
    }

    #[inline]
    fn poll_enter(
        &self,
        session: Option<&S>,
        waiting: &mut Option<Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if waiting.is_none() && self.fast(&mut session.map(Cow::Borrowed)) {
            return Poll::Ready(());
        }
        self.poll_slow(session, waiting, cx)
    }

    fn cancel(&self, Waiting { id, signal, watch }: Waiting, exclusive: bool) {
        self.withdraw(id, &signal);
        watch.end(watch::RequestInfo::of(self, exclusive), false);
    }

    unsafe fn switch(&self, (): &mut (), session: S, deadline: Option<Instant>) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.switch_by(session, deadline, || ()) }
    }

    unsafe fn try_switch(&self, (): &mut (), session: S) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.switch_at_once(session) }
    }

    unsafe fn poll_switch(
        &self,
        (): &mut (),
        session: &S,
        waiting: &mut Option<Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // SAFETY: the caller's promise.
        unsafe { self.switch_task(session, waiting, cx) }
    }

    unsafe fn again(&self, (): &()) {
        self.enter_again();
    }

    unsafe fn downgrade(&self, (): &mut (), session: S) {
        let mut locked = self.lock();
        locked.open(session, false);
    }

    #[inline]
    fn enter_with(&self, session: &S) -> ((), bool) {
        let ready = self.fast_set_up(session);
        ((), !ready && self.wait_set_up(session, || ()))
    }

    fn poll_enter_with(
        &self,
        session: &S,
        waiting: &mut Option<Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<((), bool)> {
        self.poll_set_up(session, waiting, cx).map(|alone| ((), alone))
    }

    unsafe fn finish_set_up(&self, (): &mut (), session: S) {
        self.lock().open(session, true);
    }

    fn epoch(&self) -> u64 {
        self.lock().queue().epoch
    }

    fn snapshot(&self) -> Snapshot<S> {
        self.lock().snapshot()
    }
}

impl<S> Default for Phases<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Eq + Clone + fmt::Debug> fmt::Debug for Phases<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("Phases");
        match self.try_snapshot() {
            Some(snapshot) => form.field("snapshot", &snapshot).finish(),
            None => form.finish_non_exhaustive(),
        }
    }
}
