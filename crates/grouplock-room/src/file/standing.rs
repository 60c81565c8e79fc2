//! The standing claim: the fast path's slot.
//!
//! The first session that a handle enters is written into a slot once and left there: the slot rests in the state of someone
//! who is about to enter by the gate. Then the compare-and-swap at the gate is all that is left of entering, and it also
//! decides between the threads of this handle, which use the same slot. Someone who holds through it has it to themselves
//! until they leave, since the gate stays shut for everyone. Other sessions go by a lease, which takes two more atomic
//! operations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock;
use super::gate::{Gate, MAX_EPOCH};
use super::holding::End;
use super::layout::state;
use super::pool::Lease;
use super::room::FileRoom;

/// A slot of ours in which a session stands for good.
pub(super) struct Claim {
    pub(super) slot: u16,
    pub(super) session: Box<str>,
    /// False if the slot had to be given up.
    usable: AtomicBool,
    /// Who wants to know of the end of the present holding; the flag saves a look.
    watched: AtomicBool,
    end: Mutex<Option<Arc<End>>>,
}

impl Claim {
    /// To be told of the end of the present holding.
    pub(super) fn watch(&self) -> Arc<End> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: the holder sees it because it watches through its own guard, or is told by whoever has borrowed that.
        self.watched.store(true, Ordering::Relaxed);
        Arc::clone(end.get_or_insert_default())
    }

    /// Tells those who watch, before the gate is opened for the next holding.
    #[inline]
    pub(super) fn tell(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.tell_them();
        }
    }

    #[cold]
    fn tell_them(&self) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.watched.store(false, Ordering::Relaxed);
        if let Some(end) = end {
            end.tell();
        }
    }
}

impl FileRoom {
    /// Enters by the standing claim, if it is for this session and the room is empty and nobody waits: the epoch.
    #[inline]
    pub(super) fn pass_by_claim(&self, session: &str) -> Option<u64> {
        let claim = self.claim.get().filter(|claim| *claim.session == *session)?;
        let gate = self.gate();
        let word = gate.get();
        let Some(Gate::Empty { epoch }) = Gate::unpack(word) else { return None };
        // Relaxed: it is cleared by the thread that fails to leave, and then the gate is not empty until others have buried
        // the slot; seeing that gate is seeing the flag.
        if epoch >= MAX_EPOCH || !claim.usable.load(Ordering::Relaxed) {
            return None;
        }
        let (slot, epoch) = (claim.slot, epoch + 1);
        if !gate.swap(word, Gate::Sole { slot, epoch }.pack()) {
            return None;
        }
        // For people who look on. Dying before it is written leaves an older time.
        self.slot(slot).since().set(clock::real());
        Some(epoch)
    }

    /// Makes the standing claim of a lease in which the session is written already, if there is none yet and the room is
    /// empty: where others are, the fast path is of no use. Gives the lease back otherwise.
    pub(super) fn establish(&self, lease: Box<Lease>) -> Option<Box<Lease>> {
        let empty = matches!(Gate::unpack(self.gate().get()), Some(Gate::Empty { .. }));
        if self.claim.get().is_some() || !empty || !lease.is_plain() {
            return Some(lease);
        }
        let claim = Claim {
            slot: lease.slot,
            session: lease.session.as_str().into(),
            usable: AtomicBool::new(true),
            watched: AtomicBool::new(false),
            end: Mutex::new(None),
        };
        // Before it can be used.
        let state = self.slot(lease.slot).state();
        state.set(state::CLAIM);
        if self.claim.set(claim).is_ok() {
            return None;
        }
        state.set(state::IDLE);
        Some(lease)
    }

    /// A claim whose slot could not be put in order. To others its owner is dead.
    pub(super) fn give_up(&self, claim: &Claim) {
        claim.usable.store(false, Ordering::Relaxed); // see `pass_by_claim`
        self.life.release(claim.slot);
    }
}
