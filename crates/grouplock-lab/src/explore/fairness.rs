//! Executions that go on for ever: see [`property`](crate::property) for what exactly is checked.
//!
//! Breadth-first search sees states, and a process that starves is in no bad state: it could always still get in. So here the whole
//! graph is kept, without the contents of its states, and *fair cycles* are looked for in parts of it.
//!
//! States that differ in names only are one state of the graph, and each step knows who changes places with whom. A cycle is a cycle only
//! if everybody has their old place again: so it is looked for among pairs of a state and an order, which says who is where. (That
//! objects have their old names again is not asked for: an execution may go round for ever all the same.)

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use super::canon::{Renamed, canonical};
use super::components::{Pair, components};
use super::orders::Orders;
use super::start::Start;
use super::state::State;
use super::stepper::{Fault, Obstacle, Stepper};
use super::traces::Told;
use super::visited::fingerprint;
use super::{Options, Outcome, Trespass, Turn, Verdict, Violation, attempt};
use crate::automaton::Trouble;
use crate::automaton::run::{Op, Phase};
use crate::property::{Properties, Property};
use crate::subject::Subject;

/// Looks for fair cycles that violate a property of `options`, after all states have been seen to hold: `outcome`.
pub(super) fn look(subject: &Subject, options: &Options, mut outcome: Outcome) -> Outcome {
    let proved = |stronger| options.properties.contains(stronger);
    let asked = options.properties.and(Properties::FOR_EVER).iter();
    let asked: Vec<_> = asked.filter(|p| !p.follows_from().is_some_and(proved)).collect();
    // Nobody passes for ever where passages are bounded. That nobody enters can be seen even so.
    let (ended, looked_for): (Vec<Property>, Vec<Property>) = asked.iter().partition(|property| {
        let passing = [
            Property::StarvationFreedom,
            Property::TerminatingExit,
            Property::GroupBoundedExit,
            Property::GroupBoundedAbort,
        ];
        options.passages.is_some() && passing.contains(property)
    });
    let mut options = options.clone();
    options.properties = Properties::default();
    if looked_for.contains(&Property::StrongGroupConcurrentEntering) {
        options.properties = options.properties.with(Property::StrongGroupConcurrentEntering);
    }
    let found = if looked_for.is_empty() {
        Found::Nothing
    } else {
        attempt(&options, |options| Graph::search(subject, options, &looked_for))
    };
    let missed = match found {
        Found::Cycle(violation) => {
            outcome.verdict = Verdict::Violated;
            outcome.violation = Some(violation);
            (outcome.looked_at, outcome.bounds) = (Properties::default(), Vec::new());
            return outcome;
        }
        Found::Nothing => ended,
        Found::TooLarge => asked,
    };
    for property in missed {
        outcome.looked_at = outcome.looked_at.without(property);
        if !matches!(property, Property::StarvationFreedom | Property::TerminatingExit) {
            outcome.in_part = outcome.in_part.with(property);
        }
    }
    outcome
}

enum Found {
    Cycle(Violation),
    Nothing,
    TooLarge,
}

/// What counts of a state: sets of the places of processes.
#[derive(Clone, Copy, Default)]
struct Mark {
    entering: u8,
    inside: u8,
    exiting: u8,
    withdrawing: u8,
    /// Asks, and nobody asks for another session.
    undisturbed: u8,
    /// Asks, and nobody asked for another session when its doorway ended.
    came_undisturbed: u8,
    /// Cannot move: idle, or waits for what is not so.
    disabled: u8,
    strong: u8,
}

#[derive(Clone, Copy)]
struct Step {
    to: u32,
    choice: Turn,
    change: u16,
}

struct Graph {
    processes: usize,
    /// Whether all processes differ in names only.
    alike: bool,
    orders: Orders,
    marks: Vec<Mark>,
    begins: Vec<u32>,
    steps: Vec<Step>,
}

/// What a cycle must keep to, to be a violation.
struct Complaint<'a> {
    through: &'a dyn Fn(Pair) -> bool,
    by: &'a dyn Fn(Pair, Step, Pair) -> bool,
    /// Whoever is inside may stay there.
    may_stay: bool,
}

