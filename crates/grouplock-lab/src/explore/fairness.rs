//! Infinite executions: [`property`](crate::property) says what exactly is checked.
//!
//! Breadth-first search checks states, but a process that starves is in no bad state: it could
//! always still enter. So this module keeps the whole graph, without the contents of its states,
//! and searches parts of it for *fair cycles*.
//!
//! States that differ only in names are one state of the graph, and each transition knows which
//! processes change places. A path is a cycle only if every process has its old place again. So the
//! search works on pairs of a state and an order, which says which process is at each place.
//! (Objects need not have their old names again: the execution can repeat forever nevertheless.)

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use super::canon::{Renamed, canonical};
use super::components::{Pair, components};
use super::frontier::Frontier;
use super::orders::Orders;
use super::start::{Compiled, Start};
use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use super::traces::Told;
use super::{Move, Options, Outcome, Trespass, Verdict, Violation, attempt};
use crate::automaton::Op;
use crate::property::{Properties, Property};
use crate::subject::Subject;
use crate::trace::Section;

/// Searches for fair cycles that violate a property of `options`, after an exploration of all
/// states gave `outcome`.
pub(super) fn look(
    subject: &Subject,
    options: &Options,
    compiled: &Compiled,
    mut outcome: Outcome,
) -> Outcome {
    let proved = |stronger| options.properties.contains(stronger);
    let asked = options.properties.and(Properties::FOR_EVER).iter();
    let asked: Properties = asked.filter(|p| !p.follows_from().is_some_and(proved)).collect();
    // If passages are bounded, no process passes infinitely often. A cycle in which none enters is
    // still possible.
    let endless =
        if options.passages.is_some() { Properties::PASSING } else { Properties::default() };
    let looked_for = asked.minus(endless);
    let mut options = options.clone();
    options.properties = looked_for.and(Properties::ORDER);
    let found = if looked_for == Properties::default() {
        Found::Nothing
    } else {
        attempt(&options, |options| Graph::search(subject, options, compiled, looked_for))
    };
    let missed = match found {
        Found::Cycle(violation) => {
            outcome.verdict = Verdict::Violated;
            outcome.violation = Some(violation);
            (outcome.checked, outcome.bounds) = (Properties::default(), Vec::new());
            return outcome;
        }
        Found::Nothing => asked.and(endless),
        Found::TooLarge => asked,
    };
    outcome.checked = outcome.checked.minus(missed);
    // These two have no part that concerns single states.
    outcome.in_part =
        missed.without(Property::StarvationFreedom).without(Property::TerminatingExit);
    outcome
}

enum Found {
    Cycle(Violation),
    Nothing,
    TooLarge,
}

/// The relevant part of a state: sets of the places of processes.
#[derive(Clone, Copy, Default)]
struct Mark {
    entering: u8,
    inside: u8,
    exiting: u8,
    withdrawing: u8,
    /// It requests, and no process requests another session.
    undisturbed: u8,
    /// It requests, and no process requested another session when its doorway ended.
    came_undisturbed: u8,
    /// It cannot move: it is idle, or waits for a condition that does not hold.
    disabled: u8,
    strong: u8,
}

#[derive(Clone, Copy)]
struct Transition {
    to: u32,
    choice: Move,
    change: u16,
}

struct Graph {
    processes: usize,
    /// Whether all processes differ only in names.
    alike: bool,
    orders: Orders,
    marks: Vec<Mark>,
    begins: Vec<u32>,
    steps: Vec<Transition>,
}

/// Which cycles violate a property.
struct Complaint<'a> {
    through: &'a dyn Fn(Pair) -> bool,
    by: &'a dyn Fn(Pair, Transition, Pair) -> bool,
    /// A process that is inside may stay there.
    may_stay: bool,
}

