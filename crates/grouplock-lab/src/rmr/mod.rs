//! The meter of remote memory references (RMR): the cost of a passage if only accesses that leave
//! the processor count.
//!
//! The locks of `grouplock-algorithms` run unchanged on [`SimMemory`](crate::memory::SimMemory),
//! with up to [`MOST_PROCESSES`] simulated processes. Every access is a step of a scheduler. Four
//! definitions at once charge it to the passage that makes it, entry and exit section together: see
//! [`Model`].
//!
//! ```
//! use grouplock_lab::rmr::{Model, Options, measure};
//!
//! let options = Options { passages: 2, search_rounds: 4, ..Options::default() };
//! let measured = measure("dvir-taubenfeld-1", 4, &options)?;
//! let dsm = measured.iter().find(|measurement| measurement.model == Model::Dsm).unwrap();
//! assert!(dsm.max <= 4);
//! # Ok::<(), grouplock_lab::rmr::RmrError>(())
//! ```
//!
//! # Schedules
//! | name | what it does |
//! |---|---|
//! | random, round robin | prefer no process; processes stay inside and outside for random times |
//! | victim | runs one process exactly when its next step counts |
//! | staircase | the schedule by which He, Gopalakrishnan and Gafni show that the Burns-Lamport lock costs Ω(N²) |
//! | late | if waiters can withdraw: one process has done only its doorway while all before it withdraw |
//! | searched | priorities and points where they change, improved step by step for the most expensive passage |
//!
//! All are repeatable: equal options give equal figures. The largest cost *found* is a lower bound
//! of the true one. [`bounds`] gives an upper bound, proven for any number of processes.
//!
//! If waiters can withdraw, random, round robin, victim and searched also run with every other
//! request withdrawn after a random time if it has to wait.
//!
//! An [ideal latch](crate::ideal_latch) costs what its accesses cost: waiting for it is free. No
//! process dies here.
//!
//! # Contention
//! An *adaptive* bound counts only the processes that a passage meets: its [`Contention`]. A
//! passage lasts from the first step of its entry section to the last step of its exit section, or
//! of its withdrawal. The meter keeps the largest cost for each value of both kinds. In some
//! schedules only a few processes take part. These costs are lower bounds too.
//!
//! # Waiting
//! A waiting process reads the registers that it waits on. If the wait continues, the process is
//! blocked until another process writes one of the registers that it read. Then it reads again.
//! With coherent caches a spinning process pays the same: one reference for each time that its copy
//! is invalidated. On distributed memory a wait on a register of another process has no bound. It
//! is reported as [`Measurement::remote_spinning`].

mod bound;
#[doc(hidden)]
pub mod contention;
mod fit;
#[doc(hidden)]
pub mod model;
mod run;
mod schedule;
mod survey;
mod world;

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Bound, Growth};
use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub use bound::{PROCESSES, bounds_with};
pub use bound::{bounds, bounds_of};
pub use contention::{Contended, Contention};
pub use fit::fit;
pub use model::{Model, PerModel};
pub use run::Failure;

use crate::memory::context;
use crate::registry::{self, UnknownName};
use crate::subject::Subject;

/// The largest number of processes that can be simulated.
pub const MOST_PROCESSES: usize = 256;

