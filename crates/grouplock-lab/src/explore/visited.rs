//! The visited states, as 64-bit fingerprints in shards, so that workers rarely wait for each
//! other.

use std::sync::Mutex;

use rustc_hash::FxHashSet;

use super::lock;

const SHARDS: usize = 64;

pub struct Visited {
    shards: Vec<Mutex<FxHashSet<u64>>>,
}

impl Default for Visited {
    fn default() -> Self {
        Visited { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Visited {
    /// Adds a fingerprint. Returns whether it is new.
    pub fn insert(&self, fingerprint: u64) -> bool {
        let shard = (fingerprint >> 40) as usize % SHARDS;
        lock(&self.shards[shard]).insert(fingerprint)
    }

    pub fn count(&self) -> u64 {
        self.each(|shard| shard.len() as u64)
    }

    /// Its memory: eight bytes and a control byte for each place. An eighth of the places is kept
    /// free.
    pub(crate) fn bytes(&self) -> u64 {
        self.each(|shard| (shard.capacity() as u64 * 8 / 7).next_power_of_two() * 9)
    }

    fn each(&self, f: impl Fn(&FxHashSet<u64>) -> u64) -> u64 {
        let shards = self.shards.iter();
        shards.map(|shard| f(&lock(shard))).sum()
    }
}

/// A state's fingerprint: folded multiplication of its words, two at a time.
pub fn fingerprint(row: &[u32]) -> u64 {
    const K: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = K[2] ^ row.len() as u64;
    for pair in row.chunks(2) {
        let word = u64::from(pair[0]) | pair.get(1).map_or(0, |&high| u64::from(high) << 32);
        hash = fold(hash ^ K[0], word ^ K[1]).wrapping_add(hash.rotate_left(23));
    }
    fold(hash ^ K[1], hash.rotate_left(32) ^ K[0])
}
