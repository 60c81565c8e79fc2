//! Timing on a machine that others use as well.
//!
//! In each round every subject runs one batch, and each round begins with another subject. So a
//! disturbance hits all of them alike, and a ratio is taken between batches of the same round.

use core::fmt;
use std::time::Instant;

use crate::subjects::Subject;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How often every subject has its turn.
    pub rounds: u32,
    /// How many passages a turn is.
    pub passages: u64,
}

/// The time of a passage in nanoseconds, by subject and round.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    by_subject: Vec<Vec<f64>>,
}

/// The middle of a sample and how far it spreads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// As many lie below as above.
    pub median: f64,
    /// One in ten lies below.
    pub low: f64,
    /// One in ten lies above.
    pub high: f64,
}

impl Plan {
    /// Runs the subjects.
    pub fn run(self, subjects: &mut [Subject]) -> Times {
        for subject in &mut *subjects {
            // Warms the caches and the branch predictor up, and the processor's clock.
            subject.run(self.passages);
        }
        let mut by_subject = vec![Vec::new(); subjects.len()];
        for first in (0..subjects.len()).cycle().take(self.rounds as usize) {
            for turn in (first..subjects.len()).chain(0..first) {
                let start = Instant::now();
                subjects[turn].run(self.passages);
                let elapsed = start.elapsed();
                by_subject[turn].push(elapsed.as_nanos() as f64 / self.passages as f64);
            }
        }
        Times { by_subject }
    }
}

impl Times {
    /// The time of a passage of `subject`.
    pub fn nanoseconds(&self, subject: usize) -> Spread {
        Spread::of(self.by_subject[subject].clone())
    }

    /// How many times as long as `peer` `subject` takes, from round to round.
    pub fn ratio(&self, subject: usize, peer: usize) -> Spread {
        let pairs = self.by_subject[subject].iter().zip(&self.by_subject[peer]);
        Spread::of(pairs.map(|(subject, peer)| subject / peer).collect())
    }
}

impl Spread {
    /// Of a sample that is not empty; nothing but NaN otherwise.
    fn of(mut sample: Vec<f64>) -> Self {
        sample.sort_by(f64::total_cmp);
        let last = sample.len().saturating_sub(1);
        // The nearest rank.
        let at = |tenths: usize| sample.get((last * tenths + 5) / 10).copied().unwrap_or(f64::NAN);
        Spread { median: at(5), low: at(1), high: at(9) }
    }
}

impl fmt::Display for Spread {
    /// As "median (low – high)", with the precision asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let Spread { median, low, high } = self;
        write!(f, "{median:.digits$} ({low:.digits$} – {high:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_a_tenth_out_on_either_side() {
        let sample = (0..=10).rev().map(f64::from).collect();
        assert_eq!(Spread::of(sample), Spread { median: 5.0, low: 1.0, high: 9.0 });
        assert_eq!(format!("{:.0}", Spread { median: 5.0, low: 1.0, high: 9.0 }), "5 (1 – 9)");
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let times = Times { by_subject: vec![vec![2.0, 20.0, 200.0], vec![1.0, 10.0, 100.0]] };
        assert_eq!(times.ratio(0, 1), Spread { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn every_subject_has_its_turn_in_every_round() {
        let mut subjects = crate::subjects::all().unwrap();
        let times = Plan { rounds: 3, passages: 2 }.run(&mut subjects);
        assert!(times.by_subject.iter().all(|samples| samples.len() == 3));
    }
}
