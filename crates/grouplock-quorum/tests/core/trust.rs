//! How long votes and leases are trusted. The test plays all others.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, GroupMessage, Member, MemberId, Output, PeerMessage, Process, ProcessId,
    ProcessMessage, ProcessState, Settings, Time, home,
};

const LEASE: Duration = Duration::from_secs(4);

fn at(quarters: u32) -> Time {
    Time::ZERO + LEASE / 4 * quarters
}

/// A member that is the home of a session, with its process. The test plays the other members.
struct Home {
    member: Member,
    session: String,
}

impl Home {
    fn new() -> Self {
        let mut names = (0..).map(|n| format!("s{n}"));
        let session = names.find(|name| home(name, 3) == MemberId(0)).unwrap();
        let settings = Settings { lease: Some(LEASE), ..Settings::default() };
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        Home { member: Member::new(MemberId(0), coterie, settings).unwrap(), session }
    }

    /// A process asks, perhaps again. Returns who learns that it is inside.
    fn ask(&mut self, now: Time, process: u64) -> Vec<u64> {
        let (attempt, session, stay, priority) = (1, self.session.clone(), None, 0);
        let (sent, delay, pid) = (now, Duration::ZERO, 1);
        let ask = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
        self.member.handle_process(now, ProcessId(process), ask).unwrap();
        self.told()
    }

    /// Member 1 votes for its stage, or renews its vote. The same.
    fn hear_vote(&mut self, now: Time) -> Vec<u64> {
        let (stage, grant, epoch, heard, rival) = (1, 1, 0, now, None);
        let locked = PeerMessage::Locked { stage, grant, epoch, heard, rival, died: None };
        self.member.handle(now, MemberId(1), locked).unwrap();
        self.told()
    }

    fn told(&mut self) -> Vec<u64> {
        let outputs = std::iter::from_fn(|| self.member.poll_transmit());
        let told = outputs.filter_map(|output| match output {
            Output::ToProcess(process, GroupMessage::Enter { .. }) => Some(process.0),
            _ => None,
        });
        told.collect()
    }
}

/// A process that is told so would be inside for a lease from then on. Its votes last half a lease
/// longer than that from when they were requested.
#[test]
fn nobody_is_told_that_it_is_inside_by_old_votes() {
    let mut home = Home::new();
    assert!(home.ask(at(0), 1).is_empty());
    assert_eq!(home.hear_vote(at(0)), [1]);
    assert_eq!(home.ask(at(2), 1), [1], "the answer may be lost");
    assert!(home.ask(at(3), 1).is_empty(), "its vote is too old to repeat the answer");
    assert!(home.ask(at(3), 2).is_empty(), "and to join");
    home.hear_vote(at(4));
    home.member.handle_timeout(at(4));
    home.told();
    assert_eq!(home.ask(at(4), 1), [1]);
    assert!(home.member.is_inside(ProcessId(2)), "it joins as soon as the vote is renewed");
}

/// Its answers may be lost. As long as it asks, it is alive.
#[test]
fn a_process_that_asks_again_and_again_keeps_its_place_for_longer_than_a_lease() {
    let mut home = Home::new();
    home.ask(at(0), 1);
    let first = home.member.waits(ProcessId(1));
    assert!(first.is_some(), "it waits for the vote of member 1");
    for quarters in 1..10 {
        home.ask(at(quarters), 1);
        home.member.handle_timeout(at(quarters));
        assert_eq!(home.member.waits(ProcessId(1)), first);
    }
    for quarters in 10..20 {
        home.hear_vote(at(quarters));
        assert_eq!(home.ask(at(quarters), 1), [1]);
        home.member.handle_timeout(at(quarters));
        assert!(home.member.is_inside(ProcessId(1)));
    }
}

/// The home counts the lease of a process from when it hears the process.
#[test]
fn a_process_counts_its_lease_from_when_it_has_said_what_is_answered() {
    let settings = Settings { lease: Some(LEASE), ..Settings::default() };
    let mut process = Process::new(ProcessId(1), 3, settings);
    let home = home("s", 3);
    let valid_until = |process: &Process| match process.state() {
        ProcessState::Inside { valid_until, .. } => valid_until,
        _ => None,
    };
    process.ask(at(0), "s", None, 0).unwrap();
    let enter = GroupMessage::Enter { attempt: 1, epoch: 1, heard: at(0), recovered: None };
    process.handle(at(1), home, enter);
    assert_eq!(valid_until(&process), Some(at(4)));
    process.handle(at(3), home, GroupMessage::Renewed { attempt: 1, heard: at(2) });
    assert_eq!(valid_until(&process), Some(at(6)));
}
