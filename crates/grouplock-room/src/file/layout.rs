//! Where everything lies in a room's file. `docs/rooms.md` has the picture.
//!
//! ```text
//! 0      fixed facts    written once, before the file has a name
//! 64     gate           the fast path's word, alone on its cache line
//! 128    latch          the internal lock, alone on its cache line
//! 192    shared facts   guarded by the latch
//! 4096   ring           recent phases
//! …      hot slots      64 bytes per participant: state and what orders the queue
//! …      cold slots     1024 bytes per participant: names
//! ```

use crate::policy::Policy;
use std::time::Duration;

/// The first eight bytes of every room.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"grplock\n");

/// Changes with every change of this file that matters to others.
pub(super) const VERSION: u32 = 1;

/// The longest name of a session, in bytes.
pub(super) const SESSION_MAX: usize = 512;
/// Longer names of machines are cut.
pub(super) const HOST_MAX: usize = 64;
/// Longer command lines are cut.
pub(super) const COMMAND_MAX: usize = 256;

/// Places for participants unless the creator says otherwise.
pub(super) const DEFAULT_CAPACITY: u16 = 1024;
/// The gate and the latch have twelve bits for the number of a slot, and one number is taken.
pub(super) const MAX_CAPACITY: u16 = 4094;

/// Offsets from the start of the file.
pub(super) mod header {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 8;
    pub(in super::super) const CAPACITY: usize = 12;
    pub(in super::super) const POLICY: usize = 16;
    pub(in super::super) const POLICY_VALUE: usize = 24;
    pub(in super::super) const CREATED: usize = 32;
    pub(in super::super) const CHECK: usize = 40;
    /// The part that is written once.
    pub(in super::super) const FIXED: usize = 48;

    pub(in super::super) const GATE: usize = 64;
    pub(in super::super) const LATCH: usize = 128;

    /// The next ticket.
    pub(in super::super) const TICKETS: usize = 192;
    /// Grows whenever the latch is released.
    pub(in super::super) const CHANGES: usize = 200;
    /// When somebody last looked for the dead, by the monotonic clock.
    pub(in super::super) const PROBED: usize = 208;
    /// One more than the largest slot ever used.
    pub(in super::super) const HIGH_WATER: usize = 216;
    /// Why the room is closed for good, if it is.
    pub(in super::super) const VERDICT: usize = 220;

    /// 1 if a death inside has not been told yet.
    pub(in super::super) const UNTOLD: usize = 256;
    /// The epoch of the phase whose members are told.
    pub(in super::super) const TOLD_EPOCH: usize = 264;
    pub(in super::super) const DEATHS: usize = 272;
    pub(in super::super) const DEATH_EPOCH: usize = 280;
    pub(in super::super) const DEATH_NOTICED: usize = 288;
    pub(in super::super) const DEATH_PID: usize = 296;
    pub(in super::super) const DEATH_SESSION: usize = 304;

    /// The phase inside, as far as the slow path knows it; a record as in the ring.
    pub(in super::super) const PHASE: usize = 1024;
    /// The number of records ever put into the ring.
    pub(in super::super) const RING_NEXT: usize = 1016;
}

/// Offsets within a record of a phase.
pub(super) mod phase {
    /// Odd while the record is being written.
    pub(in super::super) const SEQUENCE: usize = 0;
    /// 1: it is going on. 2: one of its members died.
    pub(in super::super) const FLAGS: usize = 4;
    pub(in super::super) const EPOCH: usize = 8;
    pub(in super::super) const BEGAN: usize = 16;
    pub(in super::super) const ENDED: usize = 24;
    pub(in super::super) const ENTRIES: usize = 32;
    pub(in super::super) const SESSION: usize = 40;
    pub(in super::super) const SIZE: usize = 576;

    pub(in super::super) const OPEN: u32 = 1;
    pub(in super::super) const DIED: u32 = 2;
}

