//! The layout of a room's file. `docs/rooms.md` has the picture.
//!
//! ```text
//! 0      fixed facts    written once, before the file has a name
//! 64     latch          the internal lock, alone on its cache line
//! 128    shared words   those of the protocol; the latch guards nearly all of them
//! 1024   phase          the phase inside
//! 2048   deaths         the last ones
//! 5376   ring           recent phases
//! 23808  slots          1024 bytes per participant; the file grows when there are too few
//! ```

use std::path::Path;
use std::time::Duration;

use crate::error::RoomError;
use crate::policy::Policy;

/// The first eight bytes of every room.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"grplock\n");

/// It grows with every incompatible change of the layout.
pub(super) const VERSION: u32 = 3;

/// The longest name of a session, in bytes.
pub(super) const SESSION_MAX: usize = 512;
/// Longer names of machines are cut.
pub(super) const HOST_MAX: usize = 64;
/// Longer command lines are cut.
pub(super) const COMMAND_MAX: usize = 256;

/// The number of slots for participants, unless the creator chooses another.
pub(super) const DEFAULT_CAPACITY: u16 = 10_000;
/// The latch stores the number of a slot plus one in sixteen bits.
pub(super) const MAX_CAPACITY: u16 = u16::MAX - 1;
/// The number of slots of a new file. It doubles when needed.
pub(super) const FIRST_SLOTS: u16 = 8;

/// Offsets from the start of the file.
pub(super) mod header {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 8;
    /// The largest number of slots that the file may have.
    pub(in super::super) const CAPACITY: usize = 12;
    pub(in super::super) const POLICY: usize = 16;
    pub(in super::super) const POLICY_VALUE: usize = 24;
    pub(in super::super) const CREATED: usize = 32;
    pub(in super::super) const CHECK: usize = 40;
    /// The part that is written once.
    pub(in super::super) const FIXED: usize = 48;

    pub(in super::super) const LATCH: usize = 64;

    // The words of the protocol, see `line`.
    pub(in super::super) const ARMED: usize = 128;
    pub(in super::super) const FIRST: usize = 136;
    pub(in super::super) const LAST: usize = 144;
    pub(in super::super) const HEAD: usize = 152;
    pub(in super::super) const INSIDE: usize = 160;
    pub(in super::super) const MOST: usize = 168;
    pub(in super::super) const EPOCH: usize = 176;
    pub(in super::super) const TICKETS: usize = 184;
    pub(in super::super) const DEATHS: usize = 192;
    pub(in super::super) const REPAIRED: usize = 200;
    pub(in super::super) const PREPARED: usize = 208;

    /// Grows whenever the latch is released.
    pub(in super::super) const CHANGES: usize = 216;
    /// The number of the largest slot ever used, plus one.
    pub(in super::super) const HIGH_WATER: usize = 224;
    /// The number of slots that the file has.
    pub(in super::super) const SLOTS: usize = 228;
    /// Why the room is closed forever; see `verdict`.
    pub(in super::super) const VERDICT: usize = 232;
    /// The session that the room is or was set up for.
    pub(in super::super) const PREPARED_FOR: usize = 256;

    /// The number of records that were ever written to the ring.
    pub(in super::super) const RING_NEXT: usize = 1016;
    /// The phase inside, as a record of the ring.
    pub(in super::super) const PHASE: usize = 1024;
}

/// Offsets within the record of a death.
pub(super) mod death {
    pub(in super::super) const TICKET: usize = 0;
    pub(in super::super) const EPOCH: usize = 8;
    pub(in super::super) const NOTICED: usize = 16;
    pub(in super::super) const PID: usize = 24;
    pub(in super::super) const SESSION: usize = 32;
    pub(in super::super) const COMMAND: usize = 560;
    pub(in super::super) const SIZE: usize = 832;
}

