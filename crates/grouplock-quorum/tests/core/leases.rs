//! Leases, millisecond by millisecond. There are three members. The network delivers at once, or
//! not at all.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, Durable, GroupMessage, Member, MemberId, Output, PeerMessage, Precedence, Process,
    ProcessId, ProcessMessage, ProcessState, Rank, Settings, Time, Votes, home,
};

const LEASE: Duration = Duration::from_secs(4);

struct World {
    coterie: Arc<Coterie>,
    settings: Settings,
    members: Vec<Member>,
    /// What each member has saved.
    saved: [Durable; 3],
    /// How far the clock of each member is ahead.
    ahead: [Duration; 3],
    processes: Vec<Process>,
    /// Members that send and receive nothing.
    cut: Vec<usize>,
    millis: u64,
}

impl World {
    fn new(votes: Votes) -> Self {
        let retry = Duration::from_millis(500);
        let settings = Settings { retry, lease: Some(LEASE), votes, ..Settings::default() };
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        let member = |id| Member::new(MemberId(id), coterie.clone(), settings).unwrap();
        let process = |id| Process::new(ProcessId(id), 3, settings);
        World {
            members: (0..3).map(member).collect(),
            saved: Default::default(),
            ahead: [Duration::ZERO; 3],
            coterie,
            settings,
            processes: (0..2).map(process).collect(),
            cut: Vec::new(),
            millis: 0,
        }
    }

    fn now(&self) -> Time {
        Time::from_micros(self.millis * 1000)
    }

    fn clock(&self, member: usize) -> Time {
        self.now() + self.ahead[member]
    }

    /// A member restarts with what it has saved. The others do not notice it.
    fn restart(&mut self, member: usize) {
        let (id, coterie) = (MemberId(member as u16), self.coterie.clone());
        let (saved, now) = (self.saved[member].clone(), self.clock(member));
        let restarted = Member::recover(id, coterie, self.settings, saved, now);
        self.members[member] = restarted.unwrap();
        self.carry();
    }

    /// Process p asks for a session whose home is member p.
    fn ask(&mut self, p: usize) {
        let names = (0..).map(|n| format!("s{n}"));
        let mut here = names.filter(|name| home(name, 3).index() == p);
        let now = self.now();
        self.processes[p].ask(now, &here.next().unwrap(), None, 0).unwrap();
        self.carry();
    }

    fn carry(&mut self) {
        let now = self.now();
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for from in 0..3 {
                while let Some(output) = self.members[from].poll_transmit() {
                    quiet = false;
                    let id = MemberId(from as u16);
                    match output {
                        Output::ToMember(to, message)
                            if !self.cut.contains(&from) && !self.cut.contains(&to.index()) =>
                        {
                            let now = self.clock(to.index());
                            self.members[to.index()].handle(now, id, message).unwrap();
                        }
                        Output::ToProcess(to, message) => {
                            self.processes[to.0 as usize].handle(now, id, message);
                        }
                        Output::Save(record) => self.saved[from].apply(record),
                        Output::ToMember(..) => {}
                    }
                }
            }
            for p in 0..2 {
                while let Some((to, message)) = self.processes[p].poll_transmit() {
                    quiet = false;
                    let (id, now) = (ProcessId(p as u64), self.clock(to.index()));
                    self.members[to.index()].handle_process(now, id, message).unwrap();
                }
            }
        }
    }

    /// A millisecond passes.
    fn tick(&mut self) {
        self.millis += 1;
        let now = self.now();
        self.processes.iter_mut().for_each(|process| process.handle_timeout(now));
        for member in 0..3 {
            let now = self.clock(member);
            self.members[member].handle_timeout(now);
        }
        self.carry();
        let inside: Vec<_> = self.processes.iter().filter_map(|p| epoch(p.state())).collect();
        assert!(inside.len() < 2, "{inside:?} are inside at {now}");
    }

    /// The time until the condition holds, at most three leases.
    fn until(&mut self, what: &str, so: impl Fn(&World) -> bool) -> Duration {
        let began = self.now();
        while !so(self) {
            assert!(self.now().since(began) < LEASE * 3, "it takes too long: {what}");
            self.tick();
        }
        self.now().since(began)
    }
}

