//! The counts of a run: its passages and their costs.

use super::contention::{Contention, Largest};
use super::model::PerModel;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) passages: u64,
    pub(crate) sums: PerModel<u64>,
    /// The cost of the most expensive passage.
    pub(crate) max: PerModel<u64>,
    /// The largest costs, by point contention and by interval contention.
    pub(crate) by_point: Largest,
    pub(crate) by_interval: Largest,
    /// Whether a process waited on a register outside its own memory.
    pub(crate) remote_spinning: bool,
}

impl Tally {
    /// Adds a passage.
    pub(crate) fn add(&mut self, costs: PerModel<u64>, contention: Contention) {
        self.passages += 1;
        self.by_point.add(contention.point, costs);
        self.by_interval.add(contention.interval, costs);
        for (model, cost) in costs.into_iter().enumerate() {
            self.sums[model] += cost;
            self.max[model] = self.max[model].max(cost);
        }
    }
}
