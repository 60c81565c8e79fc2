//! Leases, millisecond by millisecond. There are three members. The network delivers at once, or
//! not at all.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, GroupMessage, Member, MemberId, Output, PeerMessage, Process, ProcessId,
    ProcessMessage, ProcessState, Settings, Time, Votes, home,
};

const LEASE: Duration = Duration::from_secs(4);

struct World {
    members: Vec<Member>,
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
            processes: (0..2).map(process).collect(),
            cut: Vec::new(),
            millis: 0,
        }
    }

    fn now(&self) -> Time {
        Time::from_micros(self.millis * 1000)
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
                            self.members[to.index()].handle(now, id, message).unwrap();
                        }
                        Output::ToProcess(to, message) => {
                            self.processes[to.0 as usize].handle(now, id, message);
                        }
                        Output::ToMember(..) | Output::Save(_) => {}
                    }
                }
            }
            for p in 0..2 {
                while let Some((to, message)) = self.processes[p].poll_transmit() {
                    quiet = false;
                    let id = ProcessId(p as u64);
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
        self.members.iter_mut().for_each(|member| member.handle_timeout(now));
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
fn who_is_inside_stays_inside_when_an_arbiter_is_gone() {
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
