//! The most expensive passage, step by step.

use std::fmt::Write as _;

use grouplock_algorithms::claims::{Claims, Kind};
use grouplock_algorithms::memory::{Home, Site, Word};
use serde::Serialize;

use super::model::Model;
use super::run;
use super::survey::survey;
use super::tally::{CountedAccess, Passage};
use super::{Options, RmrError, find};
use crate::layout::object_at;
use crate::memory::context::{Blueprint, Operation};
use crate::registry;
use crate::subject::Subject;

/// A passage and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct WorstPassage {
    /// The lock.
    pub algorithm: String,
    /// The model that counts its cost.
    pub model: Model,
    /// How many processes there were.
    pub processes: usize,
    /// The process whose passage it is, from zero.
    pub process: usize,
    /// The session that it requested; `None` if the lock has none.
    pub session: Option<u64>,
    /// The schedule of the run.
    pub schedule: String,
    /// The remote references.
    pub cost: u64,
    /// The accesses of the process, in order.
    pub accesses: Vec<AccessTold>,
    /// How many further accesses were left out because there are too many.
    pub left_out: u64,
}

/// One access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessTold {
    /// The register, by the paper's name for it.
    pub register: String,
    /// What was done, such as `read`, `write` or `compare-and-swap`.
    pub operation: &'static str,
    /// The previous value of the register.
    pub held: String,
    /// The new value, if the access wrote it.
    pub written: Option<String>,
    /// Whether it is a remote reference.
    pub remote: bool,
    /// The algorithm that contains this line: the lock itself or a lock inside it.
    pub text: &'static str,
    /// The line of the program.
    pub line: u32,
    /// The paper's number for that line, if the program gives it.
    pub paper_line: Option<&'static str>,
}

/// Finds the most expensive passage as [`measure`](super::measure) does, and describes its
/// accesses.
///
/// # Errors
/// As [`measure`](super::measure).
pub fn worst_passage(
    name: &str,
    processes: usize,
    model: Model,
    options: &Options,
) -> Result<WorstPassage, RmrError> {
    let lock = find(name, processes, options)?;
    let survey = survey(&lock, processes, options)?;
    let worst = survey.worst(model);
    let Passage { process, session, number, .. } = worst.passage;
    let (tally, made) = run::run(&lock, processes, &worst.case, Some((process, number)))?;
    let accesses = tally.story.iter().map(|step| told(&lock, &made, model, step)).collect();
    Ok(WorstPassage {
        algorithm: lock.name.to_owned(),
        model,
        processes,
        process,
        session: (lock.claims.kind == Kind::Group).then_some(session),
        schedule: worst.case.name(lock.claims.kind, processes),
        cost: worst.cost,
        accesses,
        left_out: tally.left_out,
    })
}

fn told(lock: &Subject, made: &Blueprint, model: Model, step: &CountedAccess) -> AccessTold {
    let at = step.access.at;
    // An inner lock has its own text.
    let mut texts =
        std::iter::once(lock.claims).chain(registry::measured().into_iter().map(|l| l.claims));
    let of = |claims: &Claims| claims.text.files().find(|text| text.file == at.file());
    let (claims, text) = texts
        .find_map(|claims| of(&claims).map(|text| (claims, text)))
        .unwrap_or((lock.claims, lock.claims.text));
    AccessTold {
        register: register(&made.registers[step.access.register].site),
        operation: match step.access.operation {
            Operation::Write(_) => "write",
            Operation::Fas(_) => "fetch-and-store",
            Operation::Cas(..) | Operation::AwaitCas(..) => "compare-and-swap",
            Operation::Faa(..) => "fetch-and-add",
            _ => "read",
        },
        held: word(step.held, made),
        written: step.written.map(|written| word(written, made)),
        remote: step.counts[model.index()],
        text: claims.name,
        line: at.line(),
        paper_line: text.paper_line(at.line()),
    }
}

fn register(site: &Site) -> String {
    let mut name = site.name.to_owned();
    match (site.index, site.home) {
        (Some(index), _) => _ = write!(name, "[{index}]"),
        (None, Home::Process(p)) => _ = write!(name, " of {p}"),
        (None, Home::Shared) => {}
    }
    name
}

/// Addresses differ from run to run. The order in which objects were created does not.
fn word(word: Word, made: &Blueprint) -> String {
    match word {
        Word::Number(number) => number.to_string(),
        Word::Pointer(pointer) => match pointer.addr() {
            0 => "NIL".to_owned(),
            mark @ (1 | 2) => format!("MARK_{mark}"),
            address => match object_at(address, made) {
                Some(number) => format!("object {number}"),
                None => "elsewhere".to_owned(),
            },
        },
    }
}
