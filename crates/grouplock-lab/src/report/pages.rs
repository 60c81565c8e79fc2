//! The tables of the pages, made from the evidence.
//!
//! A page has a line `<!-- evidence: TABLE NAME… -->`, then the table, then a line
//! `<!-- end of evidence -->`. [`fill`] replaces the text between the two lines.
//!
//! | table | shows |
//! |---|---|
//! | `claims NAME` | what the source of one algorithm claims |
//! | `explored NAME…` | every exploration of these algorithms, or of all if none is named |
//! | `properties NAME…` | for each property, how far it was checked |
//! | `references NAME…` | remote memory references: the largest found, and the proven bound |
//! | `mutants NAME…` | the mutants of these texts, or all |

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use grouplock_algorithms::claims::{Claim, Kind};

use super::case::{hardware, plain};
use super::dossier::{Algorithm, Dossier, size};
use super::grouped;
use crate::explore::Verdict;
use crate::property::{Properties, Property};
use crate::rmr::Model;

const OPEN: &str = "<!-- evidence: ";
const CLOSE: &str = "<!-- end of evidence -->";

/// Why a page cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A table begins and does not end.
    #[error("line {0}: a table begins here, and no line `{CLOSE}` ends it")]
    Endless(usize),
    /// This line names a table that does not exist.
    #[error(
        "line {0}: {1:?} is no table: expected claims, explored, properties, references or mutants"
    )]
    Unknown(usize, String),
    /// The evidence has nothing for this line.
    #[error("line {0}: the evidence has nothing for {1:?}")]
    Nothing(usize, String),
}

/// The page with new tables.
///
/// # Errors
/// If a table has no end, is not known, or would be empty.
pub fn fill(page: &str, evidence: &Dossier) -> Result<String, PageError> {
    let mut filled = String::new();
    let mut lines = page.split_inclusive('\n').enumerate();
    while let Some((i, line)) = lines.next() {
        filled.push_str(line);
        let asked = line.trim().strip_prefix(OPEN).and_then(|rest| rest.strip_suffix("-->"));
        let Some(asked) = asked.map(str::trim) else { continue };
        let number = i + 1;
        let mut words = asked.split_whitespace();
        let what = words.next().unwrap_or_default();
        let names: Vec<&str> = words.collect();
        let table = match what {
            "claims" => claims(evidence, &names),
            "explored" => explored(evidence, &names),
            "properties" => properties(evidence, &names),
            "references" => references(evidence, &names),
            "mutants" => mutants(evidence, &names),
            _ => return Err(PageError::Unknown(number, asked.to_owned())),
        };
        let table = table.ok_or_else(|| PageError::Nothing(number, asked.to_owned()))?;
        filled.push_str(&table);
        let end = lines.find(|(_, line)| line.trim() == CLOSE).ok_or(PageError::Endless(number))?;
        filled.push_str(end.1);
    }
    Ok(filled)
}

/// A table in Markdown; nothing if it has no rows.
fn markdown(head: &[impl Borrow<str>], rows: &[Vec<String>]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        _ = writeln!(text, "| {} |", row.join(" | "));
    }
    Some(text)
}

/// Whether `algorithm` is one of `names`, with any lock inside; all are if there are no names.
pub fn is_named(algorithm: &str, names: &[impl AsRef<str>]) -> bool {
    let known = [algorithm, plain(algorithm)];
    names.is_empty() || names.iter().any(|name| known.contains(&name.as_ref()))
}

/// What the source of the one named algorithm claims, two claims a row.
fn claims(evidence: &Dossier, names: &[&str]) -> Option<String> {
    // If an algorithm uses another lock, the variant that ships counts.
    let named = evidence.algorithms.iter().filter(|a| is_named(&a.name, names));
    let claims = named.max_by_key(|algorithm| algorithm.name.len())?.claims;
    let kind = if claims.kind == Kind::Group { "group" } else { "mutual" };
    let mut cells = vec![["Kind".to_owned(), kind.to_owned()]];
    for property in Property::CLAIMABLE {
        let claim = match property.claim(&claims) {
            Claim::NotApplicable => continue,
            Claim::Refuted(_) => "**claimed, refuted**".to_owned(),
            other => other.to_string(),
        };
        cells.push([title(property), claim]);
    }
    cells.extend([
        ["RMR per passage, CC".to_owned(), claims.rmr_cc.to_string()],
        ["RMR per passage, DSM".to_owned(), claims.rmr_dsm.to_string()],
        ["Shared space".to_owned(), claims.space.to_string()],
        ["Steps beyond read and write".to_owned(), hardware(claims.primitives)],
        ["Processes".to_owned(), claims.processes.to_string()],
    ]);
    if claims.kind == Kind::Group {
        cells.push(["Sessions".to_owned(), claims.sessions.to_string()]);
    }
    let half = cells.len().div_ceil(2);
    cells.resize(2 * half, Default::default());
    let (left, right) = cells.split_at(half);
    let rows = left.iter().zip(right).map(|(left, right)| [left.clone(), right.clone()].concat());
    let rows: Vec<_> = rows.collect();
    markdown(&["property", "claim", "property", "claim"], &rows)
}

/// The name of a property as a title.
fn title(property: Property) -> String {
    let name = property.name().replace('-', " ");
    if matches!(property, Property::Fcfs | Property::Fife) {
        return name.to_uppercase();
    }
    name[..1].to_uppercase() + &name[1..]
}

