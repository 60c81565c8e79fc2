//! The lock with its data.

use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cores::{Core, Phases, Striped, enter_for};
use crate::foreign::discard;
use crate::future::{Enter, EnterArc, EnterWith, Exclusive, ExclusiveArc};
use crate::guards::{Access, Guard, Handle};
use crate::{
    ExclusiveGuard, OwnedExclusiveGuard, OwnedSessionGuard, Policy, SessionGuard, Snapshot, watch,
};

/// A lock with sessions. Holders of a session share the data. Sessions exclude each other.
///
/// `S` is the type of sessions: an enum, a number, a string, anything that can be compared and
/// cloned. There is no table of sessions and no limit to their number. `T` is the data:
/// [`enter`](GroupLock::enter) gives `&T`, [`exclusive`](GroupLock::exclusive) gives `&mut T`.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use grouplock::GroupLock;
///
/// #[derive(Clone, PartialEq, Eq)]
/// enum Phase {
///     Load,
///     Serve,
/// }
///
/// let lock = GroupLock::new(AtomicUsize::new(0));
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         // All four may be loading at the same time …
///         scope.spawn(|| lock.enter(Phase::Load).fetch_add(1, Ordering::Relaxed));
///         // … but none does while others serve.
///         scope.spawn(|| {
///             let inside = lock.enter(Phase::Serve);
///             assert_eq!(inside.load(Ordering::Relaxed), inside.load(Ordering::Relaxed));
///         });
///     }
/// });
/// assert_eq!(lock.into_inner().into_inner(), 4);
/// ```
///
/// # Threads and tasks
///
/// One lock serves both at once. `enter` blocks the thread. [`enter_async`](GroupLock::enter_async)
/// makes a future that runs on any executor. There are non-blocking and timed calls. A request that
/// is withdrawn, by a timeout or by dropping its future, leaves nothing in the queue.
///
/// # Order
///
/// The [`Policy`] decides which session enters next. By default it is fast, and no request starves.
///
/// # Panics and poisoning
///
/// There is no poisoning. If a holder panics, its guard is dropped as usual and the session is
/// left. If a program must know that an update was interrupted, it must record that in the data.
///
/// The lock runs foreign code: comparisons, clones and destructors of sessions, functions of
/// priorities and [limits](GroupLock::at_most), a set-up, and the wakers of tasks.
///
/// * If a comparison, a clone or a priority panics, the request fails with that panic and the lock
///   stays usable. There is one exception: a thread that leaves compares sessions of waiting
///   requests. A panic of that comparison ends there, and the two sessions count as different.
/// * If a set-up panics, the request fails with that panic, and the room is not set up.
/// * If a waker, its destructor, that of a session or a limit panics, the panic hook reports it. It
///   ends there, and a limit counts as one.
///
/// Comparisons, clones, priorities and limits may run while the short internal lock is held, so
/// they must not use the same lock. The lock keeps the last session until another session enters.
///
/// # Misuse
///
/// * A thread that is inside a session and asks for another session of the same lock waits for
///   itself, as with any lock. So does a thread that asks for its session again, if another request
///   has arrived in between (as with the read locks of std). Feature `deadlock_detection` reports
///   it. To change the session, use [`SessionGuard::switch`](Guard::switch). To enter the same
///   session once more, use [`SessionGuard::again`](Guard::again).
/// * At most 4,194,304 holders can share a session (`GroupLock::MOST_HOLDERS`). The next request
///   may have to wait until the room has been empty. Other cores have larger maxima.
/// * A future borrows its lock: dropping the lock first does not compile.
///
/// ```compile_fail,E0505
/// # use grouplock::GroupLock;
/// let lock = GroupLock::<u32, ()>::new(());
/// let future = lock.enter_async(1);
/// drop(lock); // cannot move out of `lock` because it is borrowed
/// drop(future);
/// ```
///
/// # Cores
///
/// `C` is the core, the lock without data. The default, [`Phases`], is right nearly always; see
/// [`cores`](crate::cores) for the others.
pub struct GroupLock<S, T: ?Sized, C = Phases<S>> {
    pub(crate) core: C,
    sessions: std::marker::PhantomData<fn(S) -> S>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock owns the core and the data.
unsafe impl<S, T: ?Sized + Send, C: Send> Send for GroupLock<S, T, C> {}
// SAFETY: threads get `&T` at the same time (`Sync`) and `&mut T` one after the other (`Send`). The
// core itself says whether it can be shared.
unsafe impl<S, T: ?Sized + Send + Sync, C: Sync> Sync for GroupLock<S, T, C> {}

impl<S, T> GroupLock<S, T> {
    /// The maximum number of holders of a session, with the default core.
    pub const MOST_HOLDERS: usize = crate::cores::MOST_HOLDERS;

