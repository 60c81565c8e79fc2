//! What a member refuses. Each refusal writes a line in the log and raises a metric. It grants
//! nothing, and others are still served.

use std::fs;
use std::time::Duration;

use crate::cluster::client::{Raw, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, eventually, listen, request};
use grouplock_quorum::wire::{Fingerprint, Frame, Memory, Role, encode};
use grouplock_quorum::{
    Claim, GroupMessage, MemberId, PeerMessage, Precedence, ProcessId, ProcessMessage, Rank, Time,
};

/// Does something to member 0, which must refuse it for this reason.
fn refused(cluster: &Cluster, reason: &str, what: impl FnOnce(&Cluster)) {
    // The order matters: the member writes the line before it counts, and may refuse others
    // meanwhile.
    let lines = cluster.log(0).matches(" refused ").count();
    let before = cluster.refused(0, reason);
    // Not who is inside: an earlier process may still be leaving.
    let entries = || cluster.metric(0, "grouplock_entries_total", "");
    let entered = entries();
    what(cluster);
    eventually(&format!("`{reason}` is counted"), || cluster.refused(0, reason) > before);
    assert!(cluster.log(0).matches(" refused ").count() > lines, "no line in the log");
    assert_eq!(entries(), entered, "somebody was let in");
}

/// Starts a member, which member 0 must refuse.
fn refused_launch(cluster: &mut Cluster, reason: &str, id: usize) {
    let before = cluster.refused(0, reason);
    cluster.launch(id);
    refused(cluster, reason, |cluster| {
        eventually("it is refused", || cluster.refused(0, reason) > before);
    });
}

/// A correct client is still served.
fn assert_serves(cluster: &Cluster) {
    let session = session_at(0, cluster.options.members);
    let (mut client, _) = Raw::client(&cluster.address(0), fastrand::u64(..)).unwrap();
    let process = fastrand::u64(..);
    client.ask("served", &session, process).unwrap();
    client.entered(process, PATIENCE).unwrap().expect("it is served");
    client.leave("served", process).unwrap();
    eventually("it is out", || cluster.metric(0, "grouplock_inside", "") == 0);
}

fn start() -> Cluster {
    start_with("any")
}

fn start_with(votes: &'static str) -> Cluster {
    // This test renews no lease.
    let cluster = Cluster::start(Options { lease: "60s", votes, ..Options::new(3) });
    cluster.wait_connected();
    cluster
}

fn client(cluster: &Cluster) -> Raw {
    Raw::client(&cluster.address(0), fastrand::u64(..)).unwrap().0
}

fn fingerprint(cluster: &Cluster) -> Fingerprint {
    let (_, welcome) = Raw::client(&cluster.address(0), 0).unwrap();
    welcome.cluster.fingerprint()
}

#[test]
fn bytes_that_are_no_frames() {
    let cluster = start();
    refused(&cluster, "not_gbp", |cluster| {
        let mut raw = Raw::silent(&cluster.address(0)).unwrap();
        raw.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    });
    refused(&cluster, "version", |cluster| {
        let mut raw = Raw::silent(&cluster.address(0)).unwrap();
        raw.write(b"GBPLK\0\x63\0").unwrap();
    });
    refused(&cluster, "malformed", |cluster| {
        let mut raw = Raw::connect(&cluster.address(0)).unwrap();
        raw.write(&[0, 0, 0, 5, 200, 201, 202, 203, 204]).unwrap();
        assert_eq!(raw.refusal(), "malformed");
    });
    refused(&cluster, "malformed", |cluster| {
        let mut raw = client(cluster);
        raw.write(&[0, 0, 0, 5, 200, 201, 202, 203, 204]).unwrap();
        assert_eq!(raw.refusal(), "malformed");
    });
    refused(&cluster, "too_long", |cluster| {
        let mut raw = client(cluster);
        raw.write(&[0, 1, 0, 1]).unwrap();
        assert_eq!(raw.refusal(), "too_long");
    });
    refused(&cluster, "too_long", |cluster| {
        // The whole announced length is sent: the unread rest must not destroy the member's last
        // answer.
        let mut raw = client(cluster);
        raw.write(&[0, 2, 0, 0]).unwrap();
        _ = raw.write(&vec![7; 0x2_0000]);
        assert_eq!(raw.refusal(), "too_long");
    });
    refused(&cluster, "malformed", |cluster| {
        let mut raw = client(cluster);
        let mut bytes = Vec::new();
        encode(
            &Frame::Look { question: 1, room: Some("room".to_owned()), brief: false },
            &mut bytes,
        )
        .unwrap();
        raw.write(&bytes[..bytes.len() - 2]).unwrap();
        drop(raw);
    });
    assert_serves(&cluster);
}

