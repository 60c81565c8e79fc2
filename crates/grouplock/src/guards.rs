//! Guards. A holder has a guard, and dropping the guard leaves.
//!
//! There is one type, [`Guard`]. Its parameters say how it holds the lock (by a reference or an
//! `Arc`) and what it may do with the data (share or change it). The four cases have names.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::GroupLock;
use crate::cores::{Core, Phases};
use crate::future::Switch;
use crate::watch::{self, Held};

/// Inside a session, with shared access to the data, until dropped. From [`GroupLock::enter`].
///
/// Functions of the guard are associated functions, so that they hide no method of the data:
/// [`SessionGuard::session(&guard)`](Guard::session), [`switch`](Guard::switch),
/// [`again`](Guard::again), [`epoch`](Guard::epoch), [`map`](Guard::map).
pub type SessionGuard<'a, S, T, C = Phases<S>, K = Whole> = Guard<&'a C, S, C, Sharing<T, K>>;

/// Alone inside, with `&mut` access to the data, until dropped. From [`GroupLock::exclusive`].
///
/// Associated functions: [`downgrade(guard, session)`](Guard::downgrade), `map(guard, part)`.
pub type ExclusiveGuard<'a, S, T, C = Phases<S>, K = Whole> = Guard<&'a C, S, C, Alone<T, K>>;

/// A [`SessionGuard`] that owns a share of its lock. From [`GroupLock::enter_arc`]. `U` is the part
/// of the data that a [mapped](Guard::map) guard shows. `K` is then [`Part`].
pub type OwnedSessionGuard<S, T, C = Phases<S>, U = T, K = Whole> =
    Guard<Arc<GroupLock<S, T, C>>, S, C, Sharing<U, K>>;

/// An [`ExclusiveGuard`] that owns a share of its lock. From [`GroupLock::exclusive_arc`].
pub type OwnedExclusiveGuard<S, T, C = Phases<S>, U = T, K = Whole> =
    Guard<Arc<GroupLock<S, T, C>>, S, C, Alone<U, K>>;

/// The type of all guards. The type aliases of this module are its four cases.
///
/// A guard may be sent to another thread and be dropped there. A leaked guard (by
/// [`std::mem::forget`], say) keeps its session inside forever: conflicting requests wait forever.
#[must_use = "the room is left at once if the guard is dropped"]
#[clippy::has_significant_drop]
pub struct Guard<H: Handle<C>, S, C: Core<Session = S>, A: Access> {
    pub(crate) lock: H,
    pub(crate) pass: C::Pass,
    /// `None` while the guard is outside: a switch began and has not finished.
    pub(crate) data: Option<A>,
    pub(crate) held: Held,
    sessions: PhantomData<fn(S) -> S>,
}

/// How a guard holds its lock: by a reference to the core, or by an `Arc` of the lock.
pub trait Handle<C>: sealed::Sealed {
    #[doc(hidden)]
    fn core(&self) -> &C;
}

impl<C> Handle<C> for &C {
    #[inline]
    fn core(&self) -> &C {
        self
    }
}

impl<S, T: ?Sized, C> Handle<C> for Arc<GroupLock<S, T, C>> {
    #[inline]
    fn core(&self) -> &C {
        &self.core
    }
}

/// What a guard may do with the data: [`Sharing`] or [`Alone`].
pub trait Access: sealed::Sealed {
    /// The data.
    type Target: ?Sized;
    #[doc(hidden)]
    const EXCLUSIVE: bool;
    #[doc(hidden)]
    fn to(data: NonNull<Self::Target>) -> Self;
    #[doc(hidden)]
    fn data(&self) -> NonNull<Self::Target>;
}

/// Shared access, as by `&T`. `K` says whether it covers all of the data: [`Whole`] or [`Part`].
// Not a reference: a later holder may write while the guard is being dropped.
pub struct Sharing<T: ?Sized, K = Whole>(NonNull<T>, PhantomData<K>);

/// Access as by `&mut T`, with the same variance. `K` is as in [`Sharing`].
pub struct Alone<T: ?Sized, K = Whole>(NonNull<T>, PhantomData<(*mut T, K)>);

/// All of the data.
#[derive(Debug)]
pub struct Whole;

/// A part of the data, which [`map`](Guard::map) chose during this holding. During another holding
/// it may not exist. And other holders of a session may see it through the whole, as the content of
/// a [`Cell`](std::cell::Cell), say. So a guard of a part cannot switch and cannot be downgraded.
#[derive(Debug)]
pub struct Part;

