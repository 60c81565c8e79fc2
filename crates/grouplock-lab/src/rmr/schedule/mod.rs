//! Which process takes the next step.

mod goals;
mod priorities;

use std::fmt;

use fastrand::Rng;

pub(crate) use priorities::Priorities;

use super::model::Model;
use super::world::World;

/// Picks one of the processes that are ready at each step. At least one is.
pub(crate) type Scheduler = Box<dyn FnMut(&World) -> usize>;

/// How to schedule. With the same seed and number of processes it always gives the same scheduler.
#[derive(Clone, Debug)]
pub(crate) enum Strategy {
    /// Any process that can move, with equal chances.
    Random,
    RoundRobin,
    /// One process runs exactly when its next step counts by this model.
    Victim {
        process: usize,
        model: Model,
    },
    /// After the doorways, each lower process in turn sends the last one back, over and over.
    Staircase,
    /// One process has done only its doorway while all before it withdraw.
    Late,
    /// Fixed priorities with points where they change. The search for expensive passages varies
    /// them.
    Searched(Priorities),
}

impl Strategy {
    pub(crate) fn start(&self, processes: usize, seed: u64) -> Scheduler {
        let mut rng = Rng::with_seed(seed);
        match self {
            Strategy::Random => Box::new(move |world| random(world, &mut rng)),
            Strategy::RoundRobin => Box::new(round_robin()),
            &Strategy::Victim { process, model } => Box::new(victim(process, model, rng)),
            Strategy::Staircase => Box::new(goals::staircase(processes)),
            Strategy::Late => Box::new(goals::late(processes)),
            Strategy::Searched(priorities) => Box::new(priorities.clone().start()),
        }
    }
}

fn random(world: &World, rng: &mut Rng) -> usize {
    world.ready[rng.usize(..world.ready.len())]
}

fn round_robin() -> impl FnMut(&World) -> usize {
    let mut next = 0;
    move |world| {
        let count = world.processes.len();
        let mut all = (next..count).chain(0..next);
        let p = all.find(|&p| world.is_ready(p)).expect("somebody is ready");
        next = (p + 1) % count;
        p
    }
}

/// Runs `victim` when its next step counts, and others at random while it does not. So every copy
/// that it has cached becomes stale before it is used.
fn victim(victim: usize, model: Model, mut rng: Rng) -> impl FnMut(&World) -> usize {
    // For how many more steps the victim waits for its next step to count.
    let mut patience: usize = 0;
    move |world| {
        let is_ready = world.is_ready(victim);
        if is_ready && world.ready.len() == 1 {
            return victim;
        }
        if is_ready {
            let runs = match world.would_count(victim) {
                Some(counts) => counts[model as usize] || patience == 0,
                // Inside or outside: others may pass meanwhile.
                None => rng.u8(..8) == 0,
            };
            if runs {
                patience = rng.usize(..=4 * world.processes.len());
                return victim;
            }
            patience = patience.saturating_sub(1);
        }
        loop {
            let p = random(world, &mut rng);
            if p != victim {
                return p;
            }
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Random => f.write_str("random"),
            Strategy::RoundRobin => f.write_str("round robin"),
            Strategy::Victim { process, model } => write!(f, "victim {process} by {model}"),
            Strategy::Staircase => f.write_str("staircase after doorways"),
            Strategy::Late => f.write_str("late while all before it withdraw"),
            Strategy::Searched(_) => f.write_str("searched"),
        }
    }
}
