//! Members and clients die, and disks fail: one fault at a time, with its exact results.

use std::time::{Duration, Instant};

use crate::cluster::client::{Raw, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_quorum::wire::{Frame, Role};
use grouplock_quorum::{Coterie, GroupMessage, MemberId, ProcessMessage};
use grouplock_room::{Places, RoomOptions};

/// Long enough for every possible fault to appear.
const A_WHILE: Duration = Duration::from_millis(800);

/// How long to watch for a violation. With a member that forgets it must happen, however slow the
/// machine is.
fn watched(forget: Option<&str>) -> Duration {
    if forget.is_some() { PATIENCE } else { A_WHILE }
}

fn start(options: Options) -> Cluster {
    let cluster = Cluster::start(options);
    cluster.wait_connected();
    cluster
}

/// Leases do not expire during the test, and no member votes instead of another.
fn patient(members: u16) -> Options {
    Options { lease: "60s", votes: "own", ..Options::new(members) }
}

fn client_at(cluster: &Cluster, id: usize) -> Raw {
    Raw::client(&cluster.address(id), fastrand::u64(..)).unwrap().0
}

/// The paper's mode.
#[test]
fn a_dead_member_stops_the_groups_that_need_its_vote_if_only_their_own_quorum_counts() {
    dead_member("own");
}

#[test]
fn a_dead_member_stops_nobody_if_any_quorum_counts() {
    dead_member("any");
}

fn dead_member(votes: &'static str) {
    let mut cluster = start(Options { votes, ..patient(7) });
    let coterie = Coterie::plane(7).unwrap();
    let dead = MemberId(3);
    cluster.kill(dead.index());
    let (needing, others): (Vec<u16>, Vec<u16>) = (0..7)
        .filter(|id| MemberId(*id) != dead)
        .partition(|id| coterie.quorum(MemberId(*id)).unwrap().contains(&dead));
    assert_eq!((needing.len(), others.len()), (2, 4));
    for id in others {
        let mut client = client_at(&cluster, id.into());
        let room = format!("room of {id}");
        client.ask(&room, &session_at(id, 7), 1).unwrap();
        assert!(client.entered(1, PATIENCE).unwrap().is_some(), "member {id} does not need it");
    }
    let mut waiting = Vec::new();
    for id in needing {
        let mut client = client_at(&cluster, id.into());
        client.ask(&format!("room of {id}"), &session_at(id, 7), 1).unwrap();
        if votes == "any" {
            assert!(client.entered(1, PATIENCE).unwrap().is_some(), "others vote for {id}");
            continue;
        }
        assert_eq!(client.entered(1, A_WHILE).unwrap(), None, "member {id} needs it");
        waiting.push(client);
    }
    cluster.launch(dead.index());
    for mut client in waiting {
        assert!(client.entered(1, PATIENCE).unwrap().is_some(), "it is back");
    }
}

/// Member 1 has voted for a stage of member 0, is killed and starts again. Then another session
/// needs its vote. Returns whether that session is admitted with a holder inside.
fn votes_twice(forget: Option<&str>) -> bool {
    let mut cluster = Cluster::prepare(patient(3));
    if let Some(what) = forget {
        cluster.set(1, "GROUPLOCK_TEST_FORGET", what);
    }
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    let mut inside = client_at(&cluster, 0);
    inside.ask("room", &session_at(0, 3), 1).unwrap();
    let epoch = inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    cluster.kill(1);
    // Otherwise member 0 would ask for the vote again, as for its renewal, and member 1 would learn
    // what it has forgotten.
    cluster.signal(0, nix::sys::signal::Signal::SIGSTOP);
    cluster.launch(1);
    let mut other = client_at(&cluster, 1);
    other.ask("room", &session_at(1, 3), 2).unwrap();
    let entered = other.entered(2, watched(forget)).unwrap();
    cluster.signal(0, nix::sys::signal::Signal::SIGCONT);
    if entered.is_some() {
        return true;
    }
    inside.leave("room", 1).unwrap();
    let next = other.entered(2, PATIENCE).unwrap().expect("the room is empty again");
    assert!(next > epoch);
    false
}

#[test]
fn a_member_that_comes_back_keeps_its_promise() {
    assert!(!votes_twice(None));
}

/// Without this result the test above would show nothing.
#[test]
fn a_member_that_forgets_its_votes_is_caught() {
    assert!(votes_twice(Some("votes")));
}

/// The home of a session is killed with a holder inside. Returns whether another session is
/// admitted meanwhile.
fn lets_in_twice(forget: Option<&str>) -> bool {
    let mut cluster = Cluster::prepare(patient(3));
    if let Some(what) = forget {
        cluster.set(0, "GROUPLOCK_TEST_FORGET", what);
    }
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    let mut inside = client_at(&cluster, 0);
    inside.ask("room", &session_at(0, 3), 1).unwrap();
    inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    cluster.kill(0);
    let mut other = client_at(&cluster, 1);
    other.ask("room", &session_at(1, 3), 2).unwrap();
    assert_eq!(other.entered(2, A_WHILE).unwrap(), None, "while it is dead");
    cluster.launch(0);
    cluster.wait_connected();
    if other.entered(2, watched(forget)).unwrap().is_some() {
        return true;
    }
    // The holder is still inside, and can leave.
    let mut inside = client_at(&cluster, 0);
    let sent = inside.clock.now();
    inside.process("room", 1, ProcessMessage::Renew { attempt: 1, sent }).unwrap();
    let renewed = inside.hear(PATIENCE).unwrap();
    let is_gone = |message: &_| matches!(message, GroupMessage::Gone { .. });
    assert!(
        matches!(&renewed, Some(Frame::Group { message, .. }) if !is_gone(message)),
        "{renewed:?}"
    );
    inside.leave("room", 1).unwrap();
    other.entered(2, PATIENCE).unwrap().expect("the room is empty again");
    false
}

#[test]
fn a_home_that_comes_back_still_has_those_inside() {
    assert!(!lets_in_twice(None));
}

/// Without this result the test above would show nothing.
#[test]
fn a_home_that_forgets_its_holders_is_caught() {
    assert!(lets_in_twice(Some("inside")));
}

#[test]
fn killed_between_the_disk_and_the_network_a_vote_counts() {
    let mut cluster = Cluster::prepare(patient(3));
    cluster.set(1, "GROUPLOCK_TEST_KILL_AT_VOTE", "1");
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    let mut first = client_at(&cluster, 0);
    first.ask("room", &session_at(0, 3), 1).unwrap();
    assert_eq!(cluster.wait(1), None, "it was killed by the hook");
    assert_eq!(first.entered(1, A_WHILE).unwrap(), None, "the vote was not sent");
    cluster.unset(1);
    // The member is alone, so no other member can have reported its vote.
    cluster.kill(2);
    cluster.signal(0, nix::sys::signal::Signal::SIGSTOP);
    cluster.launch(1);
    let status: serde_json::Value = serde_json::from_str(&cluster.get(1, "/status.json")).unwrap();
    let vote = &status["rooms"][0]["voted_for"];
    assert!(vote["member"] == 0 && vote["stage"] == 1, "{status}");
    cluster.signal(0, nix::sys::signal::Signal::SIGCONT);
    cluster.launch(2);
    assert!(first.entered(1, PATIENCE).unwrap().is_some(), "the vote is sent again");
}

#[test]
fn a_dead_client_loses_its_place_when_its_lease_ends_and_not_before() {
    let cluster = start(Options { lease: "2s", ..Options::new(3) });
    let mut dead = client_at(&cluster, 0);
    // The lease counts from when its member hears it.
    let asked = Instant::now();
    dead.ask("room", &session_at(0, 3), 1).unwrap();
    dead.entered(1, PATIENCE).unwrap().expect("the room is empty");
    drop(dead);
    let mut waits = client_at(&cluster, 1);
    let session = session_at(1, 3);
    let deadline = Instant::now() + PATIENCE;
    // The members must also hear from a waiter, so it asks again.
    let let_in = loop {
        assert!(Instant::now() < deadline, "the dead are not noticed");
        waits.ask("room", &session, 2).unwrap();
        if waits.entered(2, Duration::from_millis(300)).unwrap().is_some() {
            break asked.elapsed();
        }
    };
    assert!(let_in >= Duration::from_secs(2), "its lease had not ended: {let_in:?}");
    assert_eq!(cluster.metric(0, "grouplock_deaths_total", ""), 1);
    assert!(cluster.log(0).contains("taken for dead"));
    assert!(cluster.get(0, "/status.json").contains("\"died\":true"));
}

#[test]
fn a_client_that_connects_again_keeps_its_place() {
    let cluster = start(patient(3));
    let session = session_at(0, 3);
    let secret = 4711;
    let (mut inside, _) = Raw::client(&cluster.address(0), secret).unwrap();
    inside.ask("room", &session, 1).unwrap();
    let epoch = inside.entered(1, PATIENCE).unwrap();
    let mut waits = client_at(&cluster, 1);
    waits.ask("room", &session_at(1, 3), 2).unwrap();
    assert!(matches!(waits.hear(PATIENCE).unwrap(), Some(Frame::Queued { .. })));
    drop(inside);
    let mut again = Raw::connect(&cluster.address(0)).unwrap();
    again.greet(None, Role::Client { client: secret }).unwrap();
    // It asks with its old number, because it may not have received the answer.
    again.ask("room", &session, 1).unwrap();
    assert_eq!(again.entered(1, PATIENCE).unwrap(), epoch);
    assert_eq!(waits.entered(2, Duration::from_millis(300)).unwrap(), None);
    again.leave("room", 1).unwrap();
    assert!(waits.entered(2, PATIENCE).unwrap().is_some());
}

/// Its member may not have noticed that the old connection is dead.
#[test]
fn a_client_that_connects_again_is_answered_also_after_the_end_of_its_old_connection() {
    let cluster = start(patient(3));
    let (session, secret) = (session_at(0, 3), 4711);
    let (mut old, _) = Raw::client(&cluster.address(0), secret).unwrap();
    let (mut new, _) = Raw::client(&cluster.address(0), secret).unwrap();
    assert_eq!(old.refusal(), "closed", "the member ends it");
    for process in 0..50 {
        new.ask("room", &session, process).unwrap();
        assert!(new.entered(process, PATIENCE).unwrap().is_some(), "process {process}");
        new.leave("room", process).unwrap();
    }
}

/// Its home is killed before it has read that the holder leaves. The lease would last a minute.
#[test]
fn a_client_that_has_left_says_so_again_when_its_home_is_back() {
    let mut cluster = start(patient(3));
    let places = Places::new().with(grouplock_quorum::opener());
    let room = places.open(cluster.place(0).as_str(), "room", &RoomOptions::new()).unwrap();
    let inside = room.request(&session_at(0, 3)).enter_owned().unwrap();
    cluster.signal(0, nix::sys::signal::Signal::SIGSTOP);
    let (tell, told) = std::sync::mpsc::channel();
    let leaving = std::thread::spawn(move || tell.send(inside.leave()));
    // Most likely it has sent that by then.
    assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "nobody has answered");
    cluster.kill(0);
    cluster.launch(0);
    told.recv_timeout(PATIENCE).expect("its home hears it").expect("nothing was lost");
    leaving.join().unwrap().unwrap();
    eventually("it is out", || cluster.metric(0, "grouplock_inside", "") == 0);
}

