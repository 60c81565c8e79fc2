//! Who takes the next step.

mod fair;
mod priorities;
mod staircase;
mod victim;

use std::fmt;

pub(crate) use priorities::Priorities;

use super::model::Model;
use super::world::World;

/// Decides step by step.
pub(crate) trait Schedule {
    /// The next to take a step: one of those that are [ready](World::ready), of whom there is at least one.
    fn pick(&mut self, world: &World) -> usize;
}

/// A schedule to be: with a seed and a number of processes it can be run, again and again in the same way.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Any that can, with equal chances.
    Random,
    /// Each in turn.
    RoundRobin,
    /// One process is let run exactly when its next step counts by this model.
    Victim { process: usize, model: Model },
    /// After their doorways, the last process is sent back by each lower one in turn, over and over.
    Staircase,
    /// Fixed priorities with points where they change: what the search for expensive passages varies.
    Searched(Priorities),
}

impl Plan {
    /// The schedule.
    pub(crate) fn start(&self, processes: usize, seed: u64) -> Box<dyn Schedule> {
        let rng = fastrand::Rng::with_seed(seed);
        match self {
            Plan::Random => Box::new(fair::Random(rng)),
            Plan::RoundRobin => Box::new(fair::RoundRobin::default()),
            &Plan::Victim { process, model } => Box::new(victim::Victim::new(process, model, rng)),
            Plan::Staircase => Box::new(staircase::Staircase::new(processes)),
            Plan::Searched(priorities) => Box::new(priorities.clone().start()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Random => f.write_str("random"),
            Plan::RoundRobin => f.write_str("round robin"),
            Plan::Victim { process, model } => write!(f, "victim {process} by {model}"),
            Plan::Staircase => f.write_str("staircase after doorways"),
            Plan::Searched(_) => f.write_str("searched"),
        }
    }
}