impl Graph {
    fn search(
        subject: &Subject,
        options: &Options,
        compiled: &Compiled,
        asked: Properties,
    ) -> Result<Found, Trespass> {
        let Start { alike, initial, mut steppers, .. } = Start::new(subject, options, compiled);
        let stepper = &mut steppers[0];
        let graph = match Graph::build(stepper, options, &initial, alike) {
            Ok(Some(graph)) => graph,
            Ok(None) => return Ok(Found::TooLarge),
            Err(Obstacle::Trespass) => return Err(Trespass),
            Err(Obstacle::Liveness(because)) => {
                return Ok(Found::Cycle(Violation::wrong_liveness(because, &[])));
            }
            Err(Obstacle::Fault(_)) => unreachable!("the graph leaves out steps with faults"),
        };
        let Some((property, whose, begin, around)) = graph.violation(asked) else {
            return Ok(Found::Nothing);
        };
        let moves = around.len();
        let way = graph.way(0, |pair| pair == begin, |_, _, _| true);
        let mut choices = way.map(|(way, _)| way).unwrap_or_default();
        choices.extend(around);
        let what = match property {
            Property::DeadlockFreedom => "some try to enter, and nobody ever does,".to_owned(),
            Property::TerminatingExit | Property::GroupBoundedExit => {
                format!("process {whose} never gets out")
            }
            Property::GroupBoundedAbort => format!("process {whose} withdraws forever"),
            _ => format!("process {whose} never gets in"),
        };
        let because = match moves {
            0 => format!("{what} and no process can move"),
            _ => format!("{what} while the last {moves} moves repeat"),
        };
        let told = Told::new(stepper, initial);
        let fault = Fault { property, because };
        Ok(Found::Cycle(told.violation(stepper, &choices, fault)))
    }

    /// `None` if the graph is too large.
    fn build(
        stepper: &mut Stepper,
        options: &Options,
        initial: &State,
        alike: bool,
    ) -> Result<Option<Self>, Obstacle> {
        let (layout, renamed) = (Arc::clone(&stepper.layout), stepper.renamed);
        let processes = initial.procs.len();
        let Some(orders) = Orders::of(processes, renamed == Renamed::All) else { return Ok(None) };
        let most = options.graph_limit.min(u64::from(u32::MAX)) as usize / orders.count();
        let mut graph = Graph {
            processes,
            alike,
            orders,
            marks: Vec::new(),
            begins: vec![0],
            steps: Vec::new(),
        };
        let mut frontier = Frontier::new(initial);
        let mut choices = Vec::new();
        while let Some(state) = frontier.take(layout.registers.len()) {
            if frontier.count() > most
                || frontier.bytes(72) > options.memory_limit
                || options.stop.load(Ordering::Relaxed)
            {
                return Ok(None);
            }
            graph.marks.push(mark(stepper, &state)?);
            stepper.choices(&state, &mut choices);
            for &choice in &choices {
                let mut successor = state.clone();
                // A process whose read leads back to the same state has moved, unless it waits.
                let waits =
                    graph.marks.last().is_some_and(|m| m.disabled >> choice.process & 1 == 1);
                match stepper.take(&mut successor, choice) {
                    Ok(true) if successor != state || !waits => {}
                    // `check` reports faults.
                    Ok(_) | Err(Obstacle::Fault(_)) => continue,
                    Err(obstacle) => return Err(obstacle),
                }
                let mut change = 0;
                if renamed != Renamed::Nothing {
                    let (standard, renaming) = canonical(&successor, &layout, renamed);
                    successor = standard;
                    let order: Vec<u8> = renaming.order.iter().map(|&p| p as u8).collect();
                    change = graph.orders.find(&order);
                }
                let to = frontier.add(&successor);
                graph.steps.push(Transition { to, choice, change });
            }
            graph.begins.push(graph.steps.len() as u32);
        }
        Ok(Some(graph))
    }

    fn mark(&self, pair: Pair) -> (Mark, usize) {
        let orders = self.orders.count();
        (self.marks[pair as usize / orders], pair as usize % orders)
    }

    /// The names of the processes that `of` picks in this pair.
    fn those(&self, pair: Pair, of: impl Fn(Mark) -> u8) -> u8 {
        let (mark, order) = self.mark(pair);
        self.orders.named(order, of(mark))
    }

    /// The transitions from a pair, and their targets.
    fn steps(&self, from: Pair) -> impl Iterator<Item = (Transition, Pair)> {
        let orders = self.orders.count();
        let (state, order) = (from as usize / orders, from as usize % orders);
        let steps = &self.steps[self.begins[state] as usize..self.begins[state + 1] as usize];
        steps.iter().map(move |&step| {
            let after = self.orders.after(order, step.change);
            (step, (step.to as usize * orders + after) as Pair)
        })
    }

    fn mover(&self, from: Pair, step: Transition) -> u8 {
        let (_, order) = self.mark(from);
        self.orders.names(order)[usize::from(step.choice.process)]
    }

