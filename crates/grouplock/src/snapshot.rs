//! What is going on, for people who debug.

use std::time::Duration;

/// Who is inside and who waits, at one moment. By [`GroupLock::snapshot`](crate::GroupLock::snapshot).
///
/// It may be out of date when you look at it, and another thread that is just about to enter or to look may count among the holders.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot<S> {
    /// The session inside, if there is one.
    pub session: Option<S>,
    /// Whether somebody has the room to itself.
    pub exclusive: bool,
    /// How many are inside.
    pub holders: usize,
    /// Those who wait, in the order in which they will enter.
    pub waiting: Vec<WaitingPhase<S>>,
}

/// Requests that wait and will enter together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingPhase<S> {
    /// The session they asked for, `None` if it is one that asked to be alone.
    pub session: Option<S>,
    /// How many there are.
    pub waiters: usize,
    /// For how long the first of them has waited.
    pub age: Duration,
}
