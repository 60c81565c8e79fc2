//! Timing on a machine that others use as well.
//!
//! In each round every subject runs one batch, and each round begins with another subject. So a
//! disturbance hits all of them alike, and a ratio is taken between batches of the same round.

use std::time::Instant;

use crate::statistics::Spread;
use crate::uncontended::subjects::Subject;

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

impl Plan {
    /// Runs the subjects.
    pub fn run<'s>(self, subjects: impl IntoIterator<Item = &'s mut Subject>) -> Times {
        let mut subjects: Vec<&mut Subject> = subjects.into_iter().collect();
        for subject in &mut subjects {
            // Warms the caches and the branch predictor up, and the processor's clock.
            subject.run(self.passages);
        }
        let passages = vec![self.passages; subjects.len()];
        take_turns(&mut subjects, self.rounds, &passages)
    }
}

/// Lets every subject have a turn of its number of passages in each round.
pub fn take_turns(subjects: &mut [&mut Subject], rounds: u32, passages: &[u64]) -> Times {
    let mut by_subject = vec![Vec::new(); subjects.len()];
    for first in (0..subjects.len()).cycle().take(rounds as usize) {
        for turn in (first..subjects.len()).chain(0..first) {
            let start = Instant::now();
            subjects[turn].run(passages[turn]);
            by_subject[turn].push(start.elapsed().as_nanos() as f64 / passages[turn] as f64);
        }
    }
    Times { by_subject }
}

impl Times {
    /// The time of a passage of `subject`.
    pub fn nanoseconds(&self, subject: usize) -> Spread {
        Spread::of(self.by_subject[subject].iter().copied())
    }

    /// How many times as long as `peer` `subject` takes, from round to round.
    pub fn ratio(&self, subject: usize, peer: usize) -> Spread {
        Spread::of_ratios(&self.by_subject[subject], &self.by_subject[peer])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_its_turn_in_every_round() {
        let mut subjects = crate::uncontended::subjects::all().unwrap();
        let times = Plan { rounds: 3, passages: 2 }.run(&mut subjects);
        assert!(times.by_subject.iter().all(|samples| samples.len() == 3));
    }
}
