//! Messages that arrive twice, too late, or again after a broken connection. The test sends them to
//! one member by hand.

use std::sync::Arc;
use std::time::Duration;

use grouplock_quorum::{
    Admission, Coterie, Durable, Member, MemberId, Output, PeerMessage, Precedence, ProcessId,
    ProcessMessage, Rank, Settings, Time, home,
};

const NOW: Time = Time::ZERO;

/// Member 0 of four. Each member asks all members.
fn member(admission: Admission) -> Member {
    let quorums = vec![(0..4).map(MemberId).collect(); 4];
    let coterie = Arc::new(Coterie::new(quorums).unwrap());
    let precedence = Precedence::Static;
    let settings = Settings { admission, precedence, ..Settings::default() };
    Member::new(MemberId(0), coterie, settings).unwrap()
}

/// A request of a member for its first stage; larger priorities rank before smaller ones.
fn request(arbiter: &mut Member, from: u16, priority: i32) -> Vec<PeerMessage> {
    ask(arbiter, from, priority, 0);
    said(arbiter)
}

fn ask(arbiter: &mut Member, from: u16, priority: i32, epoch: u64) {
    let claim = Precedence::Static.claim(NOW, priority);
    let rank = Rank { claim, member: MemberId(from), stage: 1 };
    arbiter.handle(NOW, rank.member, PeerMessage::Request { rank, sent: NOW, epoch }).unwrap();
}

/// The messages that it sends to other members.
fn said(member: &mut Member) -> Vec<PeerMessage> {
    let outputs = std::iter::from_fn(|| member.poll_transmit());
    let message = |output| match output {
        Output::ToMember(_, message) => Some(message),
        Output::Save(_) | Output::ToProcess(..) => None,
    };
    outputs.filter_map(message).collect()
}

fn inquiries(messages: &[PeerMessage]) -> usize {
    messages.iter().filter(|message| matches!(message, PeerMessage::Inquire { .. })).count()
}

#[test]
fn an_owner_is_asked_for_its_vote_once_per_grant_and_for_the_sake_of_better_ones_only() {
    for admission in [Admission::Together, Admission::InOrder] {
        let mut arbiter = member(admission);
        assert!(matches!(request(&mut arbiter, 1, 5)[..], [PeerMessage::Locked { grant: 1, .. }]));
        assert_eq!(inquiries(&request(&mut arbiter, 2, 4)), 0, "it ranks behind the owner");
        let first = request(&mut arbiter, 3, 6);
        assert_eq!(inquiries(&first), 1, "{first:?}");
        assert_eq!(inquiries(&request(&mut arbiter, 2, 7)), 0, "it was asked before");
        // After the next grant, it can be recalled again.
        let (from, message) = (MemberId(1), PeerMessage::Relinquish { stage: 1, grant: 1 });
        arbiter.handle(NOW, from, message).unwrap();
        assert!(matches!(said(&mut arbiter)[..], [PeerMessage::Locked { grant: 2, .. }]));
        assert_eq!(inquiries(&request(&mut arbiter, 1, 8)), 1);
    }
}

/// A group that has no answer returns its vote again. The vote may be on its way to it by then.
#[test]
fn a_vote_that_was_returned_and_given_again_is_not_taken_back_by_a_copy_of_the_return() {
    let mut arbiter = member(Admission::Together);
    request(&mut arbiter, 1, 5);
    request(&mut arbiter, 2, 6);
    let returned = PeerMessage::Relinquish { stage: 1, grant: 1 };
    arbiter.handle(NOW, MemberId(1), returned.clone()).unwrap();
    let release = PeerMessage::Release { stage: 1, epoch: 1, died: None };
    arbiter.handle(NOW, MemberId(2), release).unwrap();
    assert_eq!(arbiter.voted_for().map(|rank| rank.member), Some(MemberId(1)));
    request(&mut arbiter, 3, 7);
    arbiter.handle(NOW, MemberId(1), returned).unwrap();
    assert_eq!(arbiter.voted_for().map(|rank| rank.member), Some(MemberId(1)));
}

#[test]
fn an_owner_that_can_be_reached_again_is_asked_for_its_vote_only_if_a_group_ranks_before_it() {
    let mut arbiter = member(Admission::Together);
    request(&mut arbiter, 1, 5);
    request(&mut arbiter, 2, 4);
    arbiter.handle_reconnect(NOW, MemberId(1));
    let again = said(&mut arbiter);
    assert!(matches!(again[..], [PeerMessage::Locked { grant: 1, .. }]), "{again:?}");
    request(&mut arbiter, 3, 6);
    arbiter.handle_reconnect(NOW, MemberId(1));
    let again = said(&mut arbiter);
    assert!(matches!(again[..], [PeerMessage::Inquire { grant: 1, again: true, .. }]), "{again:?}");
}

/// The stage of the owner may get an epoch that is far above the one of the vote. If its home dies,
/// the arbiter leaps past it, also if it has restarted.
#[test]
fn an_arbiter_has_an_epoch_on_disk_before_it_tells_the_owner_that_it_knows_it() {
    let mut arbiter = member(Admission::Together);
    request(&mut arbiter, 1, 5);
    ask(&mut arbiter, 1, 5, 1 << 21);
    let mut disk = Durable::default();
    let told = std::iter::from_fn(|| arbiter.poll_transmit()).find_map(|output| match output {
        Output::Save(record) => {
            disk.apply(record);
            None
        }
        Output::ToMember(_, PeerMessage::Locked { epoch, .. }) => Some(epoch),
        _ => None,
    });
    assert_eq!((told, disk.vote.epoch), (Some(1 << 21), 1 << 21));
}

/// Otherwise it would admit newcomers that come after that group.
#[test]
fn in_order_an_owner_is_told_of_each_better_claim() {
    let mut arbiter = member(Admission::InOrder);
    request(&mut arbiter, 1, 5);
    request(&mut arbiter, 2, 6);
    let better = Precedence::Static.claim(NOW, 7);
    let told = request(&mut arbiter, 3, 7);
    let named = |rival| rival == Some(better);
    assert!(matches!(told[..], [PeerMessage::Contested { rival, .. }] if named(rival)), "{told:?}");
}

#[test]
fn a_member_that_has_never_run_has_nothing_to_say() {
    assert_eq!(member(Admission::Together).poll_transmit(), None);
}

/// A waiter asks again and again, because an answer may have been lost.
#[test]
fn a_request_that_is_repeated_keeps_its_position() {
    let coterie = Arc::new(Coterie::plane(3).unwrap());
    let precedence = Precedence::Aged { weight: Duration::ZERO };
    let settings = Settings { precedence, ..Settings::default() };
    let mut member = Member::new(MemberId(0), coterie, settings).unwrap();
    let session = (0..100).map(|n| format!("s{n}")).find(|name| home(name, 3) == MemberId(0));
    let mut ask = |attempt, at: u64| {
        let (at, session) = (Time::from_micros(at), session.clone().unwrap());
        let (stay, priority, delay, pid) = (None, 0, Duration::ZERO, 1);
        let message =
            ProcessMessage::Ask { attempt, session, stay, priority, sent: at, delay, pid };
        member.handle_process(at, ProcessId(7), message).unwrap();
        member.waits(ProcessId(7)).expect("it waits for another member's vote")
    };
    let first = ask(2, 1000);
    assert_eq!(ask(2, 2000), first, "it says the same again");
    assert_eq!(ask(1, 3000), first, "what it said before comes late");
    let (attempt, claim) = ask(3, 4000);
    assert_eq!(attempt, 3, "it has given up and asks anew");
    assert!(claim > first.1, "it comes after those who came meanwhile");
}
