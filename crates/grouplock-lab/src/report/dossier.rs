//! All results of the lab about some algorithms.

use std::fmt::Write as _;

use grouplock_algorithms::Claims;
use grouplock_algorithms::claims::Kind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::plan::Task;
use crate::explore::{CheckError, Outcome, StepBound, Verdict, check};
use crate::memory::context;
use crate::property::{Properties, Property};
use crate::registry::{self, UnknownName};
use crate::rmr::{self, Measurement, Model, RmrError};
use crate::subject::Subject;
use crate::trace::Step;

/// The numbers of processes for which registers are counted.
const SPACE_SIZES: [usize; 5] = [2, 4, 8, 16, 32];

/// All results. In a file they are the evidence that the pages are made from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Dossier {
    /// The algorithms, in the order of the registry. Not read from a file: their claims are code.
    #[serde(skip_deserializing, default = "registered")]
    pub algorithms: Vec<Algorithm>,
    /// What was explored.
    pub explorations: Vec<Exploration>,
    /// Remote memory references that were counted.
    pub rmr: Vec<Measurement>,
    /// Algorithms that broke while they were measured.
    pub broken: Vec<Broken>,
    /// Mutants, and the results of their explorations.
    #[serde(default)]
    pub mutants: Vec<Mutant>,
}

/// An explored mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutant {
    /// The algorithm it was made from.
    pub of: String,
    /// What is wrong.
    pub what: String,
    /// How many processes.
    pub processes: usize,
    /// How many sessions; one for a mutex.
    pub sessions: u64,
    /// The property that it violates; `None` if the exploration was complete and found no
    /// violation.
    pub property: Option<Property>,
    /// States seen.
    pub states: u64,
    /// The length of the execution that shows it.
    pub steps: usize,
}

fn registered() -> Vec<Algorithm> {
    registry::all().iter().map(Algorithm::of).collect()
}

/// An algorithm that broke while its remote memory references were counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Broken {
    /// The algorithm's name.
    pub algorithm: String,
    /// How many processes.
    pub processes: usize,
    /// What happened, in a sentence.
    pub because: String,
}

/// An algorithm, by the name the lab knows it by.
#[derive(Clone, Debug, Serialize)]
pub struct Algorithm {
    /// The name: of the algorithm itself, or with the lock it uses after a `+`.
    pub name: String,
    /// What its source claims.
    #[serde(serialize_with = "write_claims")]
    pub claims: Claims,
    /// How many registers it has, by the number of processes.
    pub registers: Vec<(usize, u64)>,
}

/// An exploration and its result. `grouplock-lab check --json` prints the same keys, so a dossier
/// can read its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exploration {
    /// The algorithm's name.
    pub algorithm: String,
    /// How many processes.
    pub processes: usize,
    /// How many sessions; one for a mutex.
    pub sessions: u64,
    /// How many passages each process could begin; any number if `None`.
    pub passages: Option<u8>,
    /// How many processes could die, if they can; any number if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<u8>,
    /// The one property that was checked, if not all claims were.
    #[serde(default)]
    pub only: Option<Property>,
    /// What was checked, if that is known. After a violation nothing is known about the others.
    #[serde(default, rename = "looked_at")]
    pub properties: Properties,
    /// The properties that were checked in every state, but not for infinite executions.
    #[serde(default)]
    pub in_part: Properties,
    /// The bounds found for the properties that bound own steps.
    #[serde(default)]
    pub bounds: Vec<StepBound>,
    /// States seen.
    pub states: u64,
    /// Steps to the furthest of them.
    pub depth: u64,
    /// How long it took.
    pub seconds: f64,
    /// What was found.
    pub verdict: Verdict,
    /// Which property is violated.
    #[serde(rename = "property")]
    pub violated: Option<Property>,
    /// How, in a sentence.
    pub because: Option<String>,
    /// An execution that shows it, with as few choices as possible; empty if there is none.
    #[serde(default, deserialize_with = "or_none")]
    pub trace: Vec<Step>,
}

/// Why a dossier cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// No algorithm has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// An exploration of this algorithm cannot start.
    #[error("{0}: {1}")]
    Check(String, #[source] CheckError),
}

impl Dossier {
    /// The claims of every algorithm of the registry, and the outcomes of `tasks`. Calls `tell`
    /// with each task and its number before it starts.
    ///
    /// # Errors
    /// If a task names no algorithm, or a size that the algorithm cannot take.
    pub fn collect(
        tasks: &[Task],
        tell: &mut dyn FnMut(usize, &Task),
    ) -> Result<Self, CollectError> {
        let mut explorations = Vec::with_capacity(tasks.len());
        for (number, task) in (1..).zip(tasks) {
            tell(number, task);
            let subject = registry::find(&task.algorithm)?;
            let algorithm = task.algorithm.clone();
            let outcome = check(&subject, &task.options(&subject))
                .map_err(|error| CollectError::Check(algorithm, error))?;
            explorations.push(Exploration::of(&subject, task, outcome));
        }
        Ok(Dossier { algorithms: registered(), explorations, ..Dossier::default() })
    }

