//! Starvation: a fair execution that goes on for ever and never lets somebody in.
//!
//! Breadth-first search sees states, and a starved process is in no bad state: it could always still get in. So here the whole
//! graph is kept, and cycles are looked for in which one process stays in its entry section. A cycle counts only if it is
//! *fair*: every process moves in it, or is somewhere in it unable to move, because it waits or is idle. (Only the ideal lock is
//! fairer than that: whoever could take it again and again does take it, by definition.)

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::Ordering;

use rustc_hash::{FxHashSet, FxHasher};

use super::canon::Renamed;
use super::start::Start;
use super::state::State;
use super::stepper::{Choice, Obstacle, Stepper};
use super::{CheckError, Options, Outcome, Verdict, Violation, replay};
use crate::automaton::Trouble;
use crate::automaton::run::{Op, Phase};
use crate::property::Property;
use crate::subject::Subject;

/// Looks for a fair cycle that starves somebody. The verdict is [`Verdict::Holds`] if there is none,
/// [`Verdict::Violated`] with the way to the cycle and once around it, or [`Verdict::Limit`] if the graph does not fit
/// the memory limit. Passages must not be bounded: then nothing goes on for ever.
///
/// # Errors
/// As [`check`](super::check).
pub fn starvation(subject: &Subject, options: &Options) -> Result<Outcome, CheckError> {
    super::fits(subject, options)?;
    let mut options = options.clone();
    options.properties = crate::property::Properties::basic();
    let mut start = Start::of_a_walk(subject, &options);
    let graph = match Graph::build(&mut start.steppers[0], &options, &start.initial) {
        Ok(Some(graph)) => graph,
        Ok(None) => return Ok(start.outcome(Verdict::Limit, 0, 0, None)),
        Err(Trouble::Liveness(because)) => {
            let (trace, schedule) = (Vec::new(), Vec::new());
            let violation = Violation { property: Property::DeadPrivate, because, trace, schedule };
            return Ok(start.outcome(Verdict::Violated, 0, 0, Some(violation)));
        }
        Err(Trouble::Trespass) => unreachable!("nobody owns a register in a walk"),
    };
    let states = graph.marks.len() as u64;
    let starved = (0..options.processes).find_map(|p| Some((p, graph.fair_cycle(p)?)));
    let Some((p, cycle)) = starved else {
        let looked_at = [Property::StarvationFreedom].into_iter().collect();
        return Ok(Outcome { looked_at, ..start.outcome(Verdict::Holds, states, 0, None) });
    };
    let way = graph.way(0, cycle[0], |_| true).unwrap_or_default();
    let around = graph.around(&cycle);
    let choices: Vec<Choice> = way.into_iter().chain(around.iter().copied()).collect();
    let initial = start.initial.clone();
    let Ok(told) =
        replay::trace(&mut start.steppers[0], subject, initial, Renamed::Nothing, &choices)
    else {
        unreachable!("every edge of the trace is known");
    };
    let violation = Violation {
        property: Property::StarvationFreedom,
        because: format!(
            "process {p} waits for ever while the last {} moves repeat: the others pass, and it always looks at \
             the wrong moment",
            around.len()
        ),
        trace: told.steps,
        schedule: told.schedule,
    };
    Ok(start.outcome(Verdict::Violated, states, choices.len() as u64, Some(violation)))
}

/// What counts of a state: bits of the processes that are entering, that cannot move, and that could take an ideal lock.
#[derive(Clone, Copy, Default)]
struct Mark {
    entering: u8,
    disabled: u8,
    strong: u8,
}

/// All states and steps.
struct Graph {
    processes: usize,
    marks: Vec<Mark>,
    /// Where the steps from each state begin in `edges`.
    begins: Vec<usize>,
    edges: Vec<(Choice, u32)>,
}

type Ids = HashMap<Vec<u32>, u32, BuildHasherDefault<FxHasher>>;

impl Graph {
    /// `None` if it would not fit.
    fn build(
        stepper: &mut Stepper,
        options: &Options,
        initial: &State,
    ) -> Result<Option<Self>, Trouble> {
        let registers = stepper.layout.registers.len();
        let mut ids = Ids::default();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        let mut row = Vec::new();
        initial.pack(&mut row);
        ids.insert(row.clone(), 0);
        rows.push(row.clone());
        let mut graph = Graph {
            processes: initial.procs.len(),
            marks: Vec::new(),
            begins: vec![0],
            edges: Vec::new(),
        };
        let mut choices = Vec::new();
        let per_state = 2 * (row.len() as u64 * 4 + 48) + 64;
        let mut next = 0;
        while next < rows.len() {
            let held = rows.len() as u64 * per_state + graph.edges.len() as u64 * 8;
            if held > options.memory_limit || options.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let state = State::unpack(&rows[next], registers);
            graph.marks.push(mark(stepper, &state)?);
            stepper.choices(&state, &mut choices);
            for &choice in &choices {
                let mut successor = state.clone();
                match stepper.take(&mut successor, choice, &mut None) {
                    Ok(true) if successor != state => {}
                    // A fault is for `check` to tell.
                    Ok(_) | Err(Obstacle::Fault(_)) => continue,
                    Err(Obstacle::Trouble(trouble)) => return Err(trouble),
                }
                successor.pack(&mut row);
                let id = *ids.entry(row.clone()).or_insert_with(|| {
                    rows.push(row.clone());
                    rows.len() as u32 - 1
                });
                graph.edges.push((choice, id));
            }
            graph.begins.push(graph.edges.len());
            next += 1;
        }
        Ok(Some(graph))
    }

    fn steps(&self, from: u32) -> &[(Choice, u32)] {
        &self.edges[self.begins[from as usize]..self.begins[from as usize + 1]]
    }

