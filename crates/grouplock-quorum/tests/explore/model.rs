//! A cluster, its processes and its network as a state machine for stateright. What is explored is the code that ships:
//! a state holds real `Member`s and `Process`es.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use grouplock_quorum::{
    Durable, GroupMessage, Member, MemberId, Output, PeerMessage, Process, ProcessId,
    ProcessMessage, Standing, Time,
};
use stateright::{Checker, Model, Property};

use crate::scenario::{Plan, Scenario};

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    Member(MemberId),
    Process(ProcessId),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    Peer(PeerMessage),
    Up(ProcessMessage),
    Down(GroupMessage),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) members: Vec<Member>,
    pub(crate) processes: Vec<Process>,
    rounds: Vec<u8>,
    /// What is on its way. In order of sending, or if order does not count, sorted.
    pub(crate) links: BTreeMap<(End, End), Vec<Message>>,
    disks: Vec<Durable>,
    clock: u64,
    left: Budget,
    /// The last stage that began: epoch, member, number.
    last: (u64, u16, u64),
    /// What is wrong, as soon as something is.
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    duplicates: u8,
    losses: u8,
    breaks: u8,
    crashes: u8,
    hasty: u8,
    patience: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Ask(usize),
    Leave(usize),
    GiveUp(usize),
    Deliver(End, End, usize),
    Duplicate(End, End, usize),
    Lose(End, End, usize),
    Break(MemberId, MemberId),
    Crash(usize),
    Hasty(usize),
    Timeout,
}

impl State {
    fn now(&self) -> Time {
        Time::from_micros(self.clock)
    }

    fn inside(&self) -> impl Iterator<Item = (usize, u64)> {
        self.processes.iter().enumerate().filter_map(|(p, process)| match process.standing() {
            Standing::Inside { epoch, .. } => Some((p, epoch)),
            _ => None,
        })
    }

    fn send(&mut self, scenario: &Scenario, from: End, to: End, message: Message) {
        let link = self.links.entry((from, to)).or_default();
        link.push(message);
        if !scenario.ordered {
            link.sort();
        }
    }

    fn take(&mut self, link: (End, End), at: usize) -> Message {
        let messages = self.links.get_mut(&link).expect("an action names a link in use");
        let message = messages.remove(at);
        if messages.is_empty() {
            self.links.remove(&link);
        }
        message
    }

    fn deliver(&mut self, from: End, to: End, message: Message) {
        let now = self.now();
        let fine = match (from, to, message) {
            (End::Member(from), End::Member(to), Message::Peer(message)) => {
                self.members[to.index()].handle(now, from, message).is_ok()
            }
            (End::Process(from), End::Member(to), Message::Up(message)) => {
                self.members[to.index()].handle_process(now, from, message).is_ok()
            }
            (End::Member(from), End::Process(to), Message::Down(message)) => {
                self.processes[to.0 as usize].handle(now, from, message);
                true
            }
            _ => false,
        };
        if !fine {
            self.wrong = Some("nothing is refused");
        }
    }

    /// Takes what members and processes want to send, until there is no more.
    fn collect(&mut self, scenario: &Scenario) {
        loop {
            let mut quiet = true;
            for m in 0..self.members.len() {
                while let Some(output) = self.members[m].poll_transmit() {
                    quiet = false;
                    let from = End::Member(MemberId(m as u16));
                    match output {
                        Output::Save(record) => {
                            // Without crashes nobody looks, and there are fewer states without.
                            if scenario.crashes > 0 {
                                self.disks[m].apply(record);
                            }
                        }
                        Output::ToMember(to, message) => {
                            self.send(scenario, from, End::Member(to), Message::Peer(message));
                        }
                        Output::ToProcess(to, message) if scenario.direct => {
                            self.deliver(from, End::Process(to), Message::Down(message));
                        }
                        Output::ToProcess(to, message) => {
                            self.send(scenario, from, End::Process(to), Message::Down(message));
                        }
                    }
                }
            }
            for p in 0..self.processes.len() {
                while let Some((to, message)) = self.processes[p].poll_transmit() {
                    quiet = false;
                    let (from, to) = (End::Process(ProcessId(p as u64)), End::Member(to));
                    if scenario.direct {
                        self.deliver(from, to, Message::Up(message));
                    } else {
                        self.send(scenario, from, to, Message::Up(message));
                    }
                }
            }
            if quiet {
                break;
            }
        }
        self.watch_stages(scenario);
    }

    /// A member has started again, and everybody finds it again.
    fn reconnect(&mut self, scenario: &Scenario, back: MemberId) {
        let (now, it) = (self.now(), back.index());
        self.links.retain(|(from, to), _| ![*from, *to].contains(&End::Member(back)));
        // What it said before there was anybody to hear it is lost.
        while let Some(output) = self.members[it].poll_transmit() {
            if let Output::Save(record) = output {
                self.disks[it].apply(record);
            }
        }
        for other in (0..self.members.len()).filter(|other| *other != it) {
            self.members[it].handle_reconnect(now, MemberId(other as u16));
            self.members[other].handle_reconnect(now, back);
        }
        for (process, plan) in self.processes.iter_mut().zip(&scenario.processes) {
            if plan.home == back.0 {
                process.handle_reconnect(now);
                process.leave_again(back);
            }
        }
    }

