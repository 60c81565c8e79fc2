//! What the room remembers: which session was inside last, whether the room is set up for it, and the epoch. Written by those inside.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::locked;
use crate::sync::{AtomicU64, Mutex};

/// Where the parts of the word begin. The number of a named session is at most 2^32.
const SET_UP: u64 = 1 << 33;
/// The epoch has 30 bits. To take it for an older one, one must have missed a thousand million changes, and none more.
const EPOCH: u64 = SET_UP << 1;

pub(super) struct Room {
    word: AtomicU64,
    /// The sessions for which somebody is on its way to set the room up. Others of the session line up behind it.
    coming: Mutex<Vec<u64>>,
}

impl Room {
    pub(super) fn new() -> Self {
        Room { word: AtomicU64::new(0), coming: Mutex::new(Vec::new()) }
    }

    /// Somebody is inside session `number`, which it asked for without set-up.
    #[inline]
    pub(super) fn entered(&self, number: u64) {
        // Acquire, and release below: pairs with each other, for two of a session that enter at once. Others are ordered by the lock.
        let word = self.word.load(Acquire);
        if word % SET_UP != number {
            self.change(word, number);
        }
    }

    #[cold]
    fn change(&self, word: u64, number: u64) {
        // If it fails, another of the session has done it.
        let _ = self.word.compare_exchange(word, next_epoch(word) | number, Release, Relaxed);
    }

    /// Whether the room is set up for session `number`. Sure only for one inside.
    #[inline]
    pub(super) fn is_set_up(&self, number: u64) -> bool {
        // Acquire: as in `entered`.
        self.word.load(Acquire) % EPOCH == SET_UP | number
    }

    /// One who is alone begins to set the room up.
    pub(super) fn begins(&self, number: u64) {
        // Relaxed, as nobody else is inside.
        self.word.store(next_epoch(self.word.load(Relaxed)) | number, Relaxed);
    }

    /// It has done so.
    pub(super) fn ends(&self) {
        // Relaxed, as nobody else is inside.
        self.word.store(self.word.load(Relaxed) | SET_UP, Relaxed);
    }

    pub(super) fn epoch(&self) -> u64 {
        // Acquire: as in `entered`.
        self.word.load(Acquire) / EPOCH
    }

    /// Somebody wants to set the room up for session `number`. Whether it is one to do so: the first is, and whoever insists.
    pub(super) fn comes(&self, number: u64, insists: bool) -> bool {
        let mut coming = locked(&self.coming);
        let comes = insists || !coming.contains(&number);
        if comes {
            coming.push(number);
        }
        comes
    }

    /// It does so no more.
    pub(super) fn has_come(&self, number: u64) {
        let mut coming = locked(&self.coming);
        if let Some(place) = coming.iter().position(|coming| *coming == number) {
            coming.swap_remove(place);
        }
    }
}

/// Of nobody, and not set up.
fn next_epoch(word: u64) -> u64 {
    (word / EPOCH).wrapping_add(1).wrapping_mul(EPOCH)
}
