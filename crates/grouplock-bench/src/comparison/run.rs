//! All rounds of a plan, interleaved.
//!
//! Within a round of a workload every lock has one turn, and each round begins with another lock: so a disturbance
//! hits all of them alike, and a ratio is taken between turns of the same round.

use std::time::Instant;

use serde::Serialize;

use super::alone::{Alone, Path};
use super::lock::Kind;
use super::observed::{Observed, Violation};
use super::plan::{Plan, Size};
use super::remote::Remote;
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
    /// Jain's index over the threads, by round in which anybody got in.
    pub jain: Vec<f64>,
    /// What was seen of waits, from the rounds in which every passage was written down.
    pub observed: Observed,
}

impl Score {
    /// Entries per second.
    pub fn rate(&self) -> Spread {
        Spread::of(self.rates.iter().copied())
    }

    /// How many times as many entries as `peer`, from round to round.
    pub fn ratio(&self, peer: &Score) -> Spread {
        Spread::of_ratios(&self.rates, &peer.rates)
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
    /// Bytes of an unlocked lock without data.
    pub sizes: Vec<(&'static str, usize)>,
    /// Remote references, if they were counted.
    pub remote: Option<Vec<Remote>>,
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

/// Runs everything. `tell` is called with what is about to be done, often.
///
/// # Errors
/// [`Violation`] if a lock lets two in that exclude each other.
pub fn run(
    plan: &Plan,
    subjects: &[Subject],
    mut alone: Vec<Alone>,
    counts: Option<&[f64]>,
    mut tell: impl FnMut(&str),
) -> Result<Results, Violation> {
    let begun = Instant::now();
    let usage = Usage::now();
    tell("alone");
    let (costs, times) = by_themselves(plan, &mut alone, counts);
    let mut seasons = Vec::new();
    for family in &plan.families {
        let mut matches = Vec::new();
        for workload in &family.workloads {
            matches.push(compete(plan, workload, subjects, &mut tell)?);
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
    let foreign = Usage::now().zip(usage).and_then(|(now, before)| now.foreign_since(&before));
    Ok(Results {
        plan: plan.size,
        rounds: plan.rounds,
        foreign,
        seconds: begun.elapsed().as_secs_f64(),
        alone: costs,
        seasons,
        starvation,
        sizes: Vec::new(),
        remote: None,
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
    let mut scores = vec![(Vec::new(), Vec::new(), Vec::new()); subjects.len()];
    for number in 0..plan.rounds {
        for turn in turns(number, subjects.len()) {
            tell(&format!("{}: {workload}", subjects[turn].name));
            let counted = (subjects[turn].count)(&round(number));
            scores[turn].0.push(counted.rate());
            scores[turn].1.extend(counted.jain());
        }
    }
    for number in plan.rounds..plan.rounds + plan.observed {
        for turn in turns(number, subjects.len()) {
            tell(&format!("{}: {workload}, observed", subjects[turn].name));
            scores[turn].2.push((subjects[turn].observe)(&round(number))?);
        }
    }
    let scores = scores.into_iter().zip(subjects).map(|((rates, jain, observed), subject)| {
        let observed = Observed::together(&observed);
        Score { lock: subject.name, kind: subject.kind, rates, jain, observed }
    });
    Ok(Match { workload: *workload, scores: scores.collect() })
}

/// Who has a turn when, in the round called `number`.
fn turns(number: u64, subjects: usize) -> impl Iterator<Item = usize> {
    // Nobody has a turn where there is nobody.
    let first = number as usize % subjects.max(1);
    (first..subjects).chain(0..first)
}