/// Offsets within the hot part of a slot.
pub(super) mod hot {
    /// One of the values in [`state`](super::state); its owner sleeps on it.
    pub(in super::super) const STATE: usize = 0;
    /// 1: someone had died before this one was admitted.
    pub(in super::super) const TOLD: usize = 4;
    pub(in super::super) const TICKET: usize = 8;
    pub(in super::super) const EPOCH: usize = 16;
    /// Since when it is inside or waits, in nanoseconds of real time.
    pub(in super::super) const SINCE: usize = 24;
    /// When it came, by the monotonic clock.
    pub(in super::super) const ARRIVAL: usize = 32;
    /// In nanoseconds; all ones if unknown.
    pub(in super::super) const EXPECTED: usize = 40;
    pub(in super::super) const PRIORITY: usize = 48;
    /// How often it was passed.
    pub(in super::super) const PASSED: usize = 52;
    pub(in super::super) const SIZE: usize = 64;
}

/// Offsets within the cold part of a slot. A name is its length in eight bytes and then its bytes.
pub(super) mod cold {
    /// Odd while the owner writes here.
    pub(in super::super) const SEQUENCE: usize = 0;
    pub(in super::super) const PID: usize = 4;
    pub(in super::super) const UID: usize = 8;
    pub(in super::super) const HOST: usize = 16;
    pub(in super::super) const COMMAND: usize = 96;
    pub(in super::super) const SESSION: usize = 384;
    pub(in super::super) const SIZE: usize = 1024;
}

/// The states of a slot. They are far apart, so that a stray write is noticed rather than believed.
pub(super) mod state {
    /// Nobody's.
    pub(in super::super) const FREE: u32 = 0;
    /// Somebody's who is outside.
    pub(in super::super) const IDLE: u32 = 0x1d1e_5a5a;
    /// Somebody's who is outside, with a session that stands in it for the fast path.
    pub(in super::super) const CLAIM: u32 = 0xc1a1_33cc;
    /// Inside by the fast path, if the gate names the slot; else about to find out that it is not.
    pub(in super::super) const HELD: u32 = 0x7e1d_0ff0;
    /// In the queue.
    pub(in super::super) const WAITING: u32 = 0x3a17_c3c3;
    /// Inside.
    pub(in super::super) const INSIDE: u32 = 0x1451_de96;
}

/// Why a room is closed for good.
pub(super) mod verdict {
    pub(in super::super) const OPEN: u32 = 0;
    pub(in super::super) const CORRUPT: u32 = 0xbad0_c0de;
    pub(in super::super) const REMOVED: u32 = 0xdead_0905;
}

const HEADER_SIZE: usize = 4096;
/// How many phases are remembered.
pub(super) const RING_LENGTH: usize = 64;
const RING_SIZE: usize = RING_LENGTH * phase::SIZE;

// The parts must not overlap.
const _: () = assert!(header::DEATH_SESSION + 8 + SESSION_MAX <= header::RING_NEXT);
const _: () = assert!(header::PHASE + phase::SIZE <= HEADER_SIZE);
const _: () = assert!(phase::SESSION + 8 + SESSION_MAX <= phase::SIZE);
const _: () = assert!(hot::PASSED + 4 <= hot::SIZE);
const _: () = assert!(cold::HOST + 8 + HOST_MAX <= cold::COMMAND);
const _: () = assert!(cold::COMMAND + 8 + COMMAND_MAX <= cold::SESSION);
const _: () = assert!(cold::SESSION + 8 + SESSION_MAX <= cold::SIZE);
const _: () = assert!(RING_SIZE.is_multiple_of(64));

/// Where record `number` of the ring is.
pub(super) fn ring(number: u64) -> usize {
    HEADER_SIZE + (number % RING_LENGTH as u64) as usize * phase::SIZE
}

/// Where the hot part of a slot is.
#[inline]
pub(super) fn hot(slot: u16) -> usize {
    HEADER_SIZE + RING_SIZE + usize::from(slot) * hot::SIZE
}

/// Where the cold part of a slot is.
pub(super) fn cold(capacity: u16, slot: u16) -> usize {
    hot(capacity) + usize::from(slot) * cold::SIZE
}

/// The size of the file.
pub(super) fn size(capacity: u16) -> usize {
    cold(capacity, capacity)
}

/// The locks that the kernel keeps for us are on bytes far behind the end of the file.
pub(super) mod lock_byte {
    /// Held while a slot is claimed or the latch taken from a dead owner.
    pub(in super::super) const RECLAIM: i64 = 1 << 40;
    /// Held by the owner of slot 0 for as long as it lives; the others follow.
    pub(in super::super) const SLOTS: i64 = RECLAIM + 1;
}

