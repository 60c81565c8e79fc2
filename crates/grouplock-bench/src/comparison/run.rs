//! All rounds of a plan, in turns.
//!
//! In a round of a workload every lock has one turn, and each round begins with another lock. So a
//! disturbance hits all locks alike, and a ratio compares turns of the same round.

use std::time::Instant;

use serde::Serialize;

use super::alone::{Alone, WayIn};
use super::competitor::Competitor;
use super::expensive_changes::{self, Changes};
use super::lock::Kind;
use super::long_queues::{self, Queue};
use super::memory::{self, Memory};
use super::observed::Observed;
use super::plan::{Plan, Size};
use super::remote::{self, Remote};
use super::starvation::{Probe, Roles, Waited};
use super::throughput::Round;
use super::workload::Workload;
use crate::machine::Usage;
use crate::report::{Cannot, Outcome};
use crate::rounds::{self, Times, turns};
use crate::statistics::Spread;

/// The results of one lock in one workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Score {
    pub(super) lock: &'static str,
    pub(super) kind: Kind,
    /// Entries per second, by round.
    pub(super) rates: Vec<f64>,
    /// Of these, entries into session 0: the readers', for a lock with readers and writers.
    pub(super) of_zero: Vec<f64>,
    pub(super) of_others: Vec<f64>,
    /// Jain's index over the threads, by round with an entry.
    pub(super) jain: Vec<f64>,
    pub(super) observed: Observed,
}

impl Score {
    /// How many times as many entries as `peer`: all, only of session 0, or of all others.
    pub(super) fn ratio(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.rates, &peer.rates)
    }

    pub(super) fn ratio_of_zero(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.of_zero, &peer.of_zero)
    }

    pub(super) fn ratio_of_others(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.of_others, &peer.of_others)
    }
}

/// The results of all locks in one workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Match {
    pub(super) workload: Workload,
    pub(super) scores: Vec<Score>,
}

impl Match {
    pub(super) fn score(&self, lock: &str) -> Option<&Score> {
        self.scores.iter().find(|score| score.lock == lock)
    }
}

/// The results of a family of workloads.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Season {
    pub(super) title: &'static str,
    #[serde(skip)]
    pub(super) note: &'static str,
    pub(super) matches: Vec<Match>,
}

/// A lock in the starvation probe.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Probed {
    pub(super) lock: &'static str,
    pub(super) way: Roles,
    pub(super) waited: Waited,
}

/// A way into a lock, alone.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) lock: &'static str,
    pub(super) path: WayIn,
    pub(super) nanoseconds: Spread,
    /// To the [`REFERENCE`].
    pub(super) ratio: Spread,
    pub(super) instructions: Option<f64>,
}

/// The results of a run.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) plan: Size,
    pub(super) rounds: u64,
    /// The share of the cores' time that other programs used, if it is known.
    pub(super) foreign: Option<f64>,
    pub(super) seconds: f64,
    pub(super) alone: Vec<Cost>,
    pub(super) seasons: Vec<Season>,
    pub(super) starvation: Vec<Probed>,
    pub(super) queues: Vec<Queue>,
    pub(super) changes: Vec<Changes>,
    pub(super) memory: Vec<Memory>,
    pub(super) remote: Vec<Remote>,
    /// Bytes of an unlocked lock without data.
    pub(super) sizes: Vec<(&'static str, usize)>,
    /// Of `alone`.
    #[serde(skip)]
    times: Times,
}

/// The peer of all ratios that name none.
pub(super) const REFERENCE: &str = "parking_lot RwLock";

/// If other programs use more than this share of the cores, the page warns.
pub(super) const QUIET: f64 = 0.1;

impl Results {
    /// How many times as long `one` takes as `other`.
    pub(super) fn alone_ratio(&self, one: (&str, WayIn), other: (&str, WayIn)) -> Option<Spread> {
        let index = |way| self.alone.iter().position(|cost| (cost.lock, cost.path) == way);
        Some(self.times.ratio(index(one)?, index(other)?))
    }

    pub(super) fn of(&self, workload: Workload) -> Option<&Match> {
        let mut matches = self.seasons.iter().flat_map(|season| &season.matches);
        matches.find(|game| game.workload == workload)
    }

    pub(super) fn probed(&self, lock: &str, way: Roles) -> Option<&Waited> {
        let probed = self.starvation.iter().find(|probed| probed.lock == lock && probed.way == way);
        probed.map(|probed| &probed.waited)
    }
}

