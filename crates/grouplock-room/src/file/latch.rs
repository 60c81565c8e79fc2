//! The internal lock.
//!
//! ```text
//! bit  31      somebody sleeps on it
//! bits 15…0    one more than the slot of its owner, or 0
//! ```
//!
//! Its owner is known by slot, so everybody can ask the kernel whether it lives. It is taken from a dead owner only
//! under the reclaim byte, under which slots are claimed too: so a slot found dead stays dead until the latch has changed
//! hands. A slot that is claimed while the latch still names it brings the latch along.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::futex;
use super::layout::header;
use super::mapping::Half;
use super::room::FileRoom;
use crate::error::RoomError;

const OWNER: u32 = 0xffff;
const SLEEPERS: u32 = 1 << 31;

/// How long to sleep before asking whether the owner lives.
const PATIENCE: Duration = Duration::from_millis(10);
/// An update takes microseconds. An owner that lives and has not finished by then is stopped or broken.
const STALL: Duration = Duration::from_secs(10);
const SPINS: u32 = 100;

/// Owning the latch. Dropping it releases it, and then wakes whoever was admitted.
pub(super) struct Latched<'r> {
    pub(super) room: &'r FileRoom,
    /// Slots to wake.
    pub(super) wake: Vec<u16>,
    /// A slot on which nobody sleeps, whatever it says.
    pub(super) awake: Option<u16>,
    /// Whether a word was found that nobody of ours has written.
    pub(super) nonsense: Cell<bool>,
}

impl FileRoom {
    fn latch_word(&self) -> Half<'_> {
        self.map.half(header::LATCH)
    }

    /// Waits for the latch and takes it in the name of `slot`, which must be ours.
    pub(super) fn latch(&self, slot: u16) -> Result<Latched<'_>, RoomError> {
        self.ours()?;
        self.verdict()?;
        let (word, me) = (self.latch_word(), u32::from(slot) + 1);
        for _ in 0..SPINS {
            if word.get() == 0 && word.swap(0, me) {
                return Ok(self.latched());
            }
            std::hint::spin_loop();
        }
        self.latch_patiently(me)
    }

    fn latched(&self) -> Latched<'_> {
        Latched { room: self, wake: Vec::new(), awake: None, nonsense: Cell::new(false) }
    }

    #[cold]
    fn latch_patiently(&self, me: u32) -> Result<Latched<'_>, RoomError> {
        let word = self.latch_word();
        let moves = || (self.map.word(header::CHANGES).get(), word.get() & OWNER);
        let (mut last, mut since) = (moves(), Instant::now());
        loop {
            self.verdict()?;
            let seen = word.get();
            let owner = seen & OWNER;
            if seen == 0 {
                // There may be more sleepers than me.
                if word.swap(0, me | SLEEPERS) {
                    return Ok(self.latched());
                }
                continue;
            }
            if owner == 0 || owner > self.slots().into() || seen & !(OWNER | SLEEPERS) != 0 {
                return Err(self.condemn("its latch has an impossible owner"));
            }
            if seen & SLEEPERS == 0 && !word.swap(seen, seen | SLEEPERS) {
                continue;
            }
            futex::wait(word.0, seen | SLEEPERS, PATIENCE);
            let now = moves();
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() >= PATIENCE / 2 {
                if self.take_from_dead(me, owner)? {
                    return Ok(self.latched());
                }
                if since.elapsed() > STALL {
                    return Err(self.stalled(owner));
                }
            }
        }
    }

    /// Takes the latch if its owner is dead.
    fn take_from_dead(&self, me: u32, owner: u32) -> Result<bool, RoomError> {
        let probe = |error| self.io("probe", error);
        let dead = (owner - 1) as u16;
        if self.life.is_alive(dead).map_err(probe)? {
            return Ok(false);
        }
        let taken = self.life.try_reclaiming(|| {
            let word = self.latch_word();
            let seen = word.get();
            Ok(seen & OWNER == owner
                && !self.life.is_alive(dead)?
                && word.swap(seen, me | SLEEPERS))
        });
        taken.map_err(probe)?.unwrap_or(Ok(false)).map_err(probe)
    }

    /// If the latch was left to `slot` by an earlier owner of it: it is ours now. To be asked under the reclaim byte.
    pub(super) fn inherited_latch(&self, slot: u16) -> bool {
        self.latch_word().get() & OWNER == u32::from(slot) + 1
    }

    /// The latch that [was inherited](FileRoom::inherited_latch).
    pub(super) fn accept_latch(&self) -> Latched<'_> {
        self.latched()
    }

    fn stalled(&self, owner: u32) -> RoomError {
        let pid = self.slot((owner - 1) as u16).pid().get();
        let path = self.path.clone();
        RoomError::Stalled { path, who: format!("process {pid}"), waited: STALL }
    }

    /// Runs `work` while no slot changes its owner.
    pub(super) fn reclaiming<T>(&self, mut work: impl FnMut() -> T) -> Result<T, RoomError> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let done = self.life.try_reclaiming(&mut work);
            if let Some(result) = done.map_err(|error| self.io("lock", error))? {
                return Ok(result);
            }
            if started.elapsed() > STALL {
                let (path, who) = (self.path.clone(), "some process".to_owned());
                return Err(RoomError::Stalled { path, who, waited: STALL });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        self.nudge_head();
        let changes = self.room.map.word(header::CHANGES);
        changes.set(changes.get().wrapping_add(1));
        let word = self.room.latch_word();
        // A loop, but one that only a new sleeper can send around again.
        while {
            let seen = word.get();
            let released = word.swap(seen, 0);
            if released && seen & SLEEPERS != 0 {
                futex::wake(word.0, 1);
            }
            !released
        } {}
        for slot in &self.wake {
            futex::wake(self.room.slot(*slot).state().0, i32::MAX);
        }
    }
}