#[test]
fn frames_out_of_turn_or_from_the_wrong_side() {
    let cluster = start_with("own");
    let session = session_at(0, 3);
    refused(&cluster, "out_of_turn", |cluster| {
        let mut raw = Raw::connect(&cluster.address(0)).unwrap();
        raw.ask("room", &session, 1).unwrap();
        assert_eq!(raw.refusal(), "out_of_turn");
    });
    refused(&cluster, "not_its_role", |cluster| {
        let mut raw = client(cluster);
        let message = PeerMessage::Release { stage: 9, epoch: 9, died: None };
        raw.send(&Frame::Peer { room: "room".to_owned(), message }).unwrap();
        assert_eq!(raw.refusal(), "not_its_role");
    });
    refused(&cluster, "not_its_role", |cluster| {
        let mut raw = client(cluster);
        raw.send(&raw.hello(None, Role::Client { client: 1 })).unwrap();
        assert_eq!(raw.refusal(), "not_its_role");
    });
    for room in ["", &"x".repeat(300)] {
        refused(&cluster, "bad_name", |cluster| {
            let mut raw = client(cluster);
            raw.ask(room, &session, 1).unwrap();
            assert_eq!(raw.refusal(), "bad_name");
        });
    }
    refused(&cluster, "bad_name", |cluster| {
        let mut raw = client(cluster);
        raw.ask("room", &"s".repeat(600), 1).unwrap();
        assert_eq!(raw.refusal(), "bad_name");
    });
    refused(&cluster, "protocol", |cluster| {
        let mut raw = client(cluster);
        raw.ask("room", &session_at(1, 3), 1).unwrap();
        assert_eq!(raw.refusal(), "protocol", "nobody stands in for the home of a session");
    });
    assert_serves(&cluster);
}

#[test]
fn a_bad_request_costs_neither_the_connection_nor_what_is_held_over_it() {
    let cluster = start_with("own");
    let session = session_at(0, 3);
    let mut raw = client(&cluster);
    raw.ask("room", &session, 1).unwrap();
    raw.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let mut denied = |process: u64, room: &str, session: &str, expected: &str| {
        raw.ask(room, session, process).unwrap();
        match raw.hear(PATIENCE).unwrap() {
            Some(Frame::Denied { process: found, attempt: 1, reason, .. }) => {
                assert_eq!((found, reason.label()), (ProcessId(process), expected));
            }
            other => panic!("{other:?}"),
        }
    };
    denied(2, "room", &session_at(1, 3), "protocol");
    denied(3, "", &session, "bad_name");
    denied(4, "room", &"s".repeat(600), "bad_name");
    assert_eq!(cluster.metric(0, "grouplock_inside", ""), 1, "the holding is lost");
    assert_eq!(cluster.metric(0, "grouplock_waiting", ""), 0, "one of them waits");
    // The connection is the same, and still works.
    raw.ask("room", &session, 5).unwrap();
    raw.entered(5, PATIENCE).unwrap().expect("its session is inside");
    raw.leave("room", 5).unwrap();
    raw.leave("room", 1).unwrap();
    eventually("both are out", || cluster.metric(0, "grouplock_inside", "") == 0);
    assert!(cluster.refused(0, "protocol") == 1 && cluster.refused(0, "bad_name") == 2);
}

