//! The counts: passages and their costs.

use grouplock_algorithms::memory::Word;

use super::contention::{Contention, Largest};
use super::model::PerModel;
use crate::memory::context::Access;

/// A passage in progress: its process, and its cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passage {
    pub(crate) process: usize,
    pub(crate) session: u64,
    pub(crate) number: usize,
    pub(crate) costs: PerModel<u64>,
}

impl Passage {
    pub(crate) fn begin(&mut self, process: usize, session: u64) {
        *self = Passage { process, session, number: self.number + 1, costs: [0; 4] };
    }

    pub(crate) fn count(&mut self, counts: PerModel<bool>) {
        for (cost, counts) in self.costs.iter_mut().zip(counts) {
            *cost += u64::from(counts);
        }
    }
}

/// A passage of a run: its process, and its number among the passages of that process, from one.
pub(crate) type PassageId = (usize, usize);

/// An access of the recorded passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedAccess {
    pub(crate) access: Access,
    pub(crate) held: Word,
    pub(crate) written: Option<Word>,
    pub(crate) counts: PerModel<bool>,
}

/// How many steps of a passage are kept.
const MOST_STEPS: usize = 100_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) passages: u64,
    pub(crate) sums: PerModel<u64>,
    /// The most expensive passage, by model.
    pub(crate) worst: PerModel<Option<Passage>>,
    /// The largest costs, by point contention and by interval contention.
    pub(crate) by_point: Largest,
    pub(crate) by_interval: Largest,
    /// Whether a process waited on a register outside its own memory.
    pub(crate) remote_spinning: bool,
    told: Option<PassageId>,
    /// The first accesses of the recorded passage, and how many more there were.
    pub(crate) story: Vec<CountedAccess>,
    pub(crate) left_out: u64,
}

impl Tally {
    /// A tally that records the accesses of this passage.
    pub(crate) fn telling(told: Option<PassageId>) -> Self {
        Tally { told, ..Tally::default() }
    }

    pub(crate) fn is_told(&self, passage: &Passage) -> bool {
        self.told == Some((passage.process, passage.number))
    }

    pub(crate) fn tell(&mut self, step: CountedAccess) {
        if self.story.len() < MOST_STEPS {
            self.story.push(step);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn add(&mut self, passage: &Passage, contention: Contention) {
        self.passages += 1;
        self.by_point.add(contention.point, passage.costs);
        self.by_interval.add(contention.interval, passage.costs);
        for (model, &cost) in passage.costs.iter().enumerate() {
            self.sums[model] += cost;
            if self.worst[model].is_none_or(|worst| worst.costs[model] < cost) {
                self.worst[model] = Some(*passage);
            }
        }
    }

    pub(crate) fn max(&self, model: usize) -> u64 {
        self.worst[model].map_or(0, |passage| passage.costs[model])
    }
}