    /// A fair cycle that violates one of `asked`: the property, the process, the beginning, and the
    /// moves of one round.
    fn violation(&self, asked: Properties) -> Option<(Property, usize, Pair, Vec<Move>)> {
        let enters = |from: Pair, step: Transition, to: Pair| {
            // It may enter by its first step.
            let was = self.those(from, |mark| mark.inside | mark.exiting);
            let is = self.those(to, |mark| mark.inside);
            (is & !was) >> self.mover(from, step) & 1 == 1
        };
        let leaves = |from: Pair, step: Transition| {
            self.those(from, |mark| mark.inside) >> self.mover(from, step) & 1 == 1
        };
        for property in asked.iter() {
            // If all processes are alike, one is enough.
            let one = self.alike || property == Property::DeadlockFreedom;
            for p in 0..if one { 1 } else { self.processes } {
                let bit = 1_u8 << p;
                let picked = |mark: Mark| match property {
                    Property::StarvationFreedom => mark.entering,
                    Property::TerminatingExit | Property::GroupBoundedExit => {
                        mark.inside | mark.exiting
                    }
                    Property::GroupBoundedAbort => mark.withdrawing,
                    Property::StrongGroupConcurrentEntering => mark.came_undisturbed,
                    _ => mark.undisturbed,
                };
                let dead = property == Property::DeadlockFreedom;
                let may_stay = Properties::GATHERS.contains(property);
                let complaint = Complaint {
                    through: &|pair| {
                        if dead {
                            self.mark(pair).0.entering != 0
                        } else {
                            self.those(pair, picked) & bit != 0
                        }
                    },
                    by: &|from, step, to| {
                        // Infinitely many deaths on the way in are no violation.
                        let dies = step.choice.session == Move::DIE;
                        !(dies || dead && enters(from, step, to) || may_stay && leaves(from, step))
                    },
                    may_stay,
                };
                if let Some(component) = self.fair_cycle(&complaint) {
                    let around = self.around(&complaint, &component);
                    return Some((property, p, component[0], around));
                }
            }
        }
        None
    }

    /// The pairs of a strongly connected component with a fair cycle.
    fn fair_cycle(&self, complaint: &Complaint<'_>) -> Option<Vec<Pair>> {
        let pairs = self.marks.len() * self.orders.count();
        // Unreachable pairs, and pairs in which a process could take an ideal lock but never moves
        // in the component.
        let mut avoided = self.unreachable();
        loop {
            let mut again = false;
            let through = |pair: Pair| !avoided[pair as usize] && (complaint.through)(pair);
            let mut fair = None;
            let mut unfair: Vec<Pair> = Vec::new();
            components(
                pairs,
                through,
                |pair, at| {
                    let mut steps = self.steps(pair).skip(at).enumerate();
                    steps
                        .find(|&(_, (step, to))| (complaint.by)(pair, step, to))
                        .map(|(skipped, (_, to))| (at + skipped + 1, to))
                },
                |component, within| {
                    match self.fairness(complaint, component, within) {
                        Fairness::Fair => fair = Some(component.to_vec()),
                        Fairness::Unfair => {}
                        Fairness::UnlessAvoided(names) => {
                            let strong =
                                |&&pair: &&Pair| self.those(pair, |mark| mark.strong) & names != 0;
                            unfair.extend(component.iter().filter(strong));
                        }
                    }
                    fair.is_some()
                },
            );
            if fair.is_some() {
                return fair;
            }
            for pair in unfair {
                again |= !std::mem::replace(&mut avoided[pair as usize], true);
            }
            if !again {
                return None;
            }
        }
    }

    fn unreachable(&self) -> Vec<bool> {
        let mut unreachable = vec![true; self.marks.len() * self.orders.count()];
        unreachable[0] = false;
        let mut stack = vec![0];
        while let Some(pair) = stack.pop() {
            for (_, to) in self.steps(pair) {
                if std::mem::replace(&mut unreachable[to as usize], false) {
                    stack.push(to);
                }
            }
        }
        unreachable
    }

    /// The processes that need not move in this pair.
    fn resting(&self, complaint: &Complaint<'_>, pair: Pair) -> u8 {
        self.those(pair, |mark| mark.disabled | if complaint.may_stay { mark.inside } else { 0 })
    }

