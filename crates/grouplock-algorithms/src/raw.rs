//! The traits of an algorithm: one for each kind of lock.
//!
//! These traits are for authors of algorithms, for locks inside locks, and for exploration. They
//! trust their caller. All other code uses [`Mutual`](crate::Mutual) and [`Group`](crate::Group),
//! which cannot be misused.

use core::fmt;

use crate::memory::{Memory, Word};
use crate::{CapacityError, Claims, Session};

/// A mutual exclusion algorithm.
pub trait RawMutex<M: Memory>: Sized + Send + Sync + fmt::Debug {
    /// "Process p": the private variables of a process, and the nodes that it owns at present. Its
    /// `Debug` form names every field (derive it): inside a passage an explorer uses that as the
    /// private state.
    type Process: Send + fmt::Debug;

    /// What the paper claims for it.
    fn claims() -> Claims;

    /// A lock for at most `processes` processes at once. Algorithms for any number ignore this.
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] if the algorithm cannot serve so many, or so few.
    fn new(processes: usize) -> Result<Self, CapacityError>;

    /// A process joins.
    ///
    /// # Errors
    /// [`CapacityError::Full`] if the lock has as many processes as it was made for.
    fn join(&self) -> Result<Self::Process, CapacityError>;

    /// A process in its remainder section leaves the lock, and returns its place or nodes.
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section.
    unsafe fn leave(&self, me: Self::Process);

    /// The entry section.
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section.
    unsafe fn acquire(&self, me: &mut Self::Process);

    /// The exit section.
    ///
    /// # Safety
    /// `me` joined this lock and is in its critical section.
    unsafe fn release(&self, me: &mut Self::Process);

    /// Reports the private variables of a process in its remainder section that its next passage
    /// may depend on, by the paper's names.
    fn inspect(me: &Self::Process, see: &mut dyn FnMut(&'static str, Word));

    /// Whether the register called `register` may hold `number` in a lock for `processes`
    /// processes. For algorithms with bounded registers whose bound is worth checking.
    fn in_range(_register: &str, _number: u64, _processes: usize) -> bool {
        true
    }
}

/// Called wherever a process waits on real memory: whether it withdraws its request. A simulated
/// memory decides that itself and does not call it.
pub type GiveUp<'a> = &'a mut dyn FnMut() -> bool;

/// A group mutual exclusion algorithm.
pub trait RawGroup<M: Memory>: Sized + Send + Sync + fmt::Debug {
    /// The largest session that can be requested.
    const LARGEST_SESSION: u64 = u64::MAX;

    /// As [`RawMutex::Process`].
    type Process: Send + fmt::Debug;

    /// What the paper claims for it.
    fn claims() -> Claims;

    /// As [`RawMutex::new`].
    ///
    /// # Errors
    /// [`CapacityError::Unsupported`] if the algorithm cannot serve so many, or so few.
    fn new(processes: usize) -> Result<Self, CapacityError>;

    /// As [`RawMutex::join`].
    ///
    /// # Errors
    /// [`CapacityError::Full`] if the lock has as many processes as it was made for.
    fn join(&self) -> Result<Self::Process, CapacityError>;

    /// As [`RawMutex::leave`].
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section.
    unsafe fn leave(&self, me: Self::Process);

    /// The entry section for `session`.
    ///
    /// # Safety
    /// `me` joined this lock and is in its remainder section. `session` is at most
    /// [`LARGEST_SESSION`](RawGroup::LARGEST_SESSION).
    unsafe fn enter(&self, me: &mut Self::Process, session: Session);

    /// The exit section.
    ///
    /// # Safety
    /// `me` joined this lock and is in its critical section.
    unsafe fn exit(&self, me: &mut Self::Process);

    /// As [`RawMutex::inspect`].
    fn inspect(me: &Self::Process, see: &mut dyn FnMut(&'static str, Word));

    /// Whether requests for these sessions exclude each other.
    fn conflict(one: u64, other: u64) -> bool {
        one != other
    }

    /// How many processes may share `session`.
    fn most(_session: u64) -> usize {
        usize::MAX
    }

    /// Whether the register called `register` may hold `number` in a lock for `processes`
    /// processes. For algorithms with bounded registers whose bound is worth checking.
    fn in_range(_register: &str, _number: u64, _processes: usize) -> bool {
        true
    }
}

/// A mutual exclusion algorithm whose waiters can withdraw.
pub trait WithdrawMutex<M: Memory>: RawMutex<M> {
    /// The entry section. The process withdraws if `give_up` says so where it waits. Returns
    /// whether the process is in its critical section; otherwise it is in its remainder section
    /// again.
    ///
    /// # Safety
    /// As [`RawMutex::acquire`].
    unsafe fn acquire_unless(&self, me: &mut Self::Process, give_up: GiveUp<'_>) -> bool;
}

/// A group mutual exclusion algorithm whose waiters can withdraw.
pub trait WithdrawGroup<M: Memory>: RawGroup<M> {
    /// The entry section for `session`. The process withdraws if `give_up` says so where it waits.
    /// Returns whether the process is in its critical section; otherwise it is in its remainder
    /// section again.
    ///
    /// # Safety
    /// As [`RawGroup::enter`].
    unsafe fn enter_unless(
        &self,
        me: &mut Self::Process,
        session: Session,
        give_up: GiveUp<'_>,
    ) -> bool;
}