    /// A lock with the default policy, [`Policy::EVENTUAL`].
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// static ROOM: GroupLock<u8, [u32; 4]> = GroupLock::new([0; 4]);
    /// assert_eq!(ROOM.enter(1).len(), 4);
    /// ```
    #[cfg(not(any(loom, shuttle)))]
    pub const fn new(value: T) -> Self {
        Self::over(Phases::new(), value)
    }

    /// A lock with the default policy, [`Policy::EVENTUAL`].
    #[cfg(any(loom, shuttle))]
    pub fn new(value: T) -> Self {
        Self::over(Phases::new(), value)
    }

    /// A lock with `policy`.
    pub fn with_policy(policy: Policy, value: T) -> Self {
        Self::over(Phases::with_policy(policy), value)
    }

    /// A lock with [`Policy::Priority`]. `priority` returns the priority of a session, and for
    /// `None` that of exclusive requests. A larger number goes first.
    ///
    /// `priority` runs while the short internal lock is held: it must not use the same lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use grouplock::GroupLock;
    ///
    /// // Interactive work goes before batch work that has waited up to 3 × 100 ms longer.
    /// let lock = GroupLock::with_priorities(
    ///     Duration::from_millis(100),
    ///     |session: Option<&&str>| match session {
    ///         Some(&"interactive") => 3,
    ///         _ => 0,
    ///     },
    ///     (),
    /// );
    /// let _inside = lock.enter("batch");
    /// ```
    pub fn with_priorities(
        aging: Duration,
        priority: impl Fn(Option<&S>) -> u32 + Send + Sync + 'static,
        value: T,
    ) -> Self {
        Self::over(Phases::with_priorities(aging, Box::new(priority)), value)
    }

    /// The same lock, with a limit: at most `most(session)` holders of a session are inside
    /// together, and at least one. The next request waits in the queue until a holder leaves.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let lock = GroupLock::new(()).at_most(|session| if *session == "heavy" { 2 } else { usize::MAX });
    /// let (_one, _two) = (lock.enter("heavy"), lock.enter("heavy"));
    /// assert!(lock.try_enter("heavy").is_none());
    /// ```
    ///
    /// Each entry into such a lock takes the short internal lock, and `most` runs under it: it must
    /// not use the same lock. A second guard from [`SessionGuard::again`](Guard::again) does not
    /// wait, and counts. If `most` panics, the limit is one. If the room becomes free and a clone
    /// of the session panics, all waiters of that session enter.
    #[must_use]
    pub fn at_most(self, most: impl Fn(&S) -> usize + Send + Sync + 'static) -> Self {
        let GroupLock { core, data, .. } = self;
        Self::over(core.at_most(most), data.into_inner())
    }
}

impl<S, T> GroupLock<S, T, Striped<S>> {
    /// A lock for one session on many processors. See [`Striped`].
    ///
    /// For another policy, use `GroupLock::over(Striped::new(policy), value)`.
    pub fn striped(value: T) -> Self {
        Self::over(Striped::new(Policy::EVENTUAL), value)
    }
}

impl<S, T, C> GroupLock<S, T, C> {
    /// A lock over a core of your choice.
    pub const fn over(core: C, value: T) -> Self {
        GroupLock { core, sessions: std::marker::PhantomData, data: UnsafeCell::new(value) }
    }

