//! The text of the [latch](super::latch): how it is taken, taken from the dead, and released.
//!
//! ```text
//! bit  31      somebody sleeps on it
//! bits 15…0    one more than the slot of its owner, or 0
//! ```
//!
//! Its owner is known by slot, so everybody can ask the kernel whether it lives. It is taken from a dead owner only
//! under the reclaim byte, under which slots are claimed too: so a slot found dead stays dead until the latch has changed
//! hands. A slot that is claimed while the latch still names it brings the latch along.
//!
//! `tests/latch.rs` explores this text with three participants, who die before every step.

const OWNER: u32 = 0xffff;
const SLEEPERS: u32 = 1 << 31;

/// The word, and what the kernel does for those who want it. An error ends the text at once.
pub(crate) trait Gate {
    type Error;

    fn get(&self) -> Result<u32, Self::Error>;

    fn swap(&self, old: u32, new: u32) -> Result<bool, Self::Error>;

    /// Sleeps while the word is this one, until somebody wakes us, and not for long.
    fn sleep(&self, word: u32) -> Result<(), Self::Error>;

    /// Wakes one of those who sleep.
    fn wake(&self) -> Result<(), Self::Error>;

    /// Whether the owner of a slot lives.
    fn is_alive(&self, slot: u16) -> Result<bool, Self::Error>;

    /// Runs `work` while no slot changes its owner, if that can be had at once.
    fn try_reclaiming<T>(
        &self,
        work: impl FnOnce() -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error>;
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Taken,
    /// Somebody was faster.
    Again,
    /// We have slept, and this slot was the owner's.
    Slept(u16),
    /// The word names no owner.
    Nonsense,
}

/// The slot that a word names.
pub(crate) fn owner(word: u32) -> Option<u16> {
    u16::try_from(word & OWNER).ok().and_then(|owner| owner.checked_sub(1))
}

/// Takes the latch in the name of `slot` if it is free.
#[inline]
pub(crate) fn try_take<G: Gate>(gate: &G, slot: u16) -> Result<bool, G::Error> {
    Ok(gate.get()? == 0 && gate.swap(0, u32::from(slot) + 1)?)
}

/// Takes it if it is free, else sleeps.
pub(crate) fn turn<G: Gate>(gate: &G, slot: u16) -> Result<Turn, G::Error> {
    let seen = gate.get()?;
    if seen == 0 {
        // There may be more sleepers than me.
        let taken = gate.swap(0, (u32::from(slot) + 1) | SLEEPERS)?;
        return Ok(if taken { Turn::Taken } else { Turn::Again });
    }
    let Some(owner) = owner(seen).filter(|_| seen & !(OWNER | SLEEPERS) == 0) else {
        return Ok(Turn::Nonsense);
    };
    if seen & SLEEPERS == 0 && !gate.swap(seen, seen | SLEEPERS)? {
        return Ok(Turn::Again);
    }
    gate.sleep(seen | SLEEPERS)?;
    Ok(Turn::Slept(owner))
}

/// Takes it in the name of `slot` if its owner, whose slot is `dead`, is dead.
pub(crate) fn take_from_dead<G: Gate>(gate: &G, slot: u16, dead: u16) -> Result<bool, G::Error> {
    if gate.is_alive(dead)? {
        return Ok(false);
    }
    let taken = gate.try_reclaiming(|| {
        let seen = gate.get()?;
        Ok(owner(seen) == Some(dead)
            && !gate.is_alive(dead)?
            && gate.swap(seen, (u32::from(slot) + 1) | SLEEPERS)?)
    })?;
    Ok(taken.unwrap_or(false))
}

/// Whether an earlier owner of a slot has left the latch to it: it is ours now. To be asked under the reclaim byte.
pub(crate) fn is_left_to<G: Gate>(gate: &G, slot: u16) -> Result<bool, G::Error> {
    Ok(owner(gate.get()?) == Some(slot))
}

/// Releases it.
pub(crate) fn release<G: Gate>(gate: &G) -> Result<(), G::Error> {
    // A loop, but one that only a new sleeper can send around again.
    loop {
        let seen = gate.get()?;
        if gate.swap(seen, 0)? {
            return if seen & SLEEPERS == 0 { Ok(()) } else { gate.wake() };
        }
    }
}
