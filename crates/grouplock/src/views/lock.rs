//! The lock that shows views only.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{EnterPhase, InPhase, OwnedPhaseGuard, Phase, PhaseGuard};
use crate::cores::{Core, Phases};
use crate::future::{Enter, EnterArc, Exclusive};
use crate::{ExclusiveGuard, GroupLock, Snapshot};

/// A [`GroupLock`] whose sessions are [phases](Phase). A guard shows the view of its phase only.
///
/// `N` is the type of the names of phases, `T` is the data, and `C` is the core, as in
/// `GroupLock<N, T, C>`. It has the calls of that lock, except for set-up, and of the owned forms
/// it has only `enter_arc` and `enter_arc_async`. The [module](crate::views) has an example.
// Transparent, for `plain`.
#[repr(transparent)]
pub struct Phased<N, T, C = Phases<N>> {
    lock: GroupLock<N, T, C>,
}

impl<N, T> Phased<N, T> {
    /// A lock with the default policy, as [`GroupLock::new`].
    pub const fn new(value: T) -> Self {
        Phased::over(GroupLock::new(value))
    }
}

impl<N, T, C> Phased<N, T, C> {
    /// A lock with the policy, the limits and the core of `lock`.
    ///
    /// ```
    /// # use grouplock::views::{Inside, Phase};
    /// # struct Look;
    /// # impl Phase<u32> for Look {
    /// #     type Name = u8;
    /// #     type View<'a> = &'a u32;
    /// #     fn name(&self) -> u8 { 1 }
    /// #     fn view<'a>(&'a self, inside: Inside<'a, Look, u32>) -> &'a u32 { inside.data() }
    /// # }
    /// use grouplock::{GroupLock, Policy, views::Phased};
    ///
    /// let lock = Phased::over(GroupLock::with_policy(Policy::Fifo, 7).at_most(|_| 1));
    /// let alone = lock.enter(Look);
    /// assert_eq!(*alone.view(), 7);
    /// assert!(lock.try_enter(Look).is_none());
    /// ```
    pub const fn over(lock: GroupLock<N, T, C>) -> Self {
        Phased { lock }
    }

    /// Returns the data.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }

    /// The data, without locking: the exclusive borrow of the lock proves that there are no guards.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// The same lock without views, for owned guards. It is private, because it shows `&T`.
    fn plain(self: &Arc<Self>) -> Arc<GroupLock<N, T, C>> {
        let shared = Arc::into_raw(Arc::clone(self));
        // SAFETY: the pointer is from `into_raw`, and `Phased` is transparent.
        unsafe { Arc::from_raw(shared.cast()) }
    }
}

impl<N: Eq + Clone, T, C: Core<Session = N>> Phased<N, T, C> {
    /// Waits until `phase` can be entered, and enters.
    #[inline]
    pub fn enter<P: Phase<T, Name = N>>(&self, phase: P) -> PhaseGuard<'_, P, T, C> {
        let inside = self.lock.enter(phase.name());
        InPhase::new(phase, inside)
    }

    /// Waits until the room is empty, and enters alone. `PhaseGuard::downgrade` opens it to a
    /// phase.
    #[inline]
    pub fn exclusive(&self) -> ExclusiveGuard<'_, N, T, C> {
        self.lock.exclusive()
    }

    /// [`enter`](Phased::enter), with a guard that owns a share of the lock.
    pub fn enter_arc<P: Phase<T, Name = N>>(
        self: &Arc<Self>,
        phase: P,
    ) -> OwnedPhaseGuard<P, T, C> {
        let inside = self.plain().enter_arc(phase.name());
        InPhase::new(phase, inside)
    }

    /// Enters `phase` if no wait is needed, as [`GroupLock::try_enter`].
    #[inline]
    pub fn try_enter<P: Phase<T, Name = N>>(&self, phase: P) -> Option<PhaseGuard<'_, P, T, C>> {
        let inside = self.lock.try_enter(phase.name())?;
        Some(InPhase::new(phase, inside))
    }

    /// Waits at most for `timeout` to enter `phase`, as [`GroupLock::try_enter_for`].
    pub fn try_enter_for<P: Phase<T, Name = N>>(
        &self,
        phase: P,
        timeout: Duration,
    ) -> Option<PhaseGuard<'_, P, T, C>> {
        let inside = self.lock.try_enter_for(phase.name(), timeout)?;
        Some(InPhase::new(phase, inside))
    }

    /// Waits at most until `deadline` to enter `phase`, as [`GroupLock::try_enter_until`].
    pub fn try_enter_until<P: Phase<T, Name = N>>(
        &self,
        phase: P,
        deadline: Instant,
    ) -> Option<PhaseGuard<'_, P, T, C>> {
        let inside = self.lock.try_enter_until(phase.name(), deadline)?;
        Some(InPhase::new(phase, inside))
    }

    /// Waits, as a task, until `phase` can be entered. Runs on any executor.
    ///
    /// # Cancel safety
    /// As [`GroupLock::enter_async`]: dropping the future withdraws the request.
    pub fn enter_async<P: Phase<T, Name = N>>(
        &self,
        phase: P,
    ) -> EnterPhase<P, Enter<'_, N, T, C>> {
        let request = self.lock.enter_async(phase.name());
        EnterPhase::new(phase, request)
    }

    /// [`enter_async`](Phased::enter_async); future and guard own a share of the lock.
    ///
    /// # Cancel safety
    /// As [`GroupLock::enter_async`]: dropping the future withdraws the request.
    pub fn enter_arc_async<P: Phase<T, Name = N>>(
        self: &Arc<Self>,
        phase: P,
    ) -> EnterPhase<P, EnterArc<N, T, C>> {
        let request = self.plain().enter_arc_async(phase.name());
        EnterPhase::new(phase, request)
    }

    /// [`exclusive`](Phased::exclusive), if no wait is needed.
    #[inline]
    pub fn try_exclusive(&self) -> Option<ExclusiveGuard<'_, N, T, C>> {
        self.lock.try_exclusive()
    }

    /// [`exclusive`](Phased::exclusive), but waits at most for `timeout`.
    pub fn try_exclusive_for(&self, timeout: Duration) -> Option<ExclusiveGuard<'_, N, T, C>> {
        self.lock.try_exclusive_for(timeout)
    }

    /// [`exclusive`](Phased::exclusive), but waits at most until `deadline`.
    pub fn try_exclusive_until(&self, deadline: Instant) -> Option<ExclusiveGuard<'_, N, T, C>> {
        self.lock.try_exclusive_until(deadline)
    }

    /// [`exclusive`](Phased::exclusive) for tasks.
    ///
    /// # Cancel safety
    /// As [`GroupLock::enter_async`]: dropping the future withdraws the request.
    pub fn exclusive_async(&self) -> Exclusive<'_, N, T, C> {
        self.lock.exclusive_async()
    }

    /// The holders and the waiters, as [`GroupLock::snapshot`].
    pub fn snapshot(&self) -> Snapshot<N> {
        self.lock.snapshot()
    }
}

impl<N, T: Default> Default for Phased<N, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<N, T> From<T> for Phased<N, T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<N: fmt::Debug, T, C: Core<Session = N>> fmt::Debug for Phased<N, T, C> {
    /// Shows the holders and the waiters, not the data. Never waits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Phased").field(&self.lock).finish()
    }
}
