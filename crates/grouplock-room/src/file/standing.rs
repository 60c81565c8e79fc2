//! The standing claim: the fast path's slot.
//!
//! The first session that a handle enters is written into a slot once and left there, for the thread that made it. Entering an
//! empty room is then a compare-and-swap at the gate, and leaving another one. After a few times in a row the claim *stays at
//! the gate* when its holder leaves, since it is likely to come back: then entering is a write to the own slot and a look
//! at the gate, and leaving the same. Somebody else who comes takes the gate away; [`barrier`](super::barrier) makes sure that
//! not both believe to have it. Other sessions and threads go by a lease.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, PoisonError};

use super::barrier;
use super::clock;
use super::gate::{Gate, MAX_EPOCH};
use super::holding::End;
use super::layout::state;
use super::pool::Lease;
use super::room::FileRoom;
use super::settle::Probe;
use crate::error::RoomError;

/// How often in a row the claim enters before it stays at the gate. Taking it away from there costs others microseconds.
const STREAK: u32 = 8;

/// No gate is written like this: a sole holder's epoch is at least 1.
const NEVER: u64 = 1;

/// Nobody's [thread](this_thread).
const NO_THREAD: usize = 0;

/// A slot of ours in which a session stands for good.
pub(super) struct Claim {
    pub(super) slot: u16,
    pub(super) session: Box<str>,
    /// The only thread that enters by it, none any more if the slot had to be given up. Leaving is for whoever has the guard.
    thread: AtomicUsize,
    /// Whether it may stay at the gate at all.
    can_stay: bool,
    /// The gate as the present holding, or else the last one, found it or made it. It is here and not in the guard to keep
    /// that small.
    sole: AtomicU64,
    /// The gate with this claim staying at it, if it was left so.
    stays: AtomicU64,
    /// The gate as it was left, and how often it was found like that again.
    left: AtomicU64,
    streak: AtomicU32,
    /// Who wants to know of the end of the present holding; the flag saves a look.
    watched: AtomicBool,
    end: Mutex<Option<Arc<End>>>,
}

// Relaxed in this file: what only the claim's thread reads and writes while it is outside, or the holder while it is inside, is
// handed from one to the other by the state of the slot, which is written with release and read with acquire.

/// Different for all threads that live at the same time.
#[inline]
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// Whether two names are the same. Most are short, and calling `memcmp` takes longer than comparing them.
#[inline]
fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len()
        && match one.len() {
            4..=8 => same_ends::<4>(one, other),
            9..=16 => same_ends::<8>(one, other),
            _ => one == other,
        }
}

/// Whether the first `N` bytes are the same and the last `N` as well, which overlap if there are fewer than twice `N`.
#[inline]
fn same_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}

impl Claim {
    /// The epoch of the present holding.
    pub(super) fn epoch(&self) -> u64 {
        self.sole.load(Ordering::Relaxed) >> Gate::EPOCH_SHIFT
    }

    /// From now on the claim stays at the gate when it is left, if it has come often enough. Whether it does.
    #[cold]
    fn settle_down(&self, sole: u64) -> bool {
        let stays = self.can_stay && self.streak.load(Ordering::Relaxed) >= STREAK;
        if stays {
            self.stays.store(sole, Ordering::Relaxed);
        }
        stays
    }