fn epoch(standing: ProcessState) -> Option<u64> {
    match standing {
        ProcessState::Inside { epoch, .. } => Some(epoch),
        _ => None,
    }
}

/// The home still reaches its process, but none of its arbiters.
#[test]
fn a_home_that_is_cut_off_stops_its_processes_before_its_votes_are_given_away() {
    let mut world = World::new(Votes::AnyQuorum);
    world.ask(0);
    let first = epoch(world.processes[0].state()).expect("the room is empty");
    (0..10_000).for_each(|_| world.tick());
    assert_eq!(epoch(world.processes[0].state()), Some(first), "it is renewed");
    world.cut.push(0);
    world.ask(1);
    let lost = world.until("it is out", |w| w.processes[0].state() == ProcessState::Lost);
    assert!(epoch(world.processes[1].state()).is_none());
    let entered = world.until("the other is in", |w| epoch(w.processes[1].state()).is_some());
    println!("out after {lost:?}, the other in after {:?}", lost + entered);
    assert!(lost + entered <= LEASE * 2);
    let second = epoch(world.processes[1].state());
    assert!(second > Some(first), "{second:?} after {first}");
    // When it is connected again, its old stage does not come back.
    world.cut.clear();
    (0..10_000).for_each(|_| world.tick());
    assert_eq!(epoch(world.processes[1].state()), second, "it stays inside");
}

/// While an arbiter is away, another votes in its place, also for a stage under way.
#[test]
fn a_holder_stays_inside_when_an_arbiter_is_gone() {
    for votes in [Votes::AnyQuorum, Votes::OwnQuorum] {
        let mut world = World::new(votes);
        world.ask(0);
        let first = epoch(world.processes[0].state());
        assert!(first.is_some());
        world.cut.push(1);
        let now = world.now();
        for other in [0, 2] {
            world.members[other].handle_disconnect(now, MemberId(1));
        }
        world.carry();
        (0..20_000).for_each(|_| world.tick());
        let still = epoch(world.processes[0].state());
        assert_eq!(still, first.filter(|_| votes == Votes::AnyQuorum), "{votes:?}");
    }
}

/// Before the restart, the requests of the home carried later times than after it.
#[test]
fn a_clock_that_goes_back_over_a_restart_admits_nobody_beside_a_holder() {
    let mut world = World::new(Votes::AnyQuorum);
    world.ahead[0] = LEASE * 4;
    world.ask(0);
    let first = epoch(world.processes[0].state());
    assert!(first.is_some(), "the room is empty");
    (0..10_000).for_each(|_| world.tick());
    world.ahead[0] = Duration::ZERO;
    world.restart(0);
    world.ask(1);
    (0..30_000).for_each(|_| world.tick());
    assert_eq!(epoch(world.processes[0].state()), first, "its home renews it");
    world.processes[0].leave();
    world.until("the other is in", |w| epoch(w.processes[1].state()) > first);
}

/// The arbiter's answer to a request from before the restart. The request was sent later than now,
/// by a clock that was ahead.
#[test]
fn an_answer_from_before_a_restart_renews_nobody() {
    let mut world = World::new(Votes::AnyQuorum);
    world.ask(0);
    (0..10_000).for_each(|_| world.tick());
    world.cut.push(0);
    world.restart(0);
    let now = world.now();
    let (epoch, heard, rival, died) = (0, now + LEASE, None, None);
    let locked = PeerMessage::Locked { stage: 1, grant: 1, epoch, heard, rival, died };
    world.members[0].handle(now, MemberId(1), locked).unwrap();
    world.carry();
    let lost = world.until("it is out", |w| w.processes[0].state() == ProcessState::Lost);
    assert!(lost <= LEASE, "out after {lost:?}");
}

