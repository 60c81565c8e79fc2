//! "By a bounded number of its own steps": [`property`](crate::property) says what exactly is
//! checked.
//!
//! During an exploration the steppers note the steps of the text that are taken by the processes
//! that a property concerns. There are few such steps, however many states there are. They must
//! form no cycle; their longest path is the bound.

use rustc_hash::FxHashMap;

use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use crate::automaton::LocalId;
use crate::property::Property;
use crate::trace::{Section, place};

/// A step of the text, taken by a process that the property concerns.
pub(super) type NotedStep = (Property, LocalId, LocalId);

impl Stepper {
    pub(super) fn note_step(
        &mut self,
        state: &State,
        p: usize,
        to: LocalId,
    ) -> Result<(), Obstacle> {
        if !self.notes_steps {
            return Ok(());
        }
        let from = state.procs[p].local;
        for i in 0..self.bounding.len() {
            let property = self.bounding[i];
            let step = (property, from, to);
            if !self.noted.contains(&step)
                && self.concerns(property, state, p)
                && (!property.is_of_some() || self.is_free(state, p)?)
            {
                self.noted.insert(step);
                self.newly_noted.push(step);
            }
        }
        Ok(())
    }

    pub(super) fn concerns(&mut self, property: Property, state: &State, p: usize) -> bool {
        let node = self.node(state.procs[p].local);
        let leaves = matches!(node.section, Section::Inside | Section::Exit);
        if matches!(property, Property::BoundedExit | Property::GroupBoundedExit) {
            return leaves;
        }
        if property == Property::GroupBoundedAbort {
            return node.section == Section::Withdrawing;
        }
        if property.is_of_some() && self.any_withdraws(state) {
            return false;
        }
        let proc = &state.procs[p];
        let mut others = (0..state.procs.len()).filter(|&q| q != p);
        node.section == Section::Entering
            && match property {
                Property::Fife => proc.enabled,
                Property::BoundedEntry => others.all(|q| {
                    matches!(self.section(state, q), Section::Remainder | Section::Entering)
                }),
                Property::ConcurrentEntering | Property::GroupConcurrentEntering => {
                    !self.is_disturbed(state, p)
                }
                Property::StrongGroupConcurrentEntering => {
                    let mut all = 0..state.procs.len();
                    all.any(|q| {
                        state.procs[q].undisturbed
                            && self.node(state.procs[q].local).session == node.session
                    })
                }
                Property::StrongConcurrentEntering => {
                    proc.past_doorway
                        && others.all(|q| {
                            !self.disturbs(state, p, q) || state.procs[q].before >> p & 1 == 1
                        })
                }
                _ => false,
            }
    }

    fn any_withdraws(&mut self, state: &State) -> bool {
        (0..state.procs.len()).any(|q| self.section(state, q) == Section::Withdrawing)
    }

    pub(super) fn tell_circle(&mut self, property: Property, circle: &[LocalId]) -> Fault {
        let section = match property {
            Property::BoundedExit | Property::GroupBoundedExit => "exit",
            Property::GroupBoundedAbort => "abort",
            _ => "entry",
        };
        let mut lines: Vec<String> = Vec::with_capacity(circle.len());
        for &local in circle {
            let line = self.node(local).at.map(place).unwrap_or_default();
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        let because =
            format!("an {section} section may go round in a circle: {}", lines.join(", "));
        Fault { property, because }
    }
}

/// The length of the longest path along `steps`. If there is no longest path, the local states of a
/// path that ends where it begins.
pub fn longest(steps: &[(LocalId, LocalId)]) -> Result<usize, Vec<LocalId>> {
    // Kahn's algorithm: remove each local state without a step to it, with the steps from it.
    let mut into: FxHashMap<LocalId, Vec<LocalId>> = FxHashMap::default();
    let mut from: FxHashMap<LocalId, Vec<LocalId>> = FxHashMap::default();
    for &(a, b) in steps {
        from.entry(a).or_default().push(b);
        into.entry(b).or_default().push(a);
    }
    let mut missing: FxHashMap<LocalId, usize> = into.iter().map(|(&b, a)| (b, a.len())).collect();
    let mut depth: FxHashMap<LocalId, usize> = FxHashMap::default();
    let mut ready: Vec<LocalId> = from.keys().copied().filter(|a| !into.contains_key(a)).collect();
    let mut longest = 0;
    while let Some(a) = ready.pop() {
        let steps = depth.get(&a).map_or(0, |&steps| steps);
        longest = longest.max(steps);
        for &b in from.get(&a).into_iter().flatten() {
            let deep = depth.entry(b).or_default();
            *deep = (*deep).max(steps + 1);
            let left = missing.get_mut(&b).expect("a step leads to it");
            *left -= 1;
            if *left == 0 {
                ready.push(b);
            }
        }
    }
    missing.retain(|_, left| *left > 0);
    let Some(&somewhere) = missing.keys().min() else { return Ok(longest) };
    // Each remaining state has a step to it, so a path backwards closes a circle.
    let mut circle = vec![somewhere];
    loop {
        let last = circle[circle.len() - 1];
        let before = into[&last].iter().copied().filter(|a| missing.contains_key(a)).min();
        let before = before.expect("something leads to what is left");
        if let Some(at) = circle.iter().position(|&seen| seen == before) {
            circle.drain(..at);
            circle.push(before);
            circle.reverse();
            return Err(circle);
        }
        circle.push(before);
    }
}