/// The facts that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) capacity: u16,
    pub(super) policy: Policy,
    /// In nanoseconds of real time.
    pub(super) created: u64,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    Foreign(String),
    Version(u32),
    Corrupt(String),
}

impl Fixed {
    /// As bytes of the file.
    pub(super) fn write(&self) -> [u8; header::FIXED] {
        let (kind, value) = match self.policy {
            Policy::Fifo => (0, 0),
            Policy::Batch { passes } => (1, u64::from(passes)),
            Policy::Priority { aging } => (2, u64::try_from(aging.as_nanos()).unwrap_or(u64::MAX)),
        };
        let mut bytes = [0; header::FIXED];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(header::MAGIC, &MAGIC.to_ne_bytes());
        put(header::VERSION, &VERSION.to_ne_bytes());
        put(header::CAPACITY, &u32::from(self.capacity).to_ne_bytes());
        put(header::POLICY, &u32::to_ne_bytes(kind));
        put(header::POLICY_VALUE, &value.to_ne_bytes());
        put(header::CREATED, &self.created.to_ne_bytes());
        let check = checksum(&bytes[..header::CHECK]);
        bytes[header::CHECK..].copy_from_slice(&check.to_ne_bytes());
        bytes
    }

    /// From the bytes of a file that has `length` of them.
    pub(super) fn read(bytes: &[u8; header::FIXED], length: u64) -> Result<Self, Misfit> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let half = |at: usize| {
            let mut half = [0; 4];
            half.copy_from_slice(&bytes[at..at + 4]);
            u32::from_ne_bytes(half)
        };
        if word(header::MAGIC) != MAGIC {
            return Err(Misfit::Foreign("it does not begin as rooms do".to_owned()));
        }
        // Before everything else: another version may lay out the rest as it likes.
        if half(header::VERSION) != VERSION {
            return Err(Misfit::Version(half(header::VERSION)));
        }
        let corrupt = |reason: &str| Err(Misfit::Corrupt(reason.to_owned()));
        if word(header::CHECK) != checksum(&bytes[..header::CHECK]) {
            return corrupt("the checksum of its header is wrong");
        }
        let Ok(capacity @ 1..=MAX_CAPACITY) = u16::try_from(half(header::CAPACITY)) else {
            return corrupt("its header claims an impossible number of participants");
        };
        let value = word(header::POLICY_VALUE);
        let policy = match half(header::POLICY) {
            0 => Policy::Fifo,
            1 => Policy::Batch { passes: u32::try_from(value).unwrap_or(u32::MAX) },
            2 => Policy::Priority { aging: Duration::from_nanos(value) },
            _ => return corrupt("its header names an unknown policy"),
        };
        if length != size(capacity) as u64 {
            let expected = size(capacity);
            return Err(Misfit::Corrupt(format!("it has {length} bytes instead of {expected}")));
        }
        Ok(Fixed { capacity, policy, created: word(header::CREATED) })
    }
}

/// FNV-1a: against accidents, not against enemies.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(policy: Policy) -> Fixed {
        Fixed { capacity: 100, policy, created: 5 }
    }

    #[test]
    fn the_fixed_facts_read_as_they_were_written() {
        for policy in [
            Policy::Fifo,
            Policy::Batch { passes: 9 },
            Policy::Priority { aging: Duration::from_millis(3) },
        ] {
            let fixed = fixed(policy);
            assert_eq!(Fixed::read(&fixed.write(), size(100) as u64), Ok(fixed));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = fixed(Policy::Fifo).write();
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let misfit = Fixed::read(&bytes, size(100) as u64).unwrap_err();
            match bit / 8 {
                0..8 => assert!(matches!(misfit, Misfit::Foreign(_))),
                8..12 => assert!(matches!(misfit, Misfit::Version(_))),
                _ => assert!(matches!(misfit, Misfit::Corrupt(_))),
            }
        }
    }

    #[test]
    fn a_file_of_another_length_is_corrupt() {
        let bytes = fixed(Policy::Fifo).write();
        for length in [0, 48, size(100) as u64 - 1, size(100) as u64 + 1] {
            assert!(matches!(Fixed::read(&bytes, length), Err(Misfit::Corrupt(_))));
        }
    }
}
