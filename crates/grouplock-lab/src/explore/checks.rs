//! Properties of a single state: who waits, and who gets on by itself.

use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use crate::automaton::run::{Op, Phase};
use crate::property::{Properties, Property};

/// Checks what can be said of `state` by itself. What is wrong is an obstacle.
pub(crate) fn check(
    stepper: &mut Stepper,
    state: &State,
    properties: Properties,
) -> Result<(), Obstacle> {
    let phases: Vec<Phase> = (0..state.procs.len()).map(|p| stepper.phase(state, p)).collect();
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
    let fault = |property, because: &str| {
        Err(Obstacle::Fault(Fault { property, because: because.to_owned() }))
    };

    let outside = phases.iter().any(|&phase| phase != Phase::Remainder);
    let asked = properties.contains(Property::DeadlockFreedom) && state.buffers.are_empty();
    if asked && outside && stuck(stepper, Phase::Remainder)? {
        let because = "somebody waits, and nobody outside the remainder section can move";
        return fault(Property::DeadlockFreedom, because);
    }

    let somebody_gives_up = phases.contains(&Phase::Withdrawing);
    for i in 0..stepper.bounding.len() {
        let property = stepper.bounding[i];
        // A process that has taken no step of its exit section may still want to stay. One who gives up may have the exit lock, and
        // wait for one who enters when it has released it.
        let counts = |p: usize| {
            property != Property::GroupBoundedExit
                || phases[p] == Phase::Exiting && !somebody_gives_up
        };
        let concerned: Vec<usize> = (0..phases.len()).filter(|&p| counts(p)).collect();
        if property.is_of_some() {
            let helps = |p: usize| {
                property == Property::GroupBoundedAbort
                    && matches!(phases[p], Phase::Exiting | Phase::Entering)
            };
            let (mut any, mut able) = (false, false);
            for p in concerned {
                if !able && stepper.concerns(property, state, p) {
                    any = true;
                    able = stepper.is_free(state, p)?;
                }
            }
            for p in (0..phases.len()).filter(|&p| any && helps(p)) {
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

    // The second halves of the group properties: everybody gets in, even if nobody leaves.
    let in_the_end = [
        Property::ConcurrentOccupancy,
        Property::GroupConcurrentEntering,
        Property::StrongGroupConcurrentEntering,
    ];
    for property in in_the_end.into_iter().filter(|&property| properties.contains(property)) {
        let premise = |stepper: &mut Stepper, p: usize| match property {
            Property::StrongGroupConcurrentEntering => state.procs[p].undisturbed,
            _ => !stepper.is_disturbed(state, p),
        };
        let asks = (0..phases.len()).any(|p| phases[p] == Phase::Entering && premise(stepper, p));
        if asks && stuck(stepper, Phase::Inside)? {
            return fault(property, "somebody cannot enter unless others leave");
        }
    }
    Ok(())
}

/// What it means that nobody is free.
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

/// How many steps a process that runs alone may take. Far more than any path through the code of so few processes.
const BOUND: usize = 500;

impl Stepper {
    /// Whether process `p` would get through the section it is in if it ran alone from `state`: if it is inside, out of there.
    pub(crate) fn is_free(&mut self, state: &State, p: usize) -> Result<bool, Obstacle> {
        let leaves = self.phase(state, p) == Phase::Inside;
        let mut state = state.clone();
        for proc in &mut state.procs {
            (proc.before, proc.past_doorway) = (0, false);
            (proc.undisturbed, proc.enabled, proc.overtaken) = (false, false, false);
        }
        for _ in 0..BOUND {
            match self.phase(&state, p) {
                Phase::Remainder => return Ok(true),
                Phase::Inside if !leaves => return Ok(true),
                _ => {}
            }
            if self.is_stuck(&state, p)? {
                return Ok(false);
            }
            match self.try_step(&mut state, p) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // That is found, and told properly, when exploration comes to it.
                Err(Obstacle::Fault(_)) => return Ok(true),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(false)
    }

    /// Process `p` tries a step, of which nothing is noted.
    fn try_step(&mut self, state: &mut State, p: usize) -> Result<bool, Obstacle> {
        let (watching, log) = (std::mem::take(&mut self.watching), self.log.take());
        let result = self.step(state, p);
        (self.watching, self.log) = (watching, log);
        result
    }

    /// Whether process `p` is at a place where it may have to wait.
    pub(crate) fn may_wait(&mut self, state: &State, p: usize) -> bool {
        let local = state.procs[p].local;
        let node = self.node(local);
        node.head == Some(local) || node.step.is_none_or(|(_, op)| op.blocks())
    }

    /// Whether process `p` waits for something that is not so: no step of its own would change anything.
    pub(crate) fn is_stuck(&mut self, state: &State, p: usize) -> Result<bool, Obstacle> {
        let local = state.procs[p].local;
        let node = self.node(local);
        let Some((target, op)) = node.step else { return Ok(node.phase == Phase::Remainder) };
        let contents = state.seen(p, state.register(&self.layout, p, target));
        if let Op::WaitOther(value) = op {
            return Ok(contents == state.value(p, value));
        }
        if let Some(waits) = self.waits(state, op, contents) {
            return Ok(waits);
        }
        if node.head != Some(local) {
            return Ok(false);
        }
        // A round, all at once.
        let mut round = state.clone();
        loop {
            if let Err(obstacle) = self.try_step(&mut round, p) {
                return match obstacle {
                    Obstacle::Fault(_) => Ok(false),
                    trouble @ Obstacle::Trouble(_) => Err(trouble),
                };
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
