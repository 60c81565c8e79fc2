//! The lock with its data.

use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cores::{Core, Phases, Striped, discard};
use crate::future::{Enter, EnterArc, EnterWith, Exclusive, ExclusiveArc};
use crate::guards::{Access, Guard, Handle};
use crate::{
    ExclusiveGuard, OwnedExclusiveGuard, OwnedSessionGuard, Policy, SessionGuard, Snapshot, watch,
};

/// A lock with sessions. Those who ask for the same session share the data; those who ask for different sessions exclude each other.
///
/// `S` is what sessions are called: an enum, a number, a string, anything that can be compared and cloned. There is no table of sessions and
/// no limit to their number. `T` is the data: [`enter`](GroupLock::enter) gives `&T`, [`exclusive`](GroupLock::exclusive) gives `&mut T`.
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
///         // … but nobody is while others serve.
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
/// One lock serves both at once: `enter` blocks the thread, [`enter_async`](GroupLock::enter_async) makes a future that runs on any executor,
/// and there are non-blocking and timed forms. A request that is given up, by a timeout or by dropping its future, leaves no trace.
///
/// # Who goes next
///
/// Says the [`Policy`]. The default favours speed and still lets nobody starve.
///
/// # Panics and poisoning
///
/// There is no poisoning. If a holder panics, its guard is dropped like any other and the session is left. Whoever needs to know that an
/// update was cut short must record that in the data.
///
/// Foreign code that the lock runs: comparing, cloning and dropping sessions, a function of priorities, a set-up, and the wakers of tasks.
///
/// * If a comparison, a clone or a priority panics, the request fails with that panic and the lock stays usable. Only a comparison of a waiting
///   request, which another thread makes while it leaves, goes no further: the two count as different.
/// * If a set-up panics, the request fails with that panic, and the room is set up for nobody.
/// * If a waker panics, or the dropping of a name, the panic hook reports it and it goes no further.
///
/// Comparisons, clones and priorities may run while the lock's short internal lock is held, so they must not use the same lock. The lock keeps
/// the last session's name until another session enters.
///
/// # Misuse
///
/// * A thread that is inside a session and asks for another one of the same lock waits for itself, as with any lock. So does one that asks for
///   the same session again if another request has come in between (as with the read locks of std). Feature `deadlock_detection` reports
///   it. [`SessionGuard::switch`](Guard::switch) is the way to change sessions, [`SessionGuard::again`](Guard::again) to enter the same once more.
/// * At most 4,194,304 holders can share a session (`GroupLock::MOST_HOLDERS`). The next one waits until the room has been empty. That takes
///   leaked guards.
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
/// `C` is the lock without data. The default, [`Phases`], is right nearly always; see [`cores`](crate::cores) for the others.
pub struct GroupLock<S, T: ?Sized, C = Phases<S>> {
    pub(crate) core: C,
    sessions: std::marker::PhantomData<fn(S) -> S>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock owns the core and the data.
unsafe impl<S, T: ?Sized + Send, C: Send> Send for GroupLock<S, T, C> {}
// SAFETY: threads get `&T` at the same time (`Sync`) and `&mut T` one after the other (`Send`); the core says itself whether it can be shared.
unsafe impl<S, T: ?Sized + Send + Sync, C: Sync> Sync for GroupLock<S, T, C> {}

impl<S, T> GroupLock<S, T> {
    /// How many holders can share a session at once.
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

    /// A lock with [`Policy::Priority`], where `priority` says which priority a session has, and, given `None`, which one exclusive requests
    /// have. The larger goes first.
    ///
    /// `priority` is called while the lock's short internal lock is held: it must not use the same lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use grouplock::GroupLock;
    ///
    /// // Interactive work goes before batch work; but 3 × 100 ms of waiting make up for it.
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
}

impl<S, T> GroupLock<S, T> {
    /// The same lock, with a limit: at most `most(session)` holders of a session are inside together, and at least one. The next waits in the queue until
    /// one of them leaves.
    ///
    /// ```
    /// use grouplock::GroupLock;
    ///
    /// let lock = GroupLock::new(()).at_most(|session| if *session == "heavy" { 2 } else { usize::MAX });
    /// let (_one, _two) = (lock.enter("heavy"), lock.enter("heavy"));
    /// assert!(lock.try_enter("heavy").is_none());
    /// ```
    ///
    /// Entering such a lock always takes the short internal lock, under which `most` is called too: it must not use the same lock. A second guard by
    /// [`SessionGuard::again`](Guard::again) does not wait, and counts. If `most` panics, the limit is one. If the session cannot be cloned when the room
    /// becomes free, because that panics, all who wait for it enter.
    #[must_use]
    pub fn at_most(self, most: impl Fn(&S) -> usize + Send + Sync + 'static) -> Self {
        let GroupLock { core, data, .. } = self;
        Self::over(core.at_most(most), data.into_inner())
    }
}

impl<S, T> GroupLock<S, T, Striped<S>> {
    /// A lock for read-mostly use: many processors that enter the same session do not share a cache line. See [`Striped`].
    ///
    /// For another policy than the default, `GroupLock::over(Striped::new(policy), value)`.
    pub fn striped(value: T) -> Self {
        Self::over(Striped::new(Policy::EVENTUAL), value)
    }
}

impl<S, T, C> GroupLock<S, T, C> {
    /// A lock over a core of your choice.
    pub const fn over(core: C, value: T) -> Self {
        GroupLock { core, sessions: std::marker::PhantomData, data: UnsafeCell::new(value) }
    }

