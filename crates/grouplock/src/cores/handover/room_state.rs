//! The last session of the room, whether the room is set up for it, and the epoch.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::locked;
use crate::sync::{AtomicU64, Mutex};

/// The number of a named session is at most 2^32. The bits above it begin here.
const SET_UP: u64 = 1 << 33;
/// The epoch has 30 bits. It repeats after a thousand million changes.
const EPOCH: u64 = SET_UP << 1;

pub(super) struct RoomState {
    word: AtomicU64,
    /// The sessions with an announced set-up. Other requests of the session queue behind it.
    announced: Mutex<Vec<u64>>,
}

impl RoomState {
    pub(super) fn new() -> Self {
        RoomState { word: AtomicU64::new(0), announced: Mutex::new(Vec::new()) }
    }

    /// A request without set-up has entered session `number`.
    #[inline]
    pub(super) fn entered(&self, number: u64) {
        // Acquire: pairs with the release in `change`, for two requests that enter together.
        let word = self.word.load(Acquire);
        if word % SET_UP != number {
            self.change(word, number);
        }
    }

    #[cold]
    fn change(&self, word: u64, number: u64) {
        // If it fails, another holder of the session has done it.
        _ = self.word.compare_exchange(word, next_epoch(word) | number, Release, Relaxed);
    }

    /// Returns whether the room is set up for session `number`. Only a holder can rely on it.
    #[inline]
    pub(super) fn is_set_up(&self, number: u64) -> bool {
        // Acquire: as in `entered`.
        self.word.load(Acquire) % EPOCH == SET_UP | number
    }

    /// A holder that is alone begins to set the room up.
    pub(super) fn begin_set_up(&self, number: u64) {
        // Relaxed: only the caller is inside.
        self.word.store(next_epoch(self.word.load(Relaxed)) | number, Relaxed);
    }

    /// That holder has set the room up.
    pub(super) fn finish_set_up(&self) {
        // Relaxed: only the caller is inside.
        self.word.store(self.word.load(Relaxed) | SET_UP, Relaxed);
    }

    pub(super) fn epoch(&self) -> u64 {
        // Acquire: as in `entered`.
        self.word.load(Acquire) / EPOCH
    }

    /// Announces a set-up for session `number`. Accepted if it is the first, or if it `insists`.
    pub(super) fn announce(&self, number: u64, insists: bool) -> bool {
        let mut announced = locked(&self.announced);
        let accepted = insists || !announced.contains(&number);
        if accepted {
            announced.push(number);
        }
        accepted
    }

    /// Ends an announcement: the set-up is done, or will not be done.
    pub(super) fn retract(&self, number: u64) {
        let mut announced = locked(&self.announced);
        if let Some(index) = announced.iter().position(|announced| *announced == number) {
            announced.swap_remove(index);
        }
    }
}

/// The next epoch, without a session and not set up.
fn next_epoch(word: u64) -> u64 {
    (word / EPOCH).wrapping_add(1).wrapping_mul(EPOCH)
}
