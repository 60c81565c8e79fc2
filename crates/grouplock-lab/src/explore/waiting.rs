//! Who waits, and who gets on by itself.

use super::state::State;
use super::stepper::{Obstacle, Stepper};
use crate::automaton::run::{Op, Phase};
use crate::value::Val;

/// How many steps a process that runs alone may take. Far more than any path through the code of so few processes.
const BOUND: usize = 500;

impl Stepper {
    /// Whether process `p` comes to `goal` by its own steps alone, from `state`.
    pub(crate) fn alone(&mut self, state: &State, p: usize, goal: Phase) -> Result<bool, Obstacle> {
        let mut state = state.clone();
        for proc in &mut state.procs {
            (proc.before, proc.past_doorway) = (0, false);
            (proc.undisturbed, proc.enabled) = (false, false);
        }
        for _ in 0..BOUND {
            if self.phase(&state, p) == goal {
                return Ok(true);
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
        let contents = state.memory[state.register(&self.layout, p, target)];
        match op {
            Op::WaitFor(value) | Op::AwaitCas(value, _) => {
                return Ok(contents != value && contents != Val::UNDEF);
            }
            _ => {}
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
