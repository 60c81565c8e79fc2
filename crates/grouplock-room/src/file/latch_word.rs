//! The protocol of the [latch](super::latch): taking it, taking it from a dead owner, releasing it.
//!
//! ```text
//! bit  31      at least one process sleeps on it
//! bits 15…0    the slot of its owner plus one, or 0
//! ```
//!
//! The word names the owner by its slot, so every process can ask the kernel whether the owner
//! lives. A process takes the latch from a dead owner only while it locks the reclaim byte. Slots
//! are also claimed only under that lock. So a slot that was found dead stays dead until the latch
//! has its new owner. A process that claims a slot that the latch still names also gets the latch.
//!
//! `tests/latch.rs` explores this code with three participants, with a death before every step.

const OWNER: u32 = 0xffff;
const SLEEPERS: u32 = 1 << 31;

/// The word, and the services of the kernel. An error ends the operation at once.
pub(crate) trait LatchWord {
    type Error;

    fn get(&self) -> Result<u32, Self::Error>;

    fn swap(&self, old: u32, new: u32) -> Result<bool, Self::Error>;

    /// Sleeps while the word has this value, until a wake-up or a short timeout.
    fn sleep(&self, word: u32) -> Result<(), Self::Error>;

    /// Wakes one sleeper.
    fn wake(&self) -> Result<(), Self::Error>;

    /// Whether the owner of a slot lives.
    fn is_alive(&self, slot: u16) -> Result<bool, Self::Error>;

    /// Runs `work` while no slot can change its owner. `None` if the lock for it is not free.
    fn try_reclaiming<T>(
        &self,
        work: impl FnOnce() -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error>;
}

/// The result of [`take_or_sleep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeResult {
    Taken,
    /// Another process was faster. Try again.
    Retry,
    /// It slept, because the owner of this slot had the latch.
    Slept(u16),
    /// The word is not valid.
    Invalid,
}

/// The slot that a word names.
pub(crate) fn owner(word: u32) -> Option<u16> {
    u16::try_from(word & OWNER).ok().and_then(|owner| owner.checked_sub(1))
}

/// Takes the latch for `slot` if it is free.
#[inline]
pub(crate) fn try_take<W: LatchWord>(word: &W, slot: u16) -> Result<bool, W::Error> {
    Ok(word.get()? == 0 && word.swap(0, u32::from(slot) + 1)?)
}

/// Takes the latch if it is free. Otherwise it sleeps.
pub(crate) fn take_or_sleep<W: LatchWord>(word: &W, slot: u16) -> Result<TakeResult, W::Error> {
    let seen = word.get()?;
    if seen == 0 {
        // Other processes may also sleep on it.
        let taken = word.swap(0, (u32::from(slot) + 1) | SLEEPERS)?;
        return Ok(if taken { TakeResult::Taken } else { TakeResult::Retry });
    }
    let Some(owner) = owner(seen).filter(|_| seen & !(OWNER | SLEEPERS) == 0) else {
        return Ok(TakeResult::Invalid);
    };
    if seen & SLEEPERS == 0 && !word.swap(seen, seen | SLEEPERS)? {
        return Ok(TakeResult::Retry);
    }
    word.sleep(seen | SLEEPERS)?;
    Ok(TakeResult::Slept(owner))
}

/// Takes the latch for `slot` if its owner, the slot `dead`, is dead.
pub(crate) fn take_from_dead<W: LatchWord>(
    word: &W,
    slot: u16,
    dead: u16,
) -> Result<bool, W::Error> {
    if word.is_alive(dead)? {
        return Ok(false);
    }
    let taken = word.try_reclaiming(|| {
        let seen = word.get()?;
        Ok(owner(seen) == Some(dead)
            && !word.is_alive(dead)?
            && word.swap(seen, (u32::from(slot) + 1) | SLEEPERS)?)
    })?;
    Ok(taken.unwrap_or(false))
}

/// Whether an earlier owner of a slot died with the latch. Then the latch is ours. Call it under
/// the reclaim byte.
pub(crate) fn is_left_to<W: LatchWord>(word: &W, slot: u16) -> Result<bool, W::Error> {
    Ok(owner(word.get()?) == Some(slot))
}

/// Releases the latch.
pub(crate) fn release<W: LatchWord>(word: &W) -> Result<(), W::Error> {
    // The loop repeats only if a new sleeper has set its bit.
    loop {
        let seen = word.get()?;
        if word.swap(seen, 0)? {
            return if seen & SLEEPERS == 0 { Ok(()) } else { word.wake() };
        }
    }
}
