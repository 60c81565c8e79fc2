//! The adversary: schedules made worse step by step.

use grouplock_algorithms::claims::Kind;

use super::model::Model;
use super::run::{self, Case};
use super::schedule::{Plan, Priorities};
use super::survey::Survey;
use super::workload::{Sessions, Workload};
use super::{Options, RmrError};
use crate::subject::Subject;

/// A hill, and how far up it the search is.
struct Climb {
    /// Whether only a few processes take part: the fewer they are, the sooner the search hits on the one order
    /// that hurts.
    few: bool,
    /// The model that says what is up.
    model: usize,
    top: Option<Top>,
}

/// The worst found so far.
struct Top {
    cost: u64,
    priorities: Priorities,
    workload: Workload,
    /// About how many steps a process took: changes of priority beyond that have no effect.
    horizon: u64,
}

/// What setting up a run costs for each process, in steps.
const SET_UP: u64 = 128;

/// Climbs for each model by itself, with all processes and with a few, as long as the options allow.
pub(crate) fn search(
    lock: &Subject,
    processes: usize,
    options: &Options,
    survey: &mut Survey,
) -> Result<(), RmrError> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let hill = |number| Climb { few: number % 2 == 1, model: number / 2, top: None };
    let mut climbs: Vec<Climb> = (0..2 * Model::ALL.len()).map(hill).collect();
    let mut steps = 0;
    for round in 0..options.search_rounds {
        if steps >= options.search_steps {
            break;
        }
        let climb = &climbs[round % climbs.len()];
        // Now and then from somewhere else: a hill may be a low one.
        let known = climb.top.as_ref().filter(|_| rng.u8(..8) != 0);
        let (priorities, workload) = if let Some(top) = known {
            (top.priorities.mutated(top.horizon, &mut rng), top.workload)
        } else {
            let active = if climb.few { rng.usize(2..=5).min(processes) } else { processes };
            start(lock.claims.kind, active, processes, options.passages, &mut rng)
        };
        let plan = Plan::Searched(priorities.clone());
        let case = Case { plan, workload, seed: workload.seed };
        let (tally, _) = run::run(lock, processes, &case, None)?;
        survey.add(&case, &tally);
        steps += tally.steps + SET_UP * processes as u64;
        let few = climb.few;
        for climb in climbs.iter_mut().filter(|climb| climb.few == few) {
            let cost = tally.max(climb.model);
            // As bad is bad enough: a plateau is left by walking on it.
            if climb.top.as_ref().is_none_or(|top| top.cost <= cost) {
                let horizon = tally.steps / workload.active as u64;
                climb.top = Some(Top { cost, priorities: priorities.clone(), workload, horizon });
            }
        }
    }
    Ok(())
}

/// A place to climb from.
fn start(
    kind: Kind,
    active: usize,
    processes: usize,
    passages: usize,
    rng: &mut fastrand::Rng,
) -> (Priorities, Workload) {
    let sessions = match (kind, rng.u8(..3)) {
        (Kind::Mutual, _) | (_, 0) => Sessions::Own,
        (_, 1) => Sessions::Drawn(2),
        _ => Sessions::Drawn(3),
    };
    // A passage has some dozens of steps, or a few for each process.
    let horizon = passages as u64 * rng.u64(32..=32 + 4 * processes as u64);
    let workload = Workload { sessions, active, passages, dwells: false, seed: rng.u64(..) };
    (Priorities::random(active, processes, horizon, rng), workload)
}