/// A client that cannot reach the home asks another member. If the home is alive, the home and the
/// other member exclude each other.
#[test]
fn a_session_that_is_at_home_elsewhere_waits_its_turn_at_a_stand_in() {
    let cluster = start();
    let session = session_at(1, 3);
    let mut home = Raw::client(&cluster.address(1), fastrand::u64(..)).unwrap().0;
    home.ask("room", &session, 1).unwrap();
    let first = home.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let mut raw = client(&cluster);
    raw.ask("room", &session, 2).unwrap();
    assert_eq!(raw.entered(2, Duration::from_millis(400)).unwrap(), None, "two are inside");
    home.leave("room", 1).unwrap();
    let second = raw.entered(2, PATIENCE).unwrap().expect("the room is empty again");
    assert!(second > first, "{second} after {first}");
}

#[test]
fn a_process_of_another_client_is_not_touched() {
    let cluster = start();
    let session = session_at(0, 3);
    let mut owner = client(&cluster);
    owner.ask("room", &session, 77).unwrap();
    owner.entered(77, PATIENCE).unwrap().expect("the room is empty");
    let mut thief = client(&cluster);
    thief.leave("room", 77).unwrap();
    assert_eq!(thief.refusal(), "not_its_process");
    assert_eq!(cluster.refused(0, "not_its_process"), 1);
    assert_eq!(cluster.metric(0, "grouplock_inside", ""), 1, "it was thrown out");
}

#[test]
fn members_that_are_none() {
    let cluster = start();
    let right = Some(fingerprint(&cluster));
    let say = |reason: &str, cluster_is: Option<Fingerprint>, id: u16| {
        refused(&cluster, reason, |cluster| {
            let mut raw = Raw::connect(&cluster.address(0)).unwrap();
            let role = Role::Member { id: MemberId(id), incarnation: 12345 };
            raw.send(&raw.hello(cluster_is, role)).unwrap();
            assert_eq!(raw.refusal(), reason);
        });
    };
    say("unknown_member", right, 3);
    say("unknown_member", right, u16::MAX);
    say("wrong_cluster", Some(Fingerprint(1)), 1);
    say("out_of_turn", None, 1);
    // The member itself, and a member that is connected and answers.
    say("two_with_one_id", right, 0);
    say("two_with_one_id", right, 1);
    assert_serves(&cluster);
}

/// The test plays member 1. No other member runs.
fn alone() -> (Cluster, Raw) {
    let (cluster, mut raw) = unknown(true);
    raw.send(&MEMORY).unwrap();
    (cluster, raw)
}

/// The same before it has presented its memory. Member 0 has begun, or has no memory.
fn unknown(begun: bool) -> (Cluster, Raw) {
    let mut cluster = Cluster::prepare(Options::new(3));
    if begun {
        cluster.set(0, "GROUPLOCK_TEST_BEGUN", "1");
    }
    cluster.launch(0);
    let cluster_is = Some(fingerprint(&cluster));
    let mut raw = Raw::connect(&cluster.address(0)).unwrap();
    raw.greet(cluster_is, Role::Member { id: MemberId(1), incarnation: 1 }).unwrap();
    (cluster, raw)
}

const MEMORY: Frame = Frame::Memory { mine: Memory { generation: 1, id: 7 }, recall: None };

/// A member that has not presented its memory may have forgotten what it has said. A member without
/// memory may have forgotten to whom it gave its vote.
#[test]
fn members_do_not_hear_each_other_before_both_have_a_memory() {
    for begun in [true, false] {
        let (cluster, mut raw) = unknown(begun);
        if !begun {
            raw.send(&MEMORY).unwrap();
        }
        let now = grouplock_quorum::Clock::start().now();
        let rank = Rank { claim: claim(now), member: MemberId(1), stage: 1 };
        let message = PeerMessage::Request { rank, sent: now, epoch: 0 };
        raw.send(&Frame::Peer { room: "room".to_owned(), message }).unwrap();
        // It is refused after the request was read.
        raw.ask("room", &session_at(0, 3), 1).unwrap();
        assert_eq!(raw.refusal(), "not_its_role");
        assert_eq!(cluster.metric(0, "grouplock_rooms", ""), 0, "it was heard, begun: {begun}");
    }
}

