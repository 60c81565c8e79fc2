//! Who holds a guard is inside.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::GroupLock;
use crate::cores::{Cancellable, Core, Phases};
use crate::watch::{self, Held};

/// Inside a session, with shared access to the data, until dropped.
///
/// By [`GroupLock::enter`] and its kin. The guard may be sent to another thread and be dropped there.
///
/// Leaking a guard (with [`std::mem::forget`], say) keeps its session inside for good: conflicting requests wait forever, and nothing else
/// happens.
#[must_use = "the session is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct SessionGuard<'a, S, T: ?Sized, C: Core = Phases<S>> {
    core: &'a C,
    /// Not a reference: those who get the room after us may write while we are being dropped.
    data: NonNull<T>,
    pass: C::Pass,
    held: Held,
    marker: PhantomData<&'a T>,
    sessions: PhantomData<fn(S) -> S>,
}

// SAFETY: the guard is `&T`, `&C` and a pass. A pass is used wherever the guard is.
unsafe impl<S: Sync, T: ?Sized + Sync, C: Core + Sync> Send for SessionGuard<'_, S, T, C> where
    C::Pass: Send
{
}
// SAFETY: through `&SessionGuard` one gets `&T` and `&S`.
unsafe impl<S: Sync, T: ?Sized + Sync, C: Core + Sync> Sync for SessionGuard<'_, S, T, C> where
    C::Pass: Sync
{
}

impl<'a, S, T: ?Sized, C: Core<Session = S>> SessionGuard<'a, S, T, C> {
    /// # Safety
    /// `pass` is inside a session of `lock`, and is the guard's from now on.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(crate) unsafe fn new(lock: &'a GroupLock<S, T, C>, pass: C::Pass) -> Self {
        let held = Held::new(lock.request(false));
        SessionGuard {
            core: &lock.core,
            data: lock.data_ptr(),
            pass,
            held,
            marker: PhantomData,
            sessions: PhantomData,
        }
    }

    /// The guard was made for a task.
    pub(crate) fn of_task(mut self) -> Self {
        self.held.of_task();
        self
    }

    /// The session one is inside.
    #[inline]
    pub fn session(&self) -> &S {
        self.held.touch();
        // SAFETY: the guard's pass is inside a session.
        unsafe { self.core.session(&self.pass) }
    }
}

impl<S: Eq + Clone, T: ?Sized, C: Cancellable<Session = S>> SessionGuard<'_, S, T, C> {
    /// Leaves the session and waits for `session`; nothing happens if that is the session already.
    ///
    /// The new request arrives *before* the old session is left: nobody who comes later goes before it unless the [policy](crate::Policy) would have
    /// let them anyway. Those who wait already go first, as they would if the guard were dropped. A guard that is alone and may go before
    /// those who wait changes its session on the spot.
    ///
    /// Nothing learnt from the data before the call need be true after it: others may have been inside.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let lock = GroupLock::new(());
    /// let mut guard = lock.enter("loading");
    /// guard.switch("serving");
    /// assert_eq!(*guard.session(), "serving");
    /// ```
    ///
    /// Two holders of a session who switch to two others wait for each other's leaving and not for each other, so they cannot deadlock.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn switch(&mut self, session: S) {
        watch::asks();
        let _away = self.held.away();
        // SAFETY: the guard's pass is inside a session. No reference to the data exists, as `self` is borrowed mutably.
        unsafe { self.core.switch(&mut self.pass, session) };
    }
}

impl<S, T: ?Sized, C: Core<Session = S>> Deref for SessionGuard<'_, S, T, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.held.touch();
        // SAFETY: whoever is inside a session may read; nobody writes until it has left.
        unsafe { self.data.as_ref() }
    }
}

impl<S, T: ?Sized, C: Core> Drop for SessionGuard<'_, S, T, C> {
    #[inline]
    fn drop(&mut self) {
        self.held.leave();
        // SAFETY: the guard's pass is inside a session, and the guard is gone after this.
        unsafe { self.core.leave(&mut self.pass) };
    }
}

/// Alone inside, with the data to oneself, until dropped. By [`GroupLock::exclusive`] and its kin.
#[must_use = "the room is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct ExclusiveGuard<'a, S, T: ?Sized, C: Core = Phases<S>> {
    core: &'a C,
    data: NonNull<T>,
    pass: C::Pass,
    held: Held,
    marker: PhantomData<&'a mut T>,
    sessions: PhantomData<fn(S) -> S>,
}

// SAFETY: the guard is `&mut T`, `&C` and a pass. `S` is dropped by whoever uses the core: `C: Sync` covers that.
unsafe impl<S: Sync, T: ?Sized + Send, C: Core + Sync> Send for ExclusiveGuard<'_, S, T, C> where
    C::Pass: Send
{
}
// SAFETY: through `&ExclusiveGuard` one gets `&T`.
unsafe impl<S: Sync, T: ?Sized + Sync, C: Core + Sync> Sync for ExclusiveGuard<'_, S, T, C> where
    C::Pass: Sync
{
}

impl<'a, S, T: ?Sized, C: Core<Session = S>> ExclusiveGuard<'a, S, T, C> {
    /// # Safety
    /// `pass` has `lock` to itself, and is the guard's from now on.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(crate) unsafe fn new(lock: &'a GroupLock<S, T, C>, pass: C::Pass) -> Self {
        let held = Held::new(lock.request(true));
        ExclusiveGuard {
            core: &lock.core,
            data: lock.data_ptr(),
            pass,
            held,
            marker: PhantomData,
            sessions: PhantomData,
        }
    }

    /// The guard was made for a task.
    pub(crate) fn of_task(mut self) -> Self {
        self.held.of_task();
        self
    }
}

