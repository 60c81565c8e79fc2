//! Properties of a single state.

use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use crate::automaton::run::Phase;
use crate::property::{Properties, Property};

/// Checks what can be said of `state` by itself.
pub(crate) fn check(
    stepper: &mut Stepper,
    state: &State,
    properties: Properties,
) -> Result<Option<Fault>, Obstacle> {
    let mut phases = Vec::with_capacity(state.procs.len());
    for p in 0..state.procs.len() {
        phases.push(stepper.phase(state, p));
    }
    let stuck = |stepper: &mut Stepper, but: Phase| -> Result<bool, Obstacle> {
        // Most states have somebody who does not wait at all, and that is quickly seen.
        for (p, &phase) in phases.iter().enumerate() {
            if phase != Phase::Remainder && phase != but && !stepper.may_wait(state, p) {
                return Ok(false);
            }
        }
        for (p, &phase) in phases.iter().enumerate() {
            if phase != Phase::Remainder && phase != but && !stepper.is_stuck(state, p)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let of = |phase: Phase| (0..phases.len()).filter(|&p| phases[p] == phase).collect::<Vec<_>>();

    let outside = phases.iter().any(|&phase| phase != Phase::Remainder);
    let asked = properties.contains(Property::DeadlockFreedom);
    if asked && outside && stuck(stepper, Phase::Remainder)? {
        let because = "somebody waits, and nobody outside the remainder section can move";
        return Ok(Some(fault(Property::DeadlockFreedom, because)));
    }

    let entering = of(Phase::Entering);
    if !entering.is_empty() && one_session(stepper, state, &phases) {
        if properties.contains(Property::ConcurrentOccupancy) && stuck(stepper, Phase::Inside)? {
            let because = "all ask for one session, and some cannot enter unless others leave";
            return Ok(Some(fault(Property::ConcurrentOccupancy, because)));
        }
        let every = properties.contains(Property::ConcurrentEntering);
        let some = properties.contains(Property::GroupConcurrentEntering);
        if every || some {
            let mut able = 0;
            for &p in &entering {
                able += usize::from(stepper.alone(state, p, Phase::Inside)?);
            }
            if every && able < entering.len() {
                let because = "all ask for one session, and one of them waits for another";
                return Ok(Some(fault(Property::ConcurrentEntering, because)));
            }
            if some && able == 0 {
                let because = "all ask for one session, and none of them can enter by itself";
                return Ok(Some(fault(Property::GroupConcurrentEntering, because)));
            }
        }
    }

    // SGCE: the same for those who came undisturbed, whoever has come since.
    let undisturbed = |&p: &usize| state.procs[p].undisturbed;
    if let Some(&first) = entering.iter().find(|p| undisturbed(p)) {
        let session = stepper.node(state.procs[first].local).session;
        let mut able = false;
        for &p in &entering {
            let same = stepper.node(state.procs[p].local).session == session;
            able = able || same && stepper.alone(state, p, Phase::Inside)?;
        }
        if !able || stuck(stepper, Phase::Inside)? {
            let because = "somebody came before all who ask for another session, and has to wait for one to leave";
            return Ok(Some(fault(Property::StrongGroupConcurrentEntering, because)));
        }
    }

    let every = properties.contains(Property::BoundedExit);
    let some = properties.contains(Property::GroupBoundedExit);
    let exiting = of(Phase::Exiting);
    if !exiting.is_empty() && (every || some) {
        let mut able = 0;
        for &p in &exiting {
            able += usize::from(stepper.alone(state, p, Phase::Remainder)?);
        }
        if every && able < exiting.len() {
            return Ok(Some(fault(Property::BoundedExit, "somebody who leaves has to wait")));
        }
        if some && able == 0 {
            let because = "some are leaving, and none of them can get out by itself";
            return Ok(Some(fault(Property::GroupBoundedExit, because)));
        }
    }
    Ok(None)
}

fn fault(property: Property, because: &str) -> Fault {
    Fault { property, because: because.to_owned() }
}

/// Whether all that are outside the remainder section are there for the same session.
fn one_session(stepper: &mut Stepper, state: &State, phases: &[Phase]) -> bool {
    let mut sessions = Vec::with_capacity(phases.len());
    for (p, &phase) in phases.iter().enumerate() {
        if phase != Phase::Remainder {
            sessions.push(stepper.node(state.procs[p].local).session);
        }
    }
    sessions.windows(2).all(|pair| pair[0] == pair[1])
}
