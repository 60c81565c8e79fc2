//! All rounds of a plan, interleaved.
//!
//! Within a round of a workload every lock has one turn, and each round begins with another lock: so a disturbance
//! hits all of them alike, and a ratio is taken between turns of the same round.

use std::time::Instant;

use serde::Serialize;

use super::alone::{Alone, Path};
use super::expensive_changes::{self, Changes};
use super::lock::Kind;
use super::long_queues::{self, Queue};
use super::memory::{self, Memory};
use super::observed::{Observed, Violation};
use super::plan::{Plan, Size};
use super::remote::{self, Remote};
use super::starvation::{Probe, Waited, Way};
use super::subject::Subject;
use super::throughput::Round;
use super::workload::Workload;
use crate::machine::Usage;
use crate::statistics::Spread;
use crate::uncontended::rounds::Times;

/// What one lock did in one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The lock.
    pub lock: &'static str,
    /// What it makes of sessions.
    pub kind: Kind,
    /// Entries per second, by round.
    pub rates: Vec<f64>,
    /// Of these, entries into session 0: the readers', for a lock with readers and writers.
    pub of_zero: Vec<f64>,
    /// And entries into all others.
    pub of_others: Vec<f64>,
    /// Jain's index over the threads, by round in which anybody got in.
    pub jain: Vec<f64>,
    /// What was seen of waits, from the rounds in which every passage was written down.
    pub observed: Observed,
}

impl Score {
    /// How many times as many entries as `peer`, from round to round.
    pub fn ratio(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.rates, &peer.rates)
    }

    /// The same, only of session 0.
    pub fn ratio_of_zero(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.of_zero, &peer.of_zero)
    }

    /// The same, without session 0.
    pub fn ratio_of_others(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.of_others, &peer.of_others)
    }

    /// Jain's index.
    pub fn fairness(&self) -> Spread {
        Spread::of(self.jain.iter().copied())
    }
}

/// What all locks did in one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Match {
    /// What the threads did.
    pub workload: Workload,
    /// The locks.
    pub scores: Vec<Score>,
}

impl Match {
    /// What `lock` did, if it took part.
    pub fn score(&self, lock: &str) -> Option<&Score> {
        self.scores.iter().find(|score| score.lock == lock)
    }
}

/// The matches of a family.
#[derive(Clone, Debug, Serialize)]
pub struct Season {
    /// Its name.
    pub title: &'static str,
    /// What to know when reading.
    #[serde(skip)]
    pub note: &'static str,
    /// Its workloads.
    pub matches: Vec<Match>,
}

/// A lock in the starvation probe.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Probed {
    /// The lock.
    pub lock: &'static str,
    /// Who held and who asked.
    pub way: Way,
    /// How it went.
    pub waited: Waited,
}

/// A way into a lock, alone.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The lock.
    pub lock: &'static str,
    /// The way in.
    pub path: Path,
    /// Nanoseconds per passage.
    pub nanoseconds: Spread,
    /// How many times as long as the peer of all ratios.
    pub ratio: Spread,
    /// Instructions per passage, if they were counted.
    pub instructions: Option<f64>,
    #[serde(skip)]
    index: usize,
}

/// Everything a run has found.
#[derive(Debug, Serialize)]
pub struct Results {
    /// The plan.
    pub plan: Size,
    /// How often every lock had its turn in each workload.
    pub rounds: u64,
    /// The share of the cores' time that other programs had meanwhile, if that can be told.
    pub foreign: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The uncontended part.
    pub alone: Vec<Cost>,
    /// The contended part.
    pub seasons: Vec<Season>,
    /// The starvation probe.
    pub starvation: Vec<Probed>,
    /// What it takes to join and to leave long queues.
    pub queues: Vec<Queue>,
    /// What the policies do where a change of session is expensive.
    pub changes: Vec<Changes>,
    /// How often `GroupLock` asks for memory. Empty if this program cannot count that.
    pub memory: Vec<Memory>,
    /// Remote references, from the lab's evidence.
    pub remote: Vec<Remote>,
    /// Bytes of an unlocked lock without data.
    pub sizes: Vec<(&'static str, usize)>,
    #[serde(skip)]
    times: Option<Times>,
}

/// The peer of all ratios that name none.
pub const REFERENCE: &str = "parking_lot RwLock";

/// The share of the cores that others may have without changing much.
pub const QUIET: f64 = 0.1;

impl Results {
    /// The cost of a way in.
    pub fn cost(&self, lock: &str, path: Path) -> Option<&Cost> {
        self.alone.iter().find(|cost| cost.lock == lock && cost.path == path)
    }

    /// How many times as long `one` takes as `other`, from round to round.
    pub fn alone_ratio(&self, one: (&str, Path), other: (&str, Path)) -> Option<Spread> {
        let (one, other) = (self.cost(one.0, one.1)?, self.cost(other.0, other.1)?);
        Some(self.times.as_ref()?.ratio(one.index, other.index))
    }

