//! Feature `deadlock_detection`: finds threads that wait for themselves or for each other.
//!
//! A thread that waits for a lock while it is inside another session of the same lock waits for itself. So do two threads that each hold a
//! lock and wait for the other's. With this feature, whoever has waited for [a second](set_grace) looks whether it is part of such a
//! cycle, over all locks of this crate in the process. The last one that came tells of it, with the source lines of all calls:
//!
//! ```text
//! grouplock: deadlock
//!   thread `main` waits at src/shop.rs:31:22 to be alone in the lock 0x7f3a10 (sessions: shop::Phase),
//!     where thread `main` is inside a session since src/shop.rs:30:22
//! ```
//!
//! What happens then is up to [`set_action`]. [`check_deadlock`] looks at once, and whenever you like.
//!
//! ```no_run
//! use grouplock::GroupLock;
//! use grouplock::deadlock::{Action, set_action};
//!
//! set_action(Action::Panic);
//! let lock = GroupLock::new(());
//! let _one = lock.enter("one");
//! let _two = lock.enter("two"); // panics after a second, and says why
//! ```
//!
//! # Why it does not panic by itself
//!
//! The guards of a [`GroupLock`](crate::GroupLock) can be sent to another thread, and nothing shows it when they are. A guard counts as being
//! with the thread that entered, or used it last (by looking at the data, the session, or by switching). So there is one false alarm: a guard
//! was sent to a thread that has neither used nor dropped it for a second, while the thread that entered waits for the lock. A correct
//! program must not be broken by looking at it: the default is to print. Whoever knows that this does not occur, as most tests do, chooses
//! [`Action::Panic`].
//!
//! # What it does not see
//!
//! * Tasks. They run on many threads, and many of them on one: guards by `enter_async` and its kin belong to nobody, and a task that waits is not
//!   a thread that waits. Nothing false is reported, and nothing true.
//! * Waits with a deadline, as they end by themselves.
//! * Waits at a [`Handover`](crate::cores::Handover), and for anything that is not of this crate: channels, joins, other locks.
//! * The names of sessions, as they need not be `Debug`. It tells their type, and where they were asked for.
//! * With feature `send_guard`, guards of [`Mutex`](crate::Mutex) and [`RwLock`](crate::RwLock): they can be sent, and cannot tell who uses
//!   them. Without that feature they cannot be sent, and there is no false alarm.
//!
//! # What it costs
//!
//! Entering and leaving each take an entry in a table of the process, behind a mutex, and memory for it. Without the feature nothing is left of it.

mod cycles;
mod registry;
pub(crate) mod watch;

use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use self::cycles::Step;

/// What is done about a deadlock that was found by one of its threads.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Action {
    /// It is printed to the standard error, and the thread waits on. The default.
    #[default]
    Print,
    /// The function is called, on the thread that was the last to come, and the thread waits on. A panic of the function ends there.
    Call(fn(&Deadlock)),
    /// The thread that was the last to come gives up its request and panics. If it cannot give up (it is
    /// [switching](crate::guards::Guard::switch), or upgrading a lock), this is [`Action::Print`].
    Panic,
}

static ACTION: Mutex<Action> = Mutex::new(Action::Print);

/// Says what is done about deadlocks from now on, in the whole process.
pub fn set_action(action: Action) {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = action;
}

/// In nanoseconds.
static GRACE: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Says how long a thread waits before it looks for a deadlock, from its next wait on. It is a second unless you say otherwise.
pub fn set_grace(grace: Duration) {
    // Relaxed: nothing else depends on it.
    GRACE.store(u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

fn grace() -> Duration {
    // Not zero: a thread that looks all the time never sleeps. Relaxed: as above.
    Duration::from_nanos(GRACE.load(Relaxed).max(1_000_000))
}

/// The deadlocks there are now, however long the threads have waited.
///
/// ```
/// assert!(grouplock::deadlock::check_deadlock().is_empty());
/// ```
pub fn check_deadlock() -> Vec<Deadlock> {
    cycles::all().iter().map(|cycle| Deadlock::new(cycle)).collect()
}

/// Threads that wait for each other in a circle, or one that waits for itself.
#[derive(Clone, Debug)]
pub struct Deadlock {
    threads: Vec<Blocked>,
}

impl Deadlock {
    fn new(cycle: &[Step]) -> Self {
        let next = |index: usize| &cycle[(index + 1) % cycle.len()];
        let blocked = |(index, step): (usize, &Step)| Blocked {
            thread: step.waiter.thread.clone(),
            lock: step.waiter.request.lock,
            sessions: step.waiter.request.sessions,
            waits_at: step.waiter.at,
            wants_to_be_alone: step.waiter.request.exclusive,
            holder: next(index).waiter.thread.clone(),
            held_at: step.hold.at,
            is_alone: step.hold.exclusive,
        };
        Deadlock { threads: cycle.iter().enumerate().map(blocked).collect() }
    }

    /// The threads, each of which waits for the next, and the last for the first.
    pub fn threads(&self) -> &[Blocked] {
        &self.threads
    }
}

/// A thread of a [`Deadlock`], and what it waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Blocked {
    /// The thread that waits.
    pub thread: Thread,
    /// The lock it waits for, as [`GroupLock::address`](crate::GroupLock::address) tells it.
    pub lock: usize,
    /// The type of that lock's sessions.
    pub sessions: &'static str,
    /// The call that waits.
    pub waits_at: &'static Location<'static>,
    /// Whether it asked to be alone, and not for a session.
    pub wants_to_be_alone: bool,
    /// The thread that keeps it waiting.
    pub holder: Thread,
    /// The call that let that one in.
    pub held_at: &'static Location<'static>,
    /// Whether that one is alone inside.
    pub is_alone: bool,
}

fn name(thread: &Thread) -> String {
    thread.name().map_or_else(|| format!("{:?}", thread.id()), |name| format!("`{name}`"))
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocked { lock, sessions, waits_at, held_at, .. } = self;
        let thread = name(&self.thread);
        let holder = name(&self.holder);
        let wants = if self.wants_to_be_alone { "to be alone in" } else { "for a session of" };
        let inside = if self.is_alone { "alone" } else { "inside a session" };
        write!(
            f,
            "thread {thread} waits at {waits_at} {wants} the lock {lock:#x} (sessions: {sessions}),\n    \
             where thread {holder} is {inside} since {held_at}"
        )
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grouplock: deadlock")?;
        self.threads.iter().try_for_each(|blocked| write!(f, "\n  {blocked}"))
    }
}

/// Does what was asked for. Gives the deadlock back if the thread is to panic.
fn act(deadlock: Deadlock, bound: bool) -> Option<Deadlock> {
    let action = *ACTION.lock().unwrap_or_else(PoisonError::into_inner);
    match action {
        Action::Panic if !bound => return Some(deadlock),
        Action::Print | Action::Panic => eprintln!("{deadlock}"),
        Action::Call(call) => {
            // The thread waits, and must go on waiting: the panic has been told by the panic hook.
            let _ = catch_unwind(AssertUnwindSafe(|| call(&deadlock)));
        }
    }
    None
}
