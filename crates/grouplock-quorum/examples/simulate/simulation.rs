//! A cluster, its processes and its network in one thread, from a seed. The same seed gives the
//! same run.
//!
//! The example `simulate` and the tests in `tests/core` run it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, Durable, GroupMessage, Member, MemberId, Output, PeerMessage, Process, ProcessId,
    ProcessMessage, ProcessState, Settings, Time,
};

/// What to simulate.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The quorums.
    pub(crate) coterie: Coterie,
    /// The settings of the members.
    pub(crate) settings: Settings,
    /// How many processes run at a time. Process p wants session p modulo `sessions`.
    pub(crate) processes: u64,
    /// How many sessions.
    pub(crate) sessions: u64,
    /// The priority of session s is entry s modulo the length; 0 if the list is empty.
    pub(crate) priorities: Vec<i32>,
    /// How often each process enters.
    pub(crate) rounds: u32,
    /// How long a process is outside: at most twice this.
    pub(crate) think: Duration,
    /// How long it is inside: at most twice this.
    pub(crate) stay: Duration,
    /// How long messages take: the shortest and the longest.
    pub(crate) delay: (Duration, Duration),
    /// How many of a thousand messages are lost.
    pub(crate) loss: u32,
    /// How many of a thousand messages arrive twice.
    pub(crate) duplication: u32,
    /// How many of a thousand stays end with the death of the process. Another process replaces it.
    pub(crate) deaths: u32,
    /// The mean time until a member stops. It comes back within a lease. Zero for never.
    pub(crate) restarts: Duration,
    /// How many of a thousand members come back without their disk. They [ask and
    /// wait](Member::above).
    pub(crate) lost_disks: u32,
    /// When the run ends at the latest.
    pub(crate) until: Time,
}

impl Load {
    /// No faults. All processes ask at once, messages take a millisecond, and the run takes a
    /// hundred seconds at most.
    pub(crate) fn quiet(coterie: Coterie) -> Self {
        Load {
            coterie,
            settings: Settings { retry: Duration::from_secs(1000), ..Settings::default() },
            processes: 1,
            sessions: 1,
            priorities: Vec::new(),
            rounds: 1,
            think: Duration::ZERO,
            stay: Duration::from_millis(10),
            delay: (Duration::from_millis(1), Duration::from_millis(1)),
            loss: 0,
            duplication: 0,
            deaths: 0,
            restarts: Duration::ZERO,
            lost_disks: 0,
            until: Time::from_micros(100_000_000),
        }
    }

