//! "By a bounded number of its own steps": see [`property`](crate::property) for what exactly is checked.
//!
//! While states are explored, the steppers note which steps of the text are taken by processes that a property speaks of. There are few
//! such steps, however many states there are. They must form no cycle; their longest path is the bound.

use rustc_hash::FxHashMap;

use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use crate::automaton::LocalId;
use crate::automaton::run::Phase;
use crate::property::Property;

/// A step of the text, taken by a process that the property speaks of.
pub(super) type Tread = (Property, LocalId, LocalId);

/// Local states in the order of a path that ends where it begins.
pub(super) type Circle = Vec<LocalId>;

impl Stepper {
    /// Notes that process `p` goes on to the local state `to`.
    pub(super) fn tread(&mut self, state: &State, p: usize, to: LocalId) -> Result<(), Obstacle> {
        if !self.watching {
            return Ok(());
        }
        let from = state.procs[p].local;
        for i in 0..self.bounding.len() {
            let property = self.bounding[i];
            let tread = (property, from, to);
            if !self.trod.contains(&tread)
                && self.concerns(property, state, p)
                && (!property.is_of_some() || self.is_free(state, p)?)
            {
                self.trod.insert(tread);
                self.fresh.push(tread);
            }
        }
        Ok(())
    }

    /// Whether `property` speaks of process `p` in `state`.
    pub(super) fn concerns(&mut self, property: Property, state: &State, p: usize) -> bool {
        let node = self.node(state.procs[p].local);
        let leaves = matches!(node.phase, Phase::Inside | Phase::Exiting);
        if matches!(property, Property::BoundedExit | Property::GroupBoundedExit) {
            return leaves;
        }
        if property == Property::GroupBoundedAbort {
            return node.phase == Phase::Withdrawing;
        }
        if property.is_of_some() && self.somebody_gives_up(state) {
            return false;
        }
        let proc = &state.procs[p];
        let mut others = (0..state.procs.len()).filter(|&q| q != p);
        node.phase == Phase::Entering
            && match property {
                Property::Fife => proc.enabled,
                Property::BoundedEntry => others
                    .all(|q| matches!(self.phase(state, q), Phase::Remainder | Phase::Entering)),
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

    /// Whether somebody has decided to give up and is not done with that.
    fn somebody_gives_up(&mut self, state: &State) -> bool {
        (0..state.procs.len()).any(|q| self.phase(state, q) == Phase::Withdrawing)
    }

    pub(super) fn tell_circle(&mut self, property: Property, circle: &[LocalId]) -> Fault {
        let section = match property {
            Property::BoundedExit | Property::GroupBoundedExit => "exit",
            Property::GroupBoundedAbort => "abort",
            _ => "entry",
        };
        let mut lines: Vec<String> = Vec::with_capacity(circle.len());
        for &local in circle {
            let at = self.node(local).at;
            let line = at.map_or_else(String::new, |at| {
                let file = at.file().rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{file}:{}", at.line())
            });
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        let because =
            format!("an {section} section may go round in a circle: {}", lines.join(", "));
        Fault { property, because }
    }
}

/// How many steps the longest path along `steps` has; or a circle, if there is no longest path.
pub fn longest(steps: &[(LocalId, LocalId)]) -> Result<usize, Circle> {
    // Each local state that nothing leads to any more is taken away, with the steps from it (Kahn's algorithm).
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
    // To each that is left another one leads: backwards, one comes round.
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
