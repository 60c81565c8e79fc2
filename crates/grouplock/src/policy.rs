//! The order of admission.

use std::time::Duration;

/// The order of admission when requests for several sessions wait.
///
/// Two requests *conflict* if they are for different sessions, or one of them asks to be alone. A
/// request *overtakes* a waiter if it arrives later and enters earlier. A request arrives when it
/// joins the queue, or enters without that.
///
/// | policy | a waiter can be overtaken | cost |
/// |---|---|---|
/// | [`Eventual`](Policy::Eventual) | for at most `patience` | lowest: while nobody has waited that long, a free room goes to the thread that comes first |
/// | [`Fifo`](Policy::Fifo) | never, by a conflicting request | a switch of threads for each change of session |
/// | [`Batch`](Policy::Batch) | by at most `passes` conflicting requests | few changes of session |
/// | [`BatchFor`](Policy::BatchFor) | for at most `wait`, by requests that join their session | few changes of session |
/// | [`Priority`](Policy::Priority) | by a request of higher priority, until its age makes up for the difference | as `Fifo` |
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
    /// A request enters at once, also before the waiters, if the room is free or its session is
    /// inside.
    ///
    /// **Guarantee.** Once a request has waited for `patience`, the lock turns to strict order
    /// until that request is inside: no request that arrives from then on enters before it. (A
    /// waiting thread turns the lock strict itself, so the timer of the operating system adds to
    /// `patience`, some 50 µs on Linux. For a waiting task, the requests that arrive read the
    /// clock.)
    ///
    /// So no session starves, and a lock that the same few threads acquire and release a million
    /// times a second needs no switch of threads for it. A request that must wait joins others of
    /// its session if they are among the 32 sessions that began to wait last.
    ///
    /// Before a thread joins the queue, it spins: for at most half a millisecond, and until it gets
    /// its processor back. If it asks to be alone, it reserves the room meanwhile, for some
    /// microseconds, so that writers among readers find an empty room. A new `enter` spins then. If
    /// the thread that reserved the room loses its processor, the reservation lasts until another
    /// request has finished spinning, or needs no spinning (a try, a task). This is so under every
    /// policy, while requests may enter without asking.
    Eventual {
        /// For how long a waiter may be overtaken.
        patience: Duration,
    },

    /// First come, first served.
    ///
    /// **Guarantee.** Of two conflicting requests, the one that arrived first enters first.
    /// Requests of one session that arrive while no conflicting request waits enter together. No
    /// request enters before one of the same session that arrived earlier. (One exception: a
    /// request that [sets the room up](crate::GroupLock::enter_with) enters before requests of its
    /// session that arrived earlier and did not ask for set-up.)
    Fifo,

    /// The session inside is preferred, also in a room that has just become empty, until a waiter
    /// has been overtaken often enough. This is the *capturing* of Keane and Moir, with a bound.
    ///
    /// **Guarantee.** No request is overtaken by more than `passes` conflicting requests. Only two
    /// kinds of requests overtake: those for the session inside, or last inside if the room is
    /// empty; and those that join others of their session in the queue. `passes: 0` is first come,
    /// first served.
    ///
    /// **Within the bound.** New requests for the session inside enter. When the room becomes
    /// empty, it goes to the session that has waited longest: a waiting thread is woken, and until
    /// it runs, new requests for the last session may still enter; a waiting task, which may be
    /// polled late or never, is handed the room at once. A request that must wait joins others of
    /// its session if they are among the 32 sessions that began to wait last. Passes are counted
    /// once for the whole queue, so a waiter may be overtaken by fewer than `passes`.
    Batch {
        /// How many conflicting requests may overtake a waiter.
        passes: u32,
    },

    /// As [`Batch`](Policy::Batch), with a bound in time.
    ///
    /// **Guarantee.** Once a request has waited for `wait`, no request that arrives from then on
    /// enters before it. Until then, only the two kinds of requests that [`Batch`](Policy::Batch)
    /// names overtake it.
    BatchFor {
        /// For how long a waiter may be overtaken.
        wait: Duration,
    },

    /// Sessions have priorities, and waiting makes up for a low one. Only
    /// [`GroupLock::with_priorities`](crate::GroupLock::with_priorities) makes a lock with this
    /// policy.
    ///
    /// **Guarantee.** A request of priority `p` can be overtaken by one of a higher priority `q`
    /// only if that arrives less than `(q - p) × aging` later. Between equal priorities it is first
    /// come, first served. So with a finite `aging` no request starves. With [`Duration::MAX`],
    /// priorities are absolute, and requests of low priority may starve.
    #[non_exhaustive]
    Priority {
        /// The time after which a waiting request counts one priority higher.
        aging: Duration,
    },
}

impl Policy {
    /// The policy of [`GroupLock::new`](crate::GroupLock::new): eventual, with a patience of one
    /// millisecond.
    pub const EVENTUAL: Policy = Policy::Eventual { patience: Duration::from_millis(1) };
}

impl Default for Policy {
    fn default() -> Self {
        Policy::EVENTUAL
    }
}
