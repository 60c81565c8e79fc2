//! Times subjects on a machine that other programs use too.
//!
//! In each round every subject has one turn, and each round begins with another subject. So a
//! disturbance hits all subjects alike, and a ratio compares turns of the same round.

use core::fmt;
use core::hint::black_box;
use std::time::Instant;

use crate::statistics::Spread;

/// Makes passages through one lock, on one thread.
pub(crate) struct Subject {
    /// No other subject has this name.
    pub(crate) name: String,
    batch: Box<dyn FnMut(u64)>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Subject {
    /// `passage` makes one passage. The compiler inlines it into the loop, so there is one call
    /// through the box per turn.
    pub(crate) fn new(name: impl Into<String>, mut passage: impl FnMut() + 'static) -> Self {
        let batch = Box::new(move |passages| {
            for _ in 0..passages {
                passage();
            }
        });
        Subject { name: name.into(), batch }
    }

    pub(crate) fn run(&mut self, passages: u64) {
        (self.batch)(passages);
    }
}

/// Does nothing. But the compiler must write everything to memory before, and read it again after.
#[inline(always)]
pub(crate) fn critical_section() {
    black_box(());
}

/// Leaks a value, so that a subject can borrow it.
pub(crate) fn keep<L>(value: L) -> &'static L {
    Box::leak(Box::new(value))
}

/// Runs `rounds` rounds with turns of `passages` passages, after a turn for each subject that warms
/// up the caches, the branch predictor and the clock of the processor.
pub(crate) fn run<'s>(
    rounds: u32,
    passages: u64,
    subjects: impl IntoIterator<Item = &'s mut Subject>,
) -> Times {
    let mut subjects: Vec<&mut Subject> = subjects.into_iter().collect();
    for subject in &mut subjects {
        subject.run(passages);
    }
    let passages = vec![passages; subjects.len()];
    take_turns(&mut subjects, rounds, &passages)
}

/// Runs `rounds` rounds. Each subject has its own number of passages.
pub(crate) fn take_turns(subjects: &mut [&mut Subject], rounds: u32, passages: &[u64]) -> Times {
    let mut by_subject = vec![Vec::new(); subjects.len()];
    for number in 0..rounds as usize {
        for turn in turns(number, subjects.len()) {
            let start = Instant::now();
            subjects[turn].run(passages[turn]);
            by_subject[turn].push(start.elapsed().as_nanos() as f64 / passages[turn] as f64);
        }
    }
    Times { by_subject }
}

/// The order of the turns in round `number`.
pub(crate) fn turns(number: usize, subjects: usize) -> impl Iterator<Item = usize> {
    let first = number % subjects.max(1);
    (first..subjects).chain(0..first)
}

/// The time of a passage in nanoseconds, by subject and round.
#[derive(Debug)]
pub(crate) struct Times {
    by_subject: Vec<Vec<f64>>,
}

impl Times {
    pub(crate) fn nanoseconds(&self, subject: usize) -> Spread {
        Spread::of(&self.by_subject[subject])
    }

    /// How many times as long as `peer` `subject` takes.
    pub(crate) fn ratio(&self, subject: usize, peer: usize) -> Spread {
        Spread::of_ratios(&self.by_subject[subject], &self.by_subject[peer])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn every_subject_has_its_turn_in_every_round() {
        let mut subjects = ["a", "b", "c"].map(|name| Subject::new(name, critical_section));
        let times = run(4, 2, &mut subjects);
        assert!(times.by_subject.iter().all(|samples| samples.len() == 4));
        assert_eq!(turns(4, 3).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(turns(4, 0).count(), 0);
    }

    /// Runs each subject, and returns the names, which must differ.
    pub(crate) fn run_all<'s>(subjects: impl IntoIterator<Item = &'s mut Subject>) -> Vec<String> {
        let mut names = Vec::new();
        for subject in subjects {
            subject.run(3);
            assert!(!names.contains(&subject.name), "{} twice", subject.name);
            names.push(subject.name.clone());
        }
        names
    }
}
