//! An execution again, from the record of who moved when.
//!
//! Processes keep their names here: a standard form depends on the order in which local states were found, and
//! that differs from one exploration to the next.

use super::canon::Renamed;
use super::checks;
use super::replay;
use super::start::Start;
use super::stepper::Obstacle;
use super::{CheckError, Options, Outcome, Turn, Verdict, Violation};
use crate::automaton::Trouble;
use crate::property::Property;
use crate::subject::Subject;

/// Repeats one execution, in real names throughout.
pub(super) fn repeat(
    subject: &Subject,
    options: &Options,
    schedule: &[Turn],
) -> Result<Outcome, CheckError> {
    let mut start = Start::of_a_walk(subject, options);
    let violation = match repeat_with(&mut start, subject, schedule)? {
        Ok(violation) => violation,
        Err(Trouble::Trespass) => unreachable!("nobody owns a register in a walk"),
        Err(Trouble::Liveness(because)) => Some(Violation {
            property: Property::DeadPrivate,
            because,
            trace: Vec::new(),
            schedule: schedule.to_vec(),
        }),
    };
    let verdict = if violation.is_some() { Verdict::Violated } else { Verdict::Limit };
    let moves = schedule.len() as u64;
    Ok(start.outcome(verdict, moves + 1, moves, violation))
}

/// The violation at the end of `schedule`, if there is one.
fn repeat_with(
    start: &mut Start,
    subject: &Subject,
    schedule: &[Turn],
) -> Result<Result<Option<Violation>, Trouble>, CheckError> {
    let (stepper, initial) = (&mut start.steppers[0], start.initial.clone());
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
    let told = replay::trace(stepper, subject, initial, Renamed::Nothing, &choices);
    if let Some(trouble) = told.trouble {
        return Ok(Err(trouble));
    }
    let fault = match told.fault {
        Some(fault) => Some(fault),
        None => match checks::check(stepper, &told.state, start.options.properties) {
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
