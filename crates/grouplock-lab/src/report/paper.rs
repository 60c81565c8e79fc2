//! The tables that two papers print, in the papers' own words.

use std::str::FromStr;

use super::question::Question;

/// A paper with a table of group locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Maor and Taubenfeld, Constant RMR Group Mutual Exclusion for Arbitrarily Many Processes and Sessions (2021).
    MaorTaubenfeld,
    /// He, Gopalakrishnan and Gafni, Group Mutual Exclusion in Linear Time and Space (2018).
    He,
}

/// A column: its heading and what it asks of an algorithm.
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) question: Question,
}

/// A row as printed: the algorithm as the lab and as the paper calls it, and a word for each column but the first, which
/// the papers take for granted.
pub(super) struct PrintedRow {
    pub(super) algorithm: &'static str,
    pub(super) called: &'static str,
    pub(super) words: &'static [&'static str],
}

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

    pub(super) const fn columns(self) -> &'static [Column] {
        use Question as Q;
        const fn column(heading: &'static str, question: Question) -> Column {
            Column { heading, question }
        }
        match self {
            Paper::MaorTaubenfeld => {
                &const {
                    [
                        column("Mutual exclusion", Q::MutualExclusion),
                        column("Group bounded exit (BE/GBE)", Q::Exit),
                        column("Group concurrent entering (CE/GCE)", Q::Entering),
                        column("Fairness (FCFS/FIFE)", Q::Fairness),
                        column("Unknown number of processes & sessions", Q::Unknown),
                        column("Shared space for all processes", Q::Space),
                        column("RMR in CC", Q::RmrCc),
                        column("RMR in DSM", Q::RmrDsm),
                        column("Hardware used", Q::Hardware),
                    ]
                }
            }
            Paper::He => {
                &const {
                    [
                        column("P1 mutual exclusion", Q::MutualExclusion),
                        column("RMR", Q::RmrCcWriteThrough),
                        column("Space", Q::Space),
                        column("P2 starvation freedom", Q::StarvationFreedom),
                        column("P3 bounded exit", Q::BoundedExit),
                        column("P4 concurrent entry", Q::ConcurrentEntering),
                        column("P5 FCFS", Q::Fcfs),
                        column("Bounded registers", Q::BoundedRegisters),
                    ]
                }
            }
        }
    }

    /// The rows it prints for algorithms that the lab has.
    pub(super) const fn printed(self) -> &'static [PrintedRow] {
        const fn row(
            algorithm: &'static str,
            called: &'static str,
            words: &'static [&'static str],
        ) -> PrintedRow {
            PrintedRow { algorithm, called, words }
        }
        match self {
            Paper::MaorTaubenfeld => {
                const HE: &[&str] = &["BE", "CE", "FCFS", "✗", "O(n)", "O(n)", "∞", "read/write"];
                &const {
                    [
                        row(
                            "keane-moir",
                            "Keane & Moir 1999",
                            &["✗", "✗", "✗", "✗", "O(n)", "O(n)", "O(n)", "read/write"],
                        ),
                        row("generalized-bakery", "He et al. 2018", HE),
                        row("black-white-bakery-gme", "He et al. 2018", HE),
                        row(
                            "maor-taubenfeld",
                            "Our algorithm",
                            &[
                                "GBE",
                                "GCE",
                                "FCFS, FIFE",
                                "✓",
                                "O(n)",
                                "O(1)",
                                "O(1)",
                                "CAS, fetch&store",
                            ],
                        ),
                    ]
                }
            }
            Paper::He => {
                &const {
                    [
                        row(
                            "generalized-bakery",
                            "This work (GLB Algorithm)",
                            &["O(N)", "O(N)", "Yes", "Yes", "Yes", "Yes", "No"],
                        ),
                        row(
                            "keane-moir",
                            "Keane & Moir",
                            &["O(log N)", "O(N)", "Yes", "No", "No", "No", "Yes"],
                        ),
                        row(
                            "black-white-bakery-gme",
                            "This work (BWBGME Algorithm)",
                            &["O(N)", "O(N)", "Yes", "Yes", "Yes", "Yes", "Yes"],
                        ),
                    ]
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_row_has_a_word_for_each_column_but_the_first() {
        for paper in Paper::ALL {
            for row in paper.printed() {
                assert_eq!(row.words.len() + 1, paper.columns().len(), "{}", row.called);
            }
        }
    }
}
