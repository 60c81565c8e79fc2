//! The tables that two papers print, in the papers' own words.

use std::str::FromStr;

use super::question::{Case, hardware};
use super::table::Cell;
use crate::property::Property;

/// A paper with a table of group locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Maor and Taubenfeld, Constant RMR Group Mutual Exclusion for Arbitrarily Many Processes and Sessions (2021).
    MaorTaubenfeld,
    /// He, Gopalakrishnan and Gafni, Group Mutual Exclusion in Linear Time and Space (2018).
    He,
}

/// A column: its heading and what it asks of an algorithm.
pub(super) type Column = (&'static str, fn(&Case<'_>) -> Cell);

/// A row as printed: the algorithm as the lab and as the paper calls it, and a word for each column but the first, which
/// the papers take for granted.
pub type PrintedRow = [&'static str; 3];

impl Paper {
    /// Both.
    pub const ALL: [Paper; 2] = [Paper::MaorTaubenfeld, Paper::He];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::MaorTaubenfeld => "maor-taubenfeld",
            Paper::He => "he",
        }
    }

    /// What its table is called here.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::MaorTaubenfeld => "Table 1 of Maor and Taubenfeld 2021",
            Paper::He => "Table 1 of He, Gopalakrishnan and Gafni 2018",
        }
    }

    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Paper::MaorTaubenfeld => &[
                ("Mutual exclusion", |case| case.plainly(Property::MutualExclusion)),
                ("Group bounded exit (BE/GBE)", |case| {
                    use Property::{BoundedExit, GroupBoundedExit};
                    case.strongest(&[("BE", BoundedExit), ("GBE", GroupBoundedExit)])
                }),
                ("Group concurrent entering (CE/GCE)", |case| {
                    case.strongest(&[
                        ("CE", Property::ConcurrentEntering),
                        ("SGCE", Property::StrongGroupConcurrentEntering),
                        ("GCE", Property::GroupConcurrentEntering),
                        ("CO", Property::ConcurrentOccupancy),
                    ])
                }),
                ("Fairness (FCFS/FIFE)", |case| {
                    case.each(&[("FCFS", Property::Fcfs), ("FIFE", Property::Fife)])
                }),
                ("Unknown number of processes & sessions", |case| case.unknown_numbers()),
                ("Shared space for all processes", |case| case.space()),
                ("RMR in CC", |case| case.rmr("cc", case.claims().rmr_cc)),
                ("RMR in DSM", |case| case.rmr("dsm", case.claims().rmr_dsm)),
                ("Hardware used", |case| Cell::unmeasured(hardware(case.claims().primitives))),
            ],
            Paper::He => &[
                ("P1 mutual exclusion", |case| case.plainly(Property::MutualExclusion)),
                ("RMR", |case| case.rmr("cc-write-through", case.claims().rmr_cc)),
                ("Space", |case| case.space()),
                ("P2 starvation freedom", |case| case.starvation_freedom()),
                ("P3 bounded exit", |case| case.plainly(Property::BoundedExit)),
                ("P4 concurrent entry", |case| case.plainly(Property::ConcurrentEntering)),
                ("P5 FCFS", |case| case.plainly(Property::Fcfs)),
                ("Bounded registers", |case| case.registers()),
            ],
        }
    }

    /// The rows it prints for algorithms that the lab has.
    #[doc(hidden)]
    pub fn printed(self) -> &'static [PrintedRow] {
        match self {
            Paper::MaorTaubenfeld => &[
                ["keane-moir", "Keane & Moir 1999", "✗|✗|✗|✗|O(n)|O(n)|O(n)|read/write"],
                ["generalized-bakery", "He et al. 2018", "BE|CE|FCFS|✗|O(n)|O(n)|∞|read/write"],
                ["black-white-bakery-gme", "He et al. 2018", "BE|CE|FCFS|✗|O(n)|O(n)|∞|read/write"],
                [
                    "maor-taubenfeld",
                    "Our algorithm",
                    "GBE|GCE|FCFS, FIFE|✓|O(n)|O(1)|O(1)|CAS, fetch&store",
                ],
            ],
            Paper::He => &[
                ["generalized-bakery", "This work (GLB Algorithm)", "O(N)|O(N)|Yes|Yes|Yes|Yes|No"],
                ["keane-moir", "Keane & Moir", "O(log N)|O(N)|Yes|No|No|No|Yes"],
                [
                    "black-white-bakery-gme",
                    "This work (BWBGME Algorithm)",
                    "O(N)|O(N)|Yes|Yes|Yes|Yes|Yes",
                ],
            ],
        }
    }
}

impl FromStr for Paper {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Paper::ALL.into_iter().find(|paper| paper.name() == name);
        found.ok_or("a paper is `maor-taubenfeld` or `he`")
    }
}