    /// The match of `workload`.
    pub fn of(&self, workload: Workload) -> Option<&Match> {
        let mut matches = self.seasons.iter().flat_map(|season| &season.matches);
        matches.find(|game| game.workload == workload)
    }

    /// How `lock` did in the starvation probe.
    pub fn probed(&self, lock: &str, way: Way) -> Option<&Waited> {
        let probed = self.starvation.iter().find(|probed| probed.lock == lock && probed.way == way);
        probed.map(|probed| &probed.waited)
    }
}

/// Why a run ends without figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A lock lets two in that exclude each other.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The lab's evidence is not what it was.
    #[error("the lab's evidence cannot be read")]
    Evidence(#[from] serde_json::Error),
}

/// Runs everything. `tell` is called with what is about to be done, often.
///
/// # Errors
/// [`RunError`] says why there are no figures.
pub fn run(
    plan: &Plan,
    subjects: &[Subject],
    mut alone: Vec<Alone>,
    counts: Option<&[f64]>,
    mut tell: impl FnMut(&str),
) -> Result<Results, RunError> {
    let begun = Instant::now();
    let usage = Usage::now();
    tell("alone");
    let (costs, times) = by_themselves(plan, &mut alone, counts);
    let mut seasons = Vec::new();
    for family in &plan.families {
        let mut matches = Vec::new();
        for workload in &family.workloads {
            let takes_part = |subject: &&Subject| {
                family.locks.is_empty() || family.locks.contains(&subject.name)
            };
            let subjects: Vec<Subject> = subjects.iter().filter(takes_part).copied().collect();
            matches.push(compete(plan, workload, &subjects, &mut tell)?);
        }
        seasons.push(Season { title: family.title, note: family.note, matches });
    }
    let mut starvation = Vec::new();
    for way in Way::ALL {
        for subject in subjects {
            tell(&format!("{}: lone request, {}", subject.name, way.told()));
            let probe = Probe { way, requests: plan.requests, patience: plan.patience };
            starvation.push(Probed { lock: subject.name, way, waited: (subject.probe)(&probe) });
        }
    }
    let queues = long_queues::run(plan.queues, &mut tell);
    let changes = expensive_changes::run(plan.changes, &mut tell);
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
        remote: remote::largest()?,
        sizes: subjects.iter().map(|subject| (subject.name, subject.size)).collect(),
        times: Some(times),
    })
}

fn by_themselves(plan: &Plan, alone: &mut [Alone], counts: Option<&[f64]>) -> (Vec<Cost>, Times) {
    let ways: Vec<_> = alone.iter().map(|alone| (alone.lock, alone.path)).collect();
    let times = plan.alone.run(alone.iter_mut().map(|alone| &mut alone.subject));
    let reference = ways.iter().position(|way| *way == (REFERENCE, Path::Shared)).unwrap_or(0);
    let costs = ways.into_iter().enumerate().map(|(index, (lock, path))| Cost {
        lock,
        path,
        nanoseconds: times.nanoseconds(index),
        ratio: times.ratio(index, reference),
        instructions: counts.and_then(|counts| counts.get(index).copied()),
        index,
    });
    (costs.collect(), times)
}

fn compete(
    plan: &Plan,
    workload: &Workload,
    subjects: &[Subject],
    tell: &mut impl FnMut(&str),
) -> Result<Match, Violation> {
    let duration = plan.turn(workload);
    let round = |number| Round { workload: *workload, duration, number };
    let score = |subject: &Subject| Score {
        lock: subject.name,
        kind: subject.kind,
        rates: Vec::new(),
        of_zero: Vec::new(),
        of_others: Vec::new(),
        jain: Vec::new(),
        observed: Observed::default(),
    };
    let mut scores: Vec<Score> = subjects.iter().map(score).collect();
    for number in 0..plan.rounds {
        for turn in turns(number, subjects.len()) {
            tell(&format!("{}: {workload}", subjects[turn].name));
            let counted = (subjects[turn].count)(&round(number));
            let [of_zero, of_others] = counted.rates();
            scores[turn].rates.push(of_zero + of_others);
            scores[turn].of_zero.push(of_zero);
            scores[turn].of_others.push(of_others);
            scores[turn].jain.extend(counted.jain());
        }
    }
    let mut observed = vec![Vec::new(); subjects.len()];
    for number in plan.rounds..plan.rounds + plan.observed {
        for turn in turns(number, subjects.len()) {
            tell(&format!("{}: {workload}, observed", subjects[turn].name));
            observed[turn].push((subjects[turn].observe)(&round(number))?);
        }
    }
    for (score, observed) in scores.iter_mut().zip(observed) {
        score.observed = Observed::together(&observed);
    }
    Ok(Match { workload: *workload, scores })
}

/// Who has a turn when, in the round called `number`.
fn turns(number: u64, subjects: usize) -> impl Iterator<Item = usize> {
    // Nobody has a turn where there is nobody.
    let first = number as usize % subjects.max(1);
    (first..subjects).chain(0..first)
}