fn claim(asked: Time) -> Claim {
    Precedence::Aged { weight: Duration::ZERO }.claim(asked, 0)
}

#[test]
fn a_member_that_says_what_cannot_be() {
    let (cluster, mut raw) = alone();
    let room = || "room".to_owned();
    let mut say = |reason: &str, message: PeerMessage| {
        refused(&cluster, reason, |_| raw.send(&Frame::Peer { room: room(), message }).unwrap());
        assert!(cluster.get(0, "/status.json").contains("\"voted_for\":null"), "it voted");
    };
    let now = grouplock_quorum::Clock::start().now();
    let rank = |asked, member| Rank { claim: claim(asked), member: MemberId(member), stage: 1 };
    let request = |rank| PeerMessage::Request { rank, sent: now, epoch: 0 };
    let (stage, grant, epoch, heard, rival, died) = (1, 1, 0, now, None, None);
    let locked = PeerMessage::Locked { stage, grant, epoch, heard, rival, died };
    // In the name of another member; for a stage that never existed; from the future.
    say("protocol", request(rank(now, 2)));
    say("protocol", locked);
    let future = now + Duration::from_secs(3600);
    say("clock", request(rank(future, 1)));
    refused(&cluster, "not_its_role", |_| {
        raw.ask("room", &session_at(0, 3), 1).unwrap();
        assert_eq!(raw.refusal(), "not_its_role");
    });
}

#[test]
fn a_second_process_with_the_id_of_a_member() {
    let mut cluster = start();
    // The same configuration with another directory.
    let other = cluster.toml(1).replace("data-1", "data-other");
    let path = cluster.scratch.path().join("other.toml");
    fs::write(&path, format!("listen = \"127.0.0.1:0\"\n{other}")).unwrap();
    let mut second = None;
    refused(&cluster, "two_with_one_id", |cluster| {
        let mut child = cluster.spawn(&path, 1);
        let line = listen(&mut child).recv_timeout(PATIENCE).unwrap();
        assert!(line.starts_with("ready: "), "{line}");
        second = Some(child);
    });
    assert_serves(&cluster);
    let mut second = second.expect("it was started");
    second.kill().unwrap();
    second.wait().unwrap();
    // With the same data the member does not start.
    let same = fs::read_to_string(cluster.config(1)).unwrap();
    fs::write(&path, format!("listen = \"127.0.0.1:0\"\n{same}")).unwrap();
    let mut third = cluster.spawn(&path, 1);
    let line = listen(&mut third).recv_timeout(PATIENCE).unwrap();
    assert!(line.contains("is used by another process"), "{line}");
    third.wait().unwrap();
    cluster.kill(1);
}

#[test]
fn another_coterie_and_another_members_data() {
    let mut cluster = start();
    cluster.kill(1);
    let plane = fs::read_to_string(cluster.config(1)).unwrap();
    fs::write(cluster.config(1), plane.replace("plane", "majority")).unwrap();
    let line = cluster.try_launch(1).unwrap_err();
    assert!(line.contains("belongs to member 1 of 3 (plane)"), "{line}");
    fs::write(cluster.config(1), plane.replace("plane", "majority").replace("data-1", "fresh"))
        .unwrap();
    refused_launch(&mut cluster, "wrong_cluster", 1);
    // Both members refuse each other.
    eventually("both count it", || {
        cluster.refused(0, "wrong_cluster") > 0 && cluster.refused(1, "wrong_cluster") > 0
    });
    cluster.kill(1);
    fs::write(cluster.config(1), plane.replace("data-1", "data-2")).unwrap();
    cluster.kill(2);
    let line = cluster.try_launch(1).unwrap_err();
    assert!(line.contains("belongs to member 2 of 3"), "{line}");
}