/// The addresses of two members are exchanged in the configuration of the third.
#[test]
fn a_member_that_finds_another_at_an_address_does_not_talk_to_it() {
    let mut cluster = Cluster::prepare(patient(3));
    let [_, one, other] = [0, 1, 2].map(|id| cluster.address(id));
    let swapped = cluster.toml(0).replace(&one, "@").replace(&other, &one).replace('@', &other);
    std::fs::write(cluster.config(0), swapped).unwrap();
    (0..3).for_each(|id| cluster.launch(id));
    eventually("it notices it", || cluster.refused(0, "out_of_turn") >= 2);
    assert_eq!(cluster.metric(0, "grouplock_members_connected", ""), 0);
}

#[test]
fn a_member_that_must_end_says_so() {
    let mut cluster = start(Options::new(3));
    let mut client = client_at(&cluster, 0);
    assert_eq!(cluster.stop(0), Some(0));
    assert_eq!(client.refusal(), "ending");
    cluster.launch(0);
    cluster.wait_connected();
}

#[test]
fn a_disk_that_is_full_ends_the_member_before_it_says_anything_more() {
    let mut cluster = Cluster::prepare(Options { lease: "8s", ..patient(3) });
    cluster.limits.insert(0, 16);
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    let session = session_at(0, 3);
    let mut client = client_at(&cluster, 0);
    let mut last = 0;
    for process in 0..10_000 {
        let entered = client.ask("room", &session, process).and_then(|()| {
            let epoch = client.entered(process, PATIENCE)?;
            client.leave("room", process)?;
            Ok(epoch)
        });
        match entered {
            Ok(Some(epoch)) => last = epoch,
            Ok(None) | Err(_) => break,
        }
    }
    assert!(last > 0, "it failed too early");
    let said = cluster.hear(0).expect("it says why");
    assert!(said.contains("failed: cannot write") && said.contains("log"), "{said}");
    assert_eq!(cluster.wait(0), Some(1));
    // With a larger disk the member goes on. No epoch is used twice.
    cluster.limits.clear();
    cluster.launch(0);
    cluster.wait_connected();
    let mut client = client_at(&cluster, 0);
    client.ask("room", &session, 20_000).unwrap();
    // On disk, a holder whose leave was not saved may still be inside. Then the stage is the same,
    // and the member asks its arbiters again first, after at most a quarter of the lease.
    let next = client.entered(20_000, PATIENCE).unwrap().expect("nobody of another session asks");
    assert!(next >= last, "{next} after {last}");
}

#[test]
fn a_member_that_was_stopped_and_goes_on_does_no_harm() {
    let cluster = start(patient(3));
    let mut inside = client_at(&cluster, 0);
    inside.ask("room", &session_at(0, 3), 1).unwrap();
    inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let mut other = client_at(&cluster, 2);
    cluster.signal(1, nix::sys::signal::Signal::SIGSTOP);
    // Member 2 asks 2 and 0. It does not need the stopped member.
    other.ask("room", &session_at(2, 3), 2).unwrap();
    assert_eq!(other.entered(2, A_WHILE).unwrap(), None);
    inside.leave("room", 1).unwrap();
    let second = other.entered(2, PATIENCE).unwrap().expect("the room is empty");
    cluster.signal(1, nix::sys::signal::Signal::SIGCONT);
    let mut third = client_at(&cluster, 1);
    third.ask("room", &session_at(1, 3), 3).unwrap();
    assert_eq!(third.entered(3, A_WHILE).unwrap(), None);
    other.leave("room", 2).unwrap();
    let next = third.entered(3, PATIENCE).unwrap().expect("the room is empty again");
    assert!(next > second);
    eventually("all is quiet", || cluster.metric(1, "grouplock_waiting", "") == 0);
}