// SAFETY: this is a `&T`.
unsafe impl<T: ?Sized + Sync, K> Send for Sharing<T, K> {}
// SAFETY: this is a `&T`.
unsafe impl<T: ?Sized + Sync, K> Sync for Sharing<T, K> {}
// SAFETY: this is a `&mut T`, which the other thread can downgrade to `&T` while others get `&T`.
unsafe impl<T: ?Sized + Send + Sync, K> Send for Alone<T, K> {}
// SAFETY: this is a `&mut T`, through which others see `&T`.
unsafe impl<T: ?Sized + Sync, K> Sync for Alone<T, K> {}

macro_rules! access {
    ($access:ident, $exclusive:literal) => {
        impl<T: ?Sized, K> Access for $access<T, K> {
            type Target = T;
            const EXCLUSIVE: bool = $exclusive;

            #[inline]
            fn to(data: NonNull<T>) -> Self {
                $access(data, PhantomData)
            }

            #[inline]
            fn data(&self) -> NonNull<T> {
                self.0
            }
        }
    };
}
access!(Sharing, false);
access!(Alone, true);

mod sealed {
    pub trait Sealed {}
    impl<C> Sealed for &C {}
    impl<L: ?Sized> Sealed for std::sync::Arc<L> {}
    impl<T: ?Sized, K> Sealed for super::Sharing<T, K> {}
    impl<T: ?Sized, K> Sealed for super::Alone<T, K> {}
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Guard<H, S, C, A> {
    /// # Safety
    /// `pass` is inside `lock`, which has `data`; alone if `A` is [`Alone`]. The guard owns it.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(crate) unsafe fn new(lock: H, pass: C::Pass, data: A) -> Self {
        let held = Held::new(lock.core().address(), A::EXCLUSIVE);
        Guard { lock, pass, data: Some(data), held, sessions: PhantomData }
    }

    /// Marks the guard as made for a task.
    pub(crate) fn of_task(mut self) -> Self {
        self.held.of_task();
        self
    }

    /// The access to the data.
    ///
    /// # Panics
    /// If the guard is outside.
    #[inline]
    #[track_caller]
    pub(crate) fn inside(&self) -> &A {
        match &self.data {
            Some(data) => data,
            None => outside(),
        }
    }

    /// The same holding, with another access.
    fn with<B: Access>(self, data: B) -> Guard<H, S, C, B> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and the old guard is not dropped.
        let lock = unsafe { ptr::read(&raw const this.lock) };
        // SAFETY: as above.
        let pass = unsafe { ptr::read(&raw const this.pass) };
        // SAFETY: as above.
        let held = unsafe { ptr::read(&raw const this.held) };
        Guard { lock, pass, data: Some(data), held, sessions: PhantomData }
    }
}

#[cold]
#[track_caller]
fn outside() -> ! {
    panic!("the guard is outside: its `switch_async` was not finished")
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized, K> Guard<H, S, C, Sharing<T, K>> {
    /// The session that the guard is inside.
    #[inline]
    pub fn session(this: &Self) -> &S {
        this.held.touch();
        this.inside();
        // SAFETY: the guard's pass is inside a session.
        unsafe { this.lock.core().session(&this.pass) }
    }

    /// Makes the guard show a part of the data.
    ///
    /// ```
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// let lock = GroupLock::new((1, "one"));
    /// let name = SessionGuard::map(lock.enter('a'), |pair| pair.1);
    /// assert_eq!(&*name, "one");
    /// ```
    ///
    /// It cannot switch, because the part may not exist afterwards:
    ///
    /// ```compile_fail,E0308
    /// # use grouplock::{GroupLock, SessionGuard};
    /// let lock = GroupLock::new(vec![1]);
    /// let mut first = SessionGuard::map(lock.enter('a'), |data| &data[0]);
    /// SessionGuard::switch(&mut first, 'b'); // meanwhile another holder might empty the vector
    /// ```
    pub fn map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&T) -> &U,
    ) -> Guard<H, S, C, Sharing<U, Part>> {
        let data = Sharing::to(NonNull::from(part(&this)));
        this.with(data)
    }
}

