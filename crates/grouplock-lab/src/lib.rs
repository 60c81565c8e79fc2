//! The lab runs the locks of `grouplock-algorithms`, unchanged, on a simulated memory.
//!
//! [`check`] explores every interleaving of a few processes. It reports whether the properties that
//! a lock's paper claims hold. If a property does not hold, the report contains an execution that
//! violates it. If the execution ends in a wrong state, none has fewer choices.
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
//! # Modules
//! * [`memory`]: registers. Each access is a step that the explorer decides about.
//! * `automaton`: the code of a process, compiled into local states by running it again and again.
//! * `explore`: global states, which of them count as one, and the breadth-first search.
//! * [`property`]: what is checked. [`trace`]: how an execution is described.
//! * [`report`]: tables and a page of the results.
//! * [`export`]: the same automaton as a model for another checker.
//! * [`rmr`]: the cost of a passage in remote memory references.
//! * [`registry`]: the algorithms by name. [`ideal`], [`ideal_latch`]: locks that are correct by
//!   definition.

#[doc(hidden)]
pub mod automaton;
mod explore;
pub mod export;
pub mod ideal;
pub mod ideal_latch;
#[doc(hidden)]
pub mod layout;
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
    CheckError, MemoryModel, Move, Options, Outcome, Reductions, Sampling, Schedule, StepBound,
    Verdict, Violation, check, replay, sample,
};
#[doc(hidden)]
pub use explore::{bounds, canon, components, orders, state, visited, weak};
pub use property::{Properties, Property};
pub use subject::Subject;
