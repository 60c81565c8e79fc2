//! Reserving: a thread that asks to be alone shuts the door until the holders have left.
//!
//! Requests for the session inside join the holders, so the room may stay occupied for long
//! although each holder leaves soon. A thread that asks to be alone and finds no empty room yields
//! its processor. Then other threads of the session run and overlap, and one of them may be
//! preempted inside. When the first thread runs again, the room is hardly ever empty.
//!
//! So before it yields for the first time, the thread reserves the room once. It sets `RESERVED`,
//! which shuts the door, and takes the room when the last holder leaves. If that does not happen
//! soon, it opens the door again. A reservation promises nothing: a request that finds the door
//! shut asks under the internal lock in the end, and enters if the policy allows it. The internal
//! lock ignores the reservation, and its release ends it (except after a change of the name that
//! nobody waited for). So a reservation whose thread is preempted blocks nobody. It delays others
//! until the first of them has finished spinning, or takes the internal lock without that.
//!
//! The pause before the reservation leaves the holders some time. Without it, two threads would
//! take the room from each other so often that they would mostly wait for the word's cache line.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::Phases;
use super::word::{self, EXCLUSIVE, NOTIFY, ONE_HOLDER, RESERVED, SET_UP};
use crate::sync;

impl<S: Eq + Clone> Phases<S> {
    /// Takes the room alone if the holders leave soon. Keeps new requests out meanwhile.
    pub(super) fn reserve(&self) -> bool {
        self.reserve_within(sync::RESERVATION_LOOKS)
    }

    /// As [`reserve`](Phases::reserve), with so many looks.
    pub(super) fn reserve_within(&self, looks: u32) -> bool {
        (0..sync::PAUSE_BEFORE_RESERVATION).for_each(|_| sync::relax());
        if self.exclusive_fast() {
            return true;
        }
        // Relaxed: a reservation gives access to nothing.
        let is_open = word::is_open(self.word.load(Relaxed));
        if !is_open || self.word.fetch_or(RESERVED, Relaxed) & RESERVED != 0 {
            return false;
        }
        for _ in 0..looks {
            // Relaxed: only to see whether a try is worth it.
            let word = self.word.load(Relaxed);
            if word & RESERVED == 0 {
                // A release of the internal lock, or another thread, has ended the reservation.
                return false;
            }
            if word & !(SET_UP | NOTIFY) == RESERVED {
                let taken = word & !RESERVED | EXCLUSIVE | ONE_HOLDER;
                // Acquire: what earlier holders did.
                if self.word.compare_exchange(word, taken, Acquire, Relaxed).is_ok() {
                    return true;
                }
            }
            sync::relax();
        }
        // Relaxed: as above. If the reservation has ended and another thread reserves, its
        // reservation ends too.
        self.word.fetch_and(!RESERVED, Relaxed);
        false
    }
}
