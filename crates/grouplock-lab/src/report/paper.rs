//! The tables that two papers print, in the papers' own words.

use std::str::FromStr;

use super::case::{Case, hardware};
use super::table::Cell;
use crate::property::Property;
use crate::rmr::Model;

/// A paper with a table of group locks.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    /// The title of its table here.
    pub title: &'static str,
    pub(super) columns: &'static [Column],
    /// The rows it prints for algorithms that the lab has.
    #[doc(hidden)]
    pub printed: &'static [PrintedRow],
    /// The rows it prints for algorithms that the lab does not have: the paper's name, and a word
    /// for each column except the first.
    pub(super) quoted: &'static [[&'static str; 2]],
    /// What a reader of the table should know.
    pub(super) notes: &'static [&'static str],
}

/// A column: its heading and its question about an algorithm.
pub(super) type Column = (&'static str, fn(&Case<'_>) -> Cell);

/// A printed row: the lab's name of the algorithm, the paper's name, and a word for each column
/// except the first. The papers assume the property of the first column.
pub type PrintedRow = [&'static str; 3];

impl Paper {
    /// Both papers.
    pub const ALL: [Paper; 2] = [Paper::MAOR_TAUBENFELD, Paper::HE];

    /// Maor and Taubenfeld, Constant RMR Group Mutual Exclusion for Arbitrarily Many Processes and
    /// Sessions (2021).
    pub const MAOR_TAUBENFELD: Paper = Paper {
        name: "maor-taubenfeld",
        title: "Table 1 of Maor and Taubenfeld 2021",
        columns: &[
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
            ("RMR in CC", |case| case.rmr(Model::Cc, case.claims().rmr_cc)),
            ("RMR in DSM", |case| case.rmr(Model::Dsm, case.claims().rmr_dsm)),
            ("Hardware used", |case| Cell::unmeasured(hardware(case.claims().primitives))),
        ],
        printed: &[
            ["keane-moir", "Keane & Moir 1999", "✗|✗|✗|✗|O(n)|O(n)|O(n)|read/write"],
            ["generalized-bakery", "He et al. 2018", "BE|CE|FCFS|✗|O(n)|O(n)|∞|read/write"],
            ["black-white-bakery-gme", "He et al. 2018", "BE|CE|FCFS|✗|O(n)|O(n)|∞|read/write"],
            [
                "maor-taubenfeld",
                "Our algorithm",
                "GBE|GCE|FCFS, FIFE|✓|O(n)|O(1)|O(1)|CAS, fetch&store",
            ],
        ],
        quoted: &[
            ["Joung 1988", "BE|CE|✗|✗|O(n)|∞|∞|read/write"],
            ["Hadzilacos 2001", "BE|CE|FCFS|✗|O(n²)|O(n²)|∞|read/write"],
            ["Jayanti et al. 2003", "BE|CE|FCFS, FIFE|✗|O(n)|O(n²)|∞|read/write"],
            ["Danek & Hadzilacos 2004", "BE|CE|FCFS, FIFE|✗|O(n²)|O(n)|O(n)|CAS, fetch&add"],
            ["Bhatt & Huang 2010", "BE|CE|✗|✗|O(mn)|O(min(k, log n))|∞|LL/SC"],
            ["Aravind & Hesselink 2019", "BE|✗|FIFE|✗|O(L)|O(1)|∞|fetch&inc"],
            ["Gokhale & Mittal 2019", "BE|CE|✗|✗|O(n²)|O(min(c, n))|O(n)|CAS, fetch&add"],
        ],
        notes: &[
            "In the quoted rows, n is the number of processes, m that of sessions, k the point contention, c the interval contention, \
             and L a constant larger than min(n, m).",
            "A quoted row is what the paper prints (also where it prints 1988, and means Joung's algorithm of 1998). The texts of these \
             algorithms were not at hand, so nothing of them is measured.",
            "`forums` and `pairwise-bakery` are ours. They have the profile of a quoted row, the second but for FIFE, and not its text.",
            "Prior art beside the paper's first algorithm for arbitrarily many processes: Gokhale, Dhoked and Mittal, PPoPP 2021 \
             (poster). It was not at hand.",
        ],
    };

    /// He, Gopalakrishnan and Gafni, Group Mutual Exclusion in Linear Time and Space (2018).
    pub const HE: Paper = Paper {
        name: "he",
        title: "Table 1 of He, Gopalakrishnan and Gafni 2018",
        columns: &[
            ("P1 mutual exclusion", |case| case.plainly(Property::MutualExclusion)),
            ("RMR", |case| case.rmr(Model::CcWriteThrough, case.claims().rmr_cc)),
            ("Space", |case| case.space()),
            ("P2 starvation freedom", |case| case.plainly(Property::StarvationFreedom)),
            ("P3 bounded exit", |case| case.plainly(Property::BoundedExit)),
            ("P4 concurrent entry", |case| case.plainly(Property::ConcurrentEntering)),
            ("P5 FCFS", |case| case.plainly(Property::Fcfs)),
            ("Bounded registers", |case| case.registers()),
        ],
        printed: &[
            ["generalized-bakery", "This work (GLB Algorithm)", "O(N)|O(N)|Yes|Yes|Yes|Yes|No"],
            ["keane-moir", "Keane & Moir", "O(log N)|O(N)|Yes|No|No|No|Yes"],
            [
                "black-white-bakery-gme",
                "This work (BWBGME Algorithm)",
                "O(N)|O(N)|Yes|Yes|Yes|Yes|Yes",
            ],
        ],
        quoted: &[],
        notes: &[],
    };
}

impl FromStr for Paper {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Paper::ALL.into_iter().find(|paper| paper.name == name);
        found.ok_or("a paper is `maor-taubenfeld` or `he`")
    }
}
