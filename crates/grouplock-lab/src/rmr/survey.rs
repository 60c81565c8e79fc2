//! Many runs of one lock: fair ones, spiteful ones, and a search for worse.

use grouplock_algorithms::claims::Kind;

use super::lock::Measurable;
use super::model::{Model, PerModel};
use super::run::{self, Case, Failure};
use super::schedule::{Plan, Priorities};
use super::tally::{Passage, PassageId, Tally};
use super::workload::{Sessions, Workload};
use super::{Options, RmrError};

/// The most expensive passage by one model, and how to see it again.
#[derive(Clone, Debug)]
pub(crate) struct Worst {
    pub(crate) cost: u64,
    pub(crate) case: Case,
    pub(crate) passage: PassageId,
    pub(crate) session: u64,
}

/// What the runs have shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    worst: PerModel<Option<Worst>>,
    pub(crate) passages: u64,
    pub(crate) remote_spinning: bool,
    fair_passages: u64,
    fair_sums: PerModel<u64>,
}

impl Survey {
    /// The most expensive passage by `model`.
    pub(crate) fn worst(&self, model: Model) -> &Worst {
        self.worst[model.index()].as_ref().expect("every process makes a passage")
    }

    /// The mean over the passages of fair schedules.
    pub(crate) fn mean(&self, model: Model) -> f64 {
        self.fair_sums[model.index()] as f64 / self.fair_passages.max(1) as f64
    }

    fn add(&mut self, case: &Case, tally: &Tally) {
        self.passages += tally.passages;
        self.remote_spinning |= tally.remote_spinning;
        if case.plan.is_fair() {
            self.fair_passages += tally.passages;
            for (sum, more) in self.fair_sums.iter_mut().zip(tally.sums) {
                *sum += more;
            }
        }
        for model in 0..Model::ALL.len() {
            let cost = tally.max(model);
            let known = self.worst[model].as_ref();
            if let Some(passage) = tally.worst[model]
                && known.is_none_or(|known| known.cost < cost)
            {
                let Passage { session, .. } = passage;
                let case = case.clone();
                self.worst[model] = Some(Worst { cost, case, passage: passage.id(), session });
            }
        }
    }
}

/// Runs all cases, then the search.
pub(crate) fn survey(
    lock: &Measurable,
    processes: usize,
    options: &Options,
) -> Result<Survey, RmrError> {
    let mut survey = Survey::default();
    for case in cases(lock.claims.kind, processes, options) {
        let finished = run::run(lock, processes, &case)
            .map_err(|failure| broken(lock, processes, &case, failure))?;
        survey.add(&case, &finished.tally);
    }
    search(lock, processes, options, &mut survey)?;
    Ok(survey)
}

/// The schedules that need no search, each with the workloads that make sense for it.
fn cases(kind: Kind, processes: usize, options: &Options) -> Vec<Case> {
    let workloads: &[Sessions] = match kind {
        Kind::Mutual => &[Sessions::Own],
        Kind::Group => &[Sessions::Own, Sessions::Drawn(2), Sessions::Drawn(4), Sessions::One],
    };
    let last = processes - 1;
    let mut plans = vec![Plan::RoundRobin];
    for _ in 0..2 {
        plans.extend([Plan::Random, Plan::Bursts]);
    }
    for model in [Model::Cc, Model::CcWriteBack, Model::CcWriteThrough] {
        plans.push(Plan::Victim { process: 0, model });
    }
    plans.push(Plan::Victim { process: last, model: Model::Cc });
    let mut cases = Vec::new();
    for plan in plans {
        for &sessions in workloads {
            cases.push(case(
                plan.clone(),
                sessions,
                processes,
                options.passages,
                options.seed.wrapping_add(cases.len() as u64),
            ));
        }
    }
    for doorways_first in [false, true] {
        // A second passage of those that have passed would only be in the way.
        let plan = Plan::Staircase { doorways_first };
        cases.push(case(plan, Sessions::Own, processes, 1, options.seed));
    }
    cases
}

fn case(plan: Plan, sessions: Sessions, active: usize, passages: usize, seed: u64) -> Case {
    let workload = Workload { sessions, active, passages, dwells: plan.dwells(), seed };
    Case { plan, workload, seed }
}

/// The worst that the search has found by one model.
struct Top {
    cost: u64,
    priorities: Priorities,
    workload: Workload,
    /// About how many steps a process took: changes of priority beyond that have no effect.
    horizon: u64,
}

/// Climbs from one set of priorities to a worse one, for each model by itself, as long as the options allow.
fn search(
    lock: &Measurable,
    processes: usize,
    options: &Options,
    survey: &mut Survey,
) -> Result<(), RmrError> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let mut tops: PerModel<Option<Top>> = [const { None }; 4];
    let mut steps = 0;
    for round in 0..options.search_rounds {
        if steps >= options.search_steps {
            break;
        }
        let top = tops[round % tops.len()].as_ref();
        // Now and then from somewhere else: a hill may be a low one.
        let (priorities, workload) = match top.filter(|_| rng.u8(..8) != 0) {
            Some(top) => (top.priorities.mutated(top.horizon, &mut rng), top.workload),
            None => start(lock.claims.kind, processes, options.passages, &mut rng),
        };
        let plan = Plan::Searched(priorities.clone());
        let case = Case { plan, workload, seed: workload.seed };
        let finished = run::run(lock, processes, &case)
            .map_err(|failure| broken(lock, processes, &case, failure))?;
        survey.add(&case, &finished.tally);
        steps += finished.steps;
        let horizon = finished.steps / workload.active as u64;
        for (model, top) in tops.iter_mut().enumerate() {
            let cost = finished.tally.max(model);
            // As bad is bad enough: a plateau is left by walking on it.
            if top.as_ref().is_none_or(|top| top.cost <= cost) {
                *top = Some(Top { cost, priorities: priorities.clone(), workload, horizon });
            }
        }
    }
    Ok(())
}

/// A place to climb from. In half of the cases a few processes have the lock to themselves: the fewer they are, the sooner
/// the search hits on the one order that hurts.
fn start(
    kind: Kind,
    processes: usize,
    passages: usize,
    rng: &mut fastrand::Rng,
) -> (Priorities, Workload) {
    let active = if rng.bool() { processes } else { rng.usize(1..=5).min(processes) };
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

pub(crate) fn broken(
    lock: &Measurable,
    processes: usize,
    case: &Case,
    failure: Failure,
) -> RmrError {
    let algorithm = lock.claims.name.to_owned();
    let schedule = case.name(lock.claims.kind);
    match failure {
        Failure::Capacity(source) => RmrError::Capacity { algorithm, source },
        Failure::Panicked(message) => {
            RmrError::Panicked { algorithm, processes, schedule, message }
        }
        Failure::Stuck => RmrError::Stuck { algorithm, processes, schedule },
        Failure::Endless(steps) => RmrError::Endless { algorithm, processes, schedule, steps },
    }
}