impl<H: Handle<C>, S: Eq + Clone, C: Core<Session = S>, T: ?Sized> Guard<H, S, C, Sharing<T>> {
    /// Leaves the session and waits for `session`. It does nothing if that is the session already.
    ///
    /// The new request arrives *before* the old session is left. So no later request enters before
    /// it, unless the [policy](crate::Policy) allows that anyway. Requests that wait already go
    /// first, unless the policy lets a new request overtake them. Then a guard that is the only one
    /// changes its session at once.
    ///
    /// Other holders may have been inside in between, so what was known of the data may be false.
    ///
    /// **Not for tasks**: this blocks the thread. On an executor with one thread it may block
    /// forever, because the tasks that must leave need that thread. Use
    /// [`switch_async`](Guard::switch_async).
    ///
    /// ```
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// let lock = GroupLock::new(());
    /// let mut guard = lock.enter("loading");
    /// SessionGuard::switch(&mut guard, "serving");
    /// assert_eq!(*SessionGuard::session(&guard), "serving");
    /// ```
    ///
    /// Two holders of a session can switch to two other sessions without a deadlock. Each waits
    /// only until the other has left the old session.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn switch(this: &mut Self, session: S) {
        watch::about_to_wait();
        this.inside();
        let _away = this.held.away();
        // SAFETY: the guard's pass is inside a session, and `&mut` proves that no data is borrowed.
        let inside = unsafe { this.lock.core().switch(&mut this.pass, session, None) };
        debug_assert!(inside, "without a deadline, waiting ends inside");
    }

    /// [`switch`](Guard::switch), if no wait is needed: if it is the session already, or if the
    /// guard is the only one inside and may enter before the waiters. Otherwise it changes nothing.
    ///
    /// As [`try_enter`](GroupLock::try_enter), it never waits for the internal lock. So it may also
    /// fail if another thread holds that lock at this moment. And it may fail if another thread is
    /// trying to enter: such a thread is counted while it compares its session with the one inside.
    ///
    /// ```
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// let lock = GroupLock::new(());
    /// let mut guard = lock.enter(1);
    /// assert!(SessionGuard::try_switch(&mut guard, 2));
    /// let fellow = lock.enter(2);
    /// assert!(!SessionGuard::try_switch(&mut guard, 3));
    /// assert_eq!(*SessionGuard::session(&guard), 2);
    /// # drop(fellow);
    /// ```
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_switch(this: &mut Self, session: S) -> bool {
        this.inside();
        let _away = this.held.away();
        // SAFETY: as in `switch`.
        unsafe { this.lock.core().try_switch(&mut this.pass, session) }
    }

    /// [`switch`](Guard::switch), but waits at most for `timeout`. If that is too short, the
    /// session has been left, and the guard is gone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// let lock = GroupLock::new(());
    /// let (one, two) = (lock.enter(1), lock.enter(1));
    /// assert!(SessionGuard::try_switch_for(one, 2, Duration::from_millis(1)).is_none());
    /// assert!(SessionGuard::try_switch_for(two, 2, Duration::from_millis(1)).is_some());
    /// ```
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_switch_for(mut this: Self, session: S, timeout: Duration) -> Option<Self> {
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            Self::switch(&mut this, session);
            return Some(this);
        };
        this.inside();
        let inside = {
            let _away = this.held.away();
            // SAFETY: the guard's pass is inside a session, and this function owns the guard.
            unsafe { this.lock.core().switch(&mut this.pass, session, Some(deadline)) }
        };
        if !inside {
            this.held.leave();
            this.data = None;
            return None;
        }
        Some(this)
    }

    /// [`switch`](Guard::switch), for tasks.
    ///
    /// # Cancel safety
    /// The old session is left when the first poll of the future has to wait. If the future is
    /// dropped after that and before it is ready, the request is withdrawn and the guard stays
    /// outside: dropping it does nothing, and using the data or the session panics.
    ///
    /// ```
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// # futures_executor::block_on(async {
    /// let lock = GroupLock::new(());
    /// let mut guard = lock.enter_async("loading").await;
    /// SessionGuard::switch_async(&mut guard, "serving").await;
    /// assert_eq!(*SessionGuard::session(&guard), "serving");
    /// # });
    /// ```
    pub fn switch_async(this: &mut Self, session: S) -> Switch<'_, H, S, C, T> {
        this.inside();
        Switch::new(this, session)
    }
}

