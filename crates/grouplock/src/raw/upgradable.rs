//! Readers that can become writers.
//!
//! An upgradable reader is a reader that has the *token*. To get it, a thread does three things:
//!
//! 1. It passes the gate. One thread at a time is in the gate, so the token is given in order.
//! 2. It waits until the token is free, but does not keep it.
//! 3. It enters as a reader and takes the token. If the token is not free, because a writer has
//!    become an upgradable reader meanwhile, it leaves and continues at 2.
//!
//! So, except for a moment in 2, only a holder has the token. Therefore a writer, which is alone
//! inside, can always become an upgradable reader: the token is free, or will be in a moment. And
//! no holder waits for the token. So an upgradable reader can always become alone.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::{Duration, Instant};

use lock_api::{
    RawRwLock as _, RawRwLockDowngrade as _, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use super::rwlock::READERS;
use super::{GuardState, RawRwLock, Room, lock_api};
use crate::cores::Core;
use crate::watch::{self, Held};

/// The token and its gate, allocated on first use: most locks have no upgradable reader.
pub(super) struct Token(AtomicPtr<Rooms>);

struct Rooms {
    gate: Room,
    token: Room,
}

impl Token {
    pub(super) const fn new() -> Self {
        Token(AtomicPtr::new(ptr::null_mut()))
    }

    fn rooms(&self) -> &Rooms {
        // Acquire: pairs with the release below, for the rooms.
        let mut rooms = self.0.load(Acquire);
        if rooms.is_null() {
            let ours =
                Box::into_raw(Box::new(Rooms { gate: Room::named(()), token: Room::named(()) }));
            rooms = match self.0.compare_exchange(rooms, ours, AcqRel, Acquire) {
                Ok(_) => ours,
                Err(theirs) => {
                    // SAFETY: the pointer comes from a box, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(ours) });
                    theirs
                }
            };
        }
        // SAFETY: the pointer comes from a box, which lives as long as the token.
        unsafe { &*rooms }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let rooms = *self.0.get_mut();
        if !rooms.is_null() {
            // SAFETY: the pointer comes from a box, and no code uses it any more.
            drop(unsafe { Box::from_raw(rooms) });
        }
    }
}

/// Is alone in a room until dropped.
struct RoomGuard<'a>(&'a Room);

impl<'a> RoomGuard<'a> {
    fn enter(room: &'a Room, deadline: Option<Instant>) -> Option<Self> {
        // Not `then_some`: that would make a guard in every case, and dropping it leaves.
        enter(room, None, deadline).then(|| RoomGuard(room))
    }
}

impl Drop for RoomGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this guard entered when it was made.
        unsafe { self.0.leave_exclusive(&mut ()) };
    }
}

fn enter(room: &Room, session: Option<()>, deadline: Option<Instant>) -> bool {
    if let Some(deadline) = deadline {
        return room.enter_until(session, deadline).is_some();
    }
    room.enter(session);
    true
}

/// The state of an upgradable guard.
#[derive(Debug)]
pub struct UpgradableGuardState {
    inside: GuardState,
    token: Held,
}