/// Its owner may have restarted with another clock.
#[test]
fn an_arbiter_that_is_connected_again_names_no_time_from_before() {
    let coterie = Arc::new(Coterie::plane(3).unwrap());
    let settings = Settings { lease: Some(LEASE), ..Settings::default() };
    let mut member = Member::new(MemberId(1), coterie, settings).unwrap();
    let at = |millis: u64| Time::from_micros(millis * 1000);
    let claim = Precedence::Static.claim(at(1), 0);
    let names = |member: &mut Member| {
        let outputs = std::iter::from_fn(|| member.poll_transmit());
        let heard = outputs.filter_map(|output| match output {
            Output::ToMember(MemberId(0), PeerMessage::Locked { heard, .. }) => Some(heard),
            _ => None,
        });
        heard.collect::<Vec<_>>()
    };
    let hears = |member: &mut Member, from: u16, millis: u64| {
        let (rank, epoch) = (Rank { claim, member: MemberId(from), stage: 1 }, 0);
        let request = PeerMessage::Request { rank, sent: at(millis), epoch };
        member.handle(at(millis), MemberId(from), request).unwrap();
    };
    // As the owner of the vote.
    hears(&mut member, 0, 10);
    assert_eq!(names(&mut member), [at(10)]);
    member.handle_reconnect(at(20), MemberId(0));
    assert_eq!(names(&mut member), [Time::ZERO]);
    hears(&mut member, 0, 30);
    assert_eq!(names(&mut member), [at(30)]);
    // And while it waits for the vote.
    let release = PeerMessage::Release { stage: 1, epoch: 1, died: None };
    member.handle(at(40), MemberId(0), release.clone()).unwrap();
    hears(&mut member, 2, 50);
    let rank = Rank { claim, member: MemberId(0), stage: 2 };
    let request = PeerMessage::Request { rank, sent: at(60), epoch: 1 };
    member.handle(at(60), MemberId(0), request).unwrap();
    member.handle_reconnect(at(70), MemberId(0));
    member.handle(at(80), MemberId(2), release).unwrap();
    assert_eq!(names(&mut member), [Time::ZERO]);
}

/// An arbiter learns later epochs from other members that ask it, such as a member that has lost
/// its memory. Its vote stays.
#[test]
fn a_vote_that_was_not_taken_back_counts_whatever_epoch_its_arbiter_has_heard_of() {
    let settings = Settings { lease: Some(LEASE), ..Settings::default() };
    let coterie = Arc::new(Coterie::plane(3).unwrap());
    let mut member = Member::new(MemberId(0), coterie, settings).unwrap();
    let mut names = (0..).map(|n| format!("s{n}"));
    let session = names.find(|name| home(name, 3) == MemberId(0)).unwrap();
    let (attempt, stay, priority, p) = (1, None, 0, ProcessId(1));
    let (sent, delay, pid) = (Time::ZERO, Duration::ZERO, 1);
    let ask = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
    member.handle_process(Time::ZERO, p, ask).unwrap();
    let at = |quarters: u32| Time::ZERO + LEASE / 4 * quarters;
    let mut hears = |quarters: u32, grant: u64, epoch: u64| {
        let (stage, heard, rival, died) = (1, at(quarters), None, None);
        let locked = PeerMessage::Locked { stage, grant, epoch, heard, rival, died };
        member.handle_timeout(at(quarters));
        member.handle(at(quarters), MemberId(1), locked).unwrap();
        let renew = ProcessMessage::Renew { attempt, sent: at(quarters) };
        member.handle_process(at(quarters), p, renew).unwrap();
        std::iter::from_fn(|| member.poll_transmit())
            .any(|it| matches!(it, Output::ToProcess(_, GroupMessage::Renewed { .. })))
    };
    assert!(hears(0, 5, 0), "it is inside");
    for quarters in 1..10 {
        assert!(hears(quarters, 5, 1 << 20), "{quarters} quarters of a lease later");
    }
    assert!(!hears(10, 6, 1 << 20), "this vote was given anew, and others may have been inside");
}