impl<H: Handle<C>, S: Eq + Clone, C: Core<Session = S>, T: ?Sized, K>
    Guard<H, S, C, Sharing<T, K>>
{
    /// A second guard of the same session, without a wait. A holder that asks again with
    /// [`enter`](GroupLock::enter) may wait behind a conflicting request, and so for itself.
    ///
    /// ```
    /// use grouplock::{GroupLock, Policy, SessionGuard};
    ///
    /// let lock = GroupLock::with_policy(Policy::Fifo, ());
    /// let one = lock.enter(1);
    /// let two = SessionGuard::again(&one);
    /// drop(one);
    /// assert!(lock.try_enter(2).is_none());
    /// # drop(two);
    /// ```
    ///
    /// # Panics
    /// If the room already has [the maximum](GroupLock::MOST_HOLDERS) of holders. (The other cores
    /// have larger maxima.)
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn again(this: &Self) -> Self
    where
        H: Clone,
    {
        let data = Sharing::to(this.inside().0);
        // SAFETY: the guard's pass is inside a session.
        let pass = unsafe { this.lock.core().again(&this.pass) };
        // SAFETY: the pass is inside the same lock. A part exists while there is a holder.
        unsafe { Guard::new(this.lock.clone(), pass, data) }
    }

    /// A number that changes when the room changes to another session, and when a
    /// [set-up](GroupLock::enter_with) begins, even one that fails. It does not change at other
    /// times. A holder that has left and entered again can compare it.
    ///
    /// ```
    /// use grouplock::{GroupLock, SessionGuard};
    ///
    /// let lock = GroupLock::new(());
    /// let before = SessionGuard::epoch(&lock.enter("model A"));
    /// drop(lock.exclusive());
    /// assert_eq!(SessionGuard::epoch(&lock.enter("model A")), before);
    /// drop(lock.enter("model B"));
    /// assert_ne!(SessionGuard::epoch(&lock.enter("model A")), before);
    /// ```
    ///
    /// It takes the lock's short internal lock. With the core `Handover`, it takes none, and
    /// numbers repeat after 2³⁰ changes.
    pub fn epoch(this: &Self) -> u64 {
        this.inside();
        this.lock.core().epoch()
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized, K> Guard<H, S, C, Alone<T, K>> {
    /// Makes the guard show a part of the data.
    ///
    /// It cannot be downgraded, because other holders could change the part through the whole:
    ///
    /// ```compile_fail,E0308
    /// # use grouplock::{ExclusiveGuard, GroupLock};
    /// let lock = GroupLock::new(std::cell::Cell::new(1));
    /// let number = ExclusiveGuard::map(lock.exclusive(), |cell| cell.get_mut());
    /// let number = ExclusiveGuard::downgrade(number, 'a');
    /// lock.enter('a').set(2); // while `*number` is borrowed, perhaps
    /// ```
    pub fn map<U: ?Sized>(
        mut this: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> Guard<H, S, C, Alone<U, Part>> {
        let data = Alone::to(NonNull::from(part(&mut this)));
        this.with(data)
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized> Guard<H, S, C, Alone<T>> {
    /// Opens the room to `session` without leaving it. No other holder is inside in between.
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
    pub fn downgrade(this: Self, session: S) -> Guard<H, S, C, Sharing<T>>
    where
        S: Eq + Clone,
        C: Core<Session = S>,
    {
        // SAFETY: the pass is alone inside.
        this.open(|core, pass| unsafe { core.downgrade(pass, session) })
    }

    /// `open` opens the room to a session. If it panics, the guard leaks and the room stays taken.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(crate) fn open(self, open: impl FnOnce(&C, &mut C::Pass)) -> Guard<H, S, C, Sharing<T>> {
        let data = Sharing::to(self.inside().0);
        let mut this = ManuallyDrop::new(self);
        let Guard { lock, pass, .. } = &mut *this;
        open(lock.core(), pass);
        let mut opened = ManuallyDrop::into_inner(this).with(data);
        opened.held.set_exclusive(false);
        opened
    }
}

impl<S, T: ?Sized, C: Core<Session = S>, A: Access> Guard<Arc<GroupLock<S, T, C>>, S, C, A> {
    /// The lock that the guard owns a share of.
    pub fn lock(this: &Self) -> &Arc<GroupLock<S, T, C>> {
        &this.lock
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Deref for Guard<H, S, C, A> {
    type Target = A::Target;

    #[inline]
    fn deref(&self) -> &A::Target {
        self.held.touch();
        // SAFETY: a holder may read. No other code writes until it has left.
        unsafe { self.inside().data().as_ref() }
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized, K> DerefMut for Guard<H, S, C, Alone<T, K>> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.held.touch();
        // SAFETY: no other holder is inside.
        unsafe { self.inside().data().as_mut() }
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access> Drop for Guard<H, S, C, A> {
    #[inline]
    fn drop(&mut self) {
        if self.data.is_none() {
            return;
        }
        self.held.leave();
        let core = self.lock.core();
        if A::EXCLUSIVE {
            // SAFETY: the guard's pass is alone inside, and the guard is not used after this.
            unsafe { core.leave_exclusive(&mut self.pass) };
        } else {
            // SAFETY: the guard's pass is inside a session, and the guard is not used after this.
            unsafe { core.leave(&mut self.pass) };
        }
    }
}

impl<H: Handle<C>, S: fmt::Debug, C: Core<Session = S>, T: ?Sized + fmt::Debug, K> fmt::Debug
    for Guard<H, S, C, Sharing<T, K>>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("SessionGuard");
        if self.data.is_none() {
            return form.finish_non_exhaustive();
        }
        form.field("session", Self::session(self)).field("data", &&**self).finish()
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, T: ?Sized + fmt::Debug, K> fmt::Debug
    for Guard<H, S, C, Alone<T, K>>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveGuard").field("data", &&**self).finish()
    }
}

impl<H: Handle<C>, S, C: Core<Session = S>, A: Access<Target: fmt::Display>> fmt::Display
    for Guard<H, S, C, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