/// Offsets within a record of a phase.
pub(super) mod phase {
    /// Odd while the record is being written.
    pub(in super::super) const SEQUENCE: usize = 0;
    /// 1: the phase has not ended. 2: a holder died in it.
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

/// Offsets within a slot. A name is its length in eight bytes, followed by its bytes.
pub(super) mod slot {
    /// One of the values in [`state`](super::state). The owner sleeps on it.
    pub(in super::super) const STATE: usize = 0;
    /// How often later requests have passed it.
    pub(in super::super) const PASSED: usize = 4;
    pub(in super::super) const REPORTED: usize = 8;
    pub(in super::super) const TICKET: usize = 16;
    pub(in super::super) const EPOCH: usize = 24;
    /// Since when it is inside or waits, in nanoseconds of the real-time clock.
    pub(in super::super) const SINCE: usize = 32;
    /// The time of arrival by the monotonic clock.
    pub(in super::super) const ARRIVAL: usize = 40;
    pub(in super::super) const PREV: usize = 48;
    pub(in super::super) const NEXT: usize = 56;
    pub(in super::super) const MOST: usize = 64;
    pub(in super::super) const ALONE: usize = 72;
    pub(in super::super) const PRIORITY: usize = 76;
    /// In nanoseconds; all ones if unknown.
    pub(in super::super) const EXPECTED: usize = 80;
    /// Odd while the owner writes the following fields.
    pub(in super::super) const SEQUENCE: usize = 88;
    pub(in super::super) const PID: usize = 92;
    pub(in super::super) const UID: usize = 96;
    /// 1: an open file keeps the holding, not a process.
    pub(in super::super) const KEPT: usize = 100;
    pub(in super::super) const HOST: usize = 104;
    pub(in super::super) const COMMAND: usize = 176;
    pub(in super::super) const SESSION: usize = 440;
    /// The waiter that sleeps until this slot is gone, plus one.
    pub(in super::super) const WATCHER: usize = 960;
    pub(in super::super) const SIZE: usize = 1024;
}

/// The states of a slot. The numbers are far apart, so that a stray write is detected.
pub(super) mod state {
    /// It has no owner.
    pub(in super::super) const FREE: u32 = 0;
    /// Its owner is outside.
    pub(in super::super) const IDLE: u32 = 0x1d1e_5a5a;
    /// Its owner waits.
    pub(in super::super) const WAITING: u32 = 0x3a17_c3c3;
    /// Its owner waits, and must look again for which slot it waits.
    pub(in super::super) const NUDGED: u32 = 0x4d6e_3c3c;
    /// Its owner is inside.
    pub(in super::super) const INSIDE: u32 = 0x1451_de96;
}

/// Why a room is closed forever.
pub(super) mod verdict {
    pub(in super::super) const OPEN: u32 = 0;
    pub(in super::super) const CORRUPT: u32 = 0xbad0_c0de;
    pub(in super::super) const REMOVED: u32 = 0xdead_0905;
}

/// The number of deaths that the file remembers.
pub(super) const DEATHS: u64 = 4;
const DEATHS_AT: usize = 2048;
const HEADER_SIZE: usize = DEATHS_AT + DEATHS as usize * death::SIZE;
/// The number of past phases that the file remembers.
pub(super) const RING_LENGTH: usize = 32;
const SLOTS_AT: usize = HEADER_SIZE + RING_LENGTH * phase::SIZE;

// The parts must not overlap.
const _: () = assert!(header::PREPARED_FOR + 8 + SESSION_MAX <= header::RING_NEXT);
const _: () = assert!(header::PHASE + phase::SIZE <= DEATHS_AT);
const _: () = assert!(phase::SESSION + 8 + SESSION_MAX <= phase::SIZE);
const _: () = assert!(death::SESSION + 8 + SESSION_MAX <= death::COMMAND);
const _: () = assert!(death::COMMAND + 8 + COMMAND_MAX <= death::SIZE);
const _: () = assert!(slot::HOST + 8 + HOST_MAX <= slot::COMMAND);
const _: () = assert!(slot::COMMAND + 8 + COMMAND_MAX <= slot::SESSION);
const _: () = assert!(slot::SESSION + 8 + SESSION_MAX <= slot::WATCHER);
const _: () = assert!(slot::WATCHER + 8 <= slot::SIZE);
const _: () = assert!(SLOTS_AT.is_multiple_of(64));

/// The offset of record `number` of the ring.
pub(super) fn ring(number: u64) -> usize {
    HEADER_SIZE + (number % RING_LENGTH as u64) as usize * phase::SIZE
}

/// The offset of the record of death `number`.
pub(super) fn death(number: u64) -> usize {
    DEATHS_AT + (number % DEATHS) as usize * death::SIZE
}

/// The offset of a slot.
#[inline]
pub(super) fn slot(number: u16) -> usize {
    SLOTS_AT + usize::from(number) * slot::SIZE
}

/// The size of a file with that many slots.
pub(super) fn size(slots: u16) -> usize {
    slot(slots)
}

/// Kernel locks are on single bytes, far behind the end of the file.
pub(super) mod lock_byte {
    /// Locked while a process claims a slot, or takes the latch from a dead owner.
    pub(in super::super) const RECLAIM: i64 = 1 << 40;
    /// The byte of slot 0. The owner of a slot keeps its byte locked while it lives. The bytes of
    /// the other slots follow.
    pub(in super::super) const SLOTS: i64 = RECLAIM + 1;
}

/// The facts that never change after the file is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) capacity: u16,
    pub(super) policy: Policy,
    /// In nanoseconds of the real-time clock.
    pub(super) created: u64,
}

