//! The local automaton of an algorithm, as far as any reachable state needs it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::canon::{Renamed, canonical};
use super::start::Start;
use super::state::State;
use super::stepper::Obstacle;
use super::visited::{Visited, fingerprint};
use super::{CheckError, Options, Trespass, attempt, fits};
use crate::automaton::{Automaton, LocalId, Trouble};
use crate::property::Properties;
use crate::subject::Subject;

/// An automaton with every edge that was met.
pub(crate) struct Compiled {
    pub(crate) automaton: Arc<Mutex<Automaton>>,
    /// Each process's first local state, and the objects that it knows there.
    pub(crate) first: Vec<(LocalId, Vec<usize>)>,
}

/// Why not every edge was met.
pub(crate) enum Unfinished {
    /// It would have taken more memory than allowed, or somebody asked for an end.
    Limit,
    /// The text's word on private variables is wrong, so that there is no automaton.
    Lie(String),
}

/// Visits every reachable state once and looks at no property, so that a violation ends nothing. The text is not believed on
/// dead registers: a mutation may make that word false.
///
/// # Errors
/// If the sizes are out of range.
pub(crate) fn compile(
    subject: &Subject,
    options: &Options,
) -> Result<Result<Compiled, Unfinished>, CheckError> {
    fits(subject, options)?;
    let mut options = Options { workers: 1, properties: Properties::default(), ..options.clone() };
    options.reductions.forget = false;
    Ok(attempt(&options, |options| walk(subject, options)))
}

fn walk(subject: &Subject, options: &Options) -> Result<Result<Compiled, Unfinished>, Trespass> {
    let Start { automaton, first, options, renamed, initial, mut steppers, .. } =
        Start::new(subject, options);
    let stepper = &mut steppers[0];
    let layout = Arc::clone(&stepper.layout);
    let visited = Visited::default();
    let mut rows: VecDeque<Vec<u32>> = VecDeque::new();
    let mut row = Vec::new();
    initial.pack(&mut row);
    visited.insert(fingerprint(&row));
    rows.push_back(row.clone());
    let mut choices = Vec::new();
    let mut expanded = 0_u64;
    while let Some(here) = rows.pop_front() {
        if expanded.is_multiple_of(1024) {
            let waiting = (rows.len() * (here.len() * 4 + 24)) as u64;
            let held = visited.bytes() + waiting + stepper.bytes(1);
            if held > options.memory_limit || options.stop.load(Ordering::Relaxed) {
                return Ok(Err(Unfinished::Limit));
            }
            (options.progress)(&format!("{} states", visited.count()));
        }
        expanded += 1;
        let state = State::unpack(&here, layout.registers.len());
        stepper.choices(&state, &mut choices);
        for &choice in &choices {
            let mut successor = state.clone();
            match stepper.take(&mut successor, choice) {
                Ok(_) => {}
                // A panic: nobody gets further, and the edge says so.
                Err(Obstacle::Fault(_)) => continue,
                Err(Obstacle::Trouble(Trouble::Trespass)) => return Err(Trespass),
                Err(Obstacle::Trouble(Trouble::Liveness(because))) => {
                    return Ok(Err(Unfinished::Lie(because)));
                }
            }
            if renamed != Renamed::Nothing {
                successor = canonical(&successor, &layout, renamed).0;
            }
            successor.pack(&mut row);
            if visited.insert(fingerprint(&row)) {
                rows.push_back(row.clone());
            }
        }
    }
    Ok(Ok(Compiled { automaton, first }))
}