impl Graph {
    fn search(subject: &Subject, options: &Options, asked: &[Property]) -> Result<Found, Trespass> {
        let Start { options, renamed, alike, initial, mut steppers, .. } =
            Start::new(subject, options);
        let stepper = &mut steppers[0];
        let graph = match Graph::build(stepper, &options, renamed, &initial) {
            Ok(Some(graph)) => Graph { alike, ..graph },
            Ok(None) => return Ok(Found::TooLarge),
            Err(Trouble::Liveness(because)) => {
                return Ok(Found::Cycle(Violation::lie(because, &[])));
            }
            Err(Trouble::Trespass) => return Err(Trespass),
        };
        let Some((property, whose, begin, around)) = graph.violation(asked) else {
            return Ok(Found::Nothing);
        };
        let moves = around.len();
        let way = graph.way(0, |pair| pair == begin, |_, _, _| true);
        let mut choices = way.map(|(way, _)| way).unwrap_or_default();
        choices.extend(around);
        let because = match (property, whose) {
            (Property::DeadlockFreedom, _) => {
                format!(
                    "some try to enter, and nobody ever does, while the last {moves} moves repeat"
                )
            }
            (Property::TerminatingExit | Property::GroupBoundedExit, p) => {
                format!("process {p} never gets out while the last {moves} moves repeat")
            }
            (Property::GroupBoundedAbort, p) => {
                format!("process {p} gives up for ever while the last {moves} moves repeat")
            }
            (_, p) => format!("process {p} never gets in while the last {moves} moves repeat"),
        };
        let told = Told::new(stepper, subject, initial, renamed);
        let fault = Fault { property, because };
        Ok(Found::Cycle(told.violation(stepper, &choices, fault)))
    }

    /// `None` if it would not fit.
    fn build(
        stepper: &mut Stepper,
        options: &Options,
        renamed: Renamed,
        initial: &State,
    ) -> Result<Option<Self>, Trouble> {
        let layout = Arc::clone(&stepper.layout);
        let processes = initial.procs.len();
        let Some(orders) = Orders::of(processes, renamed == Renamed::All) else { return Ok(None) };
        let most = options.graph_limit.min(u64::from(u32::MAX)) as usize / orders.count();
        let mut graph = Graph {
            processes,
            alike: false,
            orders,
            marks: Vec::new(),
            begins: vec![0],
            steps: Vec::new(),
        };
        let mut ids: FxHashMap<_, u32> = FxHashMap::default();
        // The contents of states whose steps are not known yet.
        let mut rows: VecDeque<Vec<u32>> = VecDeque::new();
        let mut row = Vec::new();
        initial.pack(&mut row);
        ids.insert(fingerprint(&row), 0);
        rows.push_back(row.clone());
        let mut choices = Vec::new();
        while let Some(here) = rows.pop_front() {
            let held = ids.len() * 96 + rows.len() * (here.len() * 4 + 24);
            if ids.len() > most
                || held as u64 > options.memory_limit
                || options.stop.load(Ordering::Relaxed)
            {
                return Ok(None);
            }
            let state = State::unpack(&here, layout.registers.len());
            graph.marks.push(mark(stepper, &state)?);
            stepper.choices(&state, &mut choices);
            for &choice in &choices {
                let mut successor = state.clone();
                // Who looks in vain and is back at once has moved, unless it waits: that is told by the mark.
                let waits =
                    graph.marks.last().is_some_and(|m| m.disabled >> choice.process & 1 == 1);
                match stepper.take(&mut successor, choice) {
                    Ok(true) if successor != state || !waits => {}
                    // A fault is for `check` to tell.
                    Ok(_) | Err(Obstacle::Fault(_)) => continue,
                    Err(Obstacle::Trouble(trouble)) => return Err(trouble),
                }
                let mut change = 0;
                if renamed != Renamed::Nothing {
                    let (standard, renaming) = canonical(&successor, &layout, renamed);
                    successor = standard;
                    let order: Vec<u8> = renaming.order.iter().map(|&p| p as u8).collect();
                    change = graph.orders.find(&order);
                }
                successor.pack(&mut row);
                let next = ids.len() as u32;
                let to = *ids.entry(fingerprint(&row)).or_insert_with(|| {
                    rows.push_back(row.clone());
                    next
                });
                graph.steps.push(Step { to, choice, change });
            }
            graph.begins.push(graph.steps.len() as u32);
        }
        Ok(Some(graph))
    }

    fn mark(&self, pair: Pair) -> (Mark, usize) {
        let orders = self.orders.count();
        (self.marks[pair as usize / orders], pair as usize % orders)
    }

    /// The names of those whom `of` picks in this pair.
    fn those(&self, pair: Pair, of: impl Fn(Mark) -> u8) -> u8 {
        let (mark, order) = self.mark(pair);
        self.orders.named(order, of(mark))
    }

