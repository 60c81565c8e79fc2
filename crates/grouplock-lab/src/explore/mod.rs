//! Explores every interleaving, each state once.

#[doc(hidden)]
pub mod bounds;
#[doc(hidden)]
pub mod canon;
mod checks;
#[doc(hidden)]
pub mod components;
mod deaths;
mod fairness;
mod frontier;
#[doc(hidden)]
pub mod orders;
mod quiet;
mod search;
pub(crate) mod start;
#[doc(hidden)]
pub mod state;
mod stepper;
mod traces;
#[doc(hidden)]
pub mod visited;
mod walk;
#[doc(hidden)]
pub mod weak;

pub use walk::{Sampling, Schedule, replay, sample};
pub use weak::MemoryModel;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grouplock_algorithms::claims::{Kind, Limit};
use serde::{Deserialize, Serialize};

use start::Compiled;

use crate::property::{Properties, Property};
use crate::subject::Subject;
use crate::trace::Step;

/// The reductions. Each can be turned off, to show that it loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "switches, each by itself")]
pub struct Reductions {
    /// Use, and check, what the text says about dead registers.
    pub forget: bool,
    /// Blank objects that no process can reach.
    pub scrub: bool,
    /// Take at once the steps on objects that no other process can reach.
    pub alone: bool,
    /// Take at once a process's reads of registers that only it writes.
    pub own: bool,
    /// Count states that differ only in names as one.
    pub symmetry: bool,
}

impl Reductions {
    /// All of them.
    pub const ALL: Self =
        Reductions { forget: true, scrub: true, alone: true, own: true, symmetry: true };
    /// None of them.
    pub const NONE: Self =
        Reductions { forget: false, scrub: false, alone: false, own: false, symmetry: false };
}

/// What to explore, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many processes.
    pub processes: usize,
    /// How many sessions, for a group lock.
    pub sessions: u64,
    /// How many passages each process may begin; any number if `None`.
    pub passages: Option<u8>,
    /// When others see a write. With store buffers, less is checked and less is merged.
    pub memory_model: MemoryModel,
    /// How many processes may die, if they can; any number if `None`.
    pub deaths: Option<u8>,
    /// What to check.
    pub properties: Properties,
    /// What to merge.
    pub reductions: Reductions,
    /// How many threads.
    pub workers: usize,
    /// About how many bytes the exploration may take.
    pub memory_limit: u64,
    /// How many states the graph for the search for cycles may have, counted once for each order of
    /// processes that are alike. A larger graph is not searched; with zero, none is.
    pub graph_limit: u64,
    /// Called again and again with a description of the progress.
    pub progress: fn(&str),
    /// Set from outside to end the exploration early.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// All claims of `subject`, all reductions, two threads, four gibibytes, a graph of three
    /// million.
    pub fn new(subject: &Subject, processes: usize, sessions: u64) -> Self {
        Options {
            processes,
            sessions,
            passages: None,
            memory_model: MemoryModel::Sc,
            deaths: None,
            properties: Properties::claimed(&subject.claims),
            reductions: Reductions::ALL,
            workers: 2,
            memory_limit: 4 << 30,
            graph_limit: 3_000_000,
            progress: |_| {},
            stop: Arc::default(),
        }
    }

    /// With so many bytes for the exploration, and again for the graph.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        // A state in one order: its marks and steps, and what the search for components keeps.
        const EACH: u64 = 64;
        Options { memory_limit: bytes, graph_limit: bytes / EACH, ..self }
    }

    /// The size, as in "3 processes × 2 sessions, 2 passages each".
    pub fn size(&self, subject: &Subject) -> String {
        let Options { processes, sessions, passages, .. } = self;
        let passages = passages.map_or(String::new(), |most| {
            let plural = if most == 1 { "" } else { "s" };
            format!(", {most} passage{plural} each")
        });
        match subject.claims.kind {
            Kind::Mutual => format!("{processes} processes{passages}"),
            Kind::Group => format!("{processes} processes × {sessions} sessions{passages}"),
        }
    }
}

/// What an exploration found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All reachable states were visited, and every property in [`Outcome::checked`] holds.
    Holds,
    /// A property is violated.
    Violated,
    /// The exploration ended early and had found no violation.
    Limit,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was found.
    pub verdict: Verdict,
    /// How many states were visited.
    pub states: u64,
    /// The distance of the furthest state from the first, in moves of the exploration.
    pub depth: u64,
    /// Which property is violated, and how.
    pub violation: Option<Violation>,
    /// The properties that hold: they were checked completely.
    pub checked: Properties,
    /// The properties that were checked in every state, but not for infinite executions.
    pub in_part: Properties,
    /// The bounds found for the properties that bound own steps.
    pub bounds: Vec<StepBound>,
    /// With store buffers: a process could not write because its buffer was full. Executions with a
    /// longer buffer were not explored.
    pub buffer_full: bool,
    /// Local states of the compiled code.
    pub local_states: u64,
    /// How often the real code was run.
    pub runs: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Outcome {
    /// The properties whose truth is known: those that hold, and the one that is violated.
    pub fn answered(&self) -> Properties {
        let violated = self.violation.as_ref().map(|violation| violation.property);
        self.checked.iter().chain(violated).collect()
    }

    /// The probability that an exploration missed a state because another one had the same
    /// fingerprint, if fingerprints are random: at most one in 2⁶⁴ for each pair of states.
    pub fn missed(&self) -> f64 {
        let states = self.states as f64;
        (states * (states - 1.0) / 2.0 / 2_f64.powi(64)).clamp(0.0, 1.0)
    }
}

