//! Feature `lock_api`: [`Mutex`] and [`RwLock`], with the calls of `parking_lot`.
//!
//! A readers-writers lock is a group lock with one session, that of the readers. A mutex is a group
//! lock without sessions. Both use the default core, [`Phases`](crate::cores::Phases), through the
//! crate [`lock_api`] 0.5, which has the data and the guards. `parking_lot` has the same calls:
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
//! The root of the crate also has the locks and their raw forms. This module has the names of their
//! guards. The feature needs Rust 1.95, as `lock_api` does.
//!
//! # What they promise
//!
//! * The order is that of [`Policy::EVENTUAL`](crate::Policy::EVENTUAL): any request may take a
//!   free lock, but no reader or writer in the queue is overtaken for longer than a millisecond.
//!   After `bump`, no later request enters before the first waiters. The same is true of
//!   `unlock_fair`, except if a waiter was woken before and has not run since: then a later request
//!   may take the free lock.
//! * No poisoning: a guard that a panic drops unlocks.
//! * `RwLock<()>` has 24 bytes and `Mutex<()>` 16. Neither allocates memory before a request waits
//!   (or asks for an upgradable lock).
//! * Guards stay on their thread, as in `parking_lot` and std. Feature `send_guard` changes that.
//! * A lock that is dropped while it is locked does no harm. A leaked guard locks forever.
//!
//! # Upgradable readers
//!
//! [`RwLock::upgradable_read`](lock_api::RwLock::upgradable_read) shares with readers and excludes
//! other upgradable readers. That is not a session: two requests for a session always share. So an
//! upgradable reader is a reader that also has the one token of the lock. To upgrade, it leaves the
//! readers and becomes the first in the queue in one step, so no writer enters in between.
//!
//! # What there is not
//!
//! * Recursive reading. Suppose that a thread reads, a writer begins to wait, and the thread asks
//!   to read again. It waits behind the writer, and the writer waits for it. If the lock let it
//!   pass, it would have to let every reader pass, and writers would starve.
//! * A condition variable. Use `std::thread::park`, a channel, or a session for each phase.
//! * A reentrant mutex. You can build it over this mutex:
//!   `lock_api::ReentrantMutex<grouplock::RawMutex, G, T>`, with your own `GetThreadId`.

mod mutex;
mod rwlock;
mod upgradable;

pub use ::lock_api;

pub use self::mutex::RawMutex;
pub use self::rwlock::RawRwLock;
pub use self::upgradable::UpgradableGuardState;
use crate::cores::Core as _;
use crate::watch::Held;

/// Protects data that one holder at a time may use. See [`raw`](self) and [`lock_api::Mutex`].
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Holds the mutex until dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// Holds the mutex until dropped, and shows a part of the data. From `MutexGuard::map`.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// Holds the mutex until dropped, and owns a share of it. From `Mutex::lock_arc`.
pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;

/// Protects data that many may read or one may write. See [`raw`](self) and [`lock_api::RwLock`].
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Reads until dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Writes until dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Reads until dropped, and can become a writer.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// Reads a part of the data until dropped. From `RwLockReadGuard::map`.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// Writes a part of the data until dropped. From `RwLockWriteGuard::map`.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
/// Reads until dropped, and owns a share of the lock. From `RwLock::read_arc`.
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// Writes until dropped, and owns a share of the lock. From `RwLock::write_arc`.
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// Reads until dropped, can become a writer, and owns a share of the lock.
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

#[cfg(not(feature = "send_guard"))]
type Marker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type Marker = lock_api::GuardSend;

/// The state of a guard: empty without feature `deadlock_detection`. Dropping it does not unlock.
pub struct GuardState {
    held: Held,
    _marker: Marker,
}

impl std::fmt::Debug for GuardState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardState").finish_non_exhaustive()
    }
}

impl GuardState {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn new(core: &Room, exclusive: bool) -> Self {
        let mut held = Held::new(core.address(), exclusive);
        if cfg!(feature = "send_guard") {
            // The guard may be sent anywhere, and the lock cannot see which thread uses it.
            held.of_task();
        }
        GuardState { held, _marker: Marker::new() }
    }
}

/// The core of both. There is one session, so it needs no name.
type Room = crate::cores::Phases<()>;

/// The number of waiters.
fn waiters(seen: &crate::Snapshot<()>) -> usize {
    seen.waiting.iter().map(|phase| phase.waiters).sum()
}