#[test]
fn clocks_that_are_far_apart() {
    // Otherwise other members would vote instead of the member with the wrong clock.
    let mut cluster = start_with("own");
    let session = session_at(0, 3);
    // Two processes: the second may begin before the first has left.
    for (process, ahead, behind) in [(1, 60_000_000, 0), (2, 0, 60_000_000)] {
        refused(&cluster, "clock", |cluster| {
            let mut raw = Raw::connect(&cluster.address(0)).unwrap();
            let now = Time::from_micros(raw.clock.now().as_micros() + ahead - behind);
            let Frame::Hello(mut hello) = raw.hello(None, Role::Client { client: 1 }) else {
                unreachable!("it is a hello");
            };
            hello.now = now;
            raw.send(&Frame::Hello(hello)).unwrap();
            assert_eq!(raw.refusal(), "clock");
        });
        // The clock of a client may stop after Hello. Only the client uses the times in its
        // requests.
        let mut raw = client(&cluster);
        let sent = Time::from_micros(raw.clock.now().as_micros() + ahead - behind);
        let session = session.clone();
        let (attempt, stay, priority, delay, pid) = (1, None, 0, Duration::ZERO, 1);
        let message = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
        raw.process("room", process, message).unwrap();
        assert!(raw.entered(process, PATIENCE).unwrap().is_some(), "it is not served");
        raw.leave("room", process).unwrap();
    }
    // A member that starts with the wrong time is refused until its clock is right.
    cluster.kill(1);
    cluster.set(1, "GROUPLOCK_TEST_CLOCK", "-30");
    refused_launch(&mut cluster, "clock", 1);
    eventually("it is refused", || cluster.log(0).contains("the clocks differ by 30."));
    // The member itself notices that its clock is not the time of day.
    eventually("it is noticed", || cluster.metric(1, "grouplock_clock_jumps_total", "") > 0);
    assert!(cluster.log(1).contains("the time of day differs by 30."), "no line in the log");
    let mut waits = client(&cluster);
    waits.ask("room", &session, 5).unwrap();
    assert_eq!(waits.entered(5, Duration::from_millis(500)).unwrap(), None, "member 1 voted");
    waits.leave("room", 5).unwrap();
    cluster.kill(1);
    cluster.unset(1);
    cluster.launch(1);
    cluster.wait_connected();
    assert_serves(&cluster);
}

#[test]
fn certificates_that_are_missing_or_wrong() {
    let cluster = Cluster::start(Options { tls: true, ..Options::new(3) });
    cluster.wait_connected();
    let directory = cluster.scratch.path();
    let address = cluster.address(0);
    let secure = |who| Raw::secure(&address, directory, who).unwrap();
    let mut good = secure(Some("client"));
    good.open().unwrap();
    let welcome = good.greet(None, Role::Client { client: 5 }).unwrap();
    let right = Some(welcome.cluster.fingerprint());
    refused(&cluster, "unauthenticated", |_| {
        let mut raw = Raw::silent(&address).unwrap();
        raw.write(&grouplock_quorum::wire::opening()).unwrap();
        assert_eq!(raw.refusal(), "closed", "plain text");
    });
    refused(&cluster, "unauthenticated", |_| assert!(secure(None).open().is_err()));
    refused(&cluster, "unauthenticated", |_| assert!(secure(Some("stranger")).open().is_err()));
    for who in ["client", "member-2"] {
        refused(&cluster, "unauthenticated", |_| {
            let mut raw = secure(Some(who));
            raw.open().unwrap();
            let role = Role::Member { id: MemberId(1), incarnation: 1 };
            raw.send(&raw.hello(right, role)).unwrap();
            assert_eq!(raw.refusal(), "unauthenticated", "{who} as member 1");
        });
    }
    good.ask("room", &session_at(0, 3), 1).unwrap();
    good.entered(1, PATIENCE).unwrap().expect("it is served");
}

