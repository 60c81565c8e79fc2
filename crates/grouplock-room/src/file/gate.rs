//! The word in front of the room.
//!
//! ```text
//! bits 63…14   the epoch of the phase inside, or of the last one
//! bits 13…2    a slot
//! bits  1…0    Empty       nobody is inside, nobody waits: whoever is first may enter by one compare-and-swap
//!              Sole        nobody but the slot's owner comes and goes: the slot tells whether it is inside
//!              Converting  the owner of the latch is making an ordinary holder of it
//!              Managed     only the owner of the latch changes the gate; the slots know who is inside
//! ```
//!
//! A phase that begins at the gate gets its epoch by the same compare-and-swap that begins it, and the word of an earlier
//! moment never returns: the epoch grows, or the tag tells it apart within the epoch.

/// The state of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Empty {
        epoch: u64,
    },
    Sole {
        slot: u16,
        epoch: u64,
    },
    Converting {
        slot: u16,
        epoch: u64,
    },
    Managed {
        epoch: u64,
    },
    /// Managed for ever: the header's verdict says why.
    Closed {
        epoch: u64,
    },
}

/// As many phases as a room can have. At fifty nanoseconds each that takes more than a year.
pub(super) const MAX_EPOCH: u64 = (1 << 50) - 1;

const EMPTY: u64 = 0;
const SOLE: u64 = 1;
const CONVERTING: u64 = 2;
const MANAGED: u64 = 3;
const CLOSED_SLOT: u64 = 0xfff;

impl Gate {
    /// Where the epoch begins.
    pub(super) const EPOCH_SHIFT: u32 = 14;

    #[inline]
    pub(super) fn pack(self) -> u64 {
        let (epoch, slot, tag) = match self {
            Gate::Empty { epoch } => (epoch, 0, EMPTY),
            Gate::Sole { slot, epoch } => (epoch, u64::from(slot), SOLE),
            Gate::Converting { slot, epoch } => (epoch, u64::from(slot), CONVERTING),
            Gate::Managed { epoch } => (epoch, 0, MANAGED),
            Gate::Closed { epoch } => (epoch, CLOSED_SLOT, MANAGED),
        };
        epoch << Gate::EPOCH_SHIFT | slot << 2 | tag
    }

    /// `None` if no state is written like that.
    #[inline]
    pub(super) fn unpack(word: u64) -> Option<Self> {
        let (epoch, slot) = (word >> Gate::EPOCH_SHIFT, (word >> 2 & 0xfff) as u16);
        match (word & 3, u64::from(slot)) {
            (EMPTY, 0) => Some(Gate::Empty { epoch }),
            (SOLE, _) => Some(Gate::Sole { slot, epoch }),
            (CONVERTING, _) => Some(Gate::Converting { slot, epoch }),
            (MANAGED, 0) => Some(Gate::Managed { epoch }),
            (MANAGED, CLOSED_SLOT) => Some(Gate::Closed { epoch }),
            _ => None,
        }
    }

    pub(super) fn epoch(self) -> u64 {
        match self {
            Gate::Empty { epoch }
            | Gate::Sole { epoch, .. }
            | Gate::Converting { epoch, .. }
            | Gate::Managed { epoch }
            | Gate::Closed { epoch } => epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_reads_as_it_is_written() {
        for epoch in [0, 1, MAX_EPOCH] {
            for slot in [0, 1, 4093] {
                for gate in [
                    Gate::Empty { epoch },
                    Gate::Sole { slot, epoch },
                    Gate::Converting { slot, epoch },
                    Gate::Managed { epoch },
                    Gate::Closed { epoch },
                ] {
                    assert_eq!(Gate::unpack(gate.pack()), Some(gate));
                    assert_eq!(gate.epoch(), epoch);
                }
            }
        }
    }
}