    /// To be told of the end of the present holding.
    pub(super) fn watch(&self) -> Arc<End> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.watched.store(true, Ordering::Relaxed);
        Arc::clone(end.get_or_insert_default())
    }

    /// Tells those who watch, before the claim can be used for the next holding.
    #[inline]
    fn tell(&self) {
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
    /// Enters by the standing claim, if it is for this session and thread and nobody else is there. Whether it did.
    #[inline(always)]
    pub(super) fn pass_by_claim(&self, session: &str) -> bool {
        let Some(claim) = self.claim.get() else { return false };
        if claim.thread.load(Ordering::Relaxed) != this_thread() || !same(&claim.session, session) {
            return false;
        }
        let (slot, gate) = (self.slot(claim.slot), self.gate());
        let word = gate.get();
        // If it is not at rest, this very thread is inside already.
        if slot.state().get() != state::CLAIM {
            return false;
        }
        if word != claim.stays.load(Ordering::Relaxed) {
            return self.take_gate(claim, word);
        }
        slot.since().set(clock::real());
        slot.state().set(state::HELD);
        // The other half is `barrier::everywhere` in `convert`.
        compiler_fence(Ordering::SeqCst);
        gate.get() == word || self.come_back(claim)
    }

    /// Enters by a claim that does not stay at the gate, which is `word`.
    #[inline(never)]
    fn take_gate(&self, claim: &Claim, word: u64) -> bool {
        let Some(Gate::Empty { epoch }) = Gate::unpack(word) else { return false };
        if epoch >= MAX_EPOCH {
            return false;
        }
        let slot = self.slot(claim.slot);
        slot.since().set(clock::real());
        // Before the gate: once that names us, others believe what the slot says.
        slot.state().set(state::HELD);
        let sole = Gate::Sole { slot: claim.slot, epoch: epoch + 1 }.pack();
        if !self.gate().swap(word, sole) {
            slot.state().set(state::CLAIM);
            return false;
        }
        claim.sole.store(sole, Ordering::Relaxed);
        let again = word == claim.left.load(Ordering::Relaxed);
        let streak = if again { claim.streak.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        claim.streak.store(streak, Ordering::Relaxed);
        true
    }

    /// The gate was taken away while we entered. Whoever did it may have seen us inside: then we are.
    #[cold]
    fn come_back(&self, claim: &Claim) -> bool {
        let slot = self.slot(claim.slot);
        let outcome = self.latch(claim.slot).and_then(|mut latched| {
            latched.manage()?;
            if slot.state().get() == state::INSIDE {
                let sole = Gate::Sole { slot: claim.slot, epoch: slot.epoch().get() };
                claim.sole.store(sole.pack(), Ordering::Relaxed);
                return Ok(true);
            }
            slot.state().set(state::CLAIM);
            match latched.settle(Probe::No) {
                Ok(()) | Err(RoomError::EpochsExhausted { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        });
        outcome.unwrap_or_else(|_| {
            // Whoever asks again by the latch is told why.
            self.give_up(claim);
            false
        })
    }

    /// Leaves.
    #[inline(always)]
    pub(super) fn leave_by_claim(&self) -> Result<(), RoomError> {
        let Some(claim) = self.claim.get() else { return Ok(()) };
        claim.tell();
        let sole = claim.sole.load(Ordering::Relaxed);
        if claim.stays.load(Ordering::Relaxed) != sole && !claim.settle_down(sole) {
            return self.open_gate(claim, sole);
        }
        // Afterwards the thread of the claim may enter again.
        self.slot(claim.slot).state().set(state::CLAIM);
        // The other half is `barrier::everywhere` in `convert`.
        compiler_fence(Ordering::SeqCst);
        if self.gate().get() == sole { Ok(()) } else { self.follow_up(claim) }
    }

    /// Leaves without staying at the gate.
    #[inline(never)]
    fn open_gate(&self, claim: &Claim, sole: u64) -> Result<(), RoomError> {
        let empty = Gate::Empty { epoch: sole >> Gate::EPOCH_SHIFT }.pack();
        claim.left.store(empty, Ordering::Relaxed);
        // Afterwards the thread of the claim may try to enter again, so nothing of it is touched any more.
        self.slot(claim.slot).state().set(state::CLAIM);
        if self.gate().swap(sole, empty) { Ok(()) } else { self.follow_up(claim) }
    }

    /// Somebody has taken the gate away, so somebody may wait for us to have left.
    #[cold]
    fn follow_up(&self, claim: &Claim) -> Result<(), RoomError> {
        let settled = self.latch(claim.slot).and_then(|mut latched| latched.settle(Probe::No));
        match settled {
            Ok(()) | Err(RoomError::EpochsExhausted { .. }) => Ok(()),
            Err(error) => {
                self.give_up(claim);
                Err(super::room::as_loss(error))
            }
        }
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
            thread: AtomicUsize::new(this_thread()),
            can_stay: barrier::join(),
            sole: AtomicU64::new(NEVER),
            stays: AtomicU64::new(NEVER),
            left: AtomicU64::new(NEVER),
            streak: AtomicU32::new(0),
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

    /// Opens the gate if the claim stays at it, when the handle goes.
    pub(super) fn clear_gate(&self) {
        let Some(claim) = self.claim.get() else { return };
        if let Some(Gate::Sole { slot, epoch }) = Gate::unpack(self.gate().get())
            && slot == claim.slot
        {
            // If somebody was faster, the gate is not ours any more.
            let (sole, empty) = (Gate::Sole { slot, epoch }, Gate::Empty { epoch });
            self.gate().swap(sole.pack(), empty.pack());
        }
    }

    /// A claim whose slot could not be put in order. To others its owner is dead.
    fn give_up(&self, claim: &Claim) {
        claim.thread.store(NO_THREAD, Ordering::Relaxed);
        self.life.release(claim.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn names_that_differ_in_a_single_byte_are_different() {
        for length in 0..40 {
            let name = "abcdefghijklmnopqrstuvwxyz-0123456789_ABCDE".get(..length).expect("ASCII");
            assert!(same(name, &String::from(name)));
            assert!(!same(name, &format!("{name}a")) && !same(&format!("{name}a"), name));
            for at in 0..length {
                let mut other = name.to_owned();
                other.replace_range(at..=at, "#");
                assert!(!same(name, &other), "{name} {other}");
            }
        }
    }
}
