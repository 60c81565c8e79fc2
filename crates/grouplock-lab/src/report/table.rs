//! A paper's table, measured.

use std::fmt::Write as _;

use grouplock_algorithms::claims::Kind;
use serde::Serialize;

use super::dossier::Dossier;
use super::paper::Paper;
use super::question::{Case, plain};

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The paper, by its name on the command line.
    pub paper: &'static str,
    /// What the table is called.
    pub title: &'static str,
    /// The headings.
    pub columns: Vec<&'static str>,
    /// The algorithms.
    pub rows: Vec<Row>,
}

/// An algorithm's row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The algorithm, as the lab calls it.
    pub algorithm: String,
    /// What the paper's table calls it, if it is in there.
    pub called: Option<&'static str>,
    /// Where it was published.
    pub source: &'static str,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// What is said and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// What the paper's table prints here, if the algorithm is in there.
    pub printed: Option<&'static str>,
    /// What the algorithm's own source claims.
    pub claimed: String,
    /// What was found, or "not measured".
    pub measured: String,
    /// By which means, and how far they reached.
    pub how: String,
    /// How the two go together.
    pub standing: Standing,
}

/// How a claim stands after measuring, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// What was measured agrees with it.
    Supported,
    /// Nothing speaks against it so far.
    Partly,
    /// It was not measured.
    Unmeasured,
    /// It is false.
    Refuted,
}

impl Standing {
    /// The worse of two.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Cell {
    pub(super) fn unmeasured(claimed: String) -> Self {
        let measured = "not measured".to_owned();
        let standing = Standing::Unmeasured;
        Cell { printed: None, claimed, measured, how: String::new(), standing }
    }
}

impl Table {
    /// The table of `paper` for the group locks in `dossier`: first those that the paper lists, then the others.
    pub fn measured(paper: Paper, dossier: &Dossier) -> Self {
        let mut names: Vec<&str> = paper.printed().iter().map(|row| row[0]).collect();
        for algorithm in &dossier.algorithms {
            let name = plain(&algorithm.name);
            if algorithm.claims.kind == Kind::Group && !names.contains(&name) {
                names.push(name);
            }
        }
        Table {
            paper: paper.name(),
            title: paper.title(),
            columns: paper.columns().iter().map(|column| column.0).collect(),
            rows: names.iter().filter_map(|name| row(paper, dossier, name)).collect(),
        }
    }

    /// The table in Markdown, three or four lines for each algorithm.
    pub fn to_markdown(&self) -> String {
        let head = ["algorithm", ""].into_iter().chain(self.columns.iter().copied());
        let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
        for row in &self.rows {
            let mut line = |name: String, what: &str, words: Vec<String>| {
                lines.push([name, what.to_owned()].into_iter().chain(words).collect());
            };
            let words = |word: fn(&Cell) -> &str| {
                row.cells.iter().map(|cell| word(cell).replace('|', "\\|")).collect::<Vec<_>>()
            };
            line(format!("`{}`", row.algorithm), "claimed", words(|cell| &cell.claimed));
            if let Some(called) = row.called {
                line(format!("({called})"), "printed", words(|cell| cell.printed.unwrap_or("")));
            }
            line(String::new(), "measured", words(|cell| &cell.measured));
            line(String::new(), "how", words(|cell| &cell.how));
        }
        let widths: Vec<usize> = (0..self.columns.len() + 2)
            .map(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = format!("## {}\n\n", self.title);
        for (i, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(text, "| {cell:<width$} ");
            }
            text.push_str("|\n");
            if i == 0 {
                let rule = widths.iter().map(|width| "-".repeat(width + 2));
                let _ = writeln!(text, "|{}|", rule.collect::<Vec<_>>().join("|"));
            }
        }
        text
    }
}

