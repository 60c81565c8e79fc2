//! A broken connection loses messages. They are sent again as soon as it is back, before any timer.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, GroupMessage, Member, MemberId, Output, ProcessId, ProcessMessage, Settings, Time,
    home as home_of,
};

const NOW: Time = Time::ZERO;

struct Three {
    members: Vec<Member>,
    /// Pairs of sender and receiver whose messages are lost.
    broken: Vec<(u16, u16)>,
    entered: Vec<ProcessId>,
}

impl Three {
    fn new() -> Self {
        let coterie = Arc::new(Coterie::plane(3).unwrap());
        let member = |id| Member::new(MemberId(id), coterie.clone(), Settings::default()).unwrap();
        Three { members: (0..3).map(member).collect(), broken: Vec::new(), entered: Vec::new() }
    }

    fn tell(&mut self, home: usize, process: u64, message: ProcessMessage) {
        self.members[home].handle_process(NOW, ProcessId(process), message).unwrap();
        self.carry();
    }

    fn ask(&mut self, home: u16, process: u64, priority: i32) {
        let mut names = (0..100).map(|number| format!("s{number}"));
        let session = names.find(|name| home_of(name, 3) == MemberId(home));
        let session = session.expect("there are enough names");
        let (attempt, stay, sent, delay, pid) = (1, None, NOW, Duration::ZERO, 1);
        let ask = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
        self.tell(home.into(), process, ask);
    }

    /// Delivers all messages that are not lost. No time passes.
    fn carry(&mut self) {
        while let Some((from, output)) = self.next() {
            match output {
                Output::ToMember(to, message) if !self.broken.contains(&(from, to.0)) => {
                    self.members[to.index()].handle(NOW, MemberId(from), message).unwrap();
                }
                Output::ToProcess(process, GroupMessage::Enter { .. }) => {
                    self.entered.push(process);
                }
                Output::Save(_) | Output::ToMember(..) | Output::ToProcess(..) => {}
            }
        }
    }

    fn next(&mut self) -> Option<(u16, Output)> {
        (0..3).find_map(|from| self.members[usize::from(from)].poll_transmit().map(|o| (from, o)))
    }

    fn mend(&mut self, from: u16, to: u16) {
        self.broken.retain(|link| *link != (from, to));
        self.members[usize::from(from)].handle_reconnect(NOW, MemberId(to));
        self.carry();
    }
}

#[test]
fn a_request_and_its_answer() {
    let mut three = Three::new();
    three.broken = vec![(0, 1), (1, 0)];
    three.ask(0, 7, 0);
    assert!(three.entered.is_empty());
    three.mend(0, 1);
    assert!(three.entered.is_empty(), "the answer is lost");
    three.mend(1, 0);
    assert_eq!(three.entered, [ProcessId(7)]);
}

/// A RELEASE that was lost is sent again: the next group gets the vote.
#[test]
fn a_release() {
    let mut three = Three::new();
    three.ask(0, 7, 0);
    three.ask(1, 8, 0);
    assert_eq!(three.entered, [ProcessId(7)]);
    three.broken = vec![(0, 1)];
    three.tell(0, 7, ProcessMessage::Leave { attempt: 1, entered: true });
    assert_eq!(three.entered, [ProcessId(7)], "member 1 has not heard");
    three.mend(0, 1);
    assert_eq!(three.entered, [ProcessId(7), ProcessId(8)]);
}

#[test]
fn an_inquiry_and_its_answer() {
    let mut three = Three::new();
    // Member 1 votes for itself, but cannot get the vote of 2. Then member 0, which ranks before
    // it, asks 1 for its vote.
    three.broken = vec![(1, 2), (1, 0)];
    three.ask(1, 8, 0);
    three.ask(0, 7, 5);
    assert!(three.entered.is_empty());
    three.mend(1, 0);
    assert_eq!(three.entered, [ProcessId(7)], "the vote was given back and told of");
    three.mend(1, 2);
    assert_eq!(three.entered, [ProcessId(7)], "it waits for its own vote");
    three.tell(0, 7, ProcessMessage::Leave { attempt: 1, entered: true });
    assert_eq!(three.entered, [ProcessId(7), ProcessId(8)]);
}

#[test]
fn what_need_not_be_said_is_not() {
    let mut three = Three::new();
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 9), (1, 1)] {
        three.members[from].handle_reconnect(NOW, MemberId(to));
    }
    assert!(three.next().is_none());
}
