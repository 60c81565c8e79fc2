//! Many runs of one lock: fair schedules, adverse schedules, and a search for worse ones.

use grouplock_algorithms::claims::Kind;

use super::contention::Largest;
use super::model::{Model, PerModel};
use super::run::{self, Case, Sessions, Tally, Withdraws, Workload};
use super::schedule::{Priorities, Strategy};
use super::{Options, RmrError};
use crate::subject::Subject;

#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// The cost of the most expensive passage, and the run that it was in.
    worst: PerModel<Option<(u64, Case)>>,
    pub(crate) passages: u64,
    pub(crate) remote_spinning: bool,
    /// The passages of fair schedules, and the sums of their costs.
    pub(crate) fair_passages: u64,
    pub(crate) fair_sums: PerModel<u64>,
    /// The largest costs, by point contention and by interval contention.
    pub(crate) by_point: Largest,
    pub(crate) by_interval: Largest,
    /// The largest mean over the requests of one run.
    pub(crate) amortised: PerModel<f64>,
}

impl Survey {
    pub(crate) fn worst(&self, model: Model) -> &(u64, Case) {
        self.worst[model as usize].as_ref().expect("every process makes a passage")
    }

    pub(crate) fn add(&mut self, case: &Case, tally: &Tally) {
        self.passages += tally.passages;
        self.remote_spinning |= tally.remote_spinning;
        self.by_point.merge(&tally.by_point);
        self.by_interval.merge(&tally.by_interval);
        if matches!(case.strategy, Strategy::RoundRobin | Strategy::Random) {
            self.fair_passages += tally.passages;
            for (sum, more) in self.fair_sums.iter_mut().zip(tally.sums) {
                *sum += more;
            }
        }
        for model in 0..Model::ALL.len() {
            let mean = tally.sums[model] as f64 / tally.passages.max(1) as f64;
            self.amortised[model] = self.amortised[model].max(mean);
            let cost = tally.max[model];
            if self.worst[model].as_ref().is_none_or(|(known, _)| *known < cost) {
                self.worst[model] = Some((cost, case.clone()));
            }
        }
    }
}

pub(crate) fn survey(
    lock: &Subject,
    processes: usize,
    options: &Options,
) -> Result<Survey, RmrError> {
    let mut survey = Survey::default();
    for case in cases(lock, processes, options) {
        survey.add(&case, &run::run(lock, processes, &case)?);
    }
    search(lock, processes, options, &mut survey)?;
    Ok(survey)
}

/// The schedules that need no search, each with the workloads that make sense for it.
fn cases(lock: &Subject, processes: usize, options: &Options) -> Vec<Case> {
    let usual = Workload {
        sessions: own(lock, processes),
        active: processes,
        passages: options.passages,
        dwells: true,
        withdraws: Withdraws::None,
        seed: options.seed,
    };
    let sessions = match lock.claims.kind {
        Kind::Mutual => vec![usual.sessions],
        Kind::Group => {
            vec![usual.sessions, Sessions::Drawn(2), Sessions::Drawn(4), Sessions::Drawn(1)]
        }
    };
    let withdraws: &[_] =
        if lock.withdraws { &[Withdraws::None, Withdraws::Half] } else { &[Withdraws::None] };
    let victim = |process, model| Strategy::Victim { process, model };
    let mut strategies = vec![Strategy::RoundRobin];
    strategies.extend([const { Strategy::Random }; 4]);
    strategies.extend([Model::Cc, Model::CcWriteBack, Model::CcWriteThrough].map(|m| victim(0, m)));
    strategies.push(victim(processes - 1, Model::Cc));
    let mut cases = Vec::new();
    for strategy in strategies {
        for &sessions in &sessions {
            let seed = options.seed.wrapping_add(cases.len() as u64);
            cases.extend(withdraws.iter().map(|&withdraws| {
                let workload = Workload { sessions, withdraws, seed, ..usual };
                Case { strategy: strategy.clone(), workload }
            }));
        }
    }
    // One passage each: a second passage would only disturb.
    let once = Workload { passages: 1, dwells: false, ..usual };
    cases.push(Case { strategy: Strategy::Staircase, workload: once });
    if lock.withdraws {
        let workload = Workload { withdraws: Withdraws::All, ..once };
        cases.push(Case { strategy: Strategy::Late, workload });
    }
    cases
}

/// One session for each process, if the lock has so many.
fn own(lock: &Subject, processes: usize) -> Sessions {
    let most = lock.claims.largest_session();
    if processes as u64 <= most { Sessions::Own } else { Sessions::Fixed(most) }
}

/// How high the search is on one of its hills: the cost by one model is the height.
struct Top {
    cost: u64,
    priorities: Priorities,
    workload: Workload,
    /// About how many steps a process took: changes of priority beyond that have no effect.
    horizon: u64,
}

/// The cost of the set-up of a run for each process, in steps.
const SET_UP: u64 = 128;

/// Climbs for each model separately, with all processes and with a few, as long as the options
/// allow. With few processes it finds the one expensive order sooner.
fn search(
    lock: &Subject,
    processes: usize,
    options: &Options,
    survey: &mut Survey,
) -> Result<(), RmrError> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    // With all processes, and with a few.
    let mut tops: [PerModel<Option<Top>>; 2] = Default::default();
    let mut steps = 0;
    for round in 0..options.search_rounds {
        if steps >= options.search_steps {
            break;
        }
        let (few, model) = (round % 2, round / 2 % Model::ALL.len());
        // Sometimes from a new start: the hill may be a low one.
        let known = tops[few][model].as_ref().filter(|_| rng.u8(..8) != 0);
        let (priorities, workload) = if let Some(top) = known {
            (top.priorities.mutated(top.horizon, &mut rng), top.workload)
        } else {
            let active = if few == 1 { rng.usize(2..=5).min(processes) } else { processes };
            start(lock, active, processes, options.passages, &mut rng)
        };
        let strategy = Strategy::Searched(priorities.clone());
        let case = Case { strategy, workload };
        let tally = run::run(lock, processes, &case)?;
        survey.add(&case, &tally);
        steps += tally.steps + SET_UP * processes as u64;
        for (top, cost) in tops[few].iter_mut().zip(tally.max) {
            // An equal cost is accepted: so the search can cross a plateau.
            if top.as_ref().is_none_or(|top| top.cost <= cost) {
                let horizon = tally.steps / workload.active as u64;
                *top = Some(Top { cost, priorities: priorities.clone(), workload, horizon });
            }
        }
    }
    Ok(())
}

fn start(
    lock: &Subject,
    active: usize,
    processes: usize,
    passages: usize,
    rng: &mut fastrand::Rng,
) -> (Priorities, Workload) {
    let sessions = match (lock.claims.kind, rng.u8(..3)) {
        (Kind::Mutual, _) | (_, 0) => own(lock, processes),
        (_, 1) => Sessions::Drawn(2),
        _ => Sessions::Drawn(3),
    };
    // A passage has a few dozen steps, or a few steps for each process.
    let horizon = passages as u64 * rng.u64(32..=32 + 4 * processes as u64);
    let withdraws = lock.withdraws && rng.u8(..4) != 0;
    let withdraws = if withdraws { Withdraws::Half } else { Withdraws::None };
    let seed = rng.u64(..);
    let workload = Workload { sessions, active, passages, dwells: false, withdraws, seed };
    (Priorities::random(active, processes, horizon, rng), workload)
}
