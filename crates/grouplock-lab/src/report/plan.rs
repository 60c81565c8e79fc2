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

    /// At most so many deaths.
    #[must_use]
    pub fn deaths(self, deaths: u8) -> Self {
        Task { deaths: Some(deaths), ..self }
    }

    /// Mutual exclusion and deadlock freedom only.
    #[must_use]
    pub fn basic(self) -> Self {
        Task { basic: true, ..self }
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
    #[allow(clippy::too_many_lines, reason = "a list")]
    pub fn tasks(self) -> Vec<Task> {
        let mut tasks: Vec<Task> = [
            ("clh", 4),
            ("mcs", 4),
            ("burns-lamport", 4),
            ("black-white-bakery", 2),
            ("black-white-bakery-split", 2),
            ("dvir-taubenfeld-1", 3),
            ("dvir-taubenfeld-1-swap", 4),
            ("dvir-taubenfeld-2", 3),
            ("jayanti-jayanti", 4),
        ]
        .map(|(name, processes)| Task::new(name, processes, 1))
        .into();
        tasks.extend([
            Task::new("bakery", 2, 1).passages(3),
            Task::new("anderson", 3, 1).passages(3),
            Task::new("dvir-taubenfeld-2-two-locks", 2, 1),
            Task::new("keane-moir", 3, 2),
            Task::new("keane-moir+dvir-taubenfeld-1-swap", 2, 2),
            Task::new("petrovic", 2, 2),
            Task::new("petrovic-unbounded", 2, 2).passages(2),
            Task::new("generalized-bakery", 2, 2).passages(2),
            Task::new("generalized-bakery", 3, 2).passages(1),
            Task::new("black-white-bakery-gme", 2, 2),
            Task::new("black-white-bakery-gme", 3, 2).passages(1),
            Task::new("pairwise-bakery", 2, 2).passages(2),
            Task::new("rooms", 2, 2).passages(2),
            Task::new("forums", 3, 2).passages(1),
            Task::new("maor-taubenfeld", 2, 2),
            Task::new("handover", 3, 2),
            Task::new("handover+dvir-taubenfeld-1-swap", 2, 2),
            Task::new("handover-withdraw", 2, 3),
            Task::new("handover-withdraw+dvir-taubenfeld-1-swap", 2, 2),
            Task::new("recoverable", 2, 2),
            Task::new("phases", 2, 2),
            Task::new("phases-fifo", 3, 2),
            Task::new("phases-patient", 3, 2),
            Task::new("phases-fifo-cancel", 2, 2),
        ]);
        if self == Plan::Full {
            tasks.extend([
                Task::new("bakery", 3, 1).passages(2),
                Task::new("black-white-bakery-split", 2, 1).only(Property::BoundedRegisters),
                Task::new("burns-lamport", 2, 1).only(Property::BoundedEntry),
                Task::new("burns-lamport", 2, 1).only(Property::StarvationFreedom),
                Task::new("black-white-bakery", 3, 1),
                Task::new("dvir-taubenfeld-2-two-locks", 3, 1),
                Task::new("keane-moir", 4, 2),
                Task::new("petrovic", 3, 2),
                Task::new("maor-taubenfeld+dvir-taubenfeld-1-swap", 2, 2),
                Task::new("maor-taubenfeld", 3, 2).basic(),
                Task::new("maor-taubenfeld", 3, 2),
                Task::new("maor-taubenfeld", 3, 2).only(Property::Fcfs),
                Task::new("generalized-bakery", 3, 2).passages(2),
                Task::new("generalized-bakery", 2, 2)
                    .passages(2)
                    .only(Property::StrongConcurrentEntering),
                Task::new("black-white-bakery-gme", 3, 2),
                Task::new("jayanti-jayanti", 2, 1).only(Property::Fcfs),
                Task::new("pairwise-bakery", 2, 2).passages(3),
                Task::new("pairwise-bakery", 3, 2).passages(1),
                Task::new("pairwise-bakery", 3, 3).passages(1),
                Task::new("pairwise-bakery", 3, 2).passages(1).only(Property::Fife),
                Task::new("pairwise-bakery", 2, 2)
                    .passages(2)
                    .only(Property::StrongConcurrentEntering),
                Task::new("rooms", 3, 2).passages(2),
                Task::new("rooms", 3, 3).passages(1),
                Task::new("rooms", 2, 2).passages(2).only(Property::ConcurrentOccupancy),
                Task::new("rooms", 2, 2).passages(2).only(Property::Fcfs),
                Task::new("forums", 2, 2).passages(3),
                Task::new("forums", 3, 2).passages(2),
                Task::new("forums", 3, 3).passages(1),
                Task::new("forums", 2, 2).passages(2).only(Property::ConcurrentOccupancy),
                Task::new("forums", 2, 2).passages(2).only(Property::Fcfs),
                Task::new("handover", 3, 3),
                Task::new("handover", 4, 2),
                Task::new("handover-withdraw", 3, 2).passages(1),
                Task::new("handover-withdraw", 3, 2),
                Task::new("handover-withdraw", 3, 3),
                Task::new("handover-withdraw+dvir-taubenfeld-1-swap", 3, 2).passages(1),
                Task::new("recoverable", 3, 2).deaths(0),
                Task::new("recoverable", 3, 2).deaths(1),
                Task::new("keane-moir+dvir-taubenfeld-1-swap", 3, 2),
                Task::new("phases-fifo", 2, 2).only(Property::StarvationFreedom),
                Task::new("phases", 3, 2),
                Task::new("phases-fifo-cancel", 3, 2),
                Task::new("phases-cancel", 2, 2),
                Task::new("phases-patient-cancel", 2, 2),
                Task::new("phases-alone", 2, 2),
                Task::new("phases-fifo-alone", 3, 2),
                Task::new("phases-patient-alone", 3, 2),
                Task::new("phases-fifo-alone-cancel", 2, 2),
                Task::new("phases-patient-alone-cancel", 2, 2),
                Task::new("phases-fifo-limited", 3, 2),
                Task::new("phases-patient-limited", 3, 2),
                Task::new("phases-setup", 2, 2),
                Task::new("phases-fifo-setup", 3, 2),
                Task::new("phases-patient-setup", 3, 2),
                Task::new("phases-fifo-setup-cancel", 2, 2),
                Task::new("phases-patient-setup-cancel", 2, 2),
                Task::new("phases-fifo-mixed", 2, 2),
                Task::new("phases-patient-mixed", 2, 2),
                Task::new("handover+dvir-taubenfeld-1-swap", 3, 2),
            ]);
        }
        tasks
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
