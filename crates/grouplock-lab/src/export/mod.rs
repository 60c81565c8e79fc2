//! An algorithm as a model for another checker, so that nobody has to trust the explorer.
//!
//! What is exported is the local automaton of a process (local states, the operation on a register in each, and an edge for each
//! value that can be observed), the first contents of memory, and monitors and formulas for the properties, which are
//! written for the other checker and share nothing with [`check`](crate::check).
//!
//! The automaton is compiled from the code by running it. Which edges there are is known from an exploration, and is not
//! believed: an edge that was not met is an assertion in the model, which fails if anybody comes to it.

mod promela;
mod table;

use crate::explore::compile::{Unfinished, compile};
use crate::explore::{CheckError, Options};
use crate::property::{Properties, Property};
use crate::subject::Subject;
use table::Table;

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
    /// None of the properties asked for can be exported.
    #[error("nothing that was asked for can be exported: that takes {}", exported())]
    NoProperty,
    /// Who comes first is asked for where no doorway ends.
    #[error("{0} has no doorway, so that fcfs says nothing of it")]
    NoDoorway(&'static str),
    /// Executions without end are asked for where passages are bounded.
    #[error("starvation-freedom says nothing where passages are bounded")]
    Bounded,
    /// Finding the edges takes more memory than allowed, or was stopped.
    #[error(
        "the edges were not all found before a limit: allow more memory, or bound the passages"
    )]
    Limit,
    /// The text's word on private variables is wrong, so that there is no automaton.
    #[error("there is no automaton: {0}")]
    DeadPrivate(String),
    /// A register can hold a number that the model cannot.
    #[error("a register of the model cannot hold {0}")]
    Number(u64),
}

fn exported() -> String {
    EXPORTED.map(Property::name).join(", ")
}

/// Those of the claims of `subject` that can be exported.
pub fn claimed(subject: &Subject) -> Properties {
    Properties::claimed(&subject.claims).and(EXPORTED.into_iter().collect())
}

/// A Promela model of `subject` with those of `options.properties` that can be [exported](EXPORTED). Its first lines say how to
/// check it with Spin, and what remains to be trusted.
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
    let compiled = compile(subject, options)?.map_err(|unfinished| match unfinished {
        Unfinished::Limit => ExportError::Limit,
        Unfinished::Lie(because) => ExportError::DeadPrivate(because),
    })?;
    let table = Table::of(subject, options, &compiled);
    if properties.contains(Property::Fcfs) && !table.has_doorway() {
        return Err(ExportError::NoDoorway(subject.name));
    }
    promela::write(&table, properties)
}