/// Runs everything. `progress` gets what is measured next.
pub(super) fn run(
    plan: &Plan,
    competitors: &[Competitor],
    mut alone: Vec<Alone>,
    counts: Option<&[f64]>,
    mut progress: impl FnMut(&str),
) -> Outcome<Results> {
    let begun = Instant::now();
    let usage = Usage::now();
    progress("alone");
    let (costs, times) = without_contention(plan, &mut alone, counts);
    let mut seasons = Vec::new();
    for family in &plan.families {
        let takes_part =
            |lock: &&Competitor| family.locks.is_empty() || family.locks.contains(&lock.name);
        let locks: Vec<Competitor> = competitors.iter().filter(takes_part).copied().collect();
        let matches = family.workloads.iter();
        let matches = matches.map(|workload| compete(plan, *workload, &locks, &mut progress));
        let matches = matches.collect::<Outcome<_>>()?;
        seasons.push(Season { title: family.title, note: family.note, matches });
    }
    let mut starvation = Vec::new();
    for way in Roles::ALL {
        for competitor in competitors {
            progress(&format!("{}: lone request, {}", competitor.name, way.text()));
            let probe = Probe { way, requests: plan.requests, patience: plan.patience };
            let waited = (competitor.probe)(&probe);
            starvation.push(Probed { lock: competitor.name, way, waited });
        }
    }
    let queues = long_queues::run(plan.queues, &mut progress);
    let changes = expensive_changes::run(plan.changes, &mut progress);
    let foreign = Usage::now().zip(usage).and_then(|(now, before)| now.foreign_since(&before));
    Ok(Results {
        plan: plan.size,
        rounds: plan.rounds,
        foreign,
        seconds: begun.elapsed().as_secs_f64(),
        alone: costs,
        seasons,
        starvation,
        queues,
        changes,
        memory: memory::count(),
        remote: remote::largest().cannot("read the lab's evidence")?,
        sizes: competitors.iter().map(|competitor| (competitor.name, competitor.size)).collect(),
        times,
    })
}

fn without_contention(
    plan: &Plan,
    alone: &mut [Alone],
    counts: Option<&[f64]>,
) -> (Vec<Cost>, Times) {
    let (rounds, passages) = plan.alone;
    let times = rounds::run(rounds, passages, alone.iter_mut().map(|alone| &mut alone.subject));
    let reference = alone
        .iter()
        .position(|way| (way.lock, way.path) == (REFERENCE, WayIn::Shared))
        .unwrap_or(0);
    let costs = alone.iter().enumerate().map(|(index, &Alone { lock, path, .. })| Cost {
        lock,
        path,
        nanoseconds: times.nanoseconds(index),
        ratio: times.ratio(index, reference),
        instructions: counts.and_then(|counts| counts.get(index).copied()),
    });
    (costs.collect(), times)
}

fn compete(
    plan: &Plan,
    workload: Workload,
    locks: &[Competitor],
    progress: &mut impl FnMut(&str),
) -> Outcome<Match> {
    let duration = plan.turn(&workload);
    let score = |lock: &Competitor| {
        let [rates, of_zero, of_others, jain] = [const { Vec::new() }; 4];
        let (lock, kind, observed) = (lock.name, lock.kind, Observed::default());
        Score { lock, kind, rates, of_zero, of_others, jain, observed }
    };
    let mut scores: Vec<Score> = locks.iter().map(score).collect();
    let mut observed = vec![Vec::new(); locks.len()];
    for number in 0..plan.rounds + plan.observed {
        let round = Round { workload, duration, number };
        for turn in turns(number as usize, locks.len()) {
            let (lock, score) = (&locks[turn], &mut scores[turn]);
            if number < plan.rounds {
                progress(&format!("{}: {workload}", lock.name));
                let counted = (lock.count)(&round);
                let [of_zero, of_others] = counted.rates();
                score.rates.push(of_zero + of_others);
                score.of_zero.push(of_zero);
                score.of_others.push(of_others);
                score.jain.extend(counted.jain());
            } else {
                progress(&format!("{}: {workload}, observed", lock.name));
                observed[turn].push((lock.observe)(&round)?);
            }
        }
    }
    for (score, observed) in scores.iter_mut().zip(observed) {
        score.observed = Observed::together(&observed);
    }
    Ok(Match { workload, scores })
}
