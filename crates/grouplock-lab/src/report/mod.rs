//! The results of the lab, as tables and as a page.
//!
//! * [`dossier`]: all results about some algorithms, as data. [`plan`] says what to explore for it.
//! * [`paper`]: the tables that two papers print, in their words. [`table`]: the same tables,
//!   measured.
//! * [`pages`]: the tables of the pages, made from a dossier in a file.
//! * [`html`]: one page with the tables, plots, and counterexamples that can be played.
//!
//! ```
//! use grouplock_lab::report::{Dossier, Paper, Table, html, plan::Task};
//!
//! let tasks = [Task::new("handover", 2, 2), Task::new("petrovic", 2, 2).passages(1)];
//! let dossier = Dossier::collect(&tasks, &mut |_, _| {})?;
//! let table = Table::measured(Paper::MAOR_TAUBENFELD, &dossier);
//! assert!(table.to_markdown().contains("exhausted up to 2 × 2"));
//! assert!(html::page(&dossier).starts_with("<!doctype html>"));
//! # Ok::<(), grouplock_lab::report::CollectError>(())
//! ```

mod case;
pub mod dossier;
pub mod html;
pub mod pages;
pub mod paper;
pub mod plan;
pub mod table;

pub use dossier::{Algorithm, Broken, CollectError, Dossier, Exploration, Mutant};
pub use paper::Paper;
pub use plan::{Plan, Task};
pub use table::{Cell, Quoted, Row, Support, Table};

/// A number with separated thousands.
fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(&separator.to_string())
}
