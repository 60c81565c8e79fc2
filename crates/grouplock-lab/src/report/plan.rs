//! What to explore for a report.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::explore::{MemoryModel, Options};
use crate::property::{Properties, Property};
use crate::rmr;
use crate::subject::Subject;

/// One planned exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The algorithm's name in the registry.
    pub algorithm: String,
    /// How many processes.
    pub processes: usize,
    /// How many sessions, for a group lock.
    pub sessions: u64,
    /// How many passages each process may begin; any number if `None`.
    pub passages: Option<u8>,
    /// How many processes may die, if they can; any number if `None`.
    #[serde(default)]
    pub deaths: Option<u8>,
    /// Check only mutual exclusion and deadlock freedom: far fewer states.
    #[serde(default)]
    pub basic: bool,
    /// Check only this property, and continue after a violation of another one.
    pub property: Option<Property>,
    /// When others see a write.
    #[serde(default, skip_serializing_if = "MemoryModel::is_sc")]
    pub memory_model: MemoryModel,
}

impl Task {
    /// All claims of `algorithm`, any number of passages.
    pub fn new(algorithm: &str, processes: usize, sessions: u64) -> Self {
        Task { algorithm: algorithm.to_owned(), processes, sessions, ..Task::default() }
    }

    /// At most this number of passages each, for algorithms whose numbers grow without bound.
    #[must_use]
    pub fn passages(self, passages: u8) -> Self {
        Task { passages: Some(passages), ..self }
    }

    /// This property alone.
    #[must_use]
    pub fn only(self, property: Property) -> Self {
        Task { property: Some(property), ..self }
    }

    /// What to explore, and how.
    pub fn options(&self, subject: &Subject) -> Options {
        let options = Options::new(subject, self.processes, self.sessions);
        let mut options = options.memory(4 << 30);
        (options.passages, options.deaths) = (self.passages, self.deaths);
        options.memory_model = self.memory_model;
        if self.basic {
            options.properties = Properties::basic();
        }
        if let Some(property) = self.property {
            options.properties = Properties::only(property);
        }
        options
    }
}

/// A planned exploration: processes, sessions, passages if they are bounded, and the one property
/// if it is checked alone.
macro_rules! task {
    ($name:literal $p:literal x $s:literal $(/ $most:literal)?, $only:ident) => {
        task!($name $p x $s $(/ $most)?, property: Some(Property::$only))
    };
    ($name:literal $p:literal x $s:literal $(/ $most:literal)? $(, $field:ident: $value:expr)?) => {
        Task { $(passages: Some($most),)? $($field: $value,)? ..Task::new($name, $p, $s) }
    };
}

/// The explorations of each algorithm: those of both plans, and those of the full plan only.
macro_rules! plans {
    ($($name:literal: $(($($both:tt)*))*; $(($($full:tt)*))*;)*) => {
        fn planned() -> [Vec<Task>; 2] {
            [vec![$($(task!($name $($both)*),)*)*], vec![$($(task!($name $($full)*),)*)*]]
        }
    };
}

