//! Properties of an execution, from any source.
//!
//! An execution is a sequence of [`Event`]s: a process requests, finishes its doorway, enters,
//! leaves. A [`Property`] reads the sequence and rejects the first event that violates it. Monitors
//! are plain values without clocks or threads. So an explorer can keep one in its states, a
//! simulation can feed it, and a test on real threads can replay the recorded events. The last of
//! these is ready to use:
//!
//! ```
//! use grouplock_algorithms::{handover::Handover, monitor::{Watched, Workout}};
//!
//! let workout = Workout { threads: 4, sessions: 2, passages: 100, ..Workout::default() };
//! let report = workout.group::<Handover<Watched>>()?;
//! assert_eq!(report.entries, 400);
//! # Ok::<(), grouplock_algorithms::monitor::Violation>(())
//! ```

mod concurrency;
mod exclusion;
mod precedence;
mod watched;
mod workout;

use core::fmt;

pub use concurrency::Concurrency;
pub use exclusion::Exclusion;
pub use precedence::{Fcfs, LeftBehind, Precedence};
pub use watched::{Journal, Watched, now};
pub use workout::{Report, Workout};

/// What a process does, as a property sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Starts its entry section, for this session.
    Request(u64),
    /// Has finished its doorway.
    DoorwayEnd,
    /// Is in the critical section.
    Enter,
    /// Starts its exit section.
    Leave,
    /// Is in the remainder section again.
    Done,
}

/// The element of `process`, which is made if it is missing.
fn of<T: Clone + Default>(all: &mut Vec<T>, process: usize) -> &mut T {
    if all.len() <= process {
        all.resize(process + 1, T::default());
    }
    &mut all[process]
}

/// A statement that should be true of every execution.
pub trait Property {
    /// Reads the next event of the execution.
    ///
    /// # Errors
    /// The event breaks the property.
    fn observe(&mut self, process: usize, event: Event) -> Result<(), Violation>;

    /// The execution is over.
    ///
    /// # Errors
    /// It should not have ended like this.
    fn finish(&self) -> Result<(), Violation> {
        Ok(())
    }
}

/// How an execution broke a property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    /// The property's name.
    pub property: &'static str,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what)
    }
}

/// The largest number of processes of a [`Precedence`], one bit each.
pub const MOST_PROCESSES: usize = 64;
