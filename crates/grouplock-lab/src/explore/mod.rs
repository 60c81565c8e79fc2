//! Every interleaving, each state once.

#[doc(hidden)]
pub mod bounds;
#[doc(hidden)]
pub mod canon;
mod checks;
pub(crate) mod compile;
#[doc(hidden)]
pub mod components;
mod deaths;
mod fairness;
#[doc(hidden)]
pub mod orders;
mod quiet;
mod search;
mod start;
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

use crate::property::{Properties, Property};
use crate::subject::Subject;
use crate::trace::Step;
use crate::value::MOST_SESSIONS;

/// The reductions, each of which can be turned off to see that it loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "switches, each by itself")]
pub struct Reductions {
    /// Believe (and check) what the text says of dead registers.
    pub forget: bool,
    /// Blank objects that nobody can reach.
    pub scrub: bool,
    /// Take at once the steps on objects that nobody else can reach.
    pub alone: bool,
    /// Take at once a process's reads of registers that only it writes.
    pub own: bool,
    /// Take states that differ in names only for one.
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
    /// How many passages each process may begin; any number if not told.
    pub passages: Option<u8>,
    /// When a write is seen by others. With store buffers, less is looked at and less is merged.
    pub memory_model: MemoryModel,
    /// How many processes may die, where they can; any number if not told.
    pub deaths: Option<u8>,
    /// What to check.
    pub properties: Properties,
    /// What to merge.
    pub reductions: Reductions,
    /// How many threads.
    pub workers: usize,
    /// How many bytes the exploration may take, about.
    pub memory_limit: u64,
    /// How many states the graph may have in which cycles are looked for, counted once for each order of processes that
    /// are alike. A larger one is not looked at; zero: none is.
    pub graph_limit: u64,
    /// Told again and again how it goes.
    pub progress: fn(&str),
    /// Set from outside to end the exploration early.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// All claims of `subject`, all reductions, two threads, four gibibytes, a graph of three million.
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
}

/// What an exploration found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every reachable state was seen, and everything that was looked at holds: [`Outcome::looked_at`].
    Holds,
    /// A property is violated.
    Violated,
    /// The exploration ended early: nothing was found so far.
    Limit,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was found.
    pub verdict: Verdict,
    /// How many states were seen.
    pub states: u64,
    /// How many steps (of the exploration) the furthest state is away from the first.
    pub depth: u64,
    /// Which property is violated, and how.
    pub violation: Option<Violation>,
    /// The properties that hold: they were looked at in full.
    pub looked_at: Properties,
    /// Those of which every state was looked at, but not the executions that go on for ever.
    pub in_part: Properties,
    /// By how many of its own steps a process gets through, for the properties that bound them.
    pub bounds: Vec<StepBound>,
    /// With store buffers: a process could not write because its buffer was full. What it does with a longer one was not seen.
    pub buffer_full: bool,
    /// Local states of the compiled code.
    pub local_states: u64,
    /// How often the real code was run.
    pub runs: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Outcome {
    /// The properties whose truth is known by now: those that hold, and the one that is violated.
    pub fn answered(&self) -> Properties {
        let violated = self.violation.as_ref().map(|violation| violation.property);
        self.looked_at.iter().chain(violated).collect()
    }

    /// The probability that an exploration missed a state because another one had the same fingerprint, as if fingerprints
    /// were drawn at random: at most one in 2⁶⁴ for each pair of states.
    pub fn missed(&self) -> f64 {
        let states = self.states as f64;
        (states * (states - 1.0) / 2.0 / 2_f64.powi(64)).clamp(0.0, 1.0)
    }
}

/// The largest number of its own steps that a process takes, among so many processes, before it gets where the property says.
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
    /// A shortest execution that shows it.
    pub trace: Vec<Step>,
    /// Who moves when in it: what [`replay`] needs to repeat it.
    pub schedule: Vec<Turn>,
}

impl Violation {
    /// The text's word on what is dead is wrong: that shows in two executions, so that none is told.
    fn lie(because: String, schedule: &[Turn]) -> Self {
        let (trace, schedule) = (Vec::new(), schedule.to_vec());
        Violation { property: Property::DeadPrivate, because, trace, schedule }
    }
}

/// One move: what may follow from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Who moves.
    pub process: u8,
    /// The session it asks for, if it was idle; [`Turn::GIVE_UP`] if it gives up, or is told of a death where processes may die;
    /// [`Turn::DIE`] if it dies; from [`Turn::REACHES`] on, which of its writes reaches memory; else zero.
    pub session: u8,
}

impl Turn {
    /// Stands in the place of a session: the process gives up. There are not so many sessions.
    pub const GIVE_UP: u8 = u8::MAX;
    /// Likewise: the process dies.
    pub const DIE: u8 = u8::MAX - 1;
    /// And on, in the place of a session: the process's oldest write that is on its way reaches memory, the second oldest, and so on.
    pub const REACHES: u8 = 128;

    /// Which of the process's writes reaches memory, if that is the move.
    fn reaches(self) -> Option<usize> {
        let places = Turn::REACHES..Turn::REACHES + weak::MOST_PENDING as u8;
        places.contains(&self.session).then(|| usize::from(self.session - Turn::REACHES))
    }
}

/// Why an exploration cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// So many processes were asked for, but at most so many work.
    #[error("{0} processes were asked for: an exploration takes 1 to {1}")]
    Processes(usize, usize),
    /// So many sessions were asked for, but at most so many work.
    #[error("{0} sessions were asked for: this exploration takes 1 to {1}")]
    Sessions(u64, u64),
    /// A schedule does not fit: at this move, counted from one, this process cannot do what it says.
    #[error("the schedule does not fit: at move {0}, process {1} cannot do what it says")]
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

/// The options, as far as they go together.
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

/// A register was written by another than its owner.
struct Trespass;

/// An attempt that takes registers for their processes' own; another one if that guess was wrong.
fn attempt<R>(options: &Options, attempt: impl Fn(&Options) -> Result<R, Trespass>) -> R {
    attempt(options).unwrap_or_else(|Trespass| {
        let mut options = options.clone();
        options.reductions.own = false;
        attempt(&options).unwrap_or_else(|Trespass| unreachable!("nobody owns a register any more"))
    })
}

/// A worker that panicked has left nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