    /// Returns the data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<S, T: ?Sized, C> GroupLock<S, T, C> {
    /// The data, without locking: the exclusive borrow of the lock proves that there are no guards.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    #[inline]
    fn data<A: Access<Target = T>>(&self) -> A {
        // SAFETY: a pointer from a cell is not null.
        A::to(unsafe { NonNull::new_unchecked(self.data.get()) })
    }
}

impl<S: Eq + Clone, T: ?Sized, C: Core<Session = S>> GroupLock<S, T, C> {
    /// The number of this lock in reports: the address of its core.
    pub fn address(&self) -> usize {
        self.core.address()
    }

    /// # Safety
    /// `pass` is inside, alone if `A` is [`Alone`](crate::guards::Alone). `handle` is of this lock.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn guard<H: Handle<C>, A>(&self, handle: H, pass: C::Pass) -> Guard<H, S, C, A>
    where
        A: Access<Target = T>,
    {
        // SAFETY: the caller's promise.
        unsafe { Guard::new(handle, pass, self.data()) }
    }

    /// Waits until `session` can be entered, and enters.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn enter(&self, session: S) -> SessionGuard<'_, S, T, C> {
        watch::about_to_wait();
        let pass = self.core.enter(Some(session));
        // SAFETY: the pass is inside a session.
        unsafe { self.guard(&self.core, pass) }
    }