    /// Messages are lost, repeated and reordered, and processes die inside; ten minutes at most.
    pub(crate) fn hostile(coterie: Coterie, processes: u64) -> Self {
        let (retry, lease) = (Duration::from_millis(50), Some(Duration::from_secs(1)));
        Load {
            settings: Settings { retry, lease, ..Settings::default() },
            processes,
            sessions: 25,
            rounds: 4,
            think: Duration::from_millis(200),
            delay: (Duration::from_micros(100), Duration::from_millis(15)),
            loss: 50,
            duplication: 50,
            deaths: 5,
            until: Time::from_micros(600_000_000),
            ..Load::quiet(coterie)
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// How often processes entered.
    pub(crate) entries: u64,
    /// How many stages there were.
    pub(crate) stages: u64,
    /// Messages sent, by kind.
    pub(crate) sent: BTreeMap<&'static str, u64>,
    /// How long processes waited, by priority, in microseconds and ascending. Processes that still
    /// wait at the end count with their time so far.
    pub(crate) waits: BTreeMap<i32, Vec<u64>>,
    /// How many processes still wait at the end, by priority.
    pub(crate) waiting: BTreeMap<i32, u64>,
    /// The largest number of processes inside at once.
    pub(crate) most_inside: usize,
    /// How many died inside.
    pub(crate) deaths: u64,
    /// How many living processes lost their holding.
    pub(crate) losses: u64,
    /// How many stages reported a death that was already reported, or a possible death because a
    /// home was gone.
    pub(crate) alarms: u64,
    /// How many times a member came back with its disk.
    pub(crate) restarts: u64,
    /// How many times a member came back without its disk.
    pub(crate) lost_disks: u64,
    /// What must not happen, in words. It should be empty.
    pub(crate) violations: Vec<String>,
    /// When the run ended.
    pub(crate) ended: Time,
    /// A digest of all events, in order.
    pub(crate) trace: u64,
}

impl Report {
    /// Messages of the protocol, without those that renew leases.
    pub(crate) fn messages(&self) -> u64 {
        let kept = |kind: &str| !matches!(kind, "renew" | "renewed" | "gone");
        self.sent.iter().filter(|(kind, _)| kept(kind)).map(|(_, count)| count).sum()
    }

    /// Messages of one kind.
    pub(crate) fn sent(&self, kind: &str) -> u64 {
        self.sent.get(kind).copied().unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
enum Event {
    ToMember(MemberId, MemberId, PeerMessage),
    Up(ProcessId, MemberId, ProcessMessage),
    Down(MemberId, ProcessId, GroupMessage),
    WakeMember(usize),
    WakeProcess(u64),
    Ask(u64),
    /// Leave, with its epoch.
    Leave(u64, u64),
    Stop,
    Start(usize, bool),
}

/// A process and its next step.
struct Client {
    process: Process,
    session: u64,
    rounds: u32,
    asked: Time,
    wake: Option<Time>,
    inside: Option<u64>,
}

struct World<'a> {
    load: &'a Load,
    now: Time,
    random: fastrand::Rng,
    events: BTreeMap<(Time, u64), Event>,
    next: u64,
    members: Vec<Member>,
    disks: Vec<Durable>,
    /// The member that is down.
    down: Option<usize>,
    /// The last stage with a death, if the next has not begun.
    untold: Option<u64>,
    wakes: Vec<Option<Time>>,
    /// The living processes, by number.
    clients: BTreeMap<u64, Client>,
    newest: u64,
    inside: BTreeSet<u64>,
    /// The epoch and the session of the last stage.
    last: (u64, u64),
    report: Report,
}

/// Runs the simulation.
///
/// # Panics
/// If the coterie has no members. No such coterie can be made.
pub(crate) fn run(load: &Load, seed: u64) -> Report {
    let coterie = Arc::new(load.coterie.clone());
    let members = (0..coterie.members()).map(MemberId);
    let member = |id| Member::new(id, coterie.clone(), load.settings).expect("ids of the coterie");
    let mut world = World {
        load,
        now: Time::ZERO,
        random: fastrand::Rng::with_seed(seed),
        events: BTreeMap::new(),
        next: 0,
        members: members.map(member).collect(),
        disks: vec![Durable::default(); coterie.members().into()],
        down: None,
        untold: None,
        wakes: vec![None; coterie.members().into()],
        clients: BTreeMap::new(),
        newest: 0,
        inside: BTreeSet::new(),
        last: (0, u64::MAX),
        report: Report::default(),
    };
    for p in 0..load.processes {
        world.birth(p % load.sessions.max(1), load.rounds);
    }
    world.schedule_stop();
    while let Some(((at, _), event)) = world.events.pop_first() {
        if at > load.until {
            break;
        }
        world.now = at;
        world.trace(&format!("{at} {event:?}"));
        world.happen(event);
    }
    world.finish()
}

impl World<'_> {
    fn birth(&mut self, session: u64, rounds: u32) {
        let id = self.newest;
        self.newest += 1;
        let process = Process::new(ProcessId(id), self.load.coterie.members(), self.load.settings);
        let asked = self.now;
        let client = Client { process, session, rounds, asked, wake: None, inside: None };
        self.clients.insert(id, client);
        self.think(id);
    }

    fn think(&mut self, id: u64) {
        let at = self.now + self.about(self.load.think);
        self.schedule(at, Event::Ask(id));
    }

    /// A random time up to twice `mean`.
    fn about(&mut self, mean: Duration) -> Duration {
        let most = u64::try_from(mean.as_micros()).unwrap_or(u64::MAX / 2) * 2;
        Duration::from_micros(self.random.u64(0..=most))
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.next), event);
        self.next += 1;
    }

    fn send(&mut self, kind: &'static str, event: &Event) {
        *self.report.sent.entry(kind).or_insert(0) += 1;
        if self.random.u32(0..1000) < self.load.loss {
            return;
        }
        let twice = self.random.u32(0..1000) < self.load.duplication;
        for _ in 0..=u32::from(twice) {
            let (least, most) = self.load.delay;
            let (least, most) = (least.as_micros() as u64, most.as_micros() as u64);
            let takes = Duration::from_micros(self.random.u64(least..=most.max(least)));
            self.schedule(self.now + takes, event.clone());
        }
    }

