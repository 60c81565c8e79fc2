//! Which votes make a quorum, with seven members. {0, 1, 3} is the quorum of member 0, {1, 2, 4}
//! that of member 1.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Coterie, Member, MemberId, Output, PeerMessage, ProcessId, ProcessMessage, Settings, Time, home,
};

/// Member 0 with a request.
fn asked() -> Member {
    let coterie = Arc::new(Coterie::plane(7).unwrap());
    let mut member = Member::new(MemberId(0), coterie, Settings::default()).unwrap();
    let mut names = (0..).map(|number| format!("s{number}"));
    let session = names.find(|name| home(name, 7) == MemberId(0)).unwrap();
    let (attempt, stay, priority, sent, delay, pid) = (1, None, 0, Time::ZERO, Duration::ZERO, 1);
    let ask = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
    member.handle_process(Time::ZERO, ProcessId(1), ask).unwrap();
    member
}

/// The members that it asks for their votes now.
fn asks(member: &mut Member) -> BTreeSet<u16> {
    let outputs = std::iter::from_fn(|| member.poll_transmit());
    outputs
        .filter_map(|output| match output {
            Output::ToMember(to, PeerMessage::Request { .. }) => Some(to.0),
            _ => None,
        })
        .collect()
}

/// The member `from` votes for it. It has its own vote.
fn vote(member: &mut Member, from: u16) {
    let (stage, grant, epoch, heard, rival) = (1, 1, 0, Time::ZERO, None);
    let locked = PeerMessage::Locked { stage, grant, epoch, heard, rival, died: None };
    member.handle(Time::ZERO, MemberId(from), locked).unwrap();
}

#[test]
fn as_many_votes_as_a_quorum_has_are_not_a_quorum() {
    let mut member = asked();
    assert_eq!(asks(&mut member), [1, 3].into());
    for from in [1, 2, 5] {
        vote(&mut member, from);
    }
    assert_eq!(member.stage_inside(), None, "0, 1, 2 and 5 have no quorum among them");
    vote(&mut member, 3);
    assert!(member.stage_inside().is_some(), "0, 1 and 3 are one");
}

#[test]
fn while_somebody_is_away_a_whole_quorum_without_it_is_asked() {
    let mut member = asked();
    asks(&mut member);
    vote(&mut member, 1);
    member.handle_disconnect(Time::ZERO, MemberId(3));
    assert_eq!(asks(&mut member), [2, 4].into());
    vote(&mut member, 2);
    assert_eq!(member.stage_inside(), None, "neither quorum is whole");
    vote(&mut member, 4);
    assert!(member.stage_inside().is_some(), "1, 2 and 4 are one");
}