fn explored(evidence: &Dossier, names: &[&str]) -> Option<String> {
    let about = evidence.explorations.iter().filter(|e| is_named(&e.algorithm, names));
    let rows: Vec<_> = about
        .map(|exploration| {
            let algorithm = evidence.algorithm(&exploration.algorithm);
            let left = algorithm
                .map(|a| exploration.properties.missing(&a.claims, None))
                .unwrap_or_default();
            let verdict = match exploration.verdict {
                Verdict::Holds if exploration.only.is_some() => "holds".to_owned(),
                Verdict::Holds if left == Properties::default() => "all claims hold".to_owned(),
                Verdict::Holds => format!("holds{}", exploration.in_part.tell_missing(left)),
                Verdict::Limit => "no end within its limits; nothing was found".to_owned(),
                Verdict::Violated => {
                    let property = exploration.violated.map_or("?", Property::name);
                    format!("**{property} violated**, in {} steps", exploration.trace.len())
                }
            };
            let mut size = exploration.size(evidence.is_mutex(&exploration.algorithm));
            if let Some(only) = exploration.only {
                _ = write!(size, ", `--property {only}`");
            }
            vec![
                format!("`{}`", exploration.algorithm),
                size,
                grouped(exploration.states, ','),
                format!("{:.0}", exploration.seconds),
                verdict,
            ]
        })
        .collect();
    markdown(&["lock", "size", "states", "seconds", "verdict"], &rows)
}

/// For each algorithm and property: exhausted up to a size, found false, not claimed or not
/// checked.
fn properties(evidence: &Dossier, names: &[&str]) -> Option<String> {
    let algorithms: Vec<&Algorithm> = evidence
        .algorithms
        .iter()
        .filter(|a| is_named(&a.name, names))
        .filter(|a| evidence.explorations.iter().any(|e| e.algorithm == a.name))
        .collect();
    let mut head = vec!["property".to_owned()];
    head.extend(algorithms.iter().map(|algorithm| format!("`{}`", algorithm.name)));
    let rows = Property::CLAIMABLE.map(|property| {
        let cells = algorithms.iter().map(|algorithm| checked_up_to(evidence, algorithm, property));
        [property.name().to_owned()].into_iter().chain(cells).collect()
    });
    if algorithms.is_empty() { None } else { markdown(&head, &rows) }
}

fn checked_up_to(evidence: &Dossier, algorithm: &Algorithm, property: Property) -> String {
    let about = || {
        let all = evidence.explorations.iter();
        all.filter(|e| e.algorithm == algorithm.name && e.properties.contains(property))
    };
    let is_mutex = algorithm.claims.kind == Kind::Mutual;
    let refuted = about().find(|e| e.violated == Some(property));
    if let Some(refuted) = refuted {
        return format!("**false** at {}", refuted.size(is_mutex));
    }
    let held = about().filter(|e| e.verdict == Verdict::Holds);
    let furthest =
        held.max_by_key(|e| (e.processes, e.passages.unwrap_or(u8::MAX), e.sessions, e.states));
    match (furthest, property.claim(&algorithm.claims)) {
        (Some(furthest), _) => furthest.size(is_mutex),
        (None, Claim::NotApplicable) => String::new(),
        (None, Claim::No) => "–".to_owned(),
        (None, _) => "not checked".to_owned(),
    }
}

fn references(evidence: &Dossier, names: &[&str]) -> Option<String> {
    let sizes: BTreeSet<usize> = evidence.rmr.iter().map(|point| point.processes).collect();
    let mut head = vec!["lock".to_owned(), "model".to_owned()];
    head.extend(sizes.iter().map(|size| format!("{size} processes")));
    head.push("proven for any number".to_owned());
    let mut rows = Vec::new();
    for algorithm in evidence.algorithms.iter().filter(|a| is_named(&a.name, names)) {
        for model in [Model::Cc, Model::Dsm] {
            let of = |&size: &usize| evidence.counted(&algorithm.name, model, size);
            if !sizes.iter().any(|size| of(size).is_some()) {
                continue;
            }
            let mut row = vec![format!("`{}`", algorithm.name), model.name().to_uppercase()];
            row.extend(sizes.iter().map(|size| match of(size) {
                Some(point) if point.remote_spinning => "∞".to_owned(),
                Some(point) => {
                    let mean = point.amortised.map(|mean| format!(" ({mean:.1})"));
                    grouped(point.max, ',') + &mean.unwrap_or_default()
                }
                None if evidence.breaks(&algorithm.name, *size) => "breaks".to_owned(),
                None => String::new(),
            }));
            let bound = sizes.iter().find_map(|size| of(size)?.bound);
            row.push(bound.map_or_else(String::new, |bound| bound.to_string()));
            rows.push(row);
        }
    }
    markdown(&head, &rows)
}

fn mutants(evidence: &Dossier, names: &[&str]) -> Option<String> {
    let about = evidence.mutants.iter().filter(|mutant| is_named(&mutant.of, names));
    let rows: Vec<_> = about
        .map(|mutant| {
            let breaks = mutant.property.map_or("**nothing** (exhausted)", Property::name);
            let size = size(mutant.processes, mutant.sessions, mutant.sessions == 1);
            let steps =
                if mutant.property.is_some() { mutant.steps.to_string() } else { String::new() };
            vec![
                format!("{}: {}", mutant.of, mutant.what),
                size,
                breaks.to_owned(),
                grouped(mutant.states, ','),
                steps,
            ]
        })
        .collect();
    markdown(&["what is wrong", "size", "breaks", "states", "steps"], &rows)
}