    fn priority(&self, session: u64) -> i32 {
        let priorities = &self.load.priorities;
        priorities.get(session as usize % priorities.len().max(1)).copied().unwrap_or(0)
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        // A member that is down receives nothing.
        if let Event::ToMember(_, MemberId(m), _) | Event::Up(_, MemberId(m), _) = event
            && self.down == Some(m.into())
        {
            return;
        }
        match event {
            Event::ToMember(from, to, message) => {
                if let Err(refused) = self.members[to.index()].handle(now, from, message) {
                    self.report.violations.push(format!("{now}: refused: {refused}"));
                }
                self.after_member(to.index());
            }
            Event::Up(from, to, message) => {
                if let Err(refused) = self.members[to.index()].handle_process(now, from, message) {
                    self.report.violations.push(format!("{now}: refused: {refused}"));
                }
                self.after_member(to.index());
            }
            Event::Down(from, to, message) => {
                let Some(client) = self.clients.get_mut(&to.0) else { return };
                client.process.handle(now, from, message);
                self.after_process(to.0);
            }
            Event::WakeMember(m) if self.down == Some(m) => self.wakes[m] = None,
            Event::WakeMember(m) => {
                self.wakes[m] = None;
                self.members[m].handle_timeout(now);
                self.after_member(m);
            }
            Event::WakeProcess(id) => {
                let Some(client) = self.clients.get_mut(&id) else { return };
                client.wake = None;
                client.process.handle_timeout(now);
                self.after_process(id);
            }
            Event::Ask(id) => {
                let Some(session) = self.clients.get(&id).map(|client| client.session) else {
                    return;
                };
                let (stay, priority) = (self.about(self.load.stay), self.priority(session));
                let Some(client) = self.clients.get_mut(&id) else { return };
                client.asked = now;
                client.rounds -= 1;
                let name = format!("session {session}");
                if client.process.ask(now, &name, Some(stay), priority).is_err() {
                    self.report.violations.push(format!("{now}: process {id} was busy"));
                }
                self.after_process(id);
            }
            Event::Leave(id, epoch) => self.leave(id, epoch),
            Event::Stop => self.stop(),
            Event::Start(m, lost) => self.start(m, lost),
        }
    }

    fn schedule_stop(&mut self) {
        let wanted =
            |client: &Client| client.rounds > 0 || client.process.state() == ProcessState::Waiting;
        if !self.load.restarts.is_zero() && self.clients.values().any(wanted) {
            let at = self.now + self.about(self.load.restarts);
            self.schedule(at, Event::Stop);
        }
    }

    fn stop(&mut self) {
        let (m, now) = (self.random.usize(0..self.members.len()), self.now);
        let lost = self.random.u32(0..1000) < self.load.lost_disks;
        let lease = self.load.settings.lease.unwrap_or_default();
        let waits = self.load.settings.vote_lease().filter(|_| lost);
        let back = now + waits.unwrap_or_else(|| self.about(lease / 2));
        self.down = Some(m);
        for other in (0..self.members.len()).filter(|other| *other != m) {
            self.members[other].handle_disconnect(now, MemberId(m as u16));
            self.after_member(other);
        }
        self.schedule(back, Event::Start(m, lost));
    }

    fn start(&mut self, m: usize, lost: bool) {
        let (me, now) = (MemberId(m as u16), self.now);
        let coterie = Arc::new(self.load.coterie.clone());
        let others: Vec<_> = (0..self.members.len()).filter(|other| *other != m).collect();
        let made = if lost {
            self.report.lost_disks += 1;
            let floor = others.iter().map(|other| self.members[*other].floor(me)).max();
            let floor = floor.unwrap_or(0);
            self.disks[m] = Durable::above(floor);
            Member::above(floor, me, coterie, self.load.settings, now)
        } else {
            self.report.restarts += 1;
            Member::recover(me, coterie, self.load.settings, self.disks[m].clone(), now)
        };
        let Ok(made) = made else { return };
        self.members[m] = made;
        self.down = None;
        self.wakes[m] = None;
        for other in others {
            self.members[m].handle_reconnect(now, MemberId(other as u16));
            self.members[other].handle_reconnect(now, me);
            self.after_member(other);
        }
        self.after_member(m);
        self.schedule_stop();
    }

    fn leave(&mut self, id: u64, epoch: u64) {
        let dies = self.random.u32(0..1000) < self.load.deaths;
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.inside != Some(epoch) {
            return; // it lost its place before
        }
        if dies {
            let (session, rounds) = (client.session, client.rounds);
            self.clients.remove(&id);
            self.inside.remove(&id);
            self.report.deaths += 1;
            self.untold = Some(epoch);
            if rounds > 0 {
                self.birth(session, rounds);
            }
            return;
        }
        client.process.leave();
        self.after_process(id);
    }

