//! A readers-writers lock: readers are a session, and a writer wants the room to itself.

use std::fmt;
use std::time::{Duration, Instant};

use lock_api::{RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed};

use super::upgradable::Token;
use super::{Inside, Room, deadline, lock_api, waiters};
use crate::cores::Core;
use crate::watch;

/// The readers-writers lock without data, for [`lock_api::RwLock`]. See [`raw`](crate::raw).
pub struct RawRwLock {
    pub(super) room: Room,
    pub(super) token: Token,
}

/// The one session.
pub(super) const READERS: Option<()> = Some(());
/// To be alone.
const WRITER: Option<()> = None;

impl RawRwLock {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(super) fn inside(&self, exclusive: bool) -> Inside {
        Inside::new(&self.room, exclusive)
    }
}

// SAFETY: readers share a session, and whoever is alone in the room excludes all others; entering acquires what leaving released. Nothing
// unwinds but a wait that is given up (for feature `deadlock_detection`), which then holds nothing.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = RawRwLock { room: Room::named(()), token: Token::new() };

    type SharedGuard = Inside;
    type ExclusiveGuard = Inside;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_shared(&self) -> Inside {
        watch::asks();
        self.room.enter(READERS);
        self.inside(false)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared(&self) -> Option<Inside> {
        self.room.try_enter(READERS)?;
        Some(self.inside(false))
    }

    #[inline]
    unsafe fn unlock_shared(&self, mut guard: Inside) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave(&mut ()) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_exclusive(&self) -> Inside {
        watch::asks();
        self.room.enter(WRITER);
        self.inside(true)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive(&self) -> Option<Inside> {
        self.room.try_enter(WRITER)?;
        Some(self.inside(true))
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, mut guard: Inside) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_exclusive(&mut ()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.room.is_held().0
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.room.is_held().1
    }
}

// SAFETY: as above.
unsafe impl RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, mut guard: Inside) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave_fairly(false) };
    }

    unsafe fn unlock_exclusive_fair(&self, mut guard: Inside) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_fairly(true) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump_shared(&self, guard: &mut Inside) {
        watch::asks();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.make_way(READERS.as_ref()) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump_exclusive(&self, guard: &mut Inside) {
        watch::asks();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.make_way(WRITER.as_ref()) };
    }
}

// SAFETY: a room that is opened to the readers is never empty in between; opening it is a release.
unsafe impl RawRwLockDowngrade for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn downgrade(&self, mut guard: Inside) -> Inside {
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { Core::downgrade(&self.room, &mut (), ()) };
        guard.held.now(false);
        guard
    }
}

// SAFETY: as above; a wait whose deadline has come holds nothing.
unsafe impl RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Inside> {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_shared_until(deadline),
            None => Some(lock_api::RawRwLock::lock_shared(self)),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<Inside> {
        self.room.enter_until(READERS, deadline)?;
        Some(self.inside(false))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Inside> {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_exclusive_until(deadline),
            None => Some(lock_api::RawRwLock::lock_exclusive(self)),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<Inside> {
        self.room.enter_until(WRITER, deadline)?;
        Some(self.inside(true))
    }
}

impl fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (locked, exclusive) = self.room.is_held();
        let mut form = f.debug_struct("RawRwLock");
        form.field("locked", &locked).field("exclusive", &exclusive);
        // Only if it can be told without waiting.
        if let Some(seen) = self.room.try_snapshot() {
            form.field("waiting", &waiters(&seen));
        }
        form.finish_non_exhaustive()
    }
}
