//! Claiming: a thread that asks to be alone shuts the door until the holders have left.
//!
//! Requests for the session inside join the holders, so the room may stay occupied for long
//! although each holder leaves soon. A thread that asks to be alone and finds no empty room yields
//! its processor. Then other threads of the session run and overlap, and one of them may be
//! preempted inside. When the first thread runs again, the room is hardly ever empty.
//!
//! So before it yields for the first time, the thread claims the room once. It sets `CLAIMED`,
//! which shuts the door, and takes the room when the last holder leaves. If that does not happen
//! soon, it opens the door again. A claim promises nothing: a request that finds the door shut asks
//! under the internal lock in the end, and enters if the policy allows it. The release of the
//! internal lock ends the claim. So a claim whose thread is preempted delays others, and blocks
//! nobody.
//!
//! The pause before the claim leaves the holders some time. Without it, two threads would take the
//! room from each other so often that they would mostly wait for the word's cache line.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::Phases;
use super::word::{self, CLAIMED, EXCLUSIVE, NOTIFY, ONE, SET_UP};
use crate::sync;

impl<S: Eq + Clone> Phases<S> {
    /// Takes the room alone if the holders leave soon. Keeps new requests out meanwhile.
    pub(super) fn claim(&self) -> bool {
        self.claim_within(sync::CLAIM_LOOKS)
    }

    /// As [`claim`](Phases::claim), with so many looks.
    pub(super) fn claim_within(&self, looks: u32) -> bool {
        (0..sync::PAUSE_BEFORE_CLAIM).for_each(|_| sync::relax());
        if self.exclusive_fast() {
            return true;
        }
        // Relaxed: a claim gives access to nothing.
        let is_open = word::is_open(self.word.load(Relaxed));
        if !is_open || self.word.fetch_or(CLAIMED, Relaxed) & CLAIMED != 0 {
            return false;
        }
        for _ in 0..looks {
            // Relaxed: only to see whether a try is worth it.
            let word = self.word.load(Relaxed);
            if word & CLAIMED == 0 {
                // A release of the internal lock has ended the claim.
                return false;
            }
            if word & !(SET_UP | NOTIFY) == CLAIMED && self.take_claimed(word) {
                return true;
            }
            sync::relax();
        }
        // Relaxed: as above. If the claim has ended and another thread claims, its claim ends too.
        self.word.fetch_and(!CLAIMED, Relaxed);
        false
    }

    /// Ends a claim by taking the empty room alone.
    fn take_claimed(&self, word: u32) -> bool {
        let taken = word & !CLAIMED | EXCLUSIVE | ONE;
        // Acquire: what earlier holders did.
        self.word.compare_exchange(word, taken, Acquire, Relaxed).is_ok()
    }
}
