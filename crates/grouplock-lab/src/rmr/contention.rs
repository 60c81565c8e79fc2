//! How many processes a passage met: this bounds the cost of an adaptive algorithm.

use serde::Serialize;

use super::MOST_PROCESSES;
use super::model::{Model, PerModel};

/// A set of processes, by their numbers.
type Set = [bool; MOST_PROCESSES];

fn count(set: &Set) -> usize {
    set.iter().filter(|&&is_in| is_in).count()
}

/// How many processes a passage met, itself included. So both are at least one, and the first is at
/// most the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// The largest number of processes that were in a passage at once during it.
    pub point: usize,
    /// The number of processes whose passages overlap it.
    pub interval: usize,
}

/// The processes in a passage, and the processes that each of these passages has met so far.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct Crowd {
    present: Set,
    met: Vec<Set>,
    most: Vec<usize>,
}

impl Crowd {
    pub fn new(processes: usize) -> Self {
        Crowd {
            present: [false; MOST_PROCESSES],
            met: vec![[false; MOST_PROCESSES]; processes],
            most: vec![0; processes],
        }
    }

    /// `p` begins a passage.
    pub fn begin(&mut self, p: usize) {
        self.present[p] = true;
        let now = count(&self.present);
        for q in (0..self.met.len()).filter(|&q| self.present[q]) {
            self.met[q][p] = true;
            self.most[q] = self.most[q].max(now);
        }
        (self.met[p], self.most[p]) = (self.present, now);
    }

    /// `p` ends its passage.
    pub fn end(&mut self, p: usize) -> Contention {
        self.present[p] = false;
        Contention { point: self.most[p], interval: count(&self.met[p]) }
    }
}

/// The most expensive passage of those with one contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Contended {
    /// The contention, of one kind or the other.
    pub contention: usize,
    /// The cost of the most expensive passage that was found with it. Others may cost more.
    pub max: u64,
}

/// The largest costs, by contention of one kind. `None` if no passage had that contention.
#[derive(Clone, Debug, Default)]
pub(crate) struct Largest(Vec<Option<PerModel<u64>>>);

impl Largest {
    pub(crate) fn add(&mut self, contention: usize, costs: PerModel<u64>) {
        if self.0.len() <= contention {
            self.0.resize(contention + 1, None);
        }
        let known = self.0[contention].get_or_insert(costs);
        for (known, cost) in known.iter_mut().zip(costs) {
            *known = cost.max(*known);
        }
    }

    pub(crate) fn merge(&mut self, other: &Largest) {
        for (contention, costs) in other.0.iter().enumerate() {
            if let Some(costs) = costs {
                self.add(contention, *costs);
            }
        }
    }

    pub(crate) fn of(&self, model: Model) -> Vec<Contended> {
        let seen = self.0.iter().enumerate();
        seen.filter_map(|(contention, costs)| {
            costs.map(|costs| Contended { contention, max: costs[model as usize] })
        })
        .collect()
    }
}
