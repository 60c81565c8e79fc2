//! A paper's table, measured.

use std::fmt::Write as _;

use grouplock_algorithms::claims::Kind;
use serde::Serialize;

use super::case::{Case, plain};
use super::dossier::Dossier;
use super::paper::Paper;
use crate::trace::widths;

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The paper, by its name on the command line.
    pub paper: &'static str,
    /// The title of the table.
    pub title: &'static str,
    /// The headings.
    pub columns: Vec<&'static str>,
    /// The algorithms.
    pub rows: Vec<Row>,
    /// The rows of the paper's table whose algorithms the lab does not have.
    pub quoted: Vec<Quoted>,
    /// Notes for readers.
    pub notes: &'static [&'static str],
}

/// A row of a paper's table whose algorithm the lab does not have: nothing of it is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Quoted {
    /// The name in the paper's table.
    pub called: &'static str,
    /// The printed word of each column. The first is empty, because papers assume mutual exclusion.
    pub printed: Vec<&'static str>,
}

/// An algorithm's row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lab's name of the algorithm.
    pub algorithm: String,
    /// Its name in the paper's table, if the table has it.
    pub called: Option<&'static str>,
    /// Its publication.
    pub source: &'static str,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// The claim and the finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The word in the paper's table, if the table has the algorithm.
    pub printed: Option<&'static str>,
    /// What the algorithm's own source claims.
    pub claimed: String,
    /// The finding, or "not measured".
    pub measured: String,
    /// The method, and its range.
    pub how: String,
    /// How the claim and the finding agree.
    #[serde(rename = "standing")]
    pub support: Support,
}

/// How far a claim is supported, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// The measurement agrees with it.
    Supported,
    /// Nothing contradicts it so far.
    Partly,
    /// It was not measured.
    Unmeasured,
    /// It is false.
    Refuted,
}

impl Cell {
    pub(super) fn unmeasured(claimed: String) -> Self {
        let measured = "not measured".to_owned();
        let support = Support::Unmeasured;
        Cell { printed: None, claimed, measured, how: String::new(), support }
    }
}

impl Table {
    /// The table of `paper` for the group locks in `dossier`: first those that the paper lists,
    /// then the others.
    pub fn measured(paper: Paper, dossier: &Dossier) -> Self {
        let mut names: Vec<&str> = paper.printed.iter().map(|row| row[0]).collect();
        for algorithm in &dossier.algorithms {
            let name = plain(&algorithm.name);
            if algorithm.claims.kind == Kind::Group && !names.contains(&name) {
                names.push(name);
            }
        }
        Table {
            paper: paper.name,
            title: paper.title,
            columns: paper.columns.iter().map(|column| column.0).collect(),
            rows: names.iter().filter_map(|name| row(paper, dossier, name)).collect(),
            quoted: paper.quoted.iter().map(quoted).collect(),
            notes: paper.notes,
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
            // Names the authors if the algorithm could be confused with another.
            let ours = if row.source.starts_with("ours") { row.source } else { "" };
            line(ours.to_owned(), "measured", words(|cell| &cell.measured));
            line(String::new(), "how", words(|cell| &cell.how));
        }
        for Quoted { called, printed } in &self.quoted {
            let head = [format!("({called})"), "quoted, not here".to_owned()];
            lines.push(head.into_iter().chain(printed.iter().map(|&w| w.to_owned())).collect());
        }
        let widths = widths(&lines);
        let mut text = format!("## {}\n\n", self.title);
        for (i, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                _ = write!(text, "| {cell:<width$} ");
            }
            text.push_str("|\n");
            if i == 0 {
                let rule = widths.iter().map(|width| "-".repeat(width + 2));
                _ = writeln!(text, "|{}|", rule.collect::<Vec<_>>().join("|"));
            }
        }
        for note in self.notes {
            _ = write!(text, "\n{note}\n");
        }
        text
    }
}

fn quoted([called, words]: &[&'static str; 2]) -> Quoted {
    Quoted { called, printed: std::iter::once("").chain(words.split('|')).collect() }
}

fn row(paper: Paper, dossier: &Dossier, name: &str) -> Option<Row> {
    let case = Case::of(dossier, name)?;
    let printed = paper.printed.iter().find(|[algorithm, ..]| *algorithm == name);
    // The first column is not printed: papers assume mutual exclusion.
    let words = printed.into_iter().flat_map(|[.., words]| words.split('|').map(Some));
    let words = std::iter::once(None).chain(words).chain(std::iter::repeat(None));
    // Nothing is supported for a lock that breaks at another size.
    let most = if case.breaks().is_some() { Support::Partly } else { Support::Supported };
    let answers = paper.columns.iter().map(|(_, answer)| answer(&case));
    let answers = answers.map(|cell| Cell { support: cell.support.max(most), ..cell });
    Some(Row {
        algorithm: name.to_owned(),
        called: printed.map(|[_, called, _]| *called),
        source: case.claims().source,
        cells: answers.zip(words).map(|(cell, printed)| Cell { printed, ..cell }).collect(),
    })
}
