//! A cluster, its processes and its network as a state machine for stateright. What is explored is the code that ships:
//! a state holds real `Member`s and `Process`es.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use grouplock_quorum::{
    Durable, GroupMessage, Member, MemberId, Output, PeerMessage, Precedence, Process, ProcessId,
    ProcessMessage, Standing, Time, homes,
};
use stateright::{Checker, Model, Property};

use crate::scenario::{LEASE, Plan, Scenario};

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
    /// Since when members are down: the dead, and those who have lost their memory.
    down: BTreeMap<MemberId, Down>,
    /// The last stage that began: epoch, member, number.
    last: (u64, u16, u64),
    /// Who must be among those who enter next: nothing was on its way when the last one left, and it had the best claim.
    first: Option<usize>,
    /// What is wrong, as soon as something is.
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    duplicates: u8,
    losses: u8,
    breaks: u8,
    crashes: u8,
    passes: u8,
    deaths: u8,
    amnesias: u8,
    hasty: u8,
    patience: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Down {
    Dead,
    Blank { since: u64 },
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
    Die(usize),
    Forget(usize),
    Return(usize),
    /// Time passes.
    Pass,
    Wake(usize),
    WakeProcess(usize),
    Hasty(usize),
    Timeout,
}

impl State {
    fn now(&self) -> Time {
        Time::from_micros(self.clock)
    }

    /// Those who believe that they are inside, and may. Whoever is late to notice that its lease is over does nothing inside.
    fn inside(&self) -> impl Iterator<Item = (usize, u64)> {
        let now = self.now();
        self.processes.iter().enumerate().filter_map(move |(p, process)| match process.standing() {
            Standing::Inside { epoch, valid_until } => {
                valid_until.is_none_or(|until| now < until).then_some((p, epoch))
            }
            _ => None,
        })
    }

    /// Of those who wait and are known to: a home that has started again has forgotten them until they ask again.
    fn best(&self, scenario: &Scenario) -> Option<usize> {
        let known = |p: &usize| {
            let home = &self.members[usize::from(scenario.processes[*p].home)];
            let waits = self.processes[*p].standing() == Standing::Waiting;
            waits && home.waits(ProcessId(*p as u64)).is_some()
        };
        let rank = |p: &usize| (-scenario.processes[*p].priority, scenario.processes[*p].home);
        let known = (0..self.processes.len()).filter(known);
        known.min_by_key(rank).filter(|_| scenario.precedence == Precedence::Static)
    }

    fn is_down(&self, end: End) -> bool {
        matches!(end, End::Member(member) if self.down.contains_key(&member))
    }

