//! A mutex: a room in which every holder is alone.

use std::fmt;
use std::time::{Duration, Instant};

use lock_api::{RawMutexFair, RawMutexTimed};

use super::{GuardState, Room, lock_api, waiters};
use crate::cores::{Core, enter_for};
use crate::watch;

/// The mutex without data, for [`lock_api::Mutex`]. See [`raw`](crate::raw).
pub struct RawMutex {
    room: Room,
}

// SAFETY: a holder that is alone excludes all others. Entering acquires what leaving released. Only
// a wait unwinds (by `deadlock_detection`), and holds nothing then.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = RawMutex { room: Room::named(()) };

    type Guard = GuardState;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock(&self) -> GuardState {
        watch::about_to_wait();
        self.room.enter(None);
        GuardState::new(&self.room, true)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock(&self) -> Option<GuardState> {
        self.room.try_enter(None)?;
        Some(GuardState::new(&self.room, true))
    }

    #[inline]
    unsafe fn unlock(&self, mut guard: GuardState) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_exclusive(&mut ()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.room.is_held().0
    }
}

// SAFETY: as above.
unsafe impl RawMutexFair for RawMutex {
    unsafe fn unlock_fair(&self, mut guard: GuardState) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_fairly(true) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self, guard: &mut GuardState) {
        watch::about_to_wait();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.make_way(None) };
    }
}

// SAFETY: as above. A wait that reaches its deadline holds nothing.
unsafe impl RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardState> {
        enter_for(&self.room, None, timeout)?;
        Some(GuardState::new(&self.room, true))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_until(&self, deadline: Instant) -> Option<GuardState> {
        self.room.enter_until(None, deadline)?;
        Some(GuardState::new(&self.room, true))
    }
}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = self.room.is_held().0;
        let mut form = f.debug_struct("RawMutex");
        form.field("locked", &locked);
        // Only if that needs no wait.
        if let Some(seen) = self.room.try_snapshot() {
            form.field("waiting", &waiters(&seen));
        }
        form.finish_non_exhaustive()
    }
}
