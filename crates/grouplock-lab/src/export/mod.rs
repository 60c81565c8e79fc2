//! An algorithm as a model for another checker, which can confirm the explorer.
//!
//! The model contains the local automaton of a process (local states, the operation on a register
//! in each, and an edge for each value that can be observed), the first contents of memory, and
//! monitors and formulas for the properties. These are written for the other checker and share
//! nothing with [`check`](crate::check).
//!
//! The automaton is compiled from the code by running it. An exploration finds its edges. The model
//! does not rely on that: an edge that was not found is an assertion, which fails if a process
//! reaches it.

mod local_table;
mod promela;

use crate::explore::{CheckError, Options, Verdict, compile};
use crate::property::{Properties, Property};
use crate::subject::Subject;
use local_table::LocalTable;

/// The properties that can be exported.
pub const EXPORTED: [Property; 4] = [
    Property::MutualExclusion,
    Property::DeadlockFreedom,
    Property::StarvationFreedom,
    Property::Fcfs,
];

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The sizes are out of range.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// None of the requested properties can be exported.
    #[error("none of the requested properties can be exported, only {}", EXPORTED.map(Property::name).join(", "))]
    NoProperty,
    /// The order of arrival is requested for a text without a doorway.
    #[error("{0} has no doorway, so fcfs says nothing about it")]
    NoDoorway(&'static str),
    /// Infinite executions are requested, but passages are bounded.
    #[error("starvation-freedom says nothing if passages are bounded")]
    Bounded,
    /// Finding the edges takes more memory than allowed, or was stopped.
    #[error("a limit ended the search for the edges: allow more memory, or bound the passages")]
    Limit,
    /// The text is wrong about private variables, so there is no automaton.
    #[error("there is no automaton: {0}")]
    DeadPrivate(String),
    /// A register can hold a number that the model cannot.
    #[error("a register of the model cannot hold {0}")]
    Number(u64),
}

/// The claims of `subject` that can be exported.
pub fn claimed(subject: &Subject) -> Properties {
    Properties::claimed(&subject.claims).and(EXPORTED.into_iter().collect())
}

/// A Promela model of `subject` with those of `options.properties` that can be
/// [exported](EXPORTED). Its first lines say how to check it with Spin, and what remains to be
/// trusted.
///
/// ```
/// use grouplock_lab::{Options, Properties, Property, export, registry};
///
/// let subject = registry::find("clh").expect("it is registered");
/// let mut options = Options::new(&subject, 2, 1);
/// options.properties = Properties::only(Property::MutualExclusion);
/// let model = export::promela(&subject, &options)?;
/// assert!(model.contains("active [2] proctype process()"));
/// # Ok::<(), export::ExportError>(())
/// ```
///
/// # Errors
/// If the sizes are out of range, nothing can be exported, or the edges cannot all be found.
pub fn promela(subject: &Subject, options: &Options) -> Result<String, ExportError> {
    let properties = options.properties.and(EXPORTED.into_iter().collect());
    if properties == Properties::default() {
        return Err(ExportError::NoProperty);
    }
    if options.passages.is_some() && properties.contains(Property::StarvationFreedom) {
        return Err(ExportError::Bounded);
    }
    let (compiled, outcome) = compile(subject, options)?;
    match (outcome.violation, outcome.verdict) {
        (Some(violation), _) => return Err(ExportError::DeadPrivate(violation.because)),
        (None, Verdict::Limit) => return Err(ExportError::Limit),
        (None, _) => {}
    }
    let table = LocalTable::of(subject, options, &compiled);
    if properties.contains(Property::Fcfs) && !table.has_doorway() {
        return Err(ExportError::NoDoorway(subject.name));
    }
    promela::write(&table, properties)
}
