//! The cores: locks without data. A [`GroupLock`](crate::GroupLock) is a core with data.
//!
//! All cores have the same calls. `Phases` and `Striped` have policies. `Phases` has limits.
//!
//! | core | what it is for | policies |
//! |---|---|---|
//! | [`Phases`] | the default | all |
//! | [`Striped`] | nearly all requests on many processors have the same session | all |
//! | [`Handover`] | a constant number of remote memory references per passage | first come first served |

#[cfg(feature = "handover")]
mod handover;
mod phases;
mod striped;

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

#[cfg(feature = "handover")]
pub use self::handover::Handover;
pub use self::phases::Phases;
pub(crate) use self::phases::{MOST_HOLDERS, Signal};
pub use self::striped::Striped;
use crate::{Snapshot, watch};

/// Only locks of this crate are cores: guards rely on them, and the trait may get more calls.
mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "handover")]
    impl<S> Sealed for super::Handover<S> {}
    impl<S> Sealed for super::Phases<S> {}
    impl<S> Sealed for super::Striped<S> {}
}

/// A group lock without data. Only the locks of this crate implement it.
///
/// A request names a session, `Some(s)`, or asks to be alone, `None`.
///
/// # Safety
/// While a holder of a session is inside, no request for another session and no request to be alone
/// enters. While a holder that asked to be alone is inside, no request enters. A withdrawn request
/// does not enter. What a holder did happens before a conflicting request enters.
pub unsafe trait Core: sealed::Sealed {
    /// The type of sessions.
    type Session;

    /// The state that a holder keeps until it leaves.
    type Pass;

    /// The state that a waiting task keeps.
    type Waiting;

    /// Waits until inside.
    fn enter(&self, session: Option<Self::Session>) -> Self::Pass;

    /// Leaves.
    ///
    /// # Safety
    /// This core gave `pass` to a request for a session. It is inside, and is not used afterwards.
    unsafe fn leave(&self, pass: &mut Self::Pass);

    /// Leaves as a holder that is alone.
    ///
    /// # Safety
    /// As [`leave`](Core::leave), for a request to be alone.
    unsafe fn leave_exclusive(&self, pass: &mut Self::Pass);

    /// The session that the holder of `pass` asked for.
    ///
    /// # Safety
    /// This core gave `pass` to a request for a session, and `pass` has not left.
    unsafe fn session<'a>(&'a self, pass: &'a Self::Pass) -> &'a Self::Session;

    /// The number of the lock in reports.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }

    /// The holders and the waiters, if the core can read them without waiting.
    fn try_snapshot(&self) -> Option<Snapshot<Self::Session>> {
        None
    }

    /// Enters if no wait for a holder is needed. [`Phases`] and [`Striped`] never wait here, not
    /// even for another thread that compares or clones sessions. So it may fail while another
    /// thread enters or leaves. `Handover` may wait for its exit lock.
    fn try_enter(&self, session: Option<Self::Session>) -> Option<Self::Pass>;

    /// Waits until inside, at most until `deadline`.
    fn enter_until(&self, session: Option<Self::Session>, deadline: Instant) -> Option<Self::Pass>;

    /// Enters, or puts a request into the queue and its state into `waiting`. Then polls that.
    fn poll_enter(
        &self,
        session: Option<&Self::Session>,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<Self::Pass>;

    /// Withdraws a request that [`poll_enter`](Core::poll_enter) put into the queue. `exclusive`
    /// says whether it asked to be alone. If it was admitted meanwhile, leaves.
    fn cancel(&self, waiting: Self::Waiting, exclusive: bool);

    /// Leaves the session of `pass` and enters `session`, but waits at most until `deadline`. The
    /// new request arrives before the old one leaves. If this returns `false`, `pass` has left.
    ///
    /// # Safety
    /// As [`leave`](Core::leave), but `pass` is for `session` then. A panic leaves it as it was.
    unsafe fn switch(
        &self,
        pass: &mut Self::Pass,
        session: Self::Session,
        deadline: Option<Instant>,
    ) -> bool;

    /// [`switch`](Core::switch), if no wait is needed. Otherwise it changes nothing.
    ///
    /// # Safety
    /// As [`switch`](Core::switch).
    unsafe fn try_switch(&self, pass: &mut Self::Pass, session: Self::Session) -> bool;

    /// [`switch`](Core::switch), if no wait is needed. Otherwise `pass` has left, and a request is
    /// in the queue for [`poll_enter`](Core::poll_enter) or [`cancel`](Core::cancel).
    ///
    /// # Safety
    /// As [`switch`](Core::switch).
    unsafe fn poll_switch(
        &self,
        pass: &mut Self::Pass,
        session: &Self::Session,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<()>;

    /// Enters the session of `pass` once more, without a wait.
    ///
    /// # Safety
    /// This core gave `pass` to a request for a session, and `pass` has not left.
    unsafe fn again(&self, pass: &Self::Pass) -> Self::Pass;

    /// Waits until `session` can be entered in a room that is set up for it, and enters. Or enters
    /// alone to set the room up, and returns `true`.
    fn enter_with(&self, session: &Self::Session) -> (Self::Pass, bool);

    /// [`enter_with`](Core::enter_with) for a task. [`cancel`](Core::cancel) withdraws the request.
    fn poll_enter_with(
        &self,
        session: &Self::Session,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<(Self::Pass, bool)>;

    /// Opens the room to `session`, for which it is set up now. If the set-up fails,
    /// [`leave_exclusive`](Core::leave_exclusive) is called instead, and the room is not set up.
    ///
    /// # Safety
    /// As [`leave_exclusive`](Core::leave_exclusive), for a pass that was admitted to set the room
    /// up. Afterwards `pass` is for `session`.
    unsafe fn finish_set_up(&self, pass: &mut Self::Pass, session: Self::Session);

    /// A number that changes with each change of session and each set-up. The caller is a holder.
    fn epoch(&self) -> u64;

    /// Opens the room, in which the holder is alone, to `session`.
    ///
    /// # Safety
    /// As [`leave_exclusive`](Core::leave_exclusive), but afterwards `pass` is for `session`.
    unsafe fn downgrade(&self, pass: &mut Self::Pass, session: Self::Session);

    /// The holders and the waiters.
    fn snapshot(&self) -> Snapshot<Self::Session>;
}

/// Enters, but waits at most for `timeout`. A timeout beyond the range of the clock has no end.
#[cfg_attr(feature = "deadlock_detection", track_caller)]
pub(crate) fn enter_for<C: Core>(
    core: &C,
    session: Option<C::Session>,
    timeout: Duration,
) -> Option<C::Pass> {
    if timeout.is_zero() {
        return core.try_enter(session);
    }
    if let Some(deadline) = Instant::now().checked_add(timeout) {
        return core.enter_until(session, deadline);
    }
    watch::about_to_wait();
    Some(core.enter(session))
}