plans! {
    "clh": (4 x 1);;
    "mcs": (4 x 1);;
    "burns-lamport": (4 x 1); (2 x 1, BoundedEntry) (2 x 1, StarvationFreedom);
    "black-white-bakery": (2 x 1); (3 x 1);
    "black-white-bakery-split": (2 x 1); (2 x 1, BoundedRegisters);
    "dvir-taubenfeld-1": (3 x 1);;
    "dvir-taubenfeld-1-swap": (4 x 1);;
    "dvir-taubenfeld-2": (3 x 1);;
    "jayanti-jayanti": (4 x 1); (2 x 1, Fcfs);
    "bakery": (2 x 1 / 3); (3 x 1 / 2);
    "anderson": (3 x 1 / 3);;
    "dvir-taubenfeld-2-two-locks": (2 x 1); (3 x 1);
    "keane-moir": (3 x 2); (4 x 2);
    "keane-moir+dvir-taubenfeld-1-swap": (2 x 2); (3 x 2);
    "petrovic": (2 x 2); (3 x 2);
    "petrovic-unbounded": (2 x 2 / 2);;
    "generalized-bakery": (2 x 2 / 2) (3 x 2 / 1);
        (3 x 2 / 2) (2 x 2 / 2, StrongConcurrentEntering);
    "black-white-bakery-gme": (2 x 2) (3 x 2 / 1); (3 x 2);
    "pairwise-bakery": (2 x 2 / 2);
        (2 x 2 / 3) (3 x 2 / 1) (3 x 3 / 1) (3 x 2 / 1, Fife) (2 x 2 / 2, StrongConcurrentEntering);
    "rooms": (2 x 2 / 2);
        (3 x 2 / 2) (3 x 3 / 1) (2 x 2 / 2, ConcurrentOccupancy) (2 x 2 / 2, Fcfs);
    "forums": (3 x 2 / 1);
        (2 x 2 / 3) (3 x 2 / 2) (3 x 3 / 1) (2 x 2 / 2, ConcurrentOccupancy) (2 x 2 / 2, Fcfs);
    "maor-taubenfeld": (2 x 2); (3 x 2, basic: true) (3 x 2) (3 x 2, Fcfs);
    "handover": (3 x 2); (3 x 3) (4 x 2);
    "handover+dvir-taubenfeld-1-swap": (2 x 2); (3 x 2);
    "handover-withdraw": (2 x 3); (3 x 2 / 1) (3 x 2) (3 x 3);
    "handover-withdraw+dvir-taubenfeld-1-swap": (2 x 2); (3 x 2 / 1);
    "recoverable": (2 x 2); (3 x 2, deaths: Some(0)) (3 x 2, deaths: Some(1));
    "phases": (2 x 2); (3 x 2);
    "phases-fifo": (3 x 2); (2 x 2, StarvationFreedom);
    "phases-patient": (3 x 2);;
    "phases-fifo-cancel": (2 x 2); (3 x 2);
    "maor-taubenfeld+dvir-taubenfeld-1-swap":; (2 x 2);
    "phases-cancel":; (2 x 2);
    "phases-patient-cancel":; (2 x 2);
    "phases-alone":; (2 x 2);
    "phases-fifo-alone":; (3 x 2);
    "phases-patient-alone":; (3 x 2);
    "phases-fifo-alone-cancel":; (2 x 2);
    "phases-patient-alone-cancel":; (2 x 2);
    "phases-fifo-limited":; (3 x 2);
    "phases-patient-limited":; (3 x 2);
    "phases-setup":; (2 x 2);
    "phases-fifo-setup":; (3 x 2);
    "phases-patient-setup":; (3 x 2);
    "phases-fifo-setup-cancel":; (2 x 2);
    "phases-patient-setup-cancel":; (2 x 2);
    "phases-fifo-mixed":; (2 x 2);
    "phases-patient-mixed":; (2 x 2);
}

/// A list of tasks by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Minutes: each text with two processes or more, at sizes that take seconds.
    Quick,
    /// Hours: three processes if that ends, and the counterexamples.
    Full,
}

impl Plan {
    /// The explorations of this plan.
    pub fn tasks(self) -> Vec<Task> {
        let [both, full_only] = planned();
        if self == Plan::Full { [both, full_only].concat() } else { both }
    }

    /// The numbers of processes for which remote references are counted, and the effort of the
    /// search for expensive passages.
    pub fn references(self) -> (&'static [usize], rmr::Options) {
        let quick = rmr::Options {
            passages: 4,
            search_rounds: 60,
            search_steps: 500_000,
            ..rmr::Options::default()
        };
        match self {
            Plan::Quick => (&[2, 8, 32], quick),
            Plan::Full => (&[2, 8, 64, 256], rmr::Options::default()),
        }
    }
}

impl FromStr for Plan {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "quick" => Ok(Plan::Quick),
            "full" => Ok(Plan::Full),
            _ => Err("a plan is `quick` or `full`"),
        }
    }
}
