//! Pseudo-random numbers: splitmix64.

/// A generator. A test prints its seed, so that a person can repeat the run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// At least 0, and below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn all_numbers_are_equally_frequent_and_a_seed_repeats_them() {
        let (mut random, mut again) = (Random::new(7), Random::new(7));
        let mut counts = [0; 8];
        for _ in 0..8_000 {
            let number = random.below(8);
            assert_eq!(again.below(8), number);
            counts[number as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert!((0..100).all(|_| (0.0..1.0).contains(&random.fraction())));
    }
}
