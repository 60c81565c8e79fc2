//! The locks without data: what a [`GroupLock`](crate::GroupLock) is made of.
//!
//! All have every call; policies and limits are the default's and, the former, of `Striped`.
//!
//! | core | what it is for | policies |
//! |---|---|---|
//! | [`Phases`] | the default | all |
//! | [`Striped`] | one session is inside nearly always, on many processors | all |
//! | [`Handover`] | a constant number of remote memory references per passage | first come first served |

#[cfg(feature = "handover")]
mod handover;
mod phases;
mod striped;

use std::task::{Context, Poll};
use std::time::Instant;

#[cfg(feature = "handover")]
pub use self::handover::Handover;
pub(crate) use self::phases::MOST_HOLDERS;
pub use self::phases::Phases;
pub(crate) use self::phases::{Signal, discard};
pub use self::striped::Striped;
use crate::Snapshot;

/// Only the locks of this crate are cores: guards rely on what they promise, and calls may be added to the trait.
mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "handover")]
    impl<S> Sealed for super::Handover<S> {}
    impl<S> Sealed for super::Phases<S> {}
    impl<S> Sealed for super::Striped<S> {}
}

/// A group lock without data. Only the locks of this crate are such.
///
/// A request names a session, `Some(s)`, or asks to be alone, `None`.
///
/// # Safety
/// While a request that has entered has not left, requests for other sessions and requests to be alone do not enter; and while one that
/// asked to be alone is inside, none does. A request that was given up does not enter. What one who left did before leaving happens before a
/// conflicting one's entering.
pub unsafe trait Core: sealed::Sealed {
    /// What sessions are called.
    type Session;

    /// What a holder keeps until it leaves.
    type Pass;

    /// What a task that waits keeps.
    type Waiting;

    /// Waits until inside.
    fn enter(&self, session: Option<Self::Session>) -> Self::Pass;

    /// Leaves.
    ///
    /// # Safety
    /// `pass` was given to a request for a session by this core, and has not left before. It is of no use afterwards.
    unsafe fn leave(&self, pass: &mut Self::Pass);

    /// Leaves a room that one had to oneself.
    ///
    /// # Safety
    /// As [`leave`](Core::leave), for a request to be alone.
    unsafe fn leave_exclusive(&self, pass: &mut Self::Pass);

    /// The session that the holder of `pass` asked for.
    ///
    /// # Safety
    /// `pass` was given to a request for a session by this core, and has not left.
    unsafe fn session<'a>(&'a self, pass: &'a Self::Pass) -> &'a Self::Session;

    /// By which number reports call the lock.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }

    /// Who is inside and who waits, if the core knows and can tell without waiting.
    fn try_snapshot(&self) -> Option<Snapshot<Self::Session>> {
        None
    }

    /// Enters if that takes no waiting. It never waits, not even for another thread that compares or clones sessions: so it may fail while another
    /// thread is just entering or leaving.
    fn try_enter(&self, session: Option<Self::Session>) -> Option<Self::Pass>;

    /// Waits until inside or until `deadline`.
    fn enter_until(&self, session: Option<Self::Session>, deadline: Instant) -> Option<Self::Pass>;

    /// Enters, or puts a request into the queue and its place into `waiting`; from then on, looks whether it has been granted.
    fn poll_enter(
        &self,
        session: Option<&Self::Session>,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<Self::Pass>;

    /// Gives up a request that [`poll_enter`](Core::poll_enter) put into the queue; `exclusive` if it was one to be alone. If it has
    /// been granted meanwhile, leaves.
    fn cancel(&self, waiting: Self::Waiting, exclusive: bool);

    /// Leaves the session of `pass` and enters `session`, but waits no longer than until `deadline`, if there is one. The new request arrives before the old
    /// one leaves. Says whether `pass` is inside; it has left if not.
    ///
    /// # Safety
    /// As [`leave`](Core::leave); but `pass` is for `session` afterwards. If this panics, nothing has happened.
    unsafe fn switch(
        &self,
        pass: &mut Self::Pass,
        session: Self::Session,
        deadline: Option<Instant>,
    ) -> bool;

    /// [`switch`](Core::switch), if that takes no waiting. Otherwise nothing has happened.
    ///
    /// # Safety
    /// As [`switch`](Core::switch).
    unsafe fn try_switch(&self, pass: &mut Self::Pass, session: Self::Session) -> bool;

    /// [`switch`](Core::switch), if that takes no waiting. Otherwise `pass` has left, and a request for `session` is in the queue, to be
    /// looked after by [`poll_enter`](Core::poll_enter) or [`cancel`](Core::cancel).
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

    /// Enters the session of `pass` once more, at once.
    ///
    /// # Safety
    /// `pass` was given to a request for a session by this core, and has not left.
    unsafe fn again(&self, pass: &Self::Pass) -> Self::Pass;

    /// Waits until `session` can be entered in a room that is set up for it, and enters; or enters alone, to set it up, and says so with `true`.
    fn enter_with(&self, session: &Self::Session) -> (Self::Pass, bool);

    /// As [`enter_with`](Core::enter_with), for a task; [`cancel`](Core::cancel) gives it up.
    fn poll_enter_with(
        &self,
        session: &Self::Session,
        waiting: &mut Option<Self::Waiting>,
        cx: &mut Context<'_>,
    ) -> Poll<(Self::Pass, bool)>;

    /// Opens the room to `session`, for which it is set up now. If it could not be set up, [`leave_exclusive`](Core::leave_exclusive) is called
    /// instead, and the room is set up for nobody.
    ///
    /// # Safety
    /// As [`leave_exclusive`](Core::leave_exclusive), for a pass that was told to set the room up; but `pass` is for `session` afterwards.
    unsafe fn finish_set_up(&self, pass: &mut Self::Pass, session: Self::Session);

    /// A number that changes when the room changes to another session or a set-up begins, and only then. Asked by a holder.
    fn epoch(&self) -> u64;

    /// Makes a room that one has to oneself the room of `session`, without leaving it.
    ///
    /// # Safety
    /// As [`leave_exclusive`](Core::leave_exclusive); but `pass` is for `session` afterwards.
    unsafe fn downgrade(&self, pass: &mut Self::Pass, session: Self::Session);

    /// Who is inside and who waits.
    fn snapshot(&self) -> Snapshot<Self::Session>;
}