    /// The steps from a pair, with where each leads.
    fn steps(&self, from: Pair) -> impl Iterator<Item = (Step, Pair)> {
        let orders = self.orders.count();
        let (state, order) = (from as usize / orders, from as usize % orders);
        let steps = &self.steps[self.begins[state] as usize..self.begins[state + 1] as usize];
        steps.iter().map(move |&step| {
            let after = self.orders.after(order, step.change);
            (step, (step.to as usize * orders + after) as Pair)
        })
    }

    fn mover(&self, from: Pair, step: Step) -> u8 {
        let (_, order) = self.mark(from);
        self.orders.names(order)[usize::from(step.choice.process)]
    }

    /// A fair cycle that violates one of `asked`, whom it concerns, where it begins, and once around it.
    fn violation(&self, asked: &[Property]) -> Option<(Property, usize, Pair, Vec<Turn>)> {
        let enters = |from: Pair, step: Step, to: Pair| {
            // By its first step, perhaps.
            let was = self.those(from, |mark| mark.inside | mark.exiting);
            let is = self.those(to, |mark| mark.inside);
            (is & !was) >> self.mover(from, step) & 1 == 1
        };
        let leaves = |from: Pair, step: Step| {
            self.those(from, |mark| mark.inside) >> self.mover(from, step) & 1 == 1
        };
        for &property in asked {
            // Where all are alike, what can be done to one can be done to each.
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
                let may_stay = matches!(
                    property,
                    Property::ConcurrentOccupancy
                        | Property::GroupConcurrentEntering
                        | Property::StrongGroupConcurrentEntering
                );
                let complaint = Complaint {
                    through: &|pair| {
                        if dead {
                            self.mark(pair).0.entering != 0
                        } else {
                            self.those(pair, picked) & bit != 0
                        }
                    },
                    by: &|from, step, to| {
                        // If all die on the way in for ever, that is nobody's fault.
                        let dies = step.choice.session == Turn::DIE;
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

    /// The pairs of fair cycles that hang together.
    fn fair_cycle(&self, complaint: &Complaint<'_>) -> Option<Vec<Pair>> {
        let pairs = self.marks.len() * self.orders.count();
        // Where nobody comes; and where somebody could take an ideal lock who never moves in what hangs together there.
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

    /// Who need not move in this pair.
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
        // One state without a step to itself is no cycle.
        if moved == 0 || (moved | resting) != all {
            Fairness::Unfair
        } else if strong & !moved != 0 {
            Fairness::UnlessAvoided(strong & !moved)
        } else {
            Fairness::Fair
        }
    }

    /// A shortest way to a pair that is `wanted`, by steps that `by` allows, and that pair.
    fn way(
        &self,
        from: Pair,
        wanted: impl Fn(Pair) -> bool,
        by: impl Fn(Pair, Step, Pair) -> bool,
    ) -> Option<(Vec<Turn>, Pair)> {
        let mut before: FxHashMap<Pair, (Pair, Turn)> = FxHashMap::default();
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

    /// Once around, fairly: by way of a move of each process that moves in `component`, and of a state where each of the others
    /// cannot, back to the beginning.
    fn around(&self, complaint: &Complaint<'_>, component: &[Pair]) -> Vec<Turn> {
        let within: FxHashSet<Pair> = component.iter().copied().collect();
        let by = |pair: Pair, step: Step, to: Pair| {
            within.contains(&to) && (complaint.by)(pair, step, to)
        };
        let mut around: Vec<Turn> = Vec::new();
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
    /// Only if it avoids the states where these could take an ideal lock.
    UnlessAvoided(u8),
}

fn mark(stepper: &mut Stepper, state: &State) -> Result<Mark, Trouble> {
    let mut mark = Mark::default();
    for p in 0..state.procs.len() {
        if stepper.is_dead(state, p) {
            mark.disabled |= 1 << p;
            continue;
        }
        let node = stepper.node(state.procs[p].local);
        let entering = node.phase == Phase::Entering;
        mark.entering |= u8::from(entering) << p;
        mark.inside |= u8::from(node.phase == Phase::Inside) << p;
        mark.exiting |= u8::from(node.phase == Phase::Exiting) << p;
        mark.withdrawing |= u8::from(node.phase == Phase::Withdrawing) << p;
        mark.undisturbed |= u8::from(entering && !stepper.is_disturbed(state, p)) << p;
        mark.came_undisturbed |= u8::from(entering && state.procs[p].undisturbed) << p;
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