    fn after_member(&mut self, m: usize) {
        let from = MemberId(m as u16);
        while let Some(output) = self.members[m].poll_transmit() {
            match output {
                Output::Save(record) => self.disks[m].apply(record),
                Output::ToMember(to, message) => {
                    self.send(message.kind(), &Event::ToMember(from, to, message));
                }
                Output::ToProcess(to, message) => {
                    self.send(message.kind(), &Event::Down(from, to, message));
                }
            }
        }
        if let Some(at) = self.members[m].poll_timeout()
            && self.wakes[m].is_none_or(|wake| at < wake)
        {
            self.wakes[m] = Some(at);
            self.schedule(at.max(self.now), Event::WakeMember(m));
        }
    }

    fn after_process(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let mut messages = Vec::new();
        while let Some(message) = client.process.poll_transmit() {
            messages.push(message);
        }
        let state = client.process.state();
        let timeout = client.process.poll_timeout();
        let wake = timeout.filter(|at| client.wake.is_none_or(|wake| *at < wake));
        client.wake = wake.or(client.wake);
        let before = client.inside;
        for (to, message) in messages {
            self.send(message.kind(), &Event::Up(ProcessId(id), to, message));
        }
        if let Some(at) = wake {
            self.schedule(at.max(self.now), Event::WakeProcess(id));
        }
        match (before, state) {
            (None, ProcessState::Inside { epoch, .. }) => self.entered(id, epoch),
            (Some(_), ProcessState::Outside | ProcessState::Lost) => {
                self.report.losses += u64::from(state == ProcessState::Lost);
                self.inside.remove(&id);
                let Some(client) = self.clients.get_mut(&id) else { return };
                client.inside = None;
                if client.rounds > 0 {
                    self.think(id);
                }
            }
            _ => {}
        }
    }

    fn entered(&mut self, id: u64, epoch: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.inside = Some(epoch);
        let (session, waited) = (client.session, self.now.since(client.asked));
        let priority = self.priority(session);
        self.report.waits.entry(priority).or_default().push(waited.as_micros() as u64);
        self.report.entries += 1;
        self.inside.insert(id);
        self.report.most_inside = self.report.most_inside.max(self.inside.len());
        let others = self.inside.iter().filter_map(|other| self.clients.get(other));
        if others.clone().any(|other| other.session != session || other.inside != Some(epoch)) {
            self.report.violations.push(format!("{}: two sessions inside", self.now));
        }
        if epoch < self.last.0 || (epoch == self.last.0 && session != self.last.1) {
            self.report.violations.push(format!("{}: epoch {epoch} is an old one", self.now));
        }
        if epoch != self.last.0 {
            self.report.stages += 1;
            self.check_told(id, epoch);
        }
        self.last = (epoch, session);
        let stays = self.about(self.load.stay);
        self.schedule(self.now + stays, Event::Leave(id, epoch));
    }

    /// Checks that the first process of a new stage learns of a death in the stage before.
    fn check_told(&mut self, id: u64, epoch: u64) {
        let process = self.clients.get(&id).map(|client| &client.process);
        let told = process.and_then(Process::recovered).map(|death| death.epoch);
        match self.untold.take() {
            Some(died) if told.is_none_or(|told| told < died) => {
                let words = format!("{}: {epoch} is not told of a death in {died}", self.now);
                self.report.violations.push(words);
            }
            Some(_) => {}
            None => self.report.alarms += u64::from(told.is_some()),
        }
    }

    /// FNV-1a: the digest is the same on every machine.
    fn trace(&mut self, line: &str) {
        for byte in line.bytes() {
            let mixed = (self.report.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            self.report.trace = mixed;
        }
    }

    fn finish(mut self) -> Report {
        for client in self.clients.values() {
            if client.process.state() == ProcessState::Waiting {
                let priority = self.priority(client.session);
                let waited = self.now.since(client.asked).as_micros() as u64;
                self.report.waits.entry(priority).or_default().push(waited);
                *self.report.waiting.entry(priority).or_insert(0) += 1;
            }
        }
        self.report.waits.values_mut().for_each(|waits| waits.sort_unstable());
        self.report.ended = self.now;
        self.report
    }
}