/// The largest number of its own steps that a process takes, with this number of processes, before
/// it gets where the property says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBound {
    /// The property.
    pub property: Property,
    /// How many steps.
    pub steps: u64,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// What happened, in a sentence.
    pub because: String,
    /// An execution that shows it. If it ends in a wrong state, none has fewer choices.
    pub trace: Vec<Step>,
    /// Its moves: [`replay`] repeats it from these.
    pub schedule: Vec<Move>,
}

impl Violation {
    /// The text is wrong about what is dead. Two executions show that, so there is no single trace.
    fn wrong_liveness(because: String, schedule: &[Move]) -> Self {
        let (trace, schedule) = (Vec::new(), schedule.to_vec());
        Violation { property: Property::DeadPrivate, because, trace, schedule }
    }
}

/// One move in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The process that moves.
    pub process: u8,
    /// The session that it requests, if it was idle; [`Move::WITHDRAW`] if it withdraws, or learns
    /// of a death; [`Move::DIE`] if it dies; from [`Move::REACHES`] on, which of its writes reaches
    /// memory; otherwise zero.
    pub session: u8,
}

impl Move {
    /// Instead of a session: the process withdraws. No session has this number.
    pub const WITHDRAW: u8 = u8::MAX;
    /// Instead of a session: the process dies.
    pub const DIE: u8 = u8::MAX - 1;
    /// This and larger numbers, instead of a session: the oldest write in the process's buffer
    /// reaches memory, the second oldest, and so on.
    pub const REACHES: u8 = 128;

    /// Which of the process's writes reaches memory, if the move is of that kind.
    fn reaches(self) -> Option<usize> {
        let places = Move::REACHES..Move::REACHES + weak::MOST_PENDING as u8;
        places.contains(&self.session).then(|| usize::from(self.session - Move::REACHES))
    }
}

/// Why an exploration cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// More processes were requested than the exploration can have.
    #[error("{0} processes were asked for: an exploration takes 1 to {1}")]
    Processes(usize, usize),
    /// More sessions were requested than the exploration can have.
    #[error("{0} sessions were asked for: this exploration takes 1 to {1}")]
    Sessions(u64, u64),
    /// A schedule does not fit: at this move, counted from one, this process cannot make the move.
    #[error("the schedule does not fit: process {1} cannot make move {0}")]
    Schedule(usize, usize),
    /// The lock cannot be made.
    #[error(transparent)]
    Capacity(#[from] grouplock_algorithms::CapacityError),
}

/// Explores `subject`.
///
/// # Errors
/// If the sizes are out of range.
pub fn check(subject: &Subject, options: &Options) -> Result<Outcome, CheckError> {
    let options = fits(subject, options)?;
    Ok(search::run(subject, &options))
}

/// Visits every reachable state once and checks no property, so that a violation does not end it:
/// then the automaton has every edge that a reachable state needs. It ignores what the text says
/// about dead registers: a mutation may make that false.
pub(crate) fn compile(
    subject: &Subject,
    options: &Options,
) -> Result<(Compiled, Outcome), CheckError> {
    let mut options = fits(subject, options)?;
    (options.workers, options.properties) = (1, Properties::default());
    options.reductions.forget = false;
    let compiled = Compiled::new(subject, &options);
    let outcome = attempt(&options, |options| search::explore(subject, options, &compiled));
    Ok((compiled, outcome))
}

/// The largest number of sessions of an exploration.
const MOST_SESSIONS: u64 = 63;

/// The options that the subject and the memory model allow.
fn fits(subject: &Subject, options: &Options) -> Result<Options, CheckError> {
    let most = match subject.claims.processes {
        Limit::Fixed(most) => most.min(state::MOST_PROCESSES as u64) as usize,
        Limit::None | Limit::NotApplicable => state::MOST_PROCESSES,
    };
    if options.processes == 0 || options.processes > most {
        return Err(CheckError::Processes(options.processes, most));
    }
    let most = subject.claims.largest_session().min(MOST_SESSIONS);
    if subject.claims.kind == Kind::Group && (options.sessions == 0 || options.sessions > most) {
        return Err(CheckError::Sessions(options.sessions, most));
    }
    let (made, _) = crate::memory::context::set_up(|| (subject.make)(options.processes));
    made?;
    Ok(options.memory_model.fit(options))
}

/// A process wrote a register that another one owns.
struct Trespass;

/// Makes the attempt under the assumption that only its owner writes a register, and again without
/// it if that is wrong.
fn attempt<R>(options: &Options, attempt: impl Fn(&Options) -> Result<R, Trespass>) -> R {
    attempt(options).unwrap_or_else(|Trespass| {
        let mut options = options.clone();
        options.reductions.own = false;
        attempt(&options).unwrap_or_else(|Trespass| unreachable!("no process owns a register now"))
    })
}

/// A worker that panicked has left no partial change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