/// What passages cost, by one model. Its JSON is what a file of evidence contains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The lock.
    pub algorithm: String,
    /// What counts.
    pub model: Model,
    /// How many processes there were.
    pub processes: usize,
    /// The cost of the most expensive passage that was found. Others may cost more.
    pub max: u64,
    /// The mean over the passages of the random and round robin schedules. The others choose a
    /// victim, so a mean over them says nothing.
    pub mean: f64,
    /// If waiters can withdraw or the claim is amortised: the largest mean over all requests of one
    /// run, with the withdrawn ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amortised: Option<f64>,
    /// Whether a process waited for a register outside its own memory. On distributed memory that
    /// has no bound, whatever `max` is. With coherent caches it is false.
    pub remote_spinning: bool,
    /// What a passage costs at most, for any number of processes, if that is proven.
    /// [`Dossier::count_references`](crate::report::Dossier::count_references) asks that,
    /// [`measure`] does not.
    pub bound: Option<u64>,
    /// How many passages were made in all.
    #[serde(skip)]
    pub passages: u64,
    /// The most expensive passage found, by [point contention](Contention::point).
    #[serde(skip)]
    pub by_point_contention: Vec<Contended>,
    /// The same by [interval contention](Contention::interval).
    #[serde(skip)]
    pub by_interval_contention: Vec<Contended>,
    /// The schedule that gave `max`.
    #[serde(skip)]
    pub schedule: String,
}

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The passages that each process makes in a run.
    pub passages: usize,
    /// Decides all random choices.
    pub seed: u64,
    /// How many schedules the search for expensive passages tries at most.
    pub search_rounds: usize,
    /// About how many steps it takes at most, which limits the search of large locks.
    pub search_steps: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { passages: 6, seed: 1, search_rounds: 4_000, search_steps: 20_000_000 }
    }
}

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RmrError {
    /// No algorithm that can be measured has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// There are too many processes, or none.
    #[error("{0} processes were asked for, but 1 to {MOST_PROCESSES} can be simulated")]
    Processes(usize),
    /// Without passages there is nothing to count.
    #[error("0 passages were asked for, but each process has to make at least 1")]
    Passages,
    /// This lock cannot have this number of processes.
    #[error("{0}: {1}")]
    Capacity(String, #[source] CapacityError),
    /// The lock itself broke.
    #[error("{algorithm} with {processes} processes {failure} under the schedule \"{schedule}\"")]
    Broken {
        /// The lock.
        algorithm: String,
        /// How many processes there were.
        processes: usize,
        /// Under which it happened.
        schedule: String,
        /// What happened.
        failure: Failure,
    },
}

/// The algorithms that can be measured.
pub fn names() -> Vec<&'static str> {
    registry::measured().iter().map(|lock| lock.name).collect()
}

/// Measures the algorithm called `name` under all schedules: one result for each of [`Model::ALL`],
/// in that order.
///
/// # Errors
/// If there is no such algorithm, if the options make no sense, or if the algorithm breaks while it
/// is measured.
pub fn measure(
    name: &str,
    processes: usize,
    options: &Options,
) -> Result<Vec<Measurement>, RmrError> {
    let lock = find(name, processes, options)?;
    let survey = survey::survey(&lock, processes, options)?;
    let measurement = |model: Model| {
        let at = model as usize;
        let (max, case) = survey.worst(model);
        Measurement {
            algorithm: lock.name.to_owned(),
            model,
            processes,
            max: *max,
            mean: survey.fair_sums[at] as f64 / survey.fair_passages.max(1) as f64,
            amortised: (lock.withdraws || lock.claims.rmr_cc.amortised)
                .then(|| survey.amortised[at]),
            by_point_contention: survey.by_point.of(model),
            by_interval_contention: survey.by_interval.of(model),
            passages: survey.passages,
            schedule: case.name(lock.claims.kind, processes),
            remote_spinning: model == Model::Dsm && survey.remote_spinning,
            bound: None,
        }
    };
    Ok(Model::ALL.map(measurement).into())
}

/// A mean cost as a whole number, to see how it grows.
#[doc(hidden)]
#[allow(clippy::cast_sign_loss, reason = "costs are not negative")]
pub fn rounded_up(mean: f64) -> u64 {
    mean.ceil() as u64
}

/// How the cost of a lock grows by one model, as far as `measured` shows it. An amortised claim is
/// about the means.
pub fn growth(measured: &[&Measurement], claim: Bound) -> Growth {
    if measured.iter().any(|one| one.bound.is_some()) {
        return Growth::Constant;
    }
    if measured.iter().any(|one| one.remote_spinning) {
        return Growth::Unbounded;
    }
    let cost = |one: &Measurement| match one.amortised {
        Some(mean) if claim.amortised => rounded_up(mean),
        _ => one.max,
    };
    fit(&measured.iter().map(|one| (one.processes, cost(one))).collect::<Vec<_>>())
}

fn named(name: &str) -> Result<Subject, RmrError> {
    Ok(registry::named("algorithm", &registry::measured(), |lock| lock.name, name)?)
}

/// The algorithm called `name`, with the lock inside that it is measured with, if [`measure`] would
/// try.
///
/// # Errors
/// What is wrong with the question.
pub fn find(name: &str, processes: usize, options: &Options) -> Result<Subject, RmrError> {
    let lock = named(name)?;
    if !(1..=MOST_PROCESSES).contains(&processes) {
        return Err(RmrError::Processes(processes));
    }
    if options.passages == 0 {
        return Err(RmrError::Passages);
    }
    let algorithm = lock.name.to_owned();
    let (made, _) = context::set_up(|| (lock.make)(processes));
    made.map_err(|source| RmrError::Capacity(algorithm, source))?;
    Ok(lock)
}
