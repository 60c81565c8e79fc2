//! An execution again, from the record of who moved when.
//!
//! Processes keep their names here: a standard form depends on the order in which local states were found, and
//! that differs from one exploration to the next.

use super::canon::Renamed;
use super::checks;
use super::start::Start;
use super::stepper::Obstacle;
use super::traces::Told;
use super::{CheckError, Options, Outcome, Turn, Verdict, Violation, fits};
use crate::automaton::Trouble;
use crate::subject::Subject;

/// Repeats one execution: the verdict is `Violated` if it ends as a violation, else `Limit`, for nothing is
/// proved by that.
///
/// # Errors
/// If the sizes are out of range or the schedule asks for what cannot be done.
pub fn replay(
    subject: &Subject,
    options: &Options,
    schedule: &[Turn],
) -> Result<Outcome, CheckError> {
    fits(subject, options)?;
    let mut start = Start::of_a_walk(subject, options);
    let (stepper, initial) = (&mut start.steppers[0], start.initial.clone());
    let mut told = Told::new(stepper, subject, initial, Renamed::Nothing);
    let mut offered = Vec::new();
    let mut obstacle = None;
    for (i, &turn) in schedule.iter().enumerate() {
        let misfit = CheckError::Schedule { at: i + 1, process: turn.process.into() };
        stepper.choices(&told.state, &mut offered);
        if !offered.contains(&turn) {
            return Err(misfit);
        }
        match told.take(stepper, turn) {
            Ok(true) => {}
            Ok(false) => return Err(misfit),
            Err(found) => {
                obstacle = Some(found);
                break;
            }
        }
    }
    let properties = start.options.properties;
    let obstacle = obstacle.or_else(|| checks::check(stepper, &told.state, properties).err());
    let violation = obstacle.map(|obstacle| match obstacle {
        Obstacle::Fault(fault) => told.violation(stepper, &[], fault),
        Obstacle::Trouble(Trouble::Liveness(because)) => Violation::lie(because, schedule),
        Obstacle::Trouble(Trouble::Trespass) => unreachable!("nobody owns a register in a walk"),
    });
    let verdict = if violation.is_some() { Verdict::Violated } else { Verdict::Limit };
    let moves = schedule.len() as u64;
    Ok(start.outcome(verdict, moves + 1, moves, violation))
}