    /// Gives the data back.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<S, T: ?Sized, C> GroupLock<S, T, C> {
    /// The data, without locking: whoever has the lock to itself has the data to itself.
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
    /// The number by which the features `deadlock_detection` and `tracing` call this lock: the address of its core.
    pub fn address(&self) -> usize {
        self.core.address()
    }

    /// # Safety
    /// `pass` is inside, alone if `A` is [`Alone`](crate::guards::Alone), and `handle` is one of this lock.
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
        watch::asks();
        let pass = self.core.enter(Some(session));
        // SAFETY: the pass is inside a session.
        unsafe { self.guard(&self.core, pass) }
    }

    /// Waits until nobody is inside, and enters alone.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn exclusive(&self) -> ExclusiveGuard<'_, S, T, C> {
        watch::asks();
        let pass = self.core.enter(None);
        // SAFETY: the pass has the room to itself.
        unsafe { self.guard(&self.core, pass) }
    }

    /// [`enter`](GroupLock::enter), with a guard that keeps the lock alive instead of borrowing it.
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
        watch::asks();
        let pass = self.core.enter(Some(session));
        // SAFETY: the pass is inside a session.
        unsafe { self.guard(Arc::clone(self), pass) }
    }

    /// [`exclusive`](GroupLock::exclusive), with a guard that keeps the lock alive instead of borrowing it.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn exclusive_arc(self: &Arc<Self>) -> OwnedExclusiveGuard<S, T, C> {
        watch::asks();
        let pass = self.core.enter(None);
        // SAFETY: the pass has the room to itself.
        unsafe { self.guard(Arc::clone(self), pass) }
    }

    /// Enters `session` if that takes no waiting. Goes before those who wait only if the policy lets it. As it never waits, it also fails if it has to ask
    /// whether it may, and another thread is at the queue just then: to join it, to let waiters in, or to take a [`snapshot`](GroupLock::snapshot).
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

    /// Waits until `session` can be entered, but no longer than `timeout`. With a timeout of zero, this is
    /// [`try_enter`](GroupLock::try_enter); with one beyond the end of time, [`enter`](GroupLock::enter).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter_for(
        &self,
        session: S,
        timeout: Duration,
    ) -> Option<SessionGuard<'_, S, T, C>> {
        let pass = self.enter_within(Some(session), timeout)?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// Waits until `session` can be entered, but no longer than until `deadline`. With a deadline in the past, this is
    /// [`try_enter`](GroupLock::try_enter).
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
    /// The request takes its place in the queue when the future is first polled, and gives it up when the future is dropped. If the room had
    /// been granted to it by then, it is passed on.
    ///
    /// A future that has been granted the room keeps it until it is polled or dropped. One that is neither, for instance because its task
    /// is waiting for something else, keeps others out, as a guard would.
    pub fn enter_async(&self, session: S) -> Enter<'_, S, T, C> {
        Enter::new(&self.core, self.data(), Some(session))
    }

    /// [`exclusive`](GroupLock::exclusive), if that takes no waiting.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive(&self) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = self.core.try_enter(None)?;
        // SAFETY: the pass has the room to itself.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive), but waits no longer than `timeout`.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_for(&self, timeout: Duration) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = self.enter_within(None, timeout)?;
        // SAFETY: the pass has the room to itself.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive), but waits no longer than until `deadline`.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_until(&self, deadline: Instant) -> Option<ExclusiveGuard<'_, S, T, C>> {
        let pass = self.core.enter_until(None, deadline)?;
        // SAFETY: the pass has the room to itself.
        Some(unsafe { self.guard(&self.core, pass) })
    }

    /// [`exclusive`](GroupLock::exclusive) for tasks. Cancel safe as [`enter_async`](GroupLock::enter_async).
    pub fn exclusive_async(&self) -> Exclusive<'_, S, T, C> {
        Exclusive::new(&self.core, self.data(), None)
    }

    /// [`try_enter`](GroupLock::try_enter), with a guard that keeps the lock alive instead of borrowing it.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_enter_arc(self: &Arc<Self>, session: S) -> Option<OwnedSessionGuard<S, T, C>> {
        let pass = self.core.try_enter(Some(session))?;
        // SAFETY: the pass is inside a session.
        Some(unsafe { self.guard(Arc::clone(self), pass) })
    }

    /// [`try_exclusive`](GroupLock::try_exclusive), with a guard that keeps the lock alive instead of borrowing it.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_exclusive_arc(self: &Arc<Self>) -> Option<OwnedExclusiveGuard<S, T, C>> {
        let pass = self.core.try_enter(None)?;
        // SAFETY: the pass has the room to itself.
        Some(unsafe { self.guard(Arc::clone(self), pass) })
    }

    /// [`enter_async`](GroupLock::enter_async), with a future and a guard that keep the lock alive instead of borrowing it.
    pub fn enter_arc_async(self: &Arc<Self>, session: S) -> EnterArc<S, T, C> {
        EnterArc::new(Arc::clone(self), self.data(), Some(session))
    }

    /// [`exclusive_async`](GroupLock::exclusive_async), with a future and a guard that keep the lock alive instead of borrowing it.
    pub fn exclusive_arc_async(self: &Arc<Self>) -> ExclusiveArc<S, T, C> {
        ExclusiveArc::new(Arc::clone(self), self.data(), None)
    }

    /// Waits until `session` can be entered in a room that is set up for it, and enters. If the room is not set up for it, because another
    /// session was inside last or nobody was, calls `set_up` first, alone; then the others of the session are let in.
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
    /// * While the room is set up for the session, this costs what [`enter`](GroupLock::enter) does.
    /// * If `set_up` panics, the room is left and is set up for nobody. The next request with set-up does it again.
    /// * [`enter`](GroupLock::enter) asks for no set-up and does none. It may find the room as another session left it, and what it brings
    ///   inside is not set up: who wants the same session with set-up waits until it can be alone.
    /// * [`exclusive`](GroupLock::exclusive) and [`downgrade`](Guard::downgrade) to the same session leave the room set up: whoever changes the data
    ///   there answers for it.
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

    /// [`enter_with`](GroupLock::enter_with), with a set-up that may fail. Then the room is left and is set up for nobody.
    ///
    /// # Errors
    /// Those of `set_up`.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn enter_with_result<E>(
        &self,
        session: S,
        set_up: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<SessionGuard<'_, S, T, C>, E> {
        watch::asks();
        let (pass, alone) = self.core.enter_with(&session);
        if alone {
            // SAFETY: the pass has the room to itself.
            return Self::set_up_alone(unsafe { self.guard(&self.core, pass) }, session, set_up);
        }
        discard(session);
        // SAFETY: the pass is inside a session.
        Ok(unsafe { self.guard(&self.core, pass) })
    }

    /// The guard is of a request that was told to set the room up.
    #[cold]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn set_up_alone<E>(
        mut alone: ExclusiveGuard<'_, S, T, C>,
        session: S,
        set_up: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<SessionGuard<'_, S, T, C>, E> {
        set_up(&mut alone)?;
        // SAFETY: the pass was told to set the room up.
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
    /// While it waits, as [`enter_async`](GroupLock::enter_async). If the future is dropped while `set_up` is running, that is dropped where it
    /// is; the room is left and is set up for nobody. A set-up that must not stop half-way belongs in a task of its own, whose end `set_up` awaits.
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

    /// [`enter_with_async`](GroupLock::enter_with_async), with a set-up that may fail. Then the room is left and is set up for nobody.
    ///
    /// # Errors
    /// Those of `set_up`.
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
        // SAFETY: the pass has the room to itself.
        let guard: ExclusiveGuard<'_, S, T, C> = unsafe { self.guard(&self.core, pass) };
        let mut guard = guard.of_task();
        set_up(&mut guard).await?;
        // SAFETY: the pass was told to set the room up.
        Ok(guard.open(|core, pass| unsafe { core.finish_set_up(pass, session) }))
    }

    /// Who is inside and who waits. For people who debug: it is out of date when you look at it.
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

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn enter_within(&self, session: Option<S>, timeout: Duration) -> Option<C::Pass> {
        if timeout.is_zero() {
            return self.core.try_enter(session);
        }
        if let Some(deadline) = Instant::now().checked_add(timeout) {
            return self.core.enter_until(session, deadline);
        }
        watch::asks();
        Some(self.core.enter(session))
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
    /// Shows who is inside and who waits, not the data: to see that, enter. Never waits.
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
