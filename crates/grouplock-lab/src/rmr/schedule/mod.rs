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
    /// All start together, and with random priorities: the next passage begins when all have ended the last.
    Bursts,
    /// One process is let run exactly when its next step counts by this model.
    Victim { process: usize, model: Model },
    /// The last process is sent back by each lower one in turn, over and over.
    Staircase {
        /// Whether all first go through their doorways in step.
        doorways_first: bool,
    },
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
            Plan::Bursts => Box::new(priorities::Bursts::new(processes, rng)),
            &Plan::Victim { process, model } => Box::new(victim::Victim::new(process, model, rng)),
            &Plan::Staircase { doorways_first } => {
                Box::new(staircase::Staircase::new(processes, doorways_first))
            }
            Plan::Searched(priorities) => Box::new(priorities.clone().start()),
        }
    }

    /// Whether processes take their time under this schedule. Where priorities decide, time means nothing.
    pub(crate) fn dwells(&self) -> bool {
        matches!(self, Plan::Random | Plan::RoundRobin | Plan::Victim { .. })
    }

    /// Whether it treats processes alike: the mean over its passages says something of usual costs.
    pub(crate) fn is_fair(&self) -> bool {
        matches!(self, Plan::Random | Plan::RoundRobin | Plan::Bursts)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Random => f.write_str("random"),
            Plan::RoundRobin => f.write_str("round robin"),
            Plan::Bursts => f.write_str("bursts"),
            Plan::Victim { process, model } => write!(f, "victim {process} by {model}"),
            Plan::Staircase { doorways_first: false } => f.write_str("staircase"),
            Plan::Staircase { doorways_first: true } => f.write_str("staircase after doorways"),
            Plan::Searched(_) => f.write_str("searched"),
        }
    }
}