impl<'a, S: Eq + Clone, T: ?Sized, C: Cancellable<Session = S>> ExclusiveGuard<'a, S, T, C> {
    /// Opens the room to `session` without leaving it: nobody else is inside in between.
    ///
    /// An associated function, so that it does not hide a method of the data: `ExclusiveGuard::downgrade(guard, session)`.
    ///
    /// ```
    /// use grouplock::{ExclusiveGuard, GroupLock};
    ///
    /// let lock = GroupLock::new(vec![3, 1, 2]);
    /// let mut guard = lock.exclusive();
    /// guard.sort();
    /// let sorted = ExclusiveGuard::downgrade(guard, "reading");
    /// assert_eq!(*sorted, [1, 2, 3]);
    /// ```
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn downgrade(this: Self, session: S) -> SessionGuard<'a, S, T, C> {
        let this = ManuallyDrop::new(this);
        // SAFETY: the pass is read once, and the guard it comes from is not dropped.
        let mut pass = unsafe { std::ptr::read(&raw const this.pass) };
        // SAFETY: the pass has the room to itself. If this panics, the room stays taken.
        unsafe { this.core.downgrade(&mut pass, session) };
        // SAFETY: as the pass.
        let mut held = unsafe { std::ptr::read(&raw const this.held) };
        held.now(false);
        SessionGuard {
            core: this.core,
            data: this.data,
            pass,
            held,
            marker: PhantomData,
            sessions: PhantomData,
        }
    }
}

impl<S, T: ?Sized, C: Core<Session = S>> Deref for ExclusiveGuard<'_, S, T, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.held.touch();
        // SAFETY: nobody else is inside.
        unsafe { self.data.as_ref() }
    }
}

impl<S, T: ?Sized, C: Core<Session = S>> DerefMut for ExclusiveGuard<'_, S, T, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.held.touch();
        // SAFETY: nobody else is inside.
        unsafe { self.data.as_mut() }
    }
}

impl<S, T: ?Sized, C: Core> Drop for ExclusiveGuard<'_, S, T, C> {
    #[inline]
    fn drop(&mut self) {
        self.held.leave();
        // SAFETY: the guard's pass has the room to itself, and the guard is gone after this.
        unsafe { self.core.leave_exclusive(&mut self.pass) };
    }
}

/// A [`SessionGuard`] that owns a share of its lock instead of borrowing it. By [`GroupLock::enter_arc`].
#[must_use = "the session is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct OwnedSessionGuard<S, T: ?Sized, C: Core = Phases<S>> {
    lock: Arc<GroupLock<S, T, C>>,
    pass: C::Pass,
    held: Held,
}

impl<S, T: ?Sized, C: Core<Session = S>> OwnedSessionGuard<S, T, C> {
    /// # Safety
    /// `pass` is inside a session of `lock`, and is the guard's from now on.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(crate) unsafe fn new(lock: Arc<GroupLock<S, T, C>>, pass: C::Pass) -> Self {
        let held = Held::new(lock.request(false));
        OwnedSessionGuard { lock, pass, held }
    }

    /// The guard was made for a task.
    pub(crate) fn of_task(mut self) -> Self {
        self.held.of_task();
        self
    }

    /// The session one is inside.
    pub fn session(&self) -> &S {
        self.held.touch();
        // SAFETY: the guard's pass is inside a session.
        unsafe { self.lock.core.session(&self.pass) }
    }

    /// The lock one is inside of.
    ///
    /// An associated function, so that it does not hide a method of the data.
    pub fn lock(this: &Self) -> &Arc<GroupLock<S, T, C>> {
        &this.lock
    }
}

impl<S: Eq + Clone, T: ?Sized, C: Cancellable<Session = S>> OwnedSessionGuard<S, T, C> {
    /// As [`SessionGuard::switch`].
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn switch(&mut self, session: S) {
        watch::asks();
        let _away = self.held.away();
        // SAFETY: the guard's pass is inside a session. No reference to the data exists, as `self` is borrowed mutably.
        unsafe { self.lock.core.switch(&mut self.pass, session) };
    }
}

impl<S, T: ?Sized, C: Core<Session = S>> Deref for OwnedSessionGuard<S, T, C> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.touch();
        // SAFETY: whoever is inside a session may read; nobody writes until it has left.
        unsafe { self.lock.data_ptr().as_ref() }
    }
}

impl<S, T: ?Sized, C: Core> Drop for OwnedSessionGuard<S, T, C> {
    fn drop(&mut self) {
        self.held.leave();
        // SAFETY: the guard's pass is inside a session, and the guard is gone after this.
        unsafe { self.lock.core.leave(&mut self.pass) };
    }
}

impl<S: fmt::Debug, T: ?Sized + fmt::Debug, C: Core<Session = S>> fmt::Debug
    for SessionGuard<'_, S, T, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionGuard")
            .field("session", self.session())
            .field("data", &&**self)
            .finish()
    }
}

impl<S: fmt::Debug, T: ?Sized + fmt::Debug, C: Core<Session = S>> fmt::Debug
    for OwnedSessionGuard<S, T, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSessionGuard")
            .field("session", self.session())
            .field("data", &&**self)
            .finish()
    }
}

impl<S, T: ?Sized + fmt::Debug, C: Core<Session = S>> fmt::Debug for ExclusiveGuard<'_, S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveGuard").field("data", &&**self).finish()
    }
}

impl<S, T: ?Sized + fmt::Display, C: Core<Session = S>> fmt::Display for SessionGuard<'_, S, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<S, T: ?Sized + fmt::Display, C: Core<Session = S>> fmt::Display
    for OwnedSessionGuard<S, T, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<S, T: ?Sized + fmt::Display, C: Core<Session = S>> fmt::Display
    for ExclusiveGuard<'_, S, T, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