fn row(paper: Paper, dossier: &Dossier, name: &str) -> Option<Row> {
    let case = Case::of(dossier, name)?;
    let printed = paper.printed().iter().find(|[algorithm, ..]| *algorithm == name);
    // The first column is not printed: papers take mutual exclusion for granted.
    let words = printed.into_iter().flat_map(|[.., words]| words.split('|').map(Some));
    let words = std::iter::once(None).chain(words).chain(std::iter::repeat(None));
    let answers = paper.columns().iter().map(|(_, answer)| answer(&case));
    Some(Row {
        algorithm: name.to_owned(),
        called: printed.map(|[_, called, _]| *called),
        source: case.claims().source,
        cells: answers.zip(words).map(|(cell, printed)| Cell { printed, ..cell }).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Broken, Exploration, RmrPoint, Task};
    use super::*;
    use crate::Property;
    use crate::explore::Verdict;

    fn dossier(tasks: &[Task]) -> Dossier {
        Dossier::collect(tasks, &mut |_| {}).expect("the tasks are right")
    }

    fn cell<'a>(table: &'a Table, algorithm: &str, column: &str) -> &'a Cell {
        let column = table.columns.iter().position(|name| name.contains(column));
        let row = table.rows.iter().find(|row| row.algorithm == algorithm);
        &row.expect("the row is there").cells[column.expect("the column is there")]
    }

    #[test]
    fn what_was_not_measured_says_so() {
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier(&[]));
        assert_eq!(cell(&table, "handover", "Fairness").measured, "not measured");
        assert_eq!(cell(&table, "handover", "RMR in CC").measured, "not measured");
        assert_eq!(cell(&table, "handover", "Fairness").claimed, "FCFS, FIFE");
    }

    #[test]
    fn what_was_exhausted_says_how_far() {
        let dossier = dossier(&[Task::new("handover", 2, 1), Task::new("handover", 2, 2)]);
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let fairness = cell(&table, "handover", "Fairness");
        assert_eq!(fairness.measured, "holds");
        assert_eq!(fairness.how, "exhausted up to 2 × 2 (ideal inner lock)");
        assert_eq!(fairness.standing, Standing::Supported);
    }

    #[test]
    fn sizes_that_tell_different_things_are_all_told() {
        let dossier = dossier(&[
            Task::new("handover+dvir-taubenfeld-1-swap", 2, 2).passages(1),
            Task::new("handover", 2, 2),
            Task::new("handover", 2, 1),
            Task::new("handover", 3, 2).passages(1),
        ]);
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        assert_eq!(
            cell(&table, "handover", "Fairness").how,
            "exhausted up to 2 × 2, 1 passage each; 3 × 2, 1 passage each (ideal inner lock); \
             2 × 2 (ideal inner lock)"
        );
    }

    #[test]
    fn a_claim_that_an_exploration_refutes_says_so() {
        let mut dossier = dossier(&[Task::new("handover", 2, 2)]);
        let found: &mut Exploration = &mut dossier.explorations[0];
        (found.verdict, found.violated) = (Verdict::Violated, Some(Property::Fcfs));
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let fairness = cell(&table, "handover", "Fairness");
        assert_eq!(fairness.measured, "FCFS refuted; FIFE not measured");
        assert_eq!(fairness.standing, Standing::Refuted);
        assert_eq!(cell(&table, "handover", "exclusion").measured, "not measured");
    }

    #[test]
    fn a_claim_known_to_be_false_does_not_look_true_because_a_run_was_short() {
        let dossier = dossier(&[Task::new("maor-taubenfeld", 2, 1)]);
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let exclusion = cell(&table, "maor-taubenfeld", "exclusion");
        assert_eq!(exclusion.claimed, "yes, refuted");
        assert_eq!(exclusion.measured, "no violation so far");
        assert_eq!(exclusion.standing, Standing::Partly);
    }

    #[test]
    fn a_limit_is_never_told_as_a_proof() {
        let mut dossier = dossier(&[Task::new("handover", 2, 2)]);
        dossier.explorations[0].verdict = Verdict::Limit;
        let table = Table::measured(Paper::He, &dossier);
        assert_eq!(cell(&table, "handover", "P5").measured, "nothing found");
        assert_eq!(cell(&table, "handover", "Bounded").measured, "not measured");
    }

    fn counted(points: &[(usize, u64)], bound: Option<u64>) -> Dossier {
        let point = |&(processes, max): &(usize, u64)| RmrPoint {
            algorithm: "handover".to_owned(),
            model: "cc".to_owned(),
            processes,
            max,
            mean: 20.0,
            remote_spinning: false,
            bound,
        };
        Dossier { rmr: points.iter().map(point).collect(), ..dossier(&[]) }
    }

    #[test]
    fn counted_references_are_told_as_found_with_their_growth() {
        // The largest is not that of the most processes.
        let dossier = counted(&[(2, 22), (8, 29), (64, 28), (256, 28)], None);
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let rmr = cell(&table, "handover", "RMR in CC");
        assert_eq!(rmr.measured, "O(1), largest found 29");
        assert_eq!(rmr.how, "sampled to 256 processes");
        assert_eq!(cell(&table, "handover", "RMR in DSM").measured, "not measured");
    }

    #[test]
    fn only_a_proven_bound_is_told_as_at_most() {
        let dossier = counted(&[(2, 22), (8, 29)], Some(31));
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let rmr = cell(&table, "handover", "RMR in CC");
        assert_eq!(rmr.measured, "O(1), at most 31; largest found 29");
        assert_eq!(rmr.how, "proven for any number of processes; sampled to 8 processes");
        assert_eq!(rmr.standing, Standing::Supported);
    }

    #[test]
    fn a_lock_that_broke_has_no_figures_and_no_tick() {
        let mut dossier = counted(&[(2, 22), (64, 28)], Some(31));
        let (algorithm, because) = ("handover".to_owned(), "it stood still".to_owned());
        dossier.broken.push(Broken { algorithm, processes: 8, because });
        let table = Table::measured(Paper::MaorTaubenfeld, &dossier);
        let rmr = cell(&table, "handover", "RMR in CC");
        assert_eq!((&*rmr.measured, &*rmr.how), ("breaks with 8 processes", "it stood still"));
        assert_eq!(rmr.standing, Standing::Partly);
    }

    #[test]
    fn the_papers_words_stand_beside_ours() {
        let table = Table::measured(Paper::He, &dossier(&[]));
        assert_eq!(cell(&table, "keane-moir", "RMR").printed, Some("O(log N)"));
        assert_eq!(cell(&table, "handover", "RMR").printed, None);
    }

    #[test]
    fn every_line_of_the_markdown_has_as_many_cells() {
        let text = Table::measured(Paper::He, &dossier(&[])).to_markdown();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(lines.len() > 20);
        assert!(lines.iter().all(|line| line.matches('|').count() == 11), "{text}");
    }
}
