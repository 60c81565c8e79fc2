//! The local automaton of an algorithm, with every edge that a reachable state needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::canon::standard;
use super::frontier::Frontier;
use super::start::{Compiled, Start};
use super::stepper::Obstacle;
use super::{CheckError, Options, Trespass, attempt, fits};
use crate::automaton::Trouble;
use crate::property::Properties;
use crate::subject::Subject;

/// Why not every edge was found.
pub(crate) enum Unfinished {
    /// The search needed more memory than allowed, or was stopped from outside.
    Limit,
    /// The text is wrong about private variables, so there is no automaton.
    Liveness(String),
}

/// Visits every reachable state once and checks no property, so that a violation does not end it.
/// It ignores what the text says about dead registers: a mutation may make that false.
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
    let compiled = Compiled::new(subject, &options);
    let walked = attempt(&options, |options| walk(subject, options, &compiled));
    Ok(walked.map(|()| compiled))
}

fn walk(
    subject: &Subject,
    options: &Options,
    compiled: &Compiled,
) -> Result<Result<(), Unfinished>, Trespass> {
    let Start { options, renamed, initial, mut steppers, .. } =
        Start::new(subject, options, compiled);
    let stepper = &mut steppers[0];
    let layout = Arc::clone(&stepper.layout);
    let mut frontier = Frontier::new(&initial);
    let mut choices = Vec::new();
    let mut expanded = 0_u64;
    while let Some(state) = frontier.take(layout.registers.len()) {
        if expanded.is_multiple_of(1024) {
            let held = frontier.bytes(0) + stepper.bytes(1);
            if held > options.memory_limit || options.stop.load(Ordering::Relaxed) {
                return Ok(Err(Unfinished::Limit));
            }
            (options.progress)(&format!("{} states", frontier.count()));
        }
        expanded += 1;
        stepper.choices(&state, &mut choices);
        for &choice in &choices {
            let mut successor = state.clone();
            match stepper.take(&mut successor, choice) {
                Ok(_) => {}
                // A panic: the execution ends, and the edge says so.
                Err(Obstacle::Fault(_)) => continue,
                Err(Obstacle::Trouble(Trouble::Trespass)) => return Err(Trespass),
                Err(Obstacle::Trouble(Trouble::Liveness(because))) => {
                    return Ok(Err(Unfinished::Liveness(because)));
                }
            }
            frontier.add(&standard(successor, &layout, renamed));
        }
    }
    Ok(Ok(()))
}
