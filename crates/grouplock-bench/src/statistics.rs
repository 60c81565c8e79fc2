//! Figures about a sample.

use core::fmt;

use serde::Serialize;

/// The median of a sample, and its quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// All three are NaN if the sample is empty.
    pub(crate) fn of<'s>(sample: impl IntoIterator<Item = &'s f64>) -> Self {
        let sample = sorted(sample.into_iter().copied());
        let at = |share| percentile(&sample, share).unwrap_or(f64::NAN);
        Spread { median: at(0.5), low: at(0.25), high: at(0.75) }
    }

    /// Of the ratios between two samples, pair by pair.
    pub(crate) fn of_ratios(sample: &[f64], peer: &[f64]) -> Self {
        let ratios: Vec<f64> =
            sample.iter().zip(peer).map(|(sample, peer)| sample / peer).collect();
        Spread::of(&ratios)
    }

    fn is_finite(&self) -> bool {
        [self.median, self.low, self.high].into_iter().all(f64::is_finite)
    }
}

impl fmt::Display for Spread {
    /// As "median (low – high)", with the given precision. A dash if there are no numbers, for
    /// instance because the peer did nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let Spread { median, low, high } = self;
        if !self.is_finite() {
            return f.write_str(crate::report::NONE);
        }
        write!(f, "{median:.digits$} ({low:.digits$} – {high:.digits$})")
    }
}

/// The good side of a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Least(f64),
    Most(f64),
}

impl Bound {
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Bound::Least(least) => value >= least,
            Bound::Most(most) => value <= most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Least(least) => write!(f, "≥ {least}"),
            Bound::Most(most) => write!(f, "≤ {most}"),
        }
    }
}

/// The sample in order. Numbers that cannot be compared count as equal.
pub(crate) fn sorted<T: PartialOrd>(sample: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut sample: Vec<T> = sample.into_iter().collect();
    sample.sort_by(|one, other| one.partial_cmp(other).unwrap_or(core::cmp::Ordering::Equal));
    sample
}

/// The value in `sorted` below which `share` of it lies: the one at the nearest rank.
pub(crate) fn percentile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_sign_loss, reason = "clamped to what is not negative")]
    let rank = (last as f64 * share.clamp(0.0, 1.0)).round() as usize;
    sorted.get(rank).copied()
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything. None if all
/// shares are zero.
pub(crate) fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| share as f64 * share as f64).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_a_quarter_out_on_either_side() {
        let spread = Spread::of(&(0..=8).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(spread, Spread { median: 4.0, low: 2.0, high: 6.0 });
        assert_eq!(format!("{spread:.0}"), "4 (2 – 6)");
        assert!(Spread::of(&[]).median.is_nan());
        assert_eq!(Spread::of(&[]).to_string(), "–");
        assert_eq!(Spread::of(&[3.0]), Spread { median: 3.0, low: 3.0, high: 3.0 });
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        let spread = Spread::of_ratios(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert_eq!(spread, Spread { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn a_percentile_is_a_value_of_the_sample() {
        let sorted: Vec<u64> = (1..=1000).collect();
        assert_eq!(percentile(&sorted, 0.0), Some(1));
        assert_eq!(percentile(&sorted, 0.5), Some(501));
        assert_eq!(percentile(&sorted, 0.99), Some(990));
        assert_eq!(percentile(&sorted, 1.0), Some(1000));
        assert_eq!(percentile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn jain_separates_equal_shares_from_a_monopoly() {
        let index = |shares: &[u64]| jain(shares).map(|index| (index * 1000.0).round());
        assert_eq!(index(&[5, 5, 5, 5]), Some(1000.0));
        assert_eq!(index(&[9, 0, 0, 0]), Some(250.0));
        assert_eq!(index(&[1, 3]), Some(800.0));
        assert_eq!(index(&[0, 0]), None);
        assert_eq!(index(&[]), None);
    }
}
