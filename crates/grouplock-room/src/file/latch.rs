//! The latch: the internal lock of a room. [`latch_word`] is its protocol. This file applies it to
//! the word in the file, and limits the wait.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::futex;
use super::latch_word::{self, LatchWord, TakeResult};
use super::layout::header;
use super::mapping::Half;
use super::room::FileRoom;
use crate::error::RoomError;

/// How long to sleep before checking whether the owner lives.
const PATIENCE: Duration = Duration::from_millis(10);
/// A change takes microseconds. An owner that lives and takes this long is stopped or faulty.
const STALL: Duration = Duration::from_secs(10);
const SPINS: u32 = 100;

/// The owned latch. Dropping it releases the latch, and then wakes the requests that were admitted.
pub(super) struct Latched<'r> {
    pub(super) room: &'r FileRoom,
    /// The slots to wake.
    pub(super) wake: Vec<u16>,
    /// A slot whose owner does not sleep, whatever its state.
    pub(super) awake: Option<u16>,
    /// Whether an invalid word was found in the file.
    pub(super) found_invalid: Cell<bool>,
}

impl FileRoom {
    fn latch_word(&self) -> Half<'_> {
        self.map.half(header::LATCH)
    }

    /// Waits for the latch and takes it for `slot`, which must be ours.
    pub(super) fn latch(&self, slot: u16) -> Result<Latched<'_>, RoomError> {
        self.ours()?;
        self.verdict()?;
        for _ in 0..SPINS {
            if latch_word::try_take(self, slot)? {
                return Ok(self.latched());
            }
            std::hint::spin_loop();
        }
        self.latch_patiently(slot)
    }

    /// The latch that we have taken, or that came with a slot ([`latch_word::is_left_to`]).
    pub(super) fn latched(&self) -> Latched<'_> {
        Latched { room: self, wake: Vec::new(), awake: None, found_invalid: Cell::new(false) }
    }

    #[cold]
    fn latch_patiently(&self, slot: u16) -> Result<Latched<'_>, RoomError> {
        let word = self.latch_word();
        let moves = || (self.map.word(header::CHANGES).get(), latch_word::owner(word.get()));
        let (mut last, mut since) = (moves(), Instant::now());
        loop {
            self.verdict()?;
            let owner = match latch_word::take_or_sleep(self, slot)? {
                TakeResult::Taken => return Ok(self.latched()),
                TakeResult::Retry => continue,
                TakeResult::Slept(owner) if owner < self.slots() => owner,
                TakeResult::Slept(_) | TakeResult::Invalid => {
                    return Err(self.condemn("its latch has an impossible owner"));
                }
            };
            let now = moves();
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() >= PATIENCE / 2 {
                if latch_word::take_from_dead(self, slot, owner)? {
                    return Ok(self.latched());
                }
                if since.elapsed() > STALL {
                    let pid = self.slot(owner).pid().get();
                    return Err(self.stalled(format!("process {pid}"), STALL));
                }
            }
        }
    }

    /// Runs `work` while no slot can change its owner.
    pub(super) fn reclaiming<T>(&self, mut work: impl FnMut() -> T) -> Result<T, RoomError> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let done = self.life.try_reclaiming(&mut work);
            if let Some(result) = done.map_err(|error| self.io("lock", error))? {
                return Ok(result);
            }
            if started.elapsed() > STALL {
                return Err(self.stalled("a process".to_owned(), STALL));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

impl LatchWord for FileRoom {
    type Error = RoomError;

    #[inline]
    fn get(&self) -> Result<u32, RoomError> {
        Ok(self.latch_word().get())
    }

    #[inline]
    fn swap(&self, old: u32, new: u32) -> Result<bool, RoomError> {
        Ok(self.latch_word().swap(old, new))
    }

    fn sleep(&self, word: u32) -> Result<(), RoomError> {
        futex::wait(self.latch_word().0, word, PATIENCE);
        Ok(())
    }

    fn wake(&self) -> Result<(), RoomError> {
        futex::wake(self.latch_word().0, 1);
        Ok(())
    }

    fn is_alive(&self, slot: u16) -> Result<bool, RoomError> {
        self.life.is_alive(slot).map_err(|error| self.io("probe", error))
    }

    fn try_reclaiming<T>(
        &self,
        work: impl FnOnce() -> Result<T, RoomError>,
    ) -> Result<Option<T>, RoomError> {
        let done = self.life.try_reclaiming(work);
        done.map_err(|error| self.io("lock", error))?.transpose()
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        self.wake_head();
        let changes = self.room.map.word(header::CHANGES);
        changes.set(changes.get().wrapping_add(1));
        // It cannot fail here: neither the word nor the futex can.
        _ = latch_word::release(self.room);
        for slot in &self.wake {
            futex::wake(self.room.slot(*slot).state().0, i32::MAX);
        }
    }
}
