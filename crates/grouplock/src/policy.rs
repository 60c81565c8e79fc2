//! Who goes next.

use std::time::Duration;

/// Who goes next when several sessions want the room.
///
/// A *conflicting* request is one for another session. Requests *overtake* a waiting one if they arrive later and get in earlier.
/// Time and order are those of arrival at the lock: the moment at which a request that cannot be served joins the queue.
///
/// | policy | a waiter can be overtaken | cost |
/// |---|---|---|
/// | [`Eventual`](Policy::Eventual) | for at most `patience` | lowest: while nobody has waited that long, a free room goes to whoever comes |
/// | [`Fifo`](Policy::Fifo) | never, by a conflicting request | a change of threads per change of session |
/// | [`Batch`](Policy::Batch) | by at most `passes` requests, for the session inside | few changes of session |
/// | [`BatchFor`](Policy::BatchFor) | for at most `wait`, by requests for the session inside | few changes of session |
/// | [`Priority`](Policy::Priority) | by a session of higher priority, until age has made up for the difference | as `Fifo` |
///
/// ```
/// use std::time::Duration;
/// use grouplock::{GroupLock, Policy};
///
/// let fast: GroupLock<&str, ()> = GroupLock::new(());
/// let strict: GroupLock<&str, ()> = GroupLock::with_policy(Policy::Fifo, ());
/// let lenient: GroupLock<&str, ()> = GroupLock::with_policy(Policy::Batch { passes: 100 }, ());
/// let hurried: GroupLock<&str, ()> =
///     GroupLock::with_policy(Policy::Eventual { patience: Duration::from_micros(100) }, ());
/// # drop((fast, strict, lenient, hurried));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Whoever comes when the room is free, or when their session is inside, enters at once, also past those who wait.
    ///
    /// **Guarantee.** Once a request has waited for `patience`, the lock turns to strict order until that request is inside: nobody who
    /// arrives from then on enters before it. (A thread that waits sees to this itself when its time is over, so the operating system's
    /// timer adds to `patience`, some 50 µs on Linux. For a task that waits, those who arrive look at the clock.)
    ///
    /// So no session starves, and a lock that is taken and released by the same few threads a million times a second needs no
    /// change of threads for it. A request that must wait joins others of its session if they are among the 32 sessions that began to wait last.
    Eventual {
        /// For how long a waiter may be overtaken.
        patience: Duration,
    },

    /// First come, first served.
    ///
    /// **Guarantee.** Of two conflicting requests the one that arrived first enters first. Within a session, those who arrive while no
    /// conflicting request waits enter together; nobody of a session enters before one of the same session that arrived earlier. (But the room is
    /// [set up](crate::GroupLock::enter_with) before those enter who arrived earlier and did not ask for it.)
    Fifo,

    /// The session inside is preferred, also in a room that has just become empty, until a waiter has been overtaken often enough. This is the
    /// *capturing* of Keane and Moir, with a bound.
    ///
    /// **Guarantee.** No request is overtaken by more than `passes` conflicting requests. Only two kinds of requests overtake: those for the session
    /// inside, or last inside if the room is empty; and those that join others of their session in the queue. `passes: 0` is first come, first served.
    ///
    /// **What it does within the bound.** New requests for the session inside enter. When the room becomes empty, it goes to the session that has
    /// waited longest: a waiting thread is woken, and until it arrives new requests for the last session may still enter; a waiting task, which
    /// may be polled late or never, is handed the room at once. A request that must wait joins others of its session if they are among the 32
    /// sessions that began to wait last. Passes are counted once for the whole queue, so a waiter may be overtaken by fewer than `passes`.
    Batch {
        /// How many conflicting requests may overtake a waiter.
        passes: u32,
    },

    /// As [`Batch`](Policy::Batch), with a bound in time.
    ///
    /// **Guarantee.** Once a request has waited for `wait`, nobody who arrives from then on enters before it. Until then only the two kinds of requests
    /// that [`Batch`](Policy::Batch) names overtake it.
    BatchFor {
        /// For how long a waiter may be overtaken.
        wait: Duration,
    },

    /// Sessions have priorities, and waiting makes up for a low one. Only
    /// [`GroupLock::with_priorities`](crate::GroupLock::with_priorities) makes a lock with this policy.
    ///
    /// **Guarantee.** A request for priority `p` can be overtaken by one for a higher priority `q` only if that arrives less than
    /// `(q - p) × aging` later. Between equals it is first come, first served. So with a finite `aging` nobody starves; with
    /// [`Duration::MAX`] priorities are absolute, and the low ones may.
    #[non_exhaustive]
    Priority {
        /// The time after which a waiting request counts one priority higher.
        aging: Duration,
    },
}

impl Policy {
    /// The policy of [`GroupLock::new`](crate::GroupLock::new): eventual, with a patience of one millisecond.
    pub const EVENTUAL: Policy = Policy::Eventual { patience: Duration::from_millis(1) };
}

impl Default for Policy {
    fn default() -> Self {
        Policy::EVENTUAL
    }
}