    fn watch_stages(&mut self, scenario: &Scenario) {
        let holding = self.members.iter().enumerate().filter_map(|(m, member)| {
            member.stage_inside().map(|stage| (stage.epoch, m as u16, member.stage()))
        });
        let mut holding = holding.collect::<Vec<_>>();
        if holding.len() > 1 {
            self.wrong = Some("mutual exclusion");
        }
        if let Some(stage) = holding.pop()
            && (stage.1, stage.2) != (self.last.1, self.last.2)
        {
            if stage.0 <= self.last.0 {
                self.wrong = Some("epochs grow");
            }
            self.last = stage;
        }
        for member in &self.members {
            let mut waiting: Vec<MemberId> = member.electors().map(|rank| rank.member).collect();
            waiting.sort_unstable();
            if waiting.windows(2).any(|pair| pair[0] == pair[1]) {
                self.wrong = Some("one entry per member");
            }
        }
        // What processes believe, not what members do: a session, and its epoch.
        let believe = |(p, epoch): (usize, u64)| {
            let plan: Plan = scenario.processes[p];
            (plan.home, plan.nth, epoch)
        };
        let mut beliefs: Vec<_> = self.inside().map(believe).collect();
        beliefs.dedup();
        if beliefs.len() > 1 {
            self.wrong = Some("mutual exclusion");
        }
    }

    /// When a message was lost, a stage may be under way with nobody inside until somebody wants the room.
    fn finished(&self, scenario: &Scenario) -> bool {
        self.rounds.iter().all(|rounds| *rounds == 0)
            && self.processes.iter().all(|process| process.standing() == Standing::Outside)
            && (scenario.losses > 0
                || self.members.iter().all(|member| member.stage_inside().is_none()))
    }
}

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
            links: BTreeMap::new(),
            disks: vec![Durable::default(); usize::from(self.coterie.members())],
            clock: 0,
            left: Budget {
                duplicates: self.duplicates,
                losses: self.losses,
                breaks: self.breaks,
                crashes: self.crashes,
                hasty: self.hasty,
                patience: self.patience,
            },
            last: (0, u16::MAX, 0),
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (p, process) in state.processes.iter().enumerate() {
            match process.standing() {
                Standing::Outside | Standing::Lost => {
                    if state.rounds[p] > 0 {
                        actions.push(Action::Ask(p));
                    }
                }
                Standing::Waiting if self.cancel => actions.push(Action::GiveUp(p)),
                Standing::Waiting => {}
                Standing::Inside { .. } => actions.push(Action::Leave(p)),
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
        for m in 0..state.members.len() {
            if state.left.crashes > 0 {
                actions.push(Action::Crash(m));
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
        match action {
            Action::Ask(p) => {
                state.rounds[p] -= 1;
                let plan = self.processes[p];
                let stay = plan.stay.map(Duration::from_micros);
                let (now, session) = (state.now(), self.session(plan));
                state.processes[p].ask(now, &session, stay, plan.priority).ok()?;
            }
            Action::Leave(p) | Action::GiveUp(p) => {
                state.clock += u64::from(self.clock);
                state.processes[p].leave();
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
            Property::always("nothing is refused", |_, state| !wrong(state, "nothing is refused")),
            Property::always("nobody is left behind", |scenario: &Scenario, state: &State| {
                let mut actions = Vec::new();
                scenario.actions(state, &mut actions);
                // Giving up or crashing is no way on that one may count on.
                let on = |action: &Action| {
                    use Action::{Ask, Deliver, Leave, Timeout};
                    matches!(action, Ask(_) | Leave(_) | Deliver(..) | Timeout)
                };
                actions.iter().any(on) || state.finished(scenario)
            }),
            // If these are not reached the others say little.
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
            Property::sometimes("two share", |_, state: &State| state.inside().count() > 1),
        ]
    }
}

/// What an exploration found.
pub(crate) struct Verdict {
    pub(crate) states: usize,
    pub(crate) depth: usize,
    /// Properties that do not hold, with a shortest way to show it.
    pub(crate) violated: Vec<(&'static str, String)>,
    /// What was reached that should be.
    pub(crate) reached: Vec<&'static str>,
}

pub(crate) fn explore(scenario: &Scenario) -> Verdict {
    let checker = scenario.clone().checker().threads(2).spawn_bfs().join();
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
                let _ = writeln!(steps, "  {action:?}");
            }
            verdict.violated.push((property.name, steps));
        }
    }
    verdict
}