impl Fixed {
    /// The bytes of the file.
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

    /// Reads the first bytes of the file `path`, which has `length` bytes.
    pub(super) fn read(
        bytes: &[u8; header::FIXED],
        length: u64,
        path: &Path,
    ) -> Result<Self, RoomError> {
        let path = path.to_owned();
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
            let reason = "it does not begin as a room does".to_owned();
            return Err(RoomError::Foreign { path, reason });
        }
        // Check the version first: another version may have another layout.
        let found = half(header::VERSION);
        if found != VERSION {
            return Err(RoomError::Version { path, found, supported: VERSION });
        }
        let corrupt = |reason: &str| Err(RoomError::Corrupt { path, reason: reason.to_owned() });
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
        let least = size(capacity.min(FIRST_SLOTS));
        if length < least as u64 {
            return corrupt(&format!("it has {length} bytes instead of {least}"));
        }
        Ok(Fixed { capacity, policy, created: word(header::CREATED) })
    }
}

/// FNV-1a. It detects accidents, not attacks.
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

    fn read(bytes: &[u8; header::FIXED], length: u64) -> Result<Fixed, RoomError> {
        Fixed::read(bytes, length, Path::new("/x.room"))
    }

    #[test]
    fn the_fixed_facts_read_as_they_were_written() {
        for policy in [
            Policy::Fifo,
            Policy::Batch { passes: 9 },
            Policy::Priority { aging: Duration::from_millis(3) },
        ] {
            let fixed = fixed(policy);
            assert_eq!(read(&fixed.write(), size(100) as u64).unwrap(), fixed);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = fixed(Policy::Fifo).write();
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = read(&bytes, size(100) as u64).unwrap_err();
            match bit / 8 {
                0..8 => assert!(matches!(error, RoomError::Foreign { .. })),
                8..12 => assert!(matches!(error, RoomError::Version { .. })),
                _ => assert!(matches!(error, RoomError::Corrupt { .. })),
            }
        }
    }

    #[test]
    fn a_file_that_is_too_short_is_corrupt() {
        let bytes = fixed(Policy::Fifo).write();
        for length in [0, 48, size(FIRST_SLOTS) as u64 - 1] {
            assert!(matches!(read(&bytes, length), Err(RoomError::Corrupt { .. })));
        }
    }
}
