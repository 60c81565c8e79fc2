//! The lab: locks of `grouplock-algorithms`, unchanged, on a simulated memory.
//!
//! [`check`] explores every interleaving of a few processes and tells whether the properties that a lock's paper
//! claims hold; if one does not, with an execution that shows it, and a shortest one if it ends in a wrong state.
//!
//! ```
//! use grouplock_lab::{Options, Verdict, check, registry};
//!
//! let subject = registry::find("handover").expect("it is registered");
//! let outcome = check(&subject, &Options::new(&subject, 2, 2))?;
//! assert_eq!(outcome.verdict, Verdict::Holds);
//! # Ok::<(), grouplock_lab::CheckError>(())
//! ```
//!
//! # How it works
//! * [`memory`]: registers whose every access is a step that the explorer decides.
//! * `automaton`: the code of a process, compiled into local states by running it again and again.
//! * `explore`: global states, what counts as the same one, and the breadth-first search.
//! * [`property`]: what is checked. [`trace`]: how an execution is told.
//! * [`report`]: tables and a page of what was found.
//! * [`export`]: the same automaton as a model for another checker.
//! * [`rmr`]: what a passage costs in remote memory references.
//! * [`registry`]: the algorithms by name. [`ideal`], [`ideal_latch`]: locks that are correct by definition.

mod automaton;
mod explore;
pub mod export;
pub mod ideal;
pub mod ideal_latch;
mod layout;
#[doc(hidden)]
pub mod local;
pub mod memory;
pub mod property;
pub mod registry;
pub mod report;
pub mod rmr;
mod subject;
#[doc(hidden)]
pub mod tokens;
pub mod trace;
mod two_locks;
#[doc(hidden)]
pub mod value;

pub use explore::{
    CheckError, MemoryModel, Options, Outcome, Reductions, Sampling, Schedule, StepBound, Turn,
    Verdict, Violation, check, replay, sample,
};
#[doc(hidden)]
pub use explore::{bounds, canon, components, orders, state, visited, weak};
pub use property::{Properties, Property};
pub use subject::Subject;
