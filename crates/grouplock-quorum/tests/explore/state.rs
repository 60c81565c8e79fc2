//! The state of a cluster, its processes and its network. The exploration runs the code that ships:
//! the state holds real `Member`s and `Process`es.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::scenario::{LEASE, Plan, Scenario};
use grouplock_quorum::{
    Durable, GroupMessage, Member, MemberId, Output, PeerMessage, Precedence, Process, ProcessId,
    ProcessMessage, ProcessState, Record, Time, homes,
};

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
    pub(crate) rounds: Vec<u8>,
    /// When each process asked, if time counts and it has not left.
    pub(crate) asked: Vec<u64>,
    /// Messages on their way. They are in the order of sending, or sorted if order does not count.
    pub(crate) links: BTreeMap<(End, End), Vec<Message>>,
    pub(crate) disks: Vec<Durable>,
    /// What each member has saved and what is not on its disk, because it can wait.
    pub(crate) waiting: Vec<Vec<Record>>,
    pub(crate) clock: u64,
    pub(crate) left: Budget,
    /// Since when members are down: dead members, and members that lost their memory.
    pub(crate) down: BTreeMap<MemberId, Down>,
    /// The last stage that began: epoch, member, number.
    pub(crate) last: (u64, u16, u64),
    /// The process that must be among the next to enter. It had the best claim when the last
    /// process left, and no message was on its way.
    pub(crate) first: Option<usize>,
    /// The first violation.
    pub(crate) wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) duplicates: u8,
    pub(crate) losses: u8,
    pub(crate) breaks: u8,
    pub(crate) crashes: u8,
    pub(crate) passes: u8,
    pub(crate) deaths: u8,
    pub(crate) amnesias: u8,
    pub(crate) retirements: u8,
    pub(crate) hasty: u8,
    pub(crate) patience: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Down {
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
    /// A member forgets the room, which is unused there.
    Retire(usize),
    /// Time passes.
    Pass,
    Wake(usize),
    WakeProcess(usize),
    Hasty(usize),
    Timeout,
}

impl State {
    pub(crate) fn now(&self) -> Time {
        Time::from_micros(self.clock)
    }

    /// The processes that believe they are inside and whose lease is valid. A process that notices
    /// the end of its lease late does nothing inside.
    pub(crate) fn inside(&self) -> impl Iterator<Item = (usize, u64)> {
        let now = self.now();
        self.processes.iter().enumerate().filter_map(move |(p, process)| match process.state() {
            ProcessState::Inside { epoch, valid_until } => {
                valid_until.is_none_or(|until| now < until).then_some((p, epoch))
            }
            _ => None,
        })
    }

    /// The best waiter that its home knows. A home that has started again knows a waiter only after
    /// it asks again.
    pub(crate) fn best(&self, scenario: &Scenario) -> Option<usize> {
        let known = |p: &usize| {
            let home = &self.members[usize::from(scenario.processes[*p].home)];
            let waits = self.processes[*p].state() == ProcessState::Waiting;
            waits && home.waits(ProcessId(*p as u64)).is_some()
        };
        // By the rule itself, not by the claims that members computed.
        let rank = |p: &usize| {
            let (plan, asked) = (scenario.processes[*p], self.asked[*p]);
            let urgency = match scenario.precedence {
                Precedence::Static => -i64::from(plan.priority),
                Precedence::Aged { weight } => {
                    asked.cast_signed() - weight.as_micros() as i64 * i64::from(plan.priority)
                }
            };
            (urgency, asked, plan.home)
        };
        (0..self.processes.len()).filter(known).min_by_key(rank)
    }

    pub(crate) fn is_down(&self, end: End) -> bool {
        matches!(end, End::Member(member) if self.down.contains_key(&member))
    }

    pub(crate) fn send(&mut self, scenario: &Scenario, from: End, to: End, message: Message) {
        if self.is_down(to) {
            return;
        }
        let link = self.links.entry((from, to)).or_default();
        link.push(message);
        if !scenario.ordered {
            link.sort();
        }
    }

    pub(crate) fn take(&mut self, link: (End, End), at: usize) -> Message {
        let messages = self.links.get_mut(&link).expect("an action names a link in use");
        let message = messages.remove(at);
        if messages.is_empty() {
            self.links.remove(&link);
        }
        message
    }

