//! Feature `deadlock_detection`: finds threads that wait for themselves or for each other.
//!
//! A thread that waits for a lock while it is inside another session of the same lock waits for
//! itself. Two threads that each hold a lock and wait for the other lock wait for each other. With
//! this feature, a thread that has waited for [a second](set_grace) looks for such a cycle, over
//! all locks of this crate in the process. The last thread of it reports it, with the source lines:
//!
//! ```text
//! grouplock: deadlock
//!   thread `main` waits at src/shop.rs:31:22 to be alone in the lock 0x7f3a10 (sessions: shop::Phase),
//!     where thread `main` is inside a session since src/shop.rs:30:22
//! ```
//!
//! [`set_action`] decides what happens then. [`check_deadlock`] looks for deadlocks at once.
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
//! The guards of a [`GroupLock`](crate::GroupLock) can be sent to another thread, and the lock
//! cannot see that. A guard counts as owned by the thread that entered, or by the thread that used
//! it last (read the data or the session, or switched). So one false alarm is possible: a guard was
//! sent to a thread that has not used or dropped it for a second, while the thread that entered
//! waits for the lock. Detection must not break a correct program, so the default is to print. If
//! this case cannot occur, as in most tests, choose [`Action::Panic`].
//!
//! # What it does not see
//!
//! * Tasks. They run on many threads, and many tasks run on one. So their guards belong to no
//!   thread, and their waits are not waits of a thread.
//! * Waits with a deadline, because they end by themselves.
//! * Waits at a [`Handover`](crate::cores::Handover), and for other things: channels, joins.
//! * The names of sessions, because they need not be `Debug`. A report shows type and source line.
//! * With feature `send_guard`, guards of [`Mutex`](crate::Mutex) and [`RwLock`](crate::RwLock):
//!   they can be sent, and the lock cannot see which thread uses them. Without that feature they
//!   cannot be sent, and there is no false alarm.
//!
//! # What it costs
//!
//! Each entry and each exit changes a table of the process, which a mutex guards, and allocates
//! memory for it. Without the feature this code does not exist.

mod cycles;
pub(crate) mod observer;
mod registry;

use std::fmt;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use self::cycles::Step;
use crate::foreign::contain;

/// What is done about a deadlock that was found by one of its threads.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Action {
    /// The deadlock is printed to the standard error, and the thread waits on. The default.
    #[default]
    Print,
    /// The function is called, on the thread that began to wait last, and the thread continues to
    /// wait. A panic of the function ends there.
    Call(fn(&Deadlock)),
    /// The thread that began to wait last withdraws its request and panics. If it cannot withdraw
    /// (it [switches](crate::guards::Guard::switch) or upgrades), this is [`Action::Print`].
    Panic,
}

static ACTION: Mutex<Action> = Mutex::new(Action::Print);

/// Sets the action for all later deadlocks, in the whole process.
pub fn set_action(action: Action) {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = action;
}

/// In nanoseconds.
static GRACE: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Sets how long a thread waits before it looks for a deadlock, from its next wait on. The default
/// is a second.
pub fn set_grace(grace: Duration) {
    // Relaxed: nothing else depends on it.
    GRACE.store(u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

fn grace() -> Duration {
    // At least a millisecond: a thread that looks all the time never sleeps. Relaxed: as above.
    Duration::from_nanos(GRACE.load(Relaxed).max(1_000_000))
}

/// The deadlocks at this moment, however long the threads have waited.
///
/// ```
/// assert!(grouplock::deadlock::check_deadlock().is_empty());
/// ```
pub fn check_deadlock() -> Vec<Deadlock> {
    cycles::all().iter().map(|cycle| Deadlock::new(cycle)).collect()
}

/// Threads that wait for each other in a cycle, or one thread that waits for itself.
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
            held_at: step.holding.at,
            is_alone: step.holding.exclusive,
        };
        Deadlock { threads: cycle.iter().enumerate().map(blocked).collect() }
    }

    /// The threads. Each waits for the next one, and the last for the first.
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
    /// The lock that it waits for, as [`GroupLock::address`](crate::GroupLock::address) returns it.
    pub lock: usize,
    /// The type of the sessions of that lock.
    pub sessions: &'static str,
    /// The call that waits.
    pub waits_at: &'static Location<'static>,
    /// Whether it asked to be alone, and not for a session.
    pub wants_to_be_alone: bool,
    /// The thread that it waits for.
    pub holder: Thread,
    /// The call that let that thread enter.
    pub held_at: &'static Location<'static>,
    /// Whether that thread is alone inside.
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

/// Does what [`set_action`] said. Returns the deadlock if the thread must panic.
fn act(deadlock: Deadlock, must_finish: bool) -> Option<Deadlock> {
    let action = *ACTION.lock().unwrap_or_else(PoisonError::into_inner);
    match action {
        Action::Panic if !must_finish => return Some(deadlock),
        Action::Print | Action::Panic => eprintln!("{deadlock}"),
        Action::Call(call) => contain(|| call(&deadlock)),
    }
    None
}
