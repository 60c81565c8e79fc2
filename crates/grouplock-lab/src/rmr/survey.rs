//! Many runs of one lock: fair ones, spiteful ones, and a search for worse.

use grouplock_algorithms::claims::Kind;

use super::model::{Model, PerModel};
use super::run::{self, Case};
use super::schedule::Plan;
use super::search::search;
use super::tally::{Passage, Tally};
use super::workload::{Sessions, Workload};
use super::{Options, RmrError};
use crate::subject::Subject;

/// The most expensive passage by one model, and how to see it again.
#[derive(Clone, Debug)]
pub(crate) struct Worst {
    pub(crate) cost: u64,
    pub(crate) case: Case,
    pub(crate) passage: Passage,
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

    pub(crate) fn add(&mut self, case: &Case, tally: &Tally) {
        self.passages += tally.passages;
        self.remote_spinning |= tally.remote_spinning;
        if matches!(case.plan, Plan::RoundRobin | Plan::Random) {
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
                self.worst[model] = Some(Worst { cost, case: case.clone(), passage });
            }
        }
    }
}

/// Runs all cases, then the search.
pub(crate) fn survey(
    lock: &Subject,
    processes: usize,
    options: &Options,
) -> Result<Survey, RmrError> {
    let mut survey = Survey::default();
    for case in cases(lock.claims.kind, processes, options) {
        let (tally, _) = run::run(lock, processes, &case, None)?;
        survey.add(&case, &tally);
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
    let mut plans = vec![Plan::RoundRobin];
    plans.extend([const { Plan::Random }; 4]);
    for model in [Model::Cc, Model::CcWriteBack, Model::CcWriteThrough] {
        plans.push(Plan::Victim { process: 0, model });
    }
    plans.push(Plan::Victim { process: processes - 1, model: Model::Cc });
    let mut cases = Vec::new();
    for plan in plans {
        for &sessions in workloads {
            let seed = options.seed.wrapping_add(cases.len() as u64);
            let passages = options.passages;
            let workload = Workload { sessions, active: processes, passages, dwells: true, seed };
            cases.push(Case { plan: plan.clone(), workload, seed });
        }
    }
    // A second passage of those that have passed would only be in the way.
    let (sessions, seed) = (Sessions::Own, options.seed);
    let workload = Workload { sessions, active: processes, passages: 1, dwells: false, seed };
    cases.push(Case { plan: Plan::Staircase, workload, seed });
    cases
}
