//! Readers who may become writers.
//!
//! An upgradable reader is a reader who has the *token*. To get it:
//!
//! 1. Pass the gate, one at a time; so those who want the token are served in order.
//! 2. Wait until the token is free, but do not keep it.
//! 3. Enter as a reader, and take the token. If it is gone, because a writer has become an upgradable reader meanwhile, leave and begin again at 2.
//!
//! So nobody has the token who is not inside, but for the moment at 2. That is why a writer, who is alone inside, can always become an upgradable
//! reader: the token is free then, or will be in a moment. And nobody who is inside waits for it, so who has it and wants to be alone
//! can always become so.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::{Duration, Instant};

use lock_api::{
    RawRwLock as _, RawRwLockDowngrade as _, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use super::rwlock::READERS;
use super::{Inside, RawRwLock, Room, deadline, lock_api};
use crate::cores::Core;
use crate::watch::{self, Held};

/// The token and its gate: made when somebody wants it for the first time, as most locks never have an upgradable reader.
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
                    // SAFETY: from a box, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(ours) });
                    theirs
                }
            };
        }
        // SAFETY: from a box, which lives as long as the token.
        unsafe { &*rooms }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let rooms = *self.0.get_mut();
        if !rooms.is_null() {
            // SAFETY: from a box, and nobody uses it any more.
            drop(unsafe { Box::from_raw(rooms) });
        }
    }
}

/// Alone in a room until dropped.
struct Alone<'a>(&'a Room);

impl<'a> Alone<'a> {
    fn enter(room: &'a Room, deadline: Option<Instant>) -> Option<Self> {
        // Not `then_some`: one that is made leaves when it is dropped.
        enter(room, None, deadline).then(|| Alone(room))
    }

    fn try_enter(room: &'a Room) -> Option<Self> {
        room.try_enter(None).map(|()| Alone(room))
    }

    fn stay(self) {
        std::mem::forget(self);
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // SAFETY: entered when this was made.
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
pub struct InsideUpgradable {
    inside: Inside,
    token: TokenHeld,
}

/// The token, as it is registered by feature `deadlock_detection`.
struct TokenHeld(Held);

impl std::fmt::Debug for TokenHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenHeld").finish_non_exhaustive()
    }
}

impl RawRwLock {
    /// Becomes an upgradable reader, but not later than at `deadline`.
    fn enter_upgradable(&self, deadline: Option<Instant>) -> bool {
        let Rooms { gate, token } = self.token.rooms();
        let Some(_passing) = Alone::enter(gate, deadline) else { return false };
        loop {
            let Some(free) = Alone::enter(token, deadline) else { return false };
            drop(free);
            if !enter(&self.room, READERS, deadline) {
                return false;
            }
            if let Some(token) = Alone::try_enter(token) {
                token.stay();
                return true;
            }
            // SAFETY: entered just now.
            unsafe { self.room.leave(&mut ()) };
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn inside_upgradable(&self) -> InsideUpgradable {
        let token = Inside::new(&self.token.rooms().token, true).held;
        InsideUpgradable { inside: self.inside(false), token: TokenHeld(token) }
    }

    /// The caller has the token, and gives it away.
    fn give_token(&self, guard: InsideUpgradable, fairly: bool) -> Inside {
        let InsideUpgradable { inside, token: TokenHeld(mut held) } = guard;
        held.leave();
        let token = &self.token.rooms().token;
        if fairly {
            // SAFETY: whoever has the token is alone in its room.
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
        mut guard: InsideUpgradable,
        deadline: Option<Instant>,
    ) -> Result<Inside, InsideUpgradable> {
        watch::asks();
        let alone = {
            let _away = guard.inside.held.away();
            // SAFETY: by the caller's promise it is a reader; and it has the token, so that nobody else does this.
            unsafe { self.room.upgrade(deadline) }
        };
        if !alone {
            return Err(guard);
        }
        guard.inside.held.now(true);
        Ok(self.give_token(guard, false))
    }
}

// SAFETY: an upgradable reader is a reader, and the only one with the token. It becomes alone when all others have left, as `Phases::upgrade`
// says, and acquires what they released.
unsafe impl RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = InsideUpgradable;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_upgradable(&self) -> InsideUpgradable {
        watch::asks();
        self.enter_upgradable(None);
        self.inside_upgradable()
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable(&self) -> Option<InsideUpgradable> {
        self.room.try_enter(READERS)?;
        let Some(token) = Alone::try_enter(&self.token.rooms().token) else {
            // SAFETY: entered just now.
            unsafe { self.room.leave(&mut ()) };
            return None;
        };
        token.stay();
        Some(self.inside_upgradable())
    }

    unsafe fn unlock_upgradable(&self, guard: InsideUpgradable) {
        let inside = self.give_token(guard, false);
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.unlock_shared(inside) };
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn upgrade(&self, guard: InsideUpgradable) -> Inside {
        // SAFETY: the caller's promise.
        match unsafe { self.upgrade_by(guard, None) } {
            Ok(guard) => guard,
            Err(_) => unreachable!("without a deadline, waiting ends inside"),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade(&self, mut guard: InsideUpgradable) -> Result<Inside, InsideUpgradable> {
        // SAFETY: by the caller's promise, it is a reader.
        if !unsafe { self.room.try_upgrade() } {
            return Err(guard);
        }
        guard.inside.held.now(true);
        Ok(self.give_token(guard, false))
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, guard: InsideUpgradable) {
        let mut inside = self.give_token(guard, true);
        inside.held.leave();
        // SAFETY: by the caller's promise, it is a reader.
        unsafe { self.room.leave_fairly(false) };
    }
}

// SAFETY: as above. Who has the token and gives it away is a reader; who is alone and takes it is a reader with the token once it has let the
// others in, which is a release.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: InsideUpgradable) -> Inside {
        self.give_token(guard, false)
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn downgrade_to_upgradable(&self, guard: Inside) -> InsideUpgradable {
        let rooms = self.token.rooms();
        // Nobody is inside but the caller, so nobody has the token for longer than a moment. By trying, as waiting might be given up.
        let token = loop {
            if let Some(token) = Alone::try_enter(&rooms.token) {
                break token;
            }
            std::thread::yield_now();
        };
        token.stay();
        // SAFETY: the caller's promise.
        let inside = unsafe { self.downgrade(guard) };
        let token = Inside::new(&rooms.token, true).held;
        InsideUpgradable { inside, token: TokenHeld(token) }
    }
}

// SAFETY: as above; a wait whose deadline has come holds what it held before.
unsafe impl RawRwLockUpgradeTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<InsideUpgradable> {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_upgradable_until(deadline),
            None => Some(self.lock_upgradable()),
        }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<InsideUpgradable> {
        if self.enter_upgradable(Some(deadline)) { Some(self.inside_upgradable()) } else { None }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_for(
        &self,
        guard: InsideUpgradable,
        timeout: Duration,
    ) -> Result<Inside, InsideUpgradable> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade_by(guard, deadline(timeout)) }
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_until(
        &self,
        guard: InsideUpgradable,
        deadline: Instant,
    ) -> Result<Inside, InsideUpgradable> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade_by(guard, Some(deadline)) }
    }
}
