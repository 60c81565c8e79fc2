//! What is going on, for people who debug.

use std::time::Duration;

/// Who is inside and who waits, at one moment. By [`GroupLock::snapshot`](crate::GroupLock::snapshot).
///
/// It may be out of date when you look at it. A thread that only tries to enter is counted for a moment too, as long as it compares its session with the one
/// inside. The lock looks a few times and tells the fewest, so it counts here only if the comparison takes longer than that.
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