    pub(crate) fn deliver(&mut self, from: End, to: End, message: Message) {
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

    /// Takes all pending messages of members and processes.
    pub(crate) fn collect(&mut self, scenario: &Scenario) {
        loop {
            let mut quiet = true;
            for m in 0..self.members.len() {
                while let Some(output) = self.members[m].poll_transmit() {
                    quiet = false;
                    let from = End::Member(MemberId(m as u16));
                    match output {
                        Output::Save(record) => {
                            // Without crashes nothing reads the disks, and without disks there are
                            // fewer states.
                            if scenario.crashes > 0 && !self.is_down(from) {
                                self.save(scenario, m, record);
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
        if scenario.large {
            self.drop_late();
        }
        self.watch_stages(scenario);
    }

    fn save(&mut self, scenario: &Scenario, member: usize, record: Record) {
        let waits = scenario.late && record.can_wait();
        self.waiting[member].push(record);
        if !waits {
            for record in std::mem::take(&mut self.waiting[member]) {
                self.disks[member].apply(record);
            }
        }
    }

    /// Drops answers of arbiters about a stage that is over. Their delivery changes nothing, at any
    /// time: the number of a stage never comes again. So states that differ only in them are equal.
    /// Smaller explorations deliver them.
    fn drop_late(&mut self) {
        let members = &self.members;
        self.links.retain(|(_, to), messages| {
            let End::Member(to) = to else { return true };
            let group = &members[to.index()];
            let idle = group.stage_inside().is_none() && group.votes().is_none();
            let over = |stage| stage < group.stage() || (idle && stage == group.stage());
            messages.retain(|message| match message {
                Message::Peer(
                    PeerMessage::Locked { stage, died: None, .. }
                    | PeerMessage::Inquire { stage, again: false, .. }
                    | PeerMessage::Contested { stage, again: false, .. },
                ) => !over(*stage),
                _ => true,
            });
            !messages.is_empty()
        });
    }

    /// A member is gone, and all others notice.
    pub(crate) fn lose(&mut self, scenario: &Scenario, member: MemberId, down: Down) {
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

    /// A process asks the first substitute of its home.
    pub(crate) fn turn(&mut self, scenario: &Scenario, p: usize) {
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

    /// A member that has lost its memory has learned the highest epochs of the others, and returns.
    pub(crate) fn recall(&mut self, scenario: &Scenario, member: MemberId) {
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

    /// Whether all processes finish if nothing more goes wrong and nobody is late.
    pub(crate) fn goes_on(&self, scenario: &Scenario) -> bool {
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
                match state.processes[p].state() {
                    ProcessState::Inside { .. } => state.processes[p].leave(),
                    ProcessState::Outside | ProcessState::Lost if state.rounds[p] > 0 => {
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

    pub(crate) fn may_return(&self, scenario: &Scenario, member: MemberId) -> bool {
        let wait = scenario.settings().vote_lease().unwrap_or_default();
        let over = |since| Time::from_micros(since) + wait <= self.now() || scenario.rash;
        matches!(self.down.get(&member), Some(Down::Blank { since }) if over(*since))
    }

    pub(crate) fn ask(&mut self, scenario: &Scenario, p: usize) {
        self.rounds[p] -= 1;
        if scenario.clock {
            self.clock += 1;
            self.asked[p] = self.clock;
        }
        let plan = scenario.processes[p];
        let stay = plan.stay.map(Duration::from_micros);
        let (now, session) = (self.now(), scenario.session(plan));
        let asked = self.processes[p].ask(now, &session, stay, plan.priority);
        asked.expect("it is outside");
        self.turn(scenario, p);
    }

    /// A member has started again, and all others connect to it.
    pub(crate) fn reconnect(&mut self, scenario: &Scenario, back: MemberId) {
        let (now, it) = (self.now(), back.index());
        self.links.retain(|(from, to), _| ![*from, *to].contains(&End::Member(back)));
        // Messages that it sent before the connections are lost.
        while let Some(output) = self.members[it].poll_transmit() {
            if let Output::Save(record) = output {
                self.save(scenario, it, record);
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

    pub(crate) fn watch_stages(&mut self, scenario: &Scenario) {
        let holding = self.members.iter().enumerate().filter_map(|(m, member)| {
            member.stage_inside().map(|stage| (stage.epoch, m as u16, member.stage()))
        });
        let mut holding = holding.collect::<Vec<_>>();
        // With leases a home may notice late that it has lost its stage. The beliefs of its
        // processes count.
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
        // The beliefs of processes, not the states of members: a session, and its epoch.
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

    /// After a loss of a message, a stage may be under way with nobody inside until the next
    /// request.
    pub(crate) fn finished(&self, scenario: &Scenario) -> bool {
        let over = |process: &Process| match process.state() {
            ProcessState::Outside => true,
            ProcessState::Lost => scenario.passes > 0,
            ProcessState::Waiting | ProcessState::Inside { .. } => false,
        };
        self.rounds.iter().all(|rounds| *rounds == 0)
            && self.processes.iter().all(over)
            && (scenario.losses > 0
                || scenario.passes > 0
                || self.members.iter().all(|member| member.stage_inside().is_none()))
    }
}