    fn send(&mut self, scenario: &Scenario, from: End, to: End, message: Message) {
        if self.is_down(to) {
            return;
        }
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
        if self.is_down(to) {
            return;
        }
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
                            if scenario.crashes > 0 && !self.is_down(from) {
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

    /// A member is gone, and everybody notices.
    fn lose(&mut self, scenario: &Scenario, member: MemberId, down: Down) {
        self.down.insert(member, down);
        self.links.retain(|(_, to), _| *to != End::Member(member));
        let now = self.now();
        for other in 0..self.members.len() {
            if !self.down.contains_key(&MemberId(other as u16)) {
                self.members[other].handle_disconnect(now, member);
            }
        }
        (0..self.processes.len()).for_each(|p| self.turn(scenario, p));
    }

    /// A process asks the first of those who stand in for its home.
    fn turn(&mut self, scenario: &Scenario, p: usize) {
        let session = scenario.session(scenario.processes[p]);
        let order = homes(&session, scenario.coterie.members());
        let Some(home) = order.into_iter().find(|home| !self.down.contains_key(home)) else {
            return;
        };
        let now = self.now();
        if scenario.deaths + scenario.amnesias > 0 {
            self.processes[p].turn_to(now, home);
        }
    }

    /// A member that has lost its memory has asked the others how far they are.
    fn recall(&mut self, scenario: &Scenario, member: MemberId) {
        self.down.remove(&member);
        let others: Vec<_> = (0..self.members.len() as u16)
            .map(MemberId)
            .filter(|other| *other != member && !self.down.contains_key(other))
            .collect();
        let floor = others.iter().map(|other| self.members[other.index()].floor(member)).max();
        let (coterie, now) = (scenario.coterie.clone(), self.now());
        let made = Member::above(floor.unwrap_or(0), member, coterie, scenario.settings(), now);
        self.members[member.index()] = made.expect("in it");
        for other in others {
            self.members[member.index()].handle_reconnect(now, other);
            self.members[other.index()].handle_reconnect(now, member);
        }
    }

    /// What is left if nothing more goes wrong and everybody does at once what it has to do.
    fn goes_on(&self, scenario: &Scenario) -> bool {
        let mut state = self.clone();
        for _ in 0..40 {
            while let Some((&(from, to), _)) = state.links.first_key_value() {
                let message = state.take((from, to), 0);
                state.deliver(from, to, message);
                state.collect(scenario);
            }
            if state.finished(scenario) {
                return state.wrong.is_none();
            }
            for p in 0..state.processes.len() {
                match state.processes[p].standing() {
                    Standing::Inside { .. } => state.processes[p].leave(),
                    Standing::Outside | Standing::Lost if state.rounds[p] > 0 => {
                        state.ask(scenario, p);
                    }
                    _ => {}
                }
            }
            state.clock += LEASE.as_micros() as u64 / 8;
            let now = state.now();
            let blank: Vec<_> = state.down.keys().copied().collect();
            for member in blank {
                if state.may_return(scenario, member) {
                    state.recall(scenario, member);
                }
            }
            for member in 0..state.members.len() {
                if !state.down.contains_key(&MemberId(member as u16)) {
                    state.members[member].handle_timeout(now);
                }
            }
            state.processes.iter_mut().for_each(|process| process.handle_timeout(now));
            state.collect(scenario);
        }
        false
    }

    fn may_return(&self, scenario: &Scenario, member: MemberId) -> bool {
        let wait = scenario.settings().vote_lease().unwrap_or_default();
        let over = |since| Time::from_micros(since) + wait <= self.now() || scenario.rash;
        matches!(self.down.get(&member), Some(Down::Blank { since }) if over(*since))
    }

    fn ask(&mut self, scenario: &Scenario, p: usize) {
        self.rounds[p] -= 1;
        let plan = scenario.processes[p];
        let stay = plan.stay.map(Duration::from_micros);
        let (now, session) = (self.now(), scenario.session(plan));
        let asked = self.processes[p].ask(now, &session, stay, plan.priority);
        asked.expect("it is outside");
        self.turn(scenario, p);
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
        // With leases a home may be late to notice that it has lost its stage. What its processes believe counts.
        if scenario.passes == 0 && holding.len() > 1 {
            self.wrong = Some("mutual exclusion");
        }
        holding.retain(|(epoch, ..)| {
            scenario.passes == 0 || self.inside().any(|(_, believed)| believed == *epoch)
        });
        if let Some(stage) = holding.pop()
            && (stage.1, stage.2) != (self.last.1, self.last.2)
        {
            if stage.0 <= self.last.0 {
                self.wrong = Some("epochs grow");
            }
            self.last = stage;
            let inside: BTreeSet<_> = self.inside().map(|(p, _)| p).collect();
            if scenario.direct
                && let Some(first) = self.first.take()
                && !inside.contains(&first)
            {
                self.wrong = Some("the best claim is first");
            }
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
        let over = |process: &Process| match process.standing() {
            Standing::Outside => true,
            Standing::Lost => scenario.passes > 0,
            Standing::Waiting | Standing::Inside { .. } => false,
        };
        self.rounds.iter().all(|rounds| *rounds == 0)
            && self.processes.iter().all(over)
            && (scenario.losses > 0
                || scenario.passes > 0
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
                passes: self.passes,
                deaths: self.deaths,
                amnesias: self.amnesias,
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
            match process.standing() {
                Standing::Outside | Standing::Lost => {
                    if state.rounds[p] > 0 {
                        actions.push(Action::Ask(p));
                    }
                }
                Standing::Waiting if self.cancel && !self.processes[p].patient => {
                    actions.push(Action::GiveUp(p));
                }
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
                if state.links.is_empty() && state.inside().next().is_none() {
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
                    // Time goes on: what becomes of it when it may not be explored any further.
                    let still = state.links.is_empty() && state.left.passes == 0;
                    return !still || state.goes_on(scenario);
                }
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
            Property::sometimes("somebody is first", |_, state: &State| state.first.is_some()),
            Property::sometimes("a vote comes back", |_, state: &State| {
                state.members.iter().any(|member| member.epoch() > 1 << 20)
            }),
            Property::sometimes("memory again", |scenario: &Scenario, state: &State| {
                state.left.amnesias < scenario.amnesias
                    && state.down.is_empty()
                    && state.finished(scenario)
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