    /// Waits until the room is empty, and enters alone.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn exclusive(&self) -> ExclusiveGuard<'_, S, T, C> {
        watch::about_to_wait();
        let pass = self.core.enter(None);
        // SAFETY: the pass is alone inside.
        unsafe { self.guard(&self.core, pass) }
    }

    /// [`enter`](GroupLock::enter), with a guard that owns a share of the lock.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use grouplock::GroupLock;
    ///
    /// let lock = Arc::new(GroupLock::new("data"));
    /// let guard = lock.enter_arc(7);
    /// drop(lock);
    /// std::thread::spawn(move || assert_eq!(*guard, "data")).join().unwrap();
    /// ```
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn enter_arc(self: &Arc<Self>, session: S) -> OwnedSessionGuard<S, T, C> {
        watch::about_to_wait();
        let pass = self.core.enter(Some(session));
        // SAFETY: the pass is inside a session.
        unsafe { self.guard(Arc::clone(self), pass) }
    }

    /// [`exclusive`](GroupLock::exclusive), with a guard that owns a share of the lock.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn exclusive_arc(self: &Arc<Self>) -> OwnedExclusiveGuard<S, T, C> {
        watch::about_to_wait();
        let pass = self.core.enter(None);
        // SAFETY: the pass is alone inside.
        unsafe { self.guard(Arc::clone(self), pass) }
    }

    /// Enters `session` if no wait is needed. It enters before waiting requests only if the policy
    /// allows it. Sometimes it must take the internal lock to learn that. It never waits for that
    /// lock. So it also fails if another thread holds the internal lock at that moment: to join the
    /// queue, to admit waiters, or to take a [`snapshot`](GroupLock::snapshot).
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let lock = GroupLock::new(());
    /// let _one = lock.enter(1);
    /// assert!(lock.try_enter(1).is_some());
    /// assert!(lock.try_enter(2).is_none());
    /// assert!(lock.try_exclusive().is_none());
    /// ```
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter(&self, session: S) -> Option<SessionGuard<'_, S, T, C>> {
        let pass = self.core.try_enter(Some(session))?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// Waits until `session` can be entered, at most for `timeout`. With a timeout of zero, this is
    /// [`try_enter`](GroupLock::try_enter). With a timeout beyond the range of the clock, it is
    /// [`enter`](GroupLock::enter).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter_for(
        &self,
        session: S,
        timeout: Duration,
    ) -> Option<SessionGuard<'_, S, T, C>> {
        let pass = enter_for(&self.core, Some(session), timeout)?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// Waits until `session` can be entered, at most until `deadline`. With a deadline in the past,
    /// this is [`try_enter`](GroupLock::try_enter).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter_until(
        &self,
        session: S,
        deadline: Instant,
    ) -> Option<SessionGuard<'_, S, T, C>> {
        let pass = self.core.enter_until(Some(session), deadline)?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// Waits, as a task, until `session` can be entered. Runs on any executor.
    ///
    /// # Cancel safety
    /// The request joins the queue when the future is first polled. Dropping the future withdraws
    /// the request. If it was admitted meanwhile, the room passes to other requests.
    ///
    /// An admitted future keeps the room until it is polled or dropped. If neither happens, because
    /// its task waits for something else, say, it keeps other sessions out, as a guard does.
    pub fn enter_async(&self, session: S) -> Enter<'_, S, T, C> {
        Enter::new(&self.core, self.data(), Some(session))
    }

    /// [`exclusive`](GroupLock::exclusive), if no wait is needed.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive(&self) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = self.core.try_enter(None)?;
        // SAFETY: the pass is alone inside.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive), but waits at most for `timeout`.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_for(&self, timeout: Duration) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = enter_for(&self.core, None, timeout)?;
        // SAFETY: the pass is alone inside.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive), but waits at most until `deadline`.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_until(&self, deadline: Instant) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = self.core.enter_until(None, deadline)?;
        // SAFETY: the pass is alone inside.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive) for tasks. Cancel safe as `enter_async`.
    pub fn exclusive_async(&self) -> Exclusive<'_, S, T, C> {
        Exclusive::new(&self.core, self.data(), None)
    }

    /// [`try_enter`](GroupLock::try_enter), with a guard that owns a share of the lock.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter_arc(self: &Arc<Self>, session: S) -> Option<OwnedSessionGuard<S, T, C>> {
        let pass = self.core.try_enter(Some(session))?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(Arc::clone(self), pass) })
    }

    /// [`try_exclusive`](GroupLock::try_exclusive), with a guard that owns a share of the lock.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_arc(self: &Arc<Self>) -> Option<OwnedExclusiveGuard<S, T, C>> {
        let pass = self.core.try_enter(None)?;
        // SAFETY: the pass is alone inside.
        Some(unsafe { self.guard(Arc::clone(self), pass) })
    }

    /// [`enter_async`](GroupLock::enter_async); future and guard own a share of the lock.
    pub fn enter_arc_async(self: &Arc<Self>, session: S) -> EnterArc<S, T, C> {
        EnterArc::new(Arc::clone(self), self.data(), Some(session))
    }

    /// The same for [`exclusive_async`](GroupLock::exclusive_async).
    pub fn exclusive_arc_async(self: &Arc<Self>) -> ExclusiveArc<S, T, C> {
        ExclusiveArc::new(Arc::clone(self), self.data(), None)
    }

    /// Waits until `session` can be entered in a room that is set up for it, and enters. If the
    /// room is not set up for it, because another session was inside last or none was, calls
    /// `set_up` first, alone. Then other requests of the session enter.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let gpu = GroupLock::new(String::new());
    /// let load = |model: &mut String| *model = String::from("weights of A");
    /// let one = gpu.enter_with("A", load); // loads the model
    /// let two = gpu.enter_with("A", |_| unreachable!("it is loaded"));
    /// assert_eq!((&**one, &**two), ("weights of A", "weights of A"));
    /// ```
    ///
    /// * While the room is set up, this costs as much as [`enter`](GroupLock::enter).
    /// * If `set_up` panics, the room is left and not set up. The next request with set-up does it.
    /// * [`enter`](GroupLock::enter) needs no set-up and does none. It may find the room as another
    ///   session left it. If it changes the session, the room is not set up: a request for the same
    ///   session with set-up waits until it can be alone.
    /// * [`exclusive`](GroupLock::exclusive), and [`downgrade`](Guard::downgrade) to the same
    ///   session, leave the room set up. The holder is responsible for its changes.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn enter_with(&self, session: S, set_up: impl FnOnce(&mut T)) -> SessionGuard<'_, S, T, C> {
        let set_up = |data: &mut T| -> Result<(), Infallible> {
            set_up(data);
            Ok(())
        };
        let Ok(guard) = self.enter_with_result(session, set_up);
        guard
    }

    /// [`enter_with`](GroupLock::enter_with), with a set-up that may fail.
    ///
    /// # Errors
    /// Those of `set_up`. The room is left then, and is not set up.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn enter_with_result<E>(
        &self,
        session: S,
        set_up: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<SessionGuard<'_, S, T, C>, E> {
        watch::about_to_wait();
        let (pass, alone) = self.core.enter_with(&session);
        if alone {
            // SAFETY: the pass is alone inside.
            return Self::set_up_alone(unsafe { self.guard(&self.core, pass) }, session, set_up);
        }
        discard(session);
        // SAFETY: the pass is inside a session.
        Ok(unsafe { self.guard(&self.core, pass) })
    }

    /// The guard belongs to a request that must set the room up.
    #[cold]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn set_up_alone<E>(
        mut alone: ExclusiveGuard<'_, S, T, C>,
        session: S,
        set_up: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<SessionGuard<'_, S, T, C>, E> {
        set_up(&mut alone)?;
        // SAFETY: the pass was admitted to set the room up.
        Ok(alone.open(|core, pass| unsafe { core.finish_set_up(pass, session) }))
    }

    /// [`enter_with`](GroupLock::enter_with) for tasks.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// # futures_executor::block_on(async {
    /// let gpu = GroupLock::new(String::new());
    /// let load = async |model: &mut String| {
    ///     std::future::ready(()).await; // reads a file, say
    ///     *model = String::from("weights of A");
    /// };
    /// assert_eq!(*gpu.enter_with_async("A", load).await, "weights of A");
    /// # });
    /// ```
    ///
    /// # Cancel safety
    /// While it waits, as [`enter_async`](GroupLock::enter_async). If the future is dropped while
    /// `set_up` runs, that is dropped too, where it is. The room is left and is not set up. A
    /// set-up that must not stop half-way needs a task of its own, and `set_up` awaits its end.
    pub async fn enter_with_async(
        &self,
        session: S,
        set_up: impl AsyncFnOnce(&mut T),
    ) -> SessionGuard<'_, S, T, C> {
        let set_up = async |data: &mut T| -> Result<(), Infallible> {
            set_up(data).await;
            Ok(())
        };
        let Ok(guard) = self.enter_with_result_async(session, set_up).await;
        guard
    }

    /// [`enter_with_async`](GroupLock::enter_with_async), with a set-up that may fail.
    ///
    /// # Errors
    /// Those of `set_up`. The room is left then, and is not set up.
    pub async fn enter_with_result_async<E>(
        &self,
        session: S,
        set_up: impl AsyncFnOnce(&mut T) -> Result<(), E>,
    ) -> Result<SessionGuard<'_, S, T, C>, E> {
        let (pass, alone) = EnterWith::new(&self.core, &session).await;
        if !alone {
            discard(session);
            // SAFETY: the pass is inside a session.
            let guard: SessionGuard<'_, S, T, C> = unsafe { self.guard(&self.core, pass) };
            return Ok(guard.of_task());
        }
        // SAFETY: the pass is alone inside.
        let guard: ExclusiveGuard<'_, S, T, C> = unsafe { self.guard(&self.core, pass) };
        let mut guard = guard.of_task();
        set_up(&mut guard).await?;
        // SAFETY: the pass was admitted to set the room up.
        Ok(guard.open(|core, pass| unsafe { core.finish_set_up(pass, session) }))
    }

    /// The holders and the waiters. For people who debug: it is out of date when you read it.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let lock = GroupLock::new(());
    /// let _guard = lock.enter("backup");
    /// let seen = lock.snapshot();
    /// assert_eq!((seen.session, seen.holders, seen.waiting.len()), (Some("backup"), 1, 0));
    /// ```
    pub fn snapshot(&self) -> Snapshot<S> {
        self.core.snapshot()
    }
}

impl<S, T: Default> Default for GroupLock<S, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<S, T> From<T> for GroupLock<S, T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<S: fmt::Debug, T: ?Sized, C: Core<Session = S>> fmt::Debug for GroupLock<S, T, C> {
    /// Shows the holders and the waiters, not the data: to see the data, enter. Never waits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("GroupLock");
        if let Some(seen) = self.core.try_snapshot() {
            form.field("session", &seen.session)
                .field("exclusive", &seen.exclusive)
                .field("holders", &seen.holders);
            form.field("waiting", &seen.waiting);
        }
        form.finish_non_exhaustive()
    }
}
