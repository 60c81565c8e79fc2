//! A mutex: a room that everyone wants to have to themselves.

use std::fmt;
use std::time::{Duration, Instant};

use lock_api::{RawMutexFair, RawMutexTimed};

use super::{Inside, Room, deadline, lock_api, waiters};
use crate::cores::Core;
use crate::watch;

/// The mutex without data, for [`lock_api::Mutex`]. See [`raw`](crate::raw).
pub struct RawMutex {
    room: Room,
}

impl RawMutex {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn inside(&self) -> Inside {
        Inside::new(&self.room, true)
    }
}

// SAFETY: whoever is alone in the room excludes all others; entering acquires what leaving released. Nothing unwinds but a wait that is given up
// (for feature `deadlock_detection`), which then holds nothing.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = RawMutex { room: Room::named(()) };

    type Guard = Inside;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock(&self) -> Inside {
        watch::asks();
        self.room.enter(None);
        self.inside()
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock(&self) -> Option<Inside> {
        self.room.try_enter(None)?;
        Some(self.inside())
    }

    #[inline]
    unsafe fn unlock(&self, mut guard: Inside) {
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
    unsafe fn unlock_fair(&self, mut guard: Inside) {
        guard.held.leave();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.leave_fairly(true) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self, guard: &mut Inside) {
        watch::asks();
        let _away = guard.held.away();
        // SAFETY: by the caller's promise, it is alone inside.
        unsafe { self.room.make_way(None) };
    }
}

// SAFETY: as above; a wait whose deadline has come holds nothing.
unsafe impl RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_for(&self, timeout: Duration) -> Option<Inside> {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_until(deadline),
            None => Some(lock_api::RawMutex::lock(self)),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_until(&self, deadline: Instant) -> Option<Inside> {
        self.room.enter_until(None, deadline)?;
        Some(self.inside())
    }
}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = self.room.is_held().0;
        let mut form = f.debug_struct("RawMutex");
        form.field("locked", &locked);
        // Only if it can be told without waiting.
        if let Some(seen) = self.room.try_snapshot() {
            form.field("waiting", &waiters(&seen));
        }
        form.finish_non_exhaustive()
    }
}
