//! Snapshots, for people who debug.

use std::time::Duration;

/// The holders and the waiters at one moment. From `GroupLock::snapshot`.
///
/// It may be out of date when you read it. A thread that only tries to enter is counted while it
/// compares its session with the one inside. The lock reads the count before and after it copies
/// the waiters, and shows the smaller number. So such a thread rarely appears here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot<S> {
    /// The session inside, if there is one.
    pub session: Option<S>,
    /// Whether a holder is alone inside.
    pub exclusive: bool,
    /// The number of holders.
    pub holders: usize,
    /// The waiting requests, in the order in which they will enter.
    pub waiting: Vec<WaitingPhase<S>>,
}

/// Waiting requests that will enter together, or one after another if a
/// [limit](crate::GroupLock::at_most) or a set-up demands it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingPhase<S> {
    /// The session of the requests. `None`: one request that asked to be alone.
    pub session: Option<S>,
    /// The number of requests.
    pub waiters: usize,
    /// How long the first of them has waited.
    pub age: Duration,
}
