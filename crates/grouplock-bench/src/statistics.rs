//! What is told of a sample.

use core::fmt;

use serde::Serialize;

/// The middle of a sample and how far it spreads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// As many lie below as above.
    pub median: f64,
    /// One in four lies below.
    pub low: f64,
    /// One in four lies above.
    pub high: f64,
}

impl Spread {
    /// Of a sample that is not empty; nothing but NaN otherwise.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Self {
        let mut sample: Vec<f64> = sample.into_iter().collect();
        sample.sort_by(f64::total_cmp);
        let at = |share| percentile(&sample, share).unwrap_or(f64::NAN);
        Spread { median: at(0.5), low: at(0.25), high: at(0.75) }
    }

    /// Of the ratios between two samples, taken pair by pair.
    pub fn of_ratios(sample: &[f64], peer: &[f64]) -> Self {
        Spread::of(sample.iter().zip(peer).map(|(sample, peer)| sample / peer))
    }
}

impl fmt::Display for Spread {
    /// As "median (low – high)", with the precision asked for; a dash if they are no numbers, as when the peer got nothing done.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let Spread { median, low, high } = self;
        if ![median, low, high].into_iter().all(|number| number.is_finite()) {
            return f.write_str("–");
        }
        write!(f, "{median:.digits$} ({low:.digits$} – {high:.digits$})")
    }
}

/// The value in `sorted` below which `share` of it lies: the one at the nearest rank, so one that was seen.
pub fn percentile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    // In 0..=last, as `share` is in 0..=1 and is kept there.
    #[expect(clippy::cast_sign_loss, reason = "clamped to what is not negative")]
    let rank = (last as f64 * share.clamp(0.0, 1.0)).round() as usize;
    sorted.get(rank).copied()
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything.
///
/// None if there is nothing to share.
pub fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| share as f64 * share as f64).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_a_quarter_out_on_either_side() {
        let spread = Spread::of((0..=8).rev().map(f64::from));
        assert_eq!(spread, Spread { median: 4.0, low: 2.0, high: 6.0 });
        assert_eq!(format!("{spread:.0}"), "4 (2 – 6)");
        assert!(Spread::of([]).median.is_nan());
        assert_eq!(Spread::of([3.0]), Spread { median: 3.0, low: 3.0, high: 3.0 });
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        let spread = Spread::of_ratios(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert_eq!(spread, Spread { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let sorted: Vec<u64> = (1..=1000).collect();
        assert_eq!(percentile(&sorted, 0.0), Some(1));
        assert_eq!(percentile(&sorted, 0.5), Some(501));
        assert_eq!(percentile(&sorted, 0.99), Some(990));
        assert_eq!(percentile(&sorted, 1.0), Some(1000));
        assert_eq!(percentile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn jain_tells_equal_shares_from_a_monopoly() {
        let index = |shares: &[u64]| jain(shares).map(|index| (index * 1000.0).round());
        assert_eq!(index(&[5, 5, 5, 5]), Some(1000.0));
        assert_eq!(index(&[9, 0, 0, 0]), Some(250.0));
        assert_eq!(index(&[1, 3]), Some(800.0));
        assert_eq!(index(&[0, 0]), None);
        assert_eq!(index(&[]), None);
    }
}