    fn is_entering(&self, state: u32, p: usize) -> bool {
        self.marks[state as usize].entering >> p & 1 == 1
    }

    /// The states of a fair cycle, or several that hang together, in which `p` is entering throughout.
    fn fair_cycle(&self, p: usize) -> Option<Vec<u32>> {
        components(self.marks.len(), |state| {
            let stays = self.is_entering(state, p);
            self.steps(state)
                .iter()
                .map(|step| step.1)
                .filter(move |&to| stays && self.is_entering(to, p))
        })
        .into_iter()
        .find(|component| self.is_fair(component))
    }

    fn is_fair(&self, component: &[u32]) -> bool {
        let within: FxHashSet<u32> = component.iter().copied().collect();
        let (mut moves, mut disabled, mut strong) = (0_u8, 0_u8, 0_u8);
        for &state in component {
            let mark = self.marks[state as usize];
            disabled |= mark.disabled;
            strong |= mark.strong;
            for (choice, to) in self.steps(state) {
                if within.contains(to) {
                    moves |= 1 << choice.process;
                }
            }
        }
        // One state without a step to itself is no cycle.
        moves != 0
            && (0..self.processes).all(|q| {
                let bit = 1 << q;
                moves & bit != 0 || disabled & bit != 0 && strong & bit == 0
            })
    }

    /// A shortest way through states that `through` allows.
    fn way(&self, from: u32, to: u32, through: impl Fn(u32) -> bool) -> Option<Vec<Choice>> {
        let mut before: HashMap<u32, (u32, Choice), BuildHasherDefault<FxHasher>> =
            HashMap::default();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            for &(choice, next) in self.steps(state) {
                if !through(next) || before.contains_key(&next) {
                    continue;
                }
                before.insert(next, (state, choice));
                if next == to {
                    let mut choices = Vec::new();
                    let mut at = to;
                    loop {
                        let (earlier, choice) = before[&at];
                        choices.push(choice);
                        at = earlier;
                        if at == from {
                            choices.reverse();
                            return Some(choices);
                        }
                    }
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// Once around: from the first state of `component` by way of a move of everyone who moves in it, and back.
    fn around(&self, component: &[u32]) -> Vec<Choice> {
        let within: FxHashSet<u32> = component.iter().copied().collect();
        let mut at = component[0];
        let mut choices = Vec::new();
        for q in 0..self.processes {
            let done = choices.iter().any(|choice: &Choice| usize::from(choice.process) == q);
            let step = component.iter().find_map(|&state| {
                let is_theirs =
                    |s: &&(Choice, u32)| usize::from(s.0.process) == q && within.contains(&s.1);
                Some((state, *self.steps(state).iter().find(is_theirs)?))
            });
            if let (false, Some((state, (choice, to)))) = (done, step) {
                if state != at {
                    choices
                        .extend(self.way(at, state, |s| within.contains(&s)).unwrap_or_default());
                }
                choices.push(choice);
                at = to;
            }
        }
        if at != component[0] {
            choices.extend(self.way(at, component[0], |s| within.contains(&s)).unwrap_or_default());
        }
        choices
    }
}

fn mark(stepper: &mut Stepper, state: &State) -> Result<Mark, Trouble> {
    let mut mark = Mark::default();
    for p in 0..state.procs.len() {
        let node = stepper.node(state.procs[p].local);
        mark.entering |= u8::from(node.phase == Phase::Entering) << p;
        let stuck = match stepper.is_stuck(state, p) {
            Ok(stuck) => stuck,
            Err(Obstacle::Trouble(trouble)) => return Err(trouble),
            Err(Obstacle::Fault(_)) => false,
        };
        mark.disabled |= u8::from(node.phase == Phase::Remainder || stuck) << p;
        let ideal = matches!(node.step, Some((_, Op::AwaitCas(..))));
        mark.strong |= u8::from(ideal && !stuck) << p;
    }
    Ok(mark)
}

/// The strongly connected components (Tarjan's algorithm, without recursion).
fn components<I: Iterator<Item = u32>>(states: usize, steps: impl Fn(u32) -> I) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let mut index = vec![UNSEEN; states];
    let mut low = vec![0; states];
    let mut on_stack = vec![false; states];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..states as u32 {
        if index[root as usize] != UNSEEN {
            continue;
        }
        let mut calls = vec![(root, steps(root))];
        index[root as usize] = next;
        low[root as usize] = next;
        next += 1;
        stack.push(root);
        on_stack[root as usize] = true;
        while let Some((state, rest)) = calls.last_mut() {
            let state = *state;
            if let Some(to) = rest.next() {
                if index[to as usize] == UNSEEN {
                    index[to as usize] = next;
                    low[to as usize] = next;
                    next += 1;
                    stack.push(to);
                    on_stack[to as usize] = true;
                    calls.push((to, steps(to)));
                } else if on_stack[to as usize] {
                    low[state as usize] = low[state as usize].min(index[to as usize]);
                }
                continue;
            }
            calls.pop();
            if let Some((caller, _)) = calls.last() {
                low[*caller as usize] = low[*caller as usize].min(low[state as usize]);
            }
            if low[state as usize] == index[state as usize] {
                let begin = stack.iter().rposition(|&s| s == state).expect("it is on the stack");
                let component = stack.split_off(begin);
                for &s in &component {
                    on_stack[s as usize] = false;
                }
                found.push(component);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_a_small_graph() {
        // 0 → 1 ⇄ 2 → 3, 3 → 3
        let steps: [&[u32]; 4] = [&[1], &[2], &[1, 3], &[3]];
        let mut found = components(4, |s| steps[s as usize].iter().copied());
        for component in &mut found {
            component.sort_unstable();
        }
        found.sort();
        assert_eq!(found, [vec![0], vec![1, 2], vec![3]]);
    }
}