impl RawRwLock {
    /// Becomes an upgradable reader, at most until `deadline`. Returns whether it is one.
    fn enter_upgradable(&self, deadline: Option<Instant>) -> bool {
        let Rooms { gate, token } = self.token.rooms();
        let Some(_passing) = RoomGuard::enter(gate, deadline) else { return false };
        loop {
            let Some(free) = RoomGuard::enter(token, deadline) else { return false };
            drop(free);
            if !enter(&self.room, READERS, deadline) {
                return false;
            }
            if token.try_enter(None).is_some() {
                return true;
            }
            // SAFETY: the caller has just entered.
            unsafe { self.room.leave(&mut ()) };
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn inside_upgradable(&self) -> UpgradableGuardState {
        self.with_token(GuardState::new(&self.room, false))
    }

    /// The caller has the token, and is inside.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn with_token(&self, inside: GuardState) -> UpgradableGuardState {
        UpgradableGuardState {
            inside,
            token: GuardState::new(&self.token.rooms().token, true).held,
        }
    }

    /// Releases the token, which the caller has.
    fn release_token(&self, guard: UpgradableGuardState, fairly: bool) -> GuardState {
        let UpgradableGuardState { inside, token: mut held } = guard;
        held.leave();
        let token = &self.token.rooms().token;
        if fairly {
            // SAFETY: the owner of the token is alone in its room.
            unsafe { token.leave_fairly(true) };
        } else {
            // SAFETY: as above.
            unsafe { token.leave_exclusive(&mut ()) };
        }
        inside
    }

    /// # Safety
    /// As [`RawRwLockUpgradeTimed::try_upgrade_until`].
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn upgrade_by(
        &self,
        mut guard: UpgradableGuardState,
        deadline: Option<Instant>,
    ) -> Result<GuardState, UpgradableGuardState> {
        watch::about_to_wait();
        let alone = {
            let _away = guard.inside.held.away();
            // SAFETY: by the caller's promise, it is a reader, and the only one with the token.
            unsafe { self.room.upgrade(deadline) }
        };
        if !alone {
            return Err(guard);
        }
        guard.inside.held.set_exclusive(true);
        Ok(self.release_token(guard, false))
    }
}

// SAFETY: an upgradable reader is a reader, and the only one with the token. It becomes alone when
// all other readers have left, as `Phases::upgrade` says, and acquires what they released.
unsafe impl RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = UpgradableGuardState;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_upgradable(&self) -> UpgradableGuardState {
        watch::about_to_wait();
        self.enter_upgradable(None);
        self.inside_upgradable()
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable(&self) -> Option<UpgradableGuardState> {
        self.room.try_enter(READERS)?;
        if self.token.rooms().token.try_enter(None).is_none() {
            // SAFETY: the caller has just entered.
            unsafe { self.room.leave(&mut ()) };
            return None;
        }
        Some(self.inside_upgradable())
    }

    unsafe fn unlock_upgradable(&self, guard: UpgradableGuardState) {
        let inside = self.release_token(guard, false);
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.unlock_shared(inside) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn upgrade(&self, guard: UpgradableGuardState) -> GuardState {
        // SAFETY: the caller's promise.
        match unsafe { self.upgrade_by(guard, None) } {
            Ok(guard) => guard,
            Err(_) => unreachable!("without a deadline, waiting ends inside"),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade(
        &self,
        mut guard: UpgradableGuardState,
    ) -> Result<GuardState, UpgradableGuardState> {
        // SAFETY: by the caller's promise, it is a reader.
        if !unsafe { self.room.try_upgrade() } {
            return Err(guard);
        }
        guard.inside.held.set_exclusive(true);
        Ok(self.release_token(guard, false))
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, guard: UpgradableGuardState) {
        let mut inside = self.release_token(guard, true);
        inside.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave_fairly(false) };
    }
}

// SAFETY: as above. An upgradable reader that releases the token is a reader. A writer that takes
// the token is a reader with the token after it has opened the room to readers, which is a release.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: UpgradableGuardState) -> GuardState {
        self.release_token(guard, false)
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn downgrade_to_upgradable(&self, guard: GuardState) -> UpgradableGuardState {
        let token = &self.token.rooms().token;
        // Only the caller is inside, so another thread has the token only for a moment. This loop
        // tries and does not wait, because a wait could be withdrawn.
        while token.try_enter(None).is_none() {
            std::thread::yield_now();
        }
        // SAFETY: the caller's promise.
        self.with_token(unsafe { self.downgrade(guard) })
    }
}

// SAFETY: as above. A wait that reaches its deadline holds what it held before.
unsafe impl RawRwLockUpgradeTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<UpgradableGuardState> {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.try_lock_upgradable_until(deadline),
            None => Some(self.lock_upgradable()),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<UpgradableGuardState> {
        if self.enter_upgradable(Some(deadline)) { Some(self.inside_upgradable()) } else { None }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_for(
        &self,
        guard: UpgradableGuardState,
        timeout: Duration,
    ) -> Result<GuardState, UpgradableGuardState> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade_by(guard, Instant::now().checked_add(timeout)) }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_until(
        &self,
        guard: UpgradableGuardState,
        deadline: Instant,
    ) -> Result<GuardState, UpgradableGuardState> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade_by(guard, Some(deadline)) }
    }
}
