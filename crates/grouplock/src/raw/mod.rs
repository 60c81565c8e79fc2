//! Feature `lock_api`: [`Mutex`] and [`RwLock`], with the calls of `parking_lot`.
//!
//! A readers-writers lock is a group lock with one session, the readers'; a mutex is one with none. Both are views of the default core,
//! [`Phases`](crate::cores::Phases), through the crate [`lock_api`] 0.5, which has the data and the guards. Whoever uses `parking_lot` changes
//! one line:
//!
//! ```
//! use grouplock::{Mutex, RwLock};
//!
//! static COUNT: Mutex<u32> = Mutex::new(0);
//! *COUNT.lock() += 1;
//!
//! let words = RwLock::new(vec!["one"]);
//! assert_eq!(words.read().len(), 1);
//! words.write().push("two");
//! ```
//!
//! The locks and their raw forms are at the top of the crate too; the names of their guards are here. The feature needs Rust 1.95, as `lock_api` does.
//!
//! # What they promise
//!
//! * The order is that of [`Policy::EVENTUAL`](crate::Policy::EVENTUAL): a free lock goes to whoever comes, but nobody is overtaken for longer
//!   than a millisecond once it waits in the queue, reader or writer. `unlock_fair` and `bump` hand the lock to those who have waited longest:
//!   nobody who comes later goes before them.
//! * No poisoning: a guard that is dropped by a panic unlocks.
//! * `RwLock<()>` has 24 bytes and `Mutex<()>` 16. Neither allocates before somebody has to wait (or asks for an upgradable lock).
//! * Guards stay on their thread, as those of `parking_lot` and std do, unless feature `send_guard` is on.
//! * A lock that is dropped or forgotten while locked does no harm; a guard that is leaked locks for good.
//!
//! # Upgradable readers
//!
//! [`RwLock::upgradable_read`](lock_api::RwLock::upgradable_read) shares with readers and excludes its like. That is not a session: two
//! requests for a session always share. So an upgradable reader is a reader who has a token as well, of which there is one. To upgrade is to
//! give the place among the readers for the first one in the queue, which nobody can overtake; so no writer comes in between.
//!
//! # What there is not
//!
//! * Recursive reading. A thread that reads and asks to read again waits behind a writer that came in between, and that one for the thread. To
//!   let it pass, the lock would have to let every reader pass, and writers would starve. `lock_api` 0.5 has no call for it either.
//! * A condition variable: `std::thread::park`, a channel, or a [`GroupLock`](crate::GroupLock) with a session for each phase.
//! * The reentrant mutex. It takes one word over any mutex: `lock_api::ReentrantMutex<grouplock::RawMutex, G, T>`, with your
//!   `GetThreadId`.

mod mutex;
mod rwlock;
mod upgradable;

use std::time::{Duration, Instant};

pub use ::lock_api;

pub use self::mutex::RawMutex;
pub use self::rwlock::RawRwLock;
pub use self::upgradable::InsideUpgradable;
use crate::watch::Held;

/// Protects data that one at a time may use. See [`raw`](self) and [`lock_api::Mutex`].
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Has the mutex until dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// Has the mutex until dropped, and shows a part of the data. By [`MutexGuard::map`](lock_api::MutexGuard::map).
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// Has the mutex until dropped, and owns a share of it. By [`Mutex::lock_arc`](lock_api::Mutex::lock_arc).
pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;

/// Protects data that many may read or one may write. See [`raw`](self) and [`lock_api::RwLock`].
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Reads until dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Writes until dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Reads until dropped, and may become a writer meanwhile.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// Reads a part of the data until dropped. By [`RwLockReadGuard::map`](lock_api::RwLockReadGuard::map).
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// Writes a part of the data until dropped. By [`RwLockWriteGuard::map`](lock_api::RwLockWriteGuard::map).
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
/// Reads until dropped, and owns a share of the lock. By [`RwLock::read_arc`](lock_api::RwLock::read_arc).
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// Writes until dropped, and owns a share of the lock. By [`RwLock::write_arc`](lock_api::RwLock::write_arc).
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// Reads until dropped, may become a writer meanwhile, and owns a share of the lock. By
/// [`RwLock::upgradable_read_arc`](lock_api::RwLock::upgradable_read_arc).
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

#[cfg(not(feature = "send_guard"))]
type Marker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type Marker = lock_api::GuardSend;

/// The state of a guard. Empty, unless feature `deadlock_detection` is on. Dropping it leaves the lock locked.
pub struct Inside {
    held: Held,
    _marker: Marker,
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl Inside {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn new(core: &Room, exclusive: bool) -> Self {
        let mut held = Held::new(request(core, exclusive));
        if cfg!(feature = "send_guard") {
            // Its guard may be sent anywhere, and cannot tell who uses it.
            held.of_task();
        }
        Inside { held, _marker: Marker::new() }
    }
}

/// What both are made of. There is one session, so that it needs no name.
type Room = crate::cores::Phases<()>;

fn request(core: &Room, exclusive: bool) -> crate::watch::Request {
    use crate::cores::Core as _;

    let sessions = if exclusive { "writing" } else { "reading" };
    crate::watch::Request { lock: core.address(), exclusive, sessions }
}

/// How many wait.
fn waiters(seen: &crate::Snapshot<()>) -> usize {
    seen.waiting.iter().map(|phase| phase.waiters).sum()
}

/// Timeouts that reach beyond the end of time have no deadline.
fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