    fn fairness(
        &self,
        complaint: &Complaint<'_>,
        component: &[Pair],
        within: &dyn Fn(Pair) -> bool,
    ) -> Fairness {
        let (mut moved, mut resting, mut strong) = (0_u8, 0_u8, 0_u8);
        for &pair in component {
            resting |= self.resting(complaint, pair);
            strong |= self.those(pair, |mark| mark.strong);
            for (step, to) in self.steps(pair) {
                if within(to) && (complaint.by)(pair, step, to) {
                    moved |= 1 << self.mover(pair, step);
                }
            }
        }
        let all = ((1_u16 << self.processes) - 1) as u8;
        // If no process moves, and all may rest, the state lasts forever.
        if (moved | resting) != all {
            Fairness::Unfair
        } else if strong & !moved != 0 {
            Fairness::UnlessAvoided(strong & !moved)
        } else {
            Fairness::Fair
        }
    }

    /// A shortest way to a `wanted` pair by transitions that `by` allows, and that pair.
    fn way(
        &self,
        from: Pair,
        wanted: impl Fn(Pair) -> bool,
        by: impl Fn(Pair, Transition, Pair) -> bool,
    ) -> Option<(Vec<Move>, Pair)> {
        let mut before: FxHashMap<Pair, (Pair, Move)> = FxHashMap::default();
        let mut queue = VecDeque::from([from]);
        let end = loop {
            let pair = queue.pop_front()?;
            if wanted(pair) {
                break pair;
            }
            for (step, to) in self.steps(pair) {
                if to != from && by(pair, step, to) && !before.contains_key(&to) {
                    before.insert(to, (pair, step.choice));
                    queue.push_back(to);
                }
            }
        };
        let mut way = Vec::new();
        let mut at = end;
        while at != from {
            let (earlier, choice) = before[&at];
            way.push(choice);
            at = earlier;
        }
        way.reverse();
        Some((way, end))
    }

    /// The moves of one fair round, back to the beginning. It has a move of each process that moves
    /// in `component`, and a state in which each of the others cannot move.
    fn around(&self, complaint: &Complaint<'_>, component: &[Pair]) -> Vec<Move> {
        let within: FxHashSet<Pair> = component.iter().copied().collect();
        let by = |pair: Pair, step: Transition, to: Pair| {
            within.contains(&to) && (complaint.by)(pair, step, to)
        };
        let mut around: Vec<Move> = Vec::new();
        let mut at = component[0];
        for name in 0..self.processes as u8 {
            let moves = |pair: Pair| {
                self.steps(pair)
                    .find(|&(step, to)| self.mover(pair, step) == name && by(pair, step, to))
            };
            let can_move = component.iter().any(|&pair| moves(pair).is_some());
            let rests = |pair: Pair| self.resting(complaint, pair) >> name & 1 == 1;
            let wanted = |pair: Pair| if can_move { moves(pair).is_some() } else { rests(pair) };
            let Some((way, there)) = self.way(at, wanted, by) else { continue };
            around.extend(way);
            at = there;
            if let Some((step, to)) = moves(at) {
                around.push(step.choice);
                at = to;
            }
        }
        let back = self.way(at, |pair| pair == component[0], by);
        around.extend(back.map(|(way, _)| way).unwrap_or_default());
        around
    }
}

/// Whether a part of the graph holds a fair cycle.
enum Fairness {
    Fair,
    Unfair,
    /// Only if it avoids the states in which these could take an ideal lock.
    UnlessAvoided(u8),
}

fn mark(stepper: &mut Stepper, state: &State) -> Result<Mark, Obstacle> {
    let mut mark = Mark::default();
    for p in 0..state.procs.len() {
        if stepper.deaths.is_dead(state, p) {
            mark.disabled |= 1 << p;
            continue;
        }
        let node = stepper.node(state.procs[p].local);
        let entering = node.section == Section::Entering;
        mark.entering |= u8::from(entering) << p;
        mark.inside |= u8::from(node.section == Section::Inside) << p;
        mark.exiting |= u8::from(node.section == Section::Exit) << p;
        mark.withdrawing |= u8::from(node.section == Section::Withdrawing) << p;
        mark.undisturbed |= u8::from(entering && !stepper.is_disturbed(state, p)) << p;
        mark.came_undisturbed |= u8::from(entering && state.procs[p].undisturbed) << p;
        let stuck = stepper.is_stuck(state, p)?;
        mark.disabled |= u8::from(node.section == Section::Remainder || stuck) << p;
        let ideal = matches!(node.step, Some((_, Op::AwaitCas(..))));
        mark.strong |= u8::from(ideal && !stuck) << p;
    }
    Ok(mark)
}
