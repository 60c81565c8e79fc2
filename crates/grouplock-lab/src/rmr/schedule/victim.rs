//! A schedule that lets every cached copy of one process go stale before it is used.

use super::Schedule;
use crate::rmr::model::Model;
use crate::rmr::world::World;

/// Runs one process when its next step counts, and others, at random, while it does not.
pub(super) struct Victim {
    process: usize,
    model: Model,
    rng: fastrand::Rng,
    /// For how many steps more the victim is kept waiting for its next step to count.
    patience: usize,
}

impl Victim {
    pub(super) fn new(process: usize, model: Model, rng: fastrand::Rng) -> Self {
        Victim { process, model, rng, patience: 0 }
    }

    fn other(&mut self, world: &World) -> usize {
        loop {
            let p = world.ready()[self.rng.usize(..world.ready().len())];
            if p != self.process {
                return p;
            }
        }
    }
}

impl Schedule for Victim {
    fn pick(&mut self, world: &World) -> usize {
        let victim = self.process;
        if !world.is_ready(victim) {
            return self.other(world);
        }
        if world.ready().len() == 1 {
            return victim;
        }
        let runs = match world.would_count(victim) {
            Some(counts) => counts[self.model.index()] || self.patience == 0,
            // Inside or outside: others may come and go meanwhile.
            None => self.rng.u8(..8) == 0,
        };
        if runs {
            self.patience = self.rng.usize(..=4 * world.processes());
            victim
        } else {
            self.patience = self.patience.saturating_sub(1);
            self.other(world)
        }
    }
}