    /// Counts the remote memory references of every `wanted` algorithm that can be measured, for
    /// each number of processes in `sizes`. Calls `tell` with each before it starts.
    ///
    /// # Errors
    /// If the options are wrong. A size that an algorithm cannot have is skipped. An algorithm that
    /// breaks is a result: it goes to [`broken`](Dossier::broken).
    pub fn count_references(
        &mut self,
        sizes: &[usize],
        options: &rmr::Options,
        wanted: &dyn Fn(&str) -> bool,
        tell: &mut dyn FnMut(&str, usize),
    ) -> Result<(), RmrError> {
        for name in rmr::names().into_iter().filter(|name| wanted(name)) {
            let bounds = rmr::bounds(name)?;
            for &processes in sizes {
                tell(name, processes);
                match rmr::measure(name, processes, options) {
                    Ok(measured) => self.rmr.extend(measured.into_iter().map(|found| {
                        let bound = bounds.map(|bounds| bounds[found.model as usize]);
                        Measurement { bound, ..found }
                    })),
                    Err(RmrError::Capacity(..)) => {}
                    Err(error @ RmrError::Broken { .. }) => {
                        let (algorithm, because) = (name.to_owned(), error.to_string());
                        self.broken.push(Broken { algorithm, processes, because });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// What was counted for this algorithm at this size.
    pub(super) fn counted(
        &self,
        algorithm: &str,
        model: Model,
        processes: usize,
    ) -> Option<&Measurement> {
        let mut of = self.rmr.iter().filter(|m| m.algorithm == algorithm && m.model == model);
        of.find(|measured| measured.processes == processes)
    }

    /// Whether this algorithm broke at this size.
    pub(super) fn breaks(&self, algorithm: &str, processes: usize) -> bool {
        self.broken.iter().any(|it| it.algorithm == algorithm && it.processes == processes)
    }

    /// Adds an earlier exploration. The property that it found violated counts as checked.
    pub fn add(&mut self, mut exploration: Exploration) {
        let known = exploration.properties.iter().chain(exploration.violated);
        exploration.properties = known.collect();
        self.explorations.push(exploration);
    }

    /// The algorithm called `name`.
    pub fn algorithm(&self, name: &str) -> Option<&Algorithm> {
        self.algorithms.iter().find(|algorithm| algorithm.name == name)
    }

    /// Whether `name` names a mutex: then sessions have no meaning.
    pub fn is_mutex(&self, name: &str) -> bool {
        self.algorithm(name).is_some_and(|algorithm| algorithm.claims.kind == Kind::Mutual)
    }
}

impl Algorithm {
    /// What is known about `subject` without an exploration.
    pub fn of(subject: &Subject) -> Self {
        let count = |&processes: &usize| {
            let (made, blueprint) = context::set_up(|| (subject.make)(processes));
            made.ok().map(|_| (processes, blueprint.registers.len() as u64))
        };
        Algorithm {
            name: subject.name.to_owned(),
            claims: subject.claims,
            registers: SPACE_SIZES.iter().filter_map(count).collect(),
        }
    }
}

impl Exploration {
    /// The record of an exploration of `subject`.
    pub fn of(subject: &Subject, task: &Task, outcome: Outcome) -> Self {
        let checked = outcome.answered();
        let (violated, because, trace) = match outcome.violation {
            Some(violation) => (Some(violation.property), Some(violation.because), violation.trace),
            None => (None, None, Vec::new()),
        };
        Exploration {
            algorithm: subject.name.to_owned(),
            processes: task.processes,
            sessions: if subject.claims.kind == Kind::Mutual { 1 } else { task.sessions },
            passages: task.passages,
            deaths: task.deaths,
            only: task.property,
            properties: checked,
            in_part: outcome.in_part,
            bounds: outcome.bounds,
            states: outcome.states,
            depth: outcome.depth,
            seconds: outcome.elapsed.as_secs_f64(),
            verdict: outcome.verdict,
            violated,
            because,
            trace,
        }
    }

    /// The size, as in "3 × 2, 2 passages each".
    pub fn size(&self, is_mutex: bool) -> String {
        let mut size = size(self.processes, self.sessions, is_mutex);
        if let Some(passages) = self.passages {
            let plural = if passages == 1 { "" } else { "s" };
            _ = write!(size, ", {passages} passage{plural} each");
        }
        if let Some(deaths) = self.deaths {
            _ = write!(size, ", deaths: at most {deaths}");
        }
        size
    }
}

/// "3 processes", or "3 × 2" for a group lock.
pub(super) fn size(processes: usize, sessions: u64, is_mutex: bool) -> String {
    if is_mutex { format!("{processes} processes") } else { format!("{processes} × {sessions}") }
}

/// Without a violation `grouplock-lab check` prints `null` for the trace.
fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn write_claims<S: Serializer>(claims: &Claims, serializer: S) -> Result<S::Ok, S::Error> {
    let kind = if claims.kind == Kind::Group { "group" } else { "mutual" };
    let head = [("source", claims.source.to_owned()), ("kind", kind.to_owned())];
    let properties = Property::CLAIMABLE.map(|p| (p.name(), p.claim(claims).to_string()));
    let tail = [
        ("rmr-cc", claims.rmr_cc.to_string()),
        ("rmr-dsm", claims.rmr_dsm.to_string()),
        ("space", claims.space.to_string()),
        ("processes", claims.processes.to_string()),
        ("sessions", claims.sessions.to_string()),
    ];
    serializer.collect_map(head.into_iter().chain(properties).chain(tail))
}
