//! A readers-writers lock: readers have a session, and a writer is alone.

use std::fmt;
use std::time::{Duration, Instant};

use lock_api::{RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed};

use super::upgradable::Token;
use super::{GuardState, Room, lock_api, waiters};
use crate::cores::{Core, enter_for};
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

// SAFETY: readers share a session, and a holder that is alone excludes all others. Entering
// acquires what leaving released. Only a wait unwinds (by `deadlock_detection`), and holds nothing
// then.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = RawRwLock { room: Room::named(()), token: Token::new() };

    type SharedGuard = GuardState;
    type ExclusiveGuard = GuardState;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_shared(&self) -> GuardState {
        watch::about_to_wait();
        self.room.enter(READERS);
        GuardState::new(&self.room, false)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared(&self) -> Option<GuardState> {
        self.room.try_enter(READERS)?;
        Some(GuardState::new(&self.room, false))
    }

    #[inline]
    unsafe fn unlock_shared(&self, mut guard: GuardState) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave(&mut ()) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_exclusive(&self) -> GuardState {
        watch::about_to_wait();
        self.room.enter(WRITER);
        GuardState::new(&self.room, true)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive(&self) -> Option<GuardState> {
        self.room.try_enter(WRITER)?;
        Some(GuardState::new(&self.room, true))
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, mut guard: GuardState) {
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
    unsafe fn unlock_shared_fair(&self, mut guard: GuardState) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave_fairly(false) };
    }

    unsafe fn unlock_exclusive_fair(&self, mut guard: GuardState) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_fairly(true) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump_shared(&self, guard: &mut GuardState) {
        watch::about_to_wait();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.make_way(READERS.as_ref()) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump_exclusive(&self, guard: &mut GuardState) {
        watch::about_to_wait();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.make_way(WRITER.as_ref()) };
    }
}

// SAFETY: a room that is opened to the readers is never empty in between. Opening it is a release.
unsafe impl RawRwLockDowngrade for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn downgrade(&self, mut guard: GuardState) -> GuardState {
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { Core::downgrade(&self.room, &mut (), ()) };
        guard.held.set_exclusive(false);
        guard
    }
}

// SAFETY: as above. A wait that reaches its deadline holds nothing.
unsafe impl RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardState> {
        enter_for(&self.room, READERS, timeout)?;
        Some(GuardState::new(&self.room, false))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardState> {
        self.room.enter_until(READERS, deadline)?;
        Some(GuardState::new(&self.room, false))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardState> {
        enter_for(&self.room, WRITER, timeout)?;
        Some(GuardState::new(&self.room, true))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardState> {
        self.room.enter_until(WRITER, deadline)?;
        Some(GuardState::new(&self.room, true))
    }
}

impl fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (locked, exclusive) = self.room.is_held();
        let mut form = f.debug_struct("RawRwLock");
        form.field("locked", &locked).field("exclusive", &exclusive);
        // Only if that needs no wait.
        if let Some(seen) = self.room.try_snapshot() {
            form.field("waiting", &waiters(&seen));
        }
        form.finish_non_exhaustive()
    }
}
