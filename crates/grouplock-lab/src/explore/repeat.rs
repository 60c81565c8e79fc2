//! An execution again, from the record of who moved when.
//!
//! Processes keep their names here: a standard form depends on the order in which local states were found, and
//! that differs from one exploration to the next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashSet;

use super::canon::Renamed;
use super::checks;
use super::replay;
use super::state::State;
use super::stepper::{Obstacle, Stepper};
use super::{CheckError, Options, Outcome, Turn, Verdict, Violation};
use crate::automaton::{Automaton, Trouble};
use crate::property::{Properties, Property};
use crate::subject::Subject;

/// Repeats one execution, in real names throughout.
pub(super) fn repeat(
    subject: &Subject,
    options: &Options,
    schedule: &[Turn],
) -> Result<Outcome, CheckError> {
    let began = Instant::now();
    let mut options = options.clone();
    options.reductions.own = false;
    let mut telling = FxHashSet::default();
    loop {
        let (automaton, first) = Automaton::new(subject, options.processes, telling.clone());
        let mut initial = State::first(&automaton.layout, &first, options.reductions.forget);
        let automaton = Arc::new(Mutex::new(automaton));
        let mut stepper = Stepper::new(&automaton, subject, &options);
        let settled = stepper.settle(&mut initial, &mut None);
        debug_assert!(settled.is_ok(), "an idle process takes no step");
        let result = repeat_with(&mut stepper, subject, &options, initial, schedule)?;
        let automaton = automaton.lock().unwrap_or_else(PoisonError::into_inner);
        let violation = match result {
            Ok(violation) => violation,
            Err(Trouble::Refine | Trouble::Trespass) => {
                telling.clone_from(automaton.telling());
                continue;
            }
            Err(Trouble::Liveness(because)) => Some(Violation {
                property: Property::DeadPrivate,
                because,
                trace: Vec::new(),
                schedule: schedule.to_vec(),
            }),
        };
        let (runs, local_states) = automaton.size();
        return Ok(Outcome {
            verdict: if violation.is_some() { Verdict::Violated } else { Verdict::Limit },
            states: schedule.len() as u64 + 1,
            depth: schedule.len() as u64,
            violation,
            looked_at: Properties::default(),
            in_part: Properties::default(),
            bounds: Vec::new(),
            local_states: local_states as u64,
            runs,
            elapsed: began.elapsed(),
        });
    }
}

/// The violation at the end of `schedule`, if there is one.
fn repeat_with(
    stepper: &mut Stepper,
    subject: &Subject,
    options: &Options,
    initial: State,
    schedule: &[Turn],
) -> Result<Result<Option<Violation>, Trouble>, CheckError> {
    let mut choices = Vec::with_capacity(schedule.len());
    let mut offered = Vec::new();
    let mut state = initial.clone();
    for (i, turn) in schedule.iter().enumerate() {
        let misfit = CheckError::Schedule { at: i + 1, process: turn.process };
        stepper.choices(&state, &mut offered);
        let wanted = offered.iter().find(|choice| {
            usize::from(choice.process) == turn.process && u64::from(choice.session) == turn.session
        });
        let choice = *wanted.ok_or_else(|| misfit.clone())?;
        choices.push(choice);
        match stepper.take(&mut state, choice, &mut None) {
            Ok(true) => {}
            Ok(false) => return Err(misfit),
            Err(Obstacle::Fault(_)) => break,
            Err(Obstacle::Trouble(trouble)) => return Ok(Err(trouble)),
        }
    }
    let told = match replay::trace(stepper, subject, initial, Renamed::Nothing, &choices) {
        Ok(told) => told,
        Err(trouble) => return Ok(Err(trouble)),
    };
    let fault = match told.fault {
        Some(fault) => Some(fault),
        None => match checks::check(stepper, &told.state, options.properties) {
            Ok(fault) => fault,
            Err(Obstacle::Fault(fault)) => Some(fault),
            Err(Obstacle::Trouble(trouble)) => return Ok(Err(trouble)),
        },
    };
    Ok(Ok(fault.map(|fault| Violation {
        property: fault.property,
        because: fault.because,
        trace: told.steps,
        schedule: told.schedule,
    })))
}
