//! The possible actions and the properties, for stateright.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use grouplock_quorum::{
    Durable, Member, MemberId, PeerMessage, Process, ProcessId, ProcessState, Time,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::scenario::Scenario;
use crate::state::{Action, Budget, Down, End, Message, State};

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let members = (0..self.coterie.members()).map(MemberId);
        let member = |id| Member::new(id, self.coterie.clone(), self.settings()).expect("in it");
        let process = |p| Process::new(ProcessId(p), self.coterie.members(), self.settings());
        vec![State {
            members: members.map(member).collect(),
            processes: (0..self.processes.len() as u64).map(process).collect(),
            rounds: self.processes.iter().map(|plan| plan.rounds).collect(),
            asked: vec![0; self.processes.len()],
            links: BTreeMap::new(),
            disks: vec![Durable::default(); usize::from(self.coterie.members())],
            waiting: vec![Vec::new(); usize::from(self.coterie.members())],
            clock: 0,
            left: Budget {
                duplicates: self.duplicates,
                losses: self.losses,
                breaks: self.breaks,
                crashes: self.crashes,
                passes: self.passes,
                deaths: self.deaths,
                amnesias: self.amnesias,
                retirements: self.retirements,
                hasty: self.hasty,
                patience: self.patience,
            },
            down: BTreeMap::new(),
            last: (0, u16::MAX, 0),
            first: None,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (p, process) in state.processes.iter().enumerate() {
            match process.state() {
                ProcessState::Outside | ProcessState::Lost => {
                    if state.rounds[p] > 0 {
                        actions.push(Action::Ask(p));
                    }
                }
                ProcessState::Waiting if self.cancel && !self.processes[p].patient => {
                    actions.push(Action::GiveUp(p));
                }
                ProcessState::Waiting => {}
                ProcessState::Inside { .. } => actions.push(Action::Leave(p)),
            }
        }
        for (&(from, to), messages) in &state.links {
            let deliverable = if self.ordered { 1 } else { messages.len() };
            for i in 0..deliverable {
                if i > 0 && messages[i] == messages[i - 1] {
                    continue;
                }
                actions.push(Action::Deliver(from, to, i));
                if state.left.duplicates > 0 {
                    actions.push(Action::Duplicate(from, to, i));
                }
                if state.left.losses > 0 {
                    actions.push(Action::Lose(from, to, i));
                }
            }
        }
        if state.left.breaks > 0 {
            actions.extend(state.links.keys().filter_map(|link| match *link {
                (End::Member(from), End::Member(to)) => Some(Action::Break(from, to)),
                _ => None,
            }));
        }
        let under_way: usize = state.links.values().map(Vec::len).sum();
        let calm = under_way <= self.under_way;
        if state.left.passes > 0 && calm {
            actions.push(Action::Pass);
        }
        let due = |at: Option<Time>| self.passes > 0 && at.is_some_and(|at| at <= state.now());
        for (p, process) in state.processes.iter().enumerate() {
            if due(process.poll_timeout()) {
                actions.push(Action::WakeProcess(p));
            }
        }
        for m in 0..state.members.len() {
            if state.down.contains_key(&MemberId(m as u16)) {
                if state.may_return(self, MemberId(m as u16)) {
                    actions.push(Action::Return(m));
                }
                continue;
            }
            if due(state.members[m].poll_timeout()) {
                actions.push(Action::Wake(m));
            }
            if state.left.deaths > 0 && calm {
                actions.push(Action::Die(m));
            }
            if state.left.amnesias > 0 && calm {
                actions.push(Action::Forget(m));
            }
            if state.left.crashes > 0 {
                actions.push(Action::Crash(m));
            }
            if state.left.retirements > 0 && state.members[m].is_idle() {
                actions.push(Action::Retire(m));
            }
            if state.left.hasty > 0 && state.members[m].poll_timeout().is_some() {
                actions.push(Action::Hasty(m));
            }
        }
        let timers = state.members.iter().any(|member| member.poll_timeout().is_some())
            || state.processes.iter().any(|process| process.poll_timeout().is_some());
        let moving = actions.iter().any(|action| {
            matches!(action, Action::Ask(_) | Action::Leave(_) | Action::Deliver(..))
        });
        if state.left.patience > 0 && !moving && timers {
            actions.push(Action::Timeout);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        if !matches!(action, Action::Deliver(..)) {
            state.first = None;
        }
        match action {
            Action::Ask(p) => state.ask(self, p),
            Action::Leave(p) | Action::GiveUp(p) => {
                state.clock += u64::from(self.clock);
                state.processes[p].leave();
                state.asked[p] = 0;
                // Members cannot order a request whose message is lost until it is repeated.
                let all_arrived = state.links.is_empty() && state.left.losses == self.losses;
                if all_arrived && state.inside().next().is_none() {
                    state.first = state.best(self);
                }
            }
            Action::Die(m) => {
                state.left.deaths -= 1;
                state.lose(self, MemberId(m as u16), Down::Dead);
            }
            Action::Forget(m) => {
                state.left.amnesias -= 1;
                let since = state.clock;
                state.lose(self, MemberId(m as u16), Down::Blank { since });
            }
            Action::Return(m) => state.recall(self, MemberId(m as u16)),
            Action::Retire(m) => {
                state.left.retirements -= 1;
                let (id, coterie, now) = (MemberId(m as u16), self.coterie.clone(), state.now());
                let floor = if self.forgetful { 0 } else { state.members[m].highest() };
                let above = Member::above(floor, id, coterie, self.settings(), now);
                state.members[m] = above.ok()?;
            }
            Action::Pass => {
                state.left.passes -= 1;
                state.clock += self.step.as_micros() as u64;
            }
            Action::Wake(m) => {
                let now = state.now();
                state.members[m].handle_timeout(now);
            }
            Action::WakeProcess(p) => {
                let now = state.now();
                state.processes[p].handle_timeout(now);
            }
            Action::Deliver(from, to, i) => {
                let message = state.take((from, to), i);
                state.deliver(from, to, message);
            }
            Action::Duplicate(from, to, i) => {
                state.left.duplicates -= 1;
                let message = state.links[&(from, to)][i].clone();
                state.links.get_mut(&(from, to))?.insert(i, message);
            }
            Action::Lose(from, to, i) => {
                state.left.losses -= 1;
                state.take((from, to), i);
            }
            Action::Break(from, to) => {
                state.left.breaks -= 1;
                state.links.remove(&(End::Member(from), End::Member(to)));
                let now = state.now();
                state.members[from.index()].handle_reconnect(now, to);
            }
            Action::Crash(m) => {
                state.left.crashes -= 1;
                state.waiting[m].clear();
                let disk = if self.forgetful {
                    state.disks[m] = Durable::default();
                    Durable::default()
                } else {
                    state.disks[m].clone()
                };
                let (id, coterie, now) = (MemberId(m as u16), self.coterie.clone(), state.now());
                state.members[m] = Member::recover(id, coterie, self.settings(), disk, now).ok()?;
                if self.reconnect {
                    state.reconnect(self, id);
                }
            }
            Action::Hasty(m) => {
                state.left.hasty -= 1;
                let at = state.members[m].poll_timeout()?;
                state.members[m].handle_timeout(at);
            }
            Action::Timeout => {
                state.left.patience -= 1;
                for member in &mut state.members {
                    member.poll_timeout().into_iter().for_each(|at| member.handle_timeout(at));
                }
                for process in &mut state.processes {
                    process.poll_timeout().into_iter().for_each(|at| process.handle_timeout(at));
                }
            }
        }
        state.collect(self);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn wrong(state: &State, property: &str) -> bool {
            state.wrong == Some(property)
        }
        vec![
            Property::always("mutual exclusion", |_, state| !wrong(state, "mutual exclusion")),
            Property::always("epochs grow", |_, state| !wrong(state, "epochs grow")),
            Property::always("one entry per member", |_, state| {
                !wrong(state, "one entry per member")
            }),
            Property::always("the best claim is first", |_, state| {
                !wrong(state, "the best claim is first")
            }),
            Property::always("nothing is refused", |_, state| !wrong(state, "nothing is refused")),
            Property::always("nobody is left behind", |scenario: &Scenario, state: &State| {
                let mut actions = Vec::new();
                scenario.actions(state, &mut actions);
                if scenario.passes > 0 {
                    // Time goes on. At the bound of the exploration, `goes_on` decides.
                    let still = state.links.is_empty() && state.left.passes == 0;
                    return !still || state.goes_on(scenario);
                }
                // Progress must not depend on a withdrawal or a crash.
                let on = |action: &Action| {
                    use Action::{Ask, Deliver, Leave, Timeout};
                    matches!(action, Ask(_) | Leave(_) | Deliver(..) | Timeout)
                };
                actions.iter().any(on) || state.finished(scenario)
            }),
            // If the exploration does not reach these, the other properties say little.
            Property::sometimes("all have been inside", |scenario: &Scenario, state: &State| {
                state.finished(scenario)
            }),
            Property::sometimes("somebody yields", |_, state: &State| {
                state
                    .links
                    .values()
                    .flatten()
                    .any(|message| matches!(message, Message::Peer(PeerMessage::Relinquish { .. })))
            }),
            Property::sometimes("somebody is first", |_, state: &State| state.first.is_some()),
            Property::sometimes("a vote comes back", |_, state: &State| {
                state.members.iter().any(|member| member.epoch() > 1 << 20)
            }),
            Property::sometimes("memory again", |scenario: &Scenario, state: &State| {
                state.left.amnesias < scenario.amnesias
                    && state.down.is_empty()
                    && state.finished(scenario)
            }),
            Property::sometimes("forgotten", |scenario: &Scenario, state: &State| {
                scenario.retirements > 0 && state.left.retirements == 0 && state.finished(scenario)
            }),
            Property::sometimes("two share", |_, state: &State| state.inside().count() > 1),
        ]
    }
}

/// The result of an exploration.
pub(crate) struct Verdict {
    pub(crate) states: usize,
    pub(crate) depth: usize,
    /// Properties that do not hold, each with a shortest counterexample.
    pub(crate) violated: Vec<(&'static str, String)>,
    /// The expected situations that were reached.
    pub(crate) reached: Vec<&'static str>,
}

/// Explores until a property does not hold.
pub(crate) fn explore(scenario: &Scenario) -> Verdict {
    let checker = scenario.clone().checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    // Depth first, few states wait to be explored: large explorations need less memory. Breadth
    // first, counterexamples are the shortest.
    if scenario.large {
        let checker = checker.spawn_dfs();
        grouplock_testing::explored(|| checker.is_done(), || checker.unique_state_count());
        verdict(&checker.join())
    } else {
        verdict(&checker.spawn_bfs().join())
    }
}

fn verdict(checker: &impl Checker<Scenario>) -> Verdict {
    let mut verdict = Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        violated: Vec::new(),
        reached: Vec::new(),
    };
    for property in checker.model().properties() {
        let Some(path) = checker.discovery(property.name) else { continue };
        if property.expectation == stateright::Expectation::Sometimes {
            verdict.reached.push(property.name);
        } else {
            let mut steps = String::new();
            for action in path.into_actions() {
                _ = writeln!(steps, "  {action:?}");
            }
            verdict.violated.push((property.name, steps));
        }
    }
    verdict
}