#[test]
fn a_member_with_anothers_certificate() {
    let mut cluster = Cluster::prepare(Options { tls: true, ..Options::new(3) });
    let toml = cluster
        .toml(1)
        .replace("member-1.pem", "member-2.pem")
        .replace("member-1.key", "member-2.key");
    fs::write(cluster.config(1), toml).unwrap();
    cluster.launch(0);
    refused_launch(&mut cluster, "unauthenticated", 1);
    eventually("whom it dials refuses it", || {
        cluster.metric(1, "grouplock_refused_by_members_total", "reason=\"unauthenticated\"") > 0
    });
    assert_eq!(cluster.metric(0, "grouplock_members_connected", ""), 0);
    assert_eq!(cluster.metric(1, "grouplock_members_connected", ""), 0);
}

#[test]
fn a_client_that_does_not_read() {
    let cluster = start();
    let session = session_at(0, 3);
    let mut crowd = client(&cluster);
    for process in 1..=96 {
        crowd.ask("crowded", &session, process).unwrap();
    }
    eventually("all are inside", || cluster.metric(0, "grouplock_inside", "") == 96);
    let mut deaf = client(&cluster);
    let look = Frame::Look { question: 1, room: Some("crowded".to_owned()), brief: false };
    // Until the member closes the connection.
    for _ in 0..20_000 {
        if deaf.send(&look).is_err() || cluster.log(0).contains("wait to be read") {
            break;
        }
    }
    eventually("it is cut off", || cluster.refused(0, "not_reading") > 0);
    let (mut other, _) = Raw::client(&cluster.address(0), 8).unwrap();
    other.ask("served", &session, 1000).unwrap();
    other.entered(1000, PATIENCE).unwrap().expect("others are served");
}

#[test]
fn the_status_page_refuses_what_it_does_not_serve() {
    let cluster = Cluster::start(Options::new(3));
    let address = cluster.status_address(0);
    for (text, expected) in [
        ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\n\r\n", "403"),
        ("GET / HTTP/9\r\nHost: localhost\r\n\r\n", "505"),
        ("nonsense\r\n\r\n", "400"),
        (&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000)), "431"),
    ] {
        let response = request(address, text);
        assert!(response.starts_with(&format!("HTTP/1.1 {expected} ")), "{text}: {response}");
    }
    // Only the names of this machine are accepted.
    for (hosts, expected) in [
        (["LocalHost:80", "127.0.0.1", "127.0.0.1:7200", "[::1]:7200"], "200"),
        (["", "example.org:7200", "localhost.example.org", "127.0.0.1.x:1"], "403"),
    ] {
        for host in hosts {
            let response = request(address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert!(response.starts_with(&format!("HTTP/1.1 {expected} ")), "{host}: {response}");
        }
    }
    assert!(cluster.get(0, "/").contains("status.json"));
    assert!(cluster.get(0, "/status.json?now").contains("\"member\":0"));
}

#[test]
fn a_renewal_in_a_room_that_never_was_is_answered() {
    let mut cluster = Cluster::prepare(Options::new(3));
    cluster.launch(0);
    let mut raw = client(&cluster);
    let mut renew = |cluster: &Cluster| {
        let sent = raw.clock.now();
        raw.process("nowhere", 4, ProcessMessage::Renew { attempt: 1, sent }).unwrap();
        let heard = raw.hear(PATIENCE).unwrap();
        let gone = GroupMessage::Gone { attempt: 1 };
        assert!(
            matches!(&heard, Some(Frame::Group { process: ProcessId(4), message, .. }) if *message == gone),
            "{heard:?}"
        );
        assert_eq!(cluster.metric(0, "grouplock_rooms", ""), 0);
    };
    // Before the cluster has begun, and after that.
    renew(&cluster);
    (1..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    renew(&cluster);
}
