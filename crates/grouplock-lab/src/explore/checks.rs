//! Properties of a single state: which processes wait, and which can finish their section alone.

use super::state::{Proc, State};
use super::stepper::{Fault, Obstacle, Stepper};
use crate::property::{Properties, Property};
use crate::trace::Section;

/// Checks the properties of single states in `state`. A violation is an obstacle.
pub(crate) fn check(stepper: &mut Stepper, state: &State) -> Result<(), Obstacle> {
    let sections: Vec<Section> =
        (0..state.procs.len()).map(|p| stepper.section(state, p)).collect();
    let stuck = |stepper: &mut Stepper, but: Section| -> Result<bool, Obstacle> {
        let counts = |&p: &usize| ![Section::Remainder, but].contains(&sections[p]);
        // In most states some process does not wait at all, which is quick to see.
        if (0..sections.len()).filter(counts).any(|p| !stepper.may_wait(state, p)) {
            return Ok(false);
        }
        for p in (0..sections.len()).filter(counts) {
            if !stepper.is_stuck(state, p)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let fault = |property, because: &str| {
        Err(Obstacle::Fault(Fault { property, because: because.to_owned() }))
    };

    let outside = sections.iter().any(|&section| section != Section::Remainder);
    let asked = stepper.checks(Property::DeadlockFreedom) && state.buffers.are_empty();
    if asked && outside && stuck(stepper, Section::Remainder)? {
        let because = "somebody waits, and nobody outside the remainder section can move";
        return fault(Property::DeadlockFreedom, because);
    }

    let any_withdraws = sections.contains(&Section::Withdrawing);
    for i in 0..stepper.bounding.len() {
        let property = stepper.bounding[i];
        // A process that has taken no step of its exit section may stay. A process that withdraws
        // may hold the exit lock and wait for one that enters after the release.
        // A dead process counts as idle.
        let counts = |p: usize| match property {
            Property::GroupBoundedExit => sections[p] == Section::Exit && !any_withdraws,
            _ => sections[p] != Section::Remainder,
        };
        let concerned = (0..sections.len()).filter(|&p| counts(p));
        if property.is_of_some() {
            let helps = |p: usize| {
                property == Property::GroupBoundedAbort
                    && matches!(sections[p], Section::Exit | Section::Entering)
            };
            let (mut any, mut able) = (false, false);
            for p in concerned {
                if !able && stepper.concerns(property, state, p) {
                    any = true;
                    able = stepper.is_free(state, p)?;
                }
            }
            for p in (0..sections.len()).filter(|&p| any && helps(p)) {
                able = able || stepper.is_free(state, p)?;
            }
            if any && !able {
                return fault(property, nobody_can(property));
            }
        } else {
            for p in concerned {
                if stepper.concerns(property, state, p)
                    && stepper.may_wait(state, p)
                    && stepper.is_stuck(state, p)?
                {
                    return fault(property, "somebody has to wait who should not");
                }
            }
        }
    }

    // The second halves of the group properties: every process enters as long as none leaves.
    for property in stepper.options.properties.and(Properties::GATHERS).iter() {
        let premise = |stepper: &mut Stepper, p: usize| match property {
            Property::StrongGroupConcurrentEntering => state.procs[p].undisturbed,
            _ => !stepper.is_disturbed(state, p),
        };
        let asks =
            (0..sections.len()).any(|p| sections[p] == Section::Entering && premise(stepper, p));
        if asks && stuck(stepper, Section::Inside)? {
            return fault(property, "somebody cannot enter unless others leave");
        }
    }
    Ok(())
}

/// What it means that no process is free.
fn nobody_can(property: Property) -> &'static str {
    match property {
        Property::BoundedEntry => {
            "nobody is inside or leaves, and nobody who tries can enter by itself"
        }
        Property::GroupConcurrentEntering => {
            "all ask for one session, and none of them can enter by itself"
        }
        Property::GroupBoundedExit => "some are leaving, and none of them can get out by itself",
        Property::GroupBoundedAbort => "some are giving up, and nobody can get on by itself",
        _ => {
            "somebody came before all who ask for another session, and nobody of its session can enter by itself"
        }
    }
}

/// How many steps a process may take alone: far more than any path through the code of so few
/// processes.
const BOUND: usize = 50_000;

impl Stepper {
    /// Whether process `p` would finish its section if it ran alone from `state`. If it is inside,
    /// its exit section.
    pub(crate) fn is_free(&mut self, state: &State, p: usize) -> Result<bool, Obstacle> {
        let leaves = self.section(state, p) == Section::Inside;
        let mut state = state.clone();
        state.procs.iter_mut().for_each(Proc::clear_marks);
        let mut before = None;
        for step in 0..BOUND {
            match self.section(&state, p) {
                Section::Remainder => return Ok(true),
                Section::Inside if !leaves => return Ok(true),
                _ => {}
            }
            if self.is_stuck(&state, p)? {
                return Ok(false);
            }
            match self.try_step(&mut state, p) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // The exploration finds and reports that itself.
                Err(Obstacle::Fault(_)) => return Ok(true),
                Err(obstacle) => return Err(obstacle),
            }
            // It moves in a circle.
            if before.as_ref() == Some(&state) {
                return Ok(false);
            }
            if step >= 64 && step.is_power_of_two() {
                before = Some(state.clone());
            }
        }
        Ok(false)
    }

    /// Process `p` tries a step that is not noted.
    fn try_step(&mut self, state: &mut State, p: usize) -> Result<bool, Obstacle> {
        let (notes_steps, log) = (std::mem::take(&mut self.notes_steps), self.log.take());
        let result = self.step(state, p);
        (self.notes_steps, self.log) = (notes_steps, log);
        result
    }

    /// Whether the next step of process `p` may have to wait.
    pub(crate) fn may_wait(&mut self, state: &State, p: usize) -> bool {
        let local = state.procs[p].local;
        let node = self.node(local);
        node.head == Some(local) || node.step.is_none_or(|(_, op)| op.blocks())
    }

    /// Whether process `p` waits for a condition that does not hold: no step of its own changes
    /// anything.
    pub(crate) fn is_stuck(&mut self, state: &State, p: usize) -> Result<bool, Obstacle> {
        let local = state.procs[p].local;
        let node = self.node(local);
        let Some((target, op)) = node.step else { return Ok(node.section == Section::Remainder) };
        let contents = state.seen(p, state.register(&self.layout, p, target));
        if op.blocks() {
            return Ok(self.has_to_wait(state, state.operation(p, op), contents));
        }
        if node.head != Some(local) {
            return Ok(false);
        }
        // A round, all at once.
        let mut round = state.clone();
        loop {
            match self.try_step(&mut round, p) {
                Ok(_) => {}
                Err(Obstacle::Fault(_)) => return Ok(false),
                Err(obstacle) => return Err(obstacle),
            }
            let there = round.procs[p].local;
            if there == local {
                return Ok(true);
            }
            if self.node(there).head != Some(local) {
                return Ok(false);
            }
        }
    }
}
