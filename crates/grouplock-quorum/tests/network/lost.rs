//! Members that are gone for good, and members that have lost their data.

use std::fs;
use std::time::{Duration, Instant};

use crate::cluster::client::{Raw, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_quorum::wire::Frame;
use grouplock_quorum::{GroupMessage, MemberId, ProcessMessage, homes};
use grouplock_room::{Places, RoomOptions};

const LEASE: Duration = Duration::from_secs(4);

fn start() -> Cluster {
    let cluster = Cluster::start(Options { lease: "4s", ..Options::new(3) });
    cluster.wait_connected();
    cluster
}

fn client_at(cluster: &Cluster, id: usize) -> Raw {
    Raw::client(&cluster.address(id), fastrand::u64(..)).unwrap().0
}

/// Renews until the home confirms it. Returns when the confirmed renewal was sent.
fn renew(client: &mut Raw, process: u64) -> Instant {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "no renewal is confirmed");
        let (said, sent) = (Instant::now(), client.clock.now());
        client.process("room", process, ProcessMessage::Renew { attempt: 1, sent }).unwrap();
        let heard = client.hear(Duration::from_millis(500)).unwrap();
        match heard {
            Some(Frame::Group { message: GroupMessage::Renewed { .. }, .. }) => return said,
            Some(Frame::Group { message: GroupMessage::Gone { .. }, .. }) => panic!("it is out"),
            _ => {}
        }
    }
}

/// Member 1 has voted for the stage of member 0. It is killed and loses its data. Then it is asked
/// for its vote again.
#[test]
fn a_member_that_has_lost_its_data_admits_nobody_beside_a_holder() {
    let mut cluster = start();
    let mut inside = client_at(&cluster, 0);
    inside.ask("room", &session_at(0, 3), 1).unwrap();
    let epoch = inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    cluster.kill(1);
    fs::remove_dir_all(cluster.data(1)).unwrap();
    cluster.launch(1);
    let mut other = client_at(&cluster, 1);
    let began = Instant::now();
    let mut asked = Instant::now();
    other.ask("room", &session_at(1, 3), 2).unwrap();
    let has_voice = |cluster: &Cluster| cluster.log(1).contains("and it continues with memory 2.");
    // This lasts until the member is back, and a lease longer: its messages must not end the other
    // holding.
    let mut back = None;
    while back.is_none_or(|back: Instant| back.elapsed() < LEASE) {
        assert!(began.elapsed() < PATIENCE + LEASE * 3, "it does not come back");
        renew(&mut inside, 1);
        assert_eq!(other.entered(2, Duration::from_millis(200)).unwrap(), None, "two are inside");
        if asked.elapsed() > Duration::from_millis(500) {
            asked = Instant::now();
            other.ask("room", &session_at(1, 3), 2).unwrap();
        }
        if back.is_none() && has_voice(&cluster) {
            back = Some(Instant::now());
            assert!(began.elapsed() > LEASE * 3 / 2, "it did not wait");
        }
    }
    assert!(cluster.log(0).contains("member 1 has lost its memory"), "the others say so");
    inside.leave("room", 1).unwrap();
    let next = other.entered(2, PATIENCE).unwrap().expect("the room is empty again");
    assert!(next > epoch, "{next} after {epoch}");
}

/// Two of three members lose their data. Together they are a quorum, and a quorum may have had stages
/// of which the third never heard.
#[test]
fn members_that_have_lost_the_data_of_a_quorum_do_not_begin() {
    const VOTE_LEASE: Duration = Duration::from_millis(3100);
    let mut cluster = Cluster::start(Options { lease: "2s", ..Options::new(3) });
    cluster.wait_connected();
    for id in [1, 2] {
        cluster.kill(id);
        fs::remove_dir_all(cluster.data(id)).unwrap();
    }
    for id in [1, 2] {
        cluster.launch(id);
    }
    let lost = |id| cluster.log(id).contains("it has lost its memory");
    eventually("the third has told them", || lost(1) && lost(2));
    std::thread::sleep(VOTE_LEASE);
    for id in [1, 2] {
        assert!(!cluster.log(id).contains("and it continues with memory"), "{id} has a vote");
    }
}

/// The home loses its data. Its holders learn at once that their holdings are lost. Others wait
/// until the leases have ended.
#[test]
fn a_home_that_has_lost_its_data_says_so_to_those_inside() {
    let mut cluster = start();
    let secret = fastrand::u64(..);
    let mut inside = Raw::client(&cluster.address(0), secret).unwrap().0;
    inside.ask("room", &session_at(0, 3), 3).unwrap();
    inside.entered(3, PATIENCE).unwrap().expect("the room is empty");
    inside.leave("room", 3).unwrap();
    inside.ask("room", &session_at(0, 3), 1).unwrap();
    let first = inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let confirmed = renew(&mut inside, 1);
    cluster.kill(0);
    fs::remove_dir_all(cluster.data(0)).unwrap();
    cluster.launch(0);
    let mut inside = Raw::client(&cluster.address(0), secret).unwrap().0;
    let sent = inside.clock.now();
    inside.process("room", 1, ProcessMessage::Renew { attempt: 1, sent }).unwrap();
    let heard = inside.hear(PATIENCE).unwrap();
    let message = GroupMessage::Gone { attempt: 1 };
    assert!(matches!(&heard, Some(Frame::Group { message: m, .. }) if *m == message), "{heard:?}");
    let mut other = client_at(&cluster, 1);
    let mut entered = None;
    while entered.is_none() {
        assert!(confirmed.elapsed() < PATIENCE + LEASE * 2, "nobody is let in any more");
        other.ask("room", &session_at(1, 3), 2).unwrap();
        entered = other.entered(2, Duration::from_millis(300)).unwrap();
    }
    assert!(confirmed.elapsed() >= LEASE, "one who has not heard of it may still be inside");
    assert!(entered > Some(first), "{entered:?} after {first}");
    eventually("it says what has happened", || cluster.log(0).contains("it has lost its memory"));
    // The others know that its first stages are over. It does not use their numbers again.
    eventually("it is back", || cluster.log(0).contains("and it continues with memory 2."));
    cluster.wait_connected();
    other.leave("room", 2).unwrap();
    let mut again = client_at(&cluster, 0);
    again.ask("room", &session_at(0, 3), 4).unwrap();
    let last = again.entered(4, PATIENCE).unwrap();
    assert!(last > entered, "{last:?} after {entered:?}");
}

/// A client cannot reach a home.
#[test]
fn a_waiter_gives_a_home_a_quarter_of_a_lease_and_a_try_gives_it_no_time() {
    const QUARTER: Duration = Duration::from_secs(4);
    let mut cluster = Cluster::start(Options { lease: "16s", ..Options::new(3) });
    cluster.wait_connected();
    // The substitute needs no vote of the dead member.
    let order = [0, 1, 2].map(MemberId);
    let mut names = (0..).map(|number| format!("session-{number}"));
    let session = names.find(|name| homes(name, 3) == order).expect("there are enough names");
    let places = Places::new().with(grouplock_quorum::opener());
    let room = places.open(cluster.place(1).as_str(), "room", &RoomOptions::new()).unwrap();
    assert!(room.snapshot().unwrap().exact, "it is connected to all");
    let killed = Instant::now();
    cluster.kill(0);
    room.try_enter(&session).expect("another member stands in for the home").leave().unwrap();
    let soon = room.request(&session).timeout(QUARTER / 2).enter();
    soon.expect("it cannot wait as long as a member may take").leave().unwrap();
    let later = room.enter(&session).unwrap();
    assert!(killed.elapsed() >= QUARTER, "it did not wait for the home");
    later.leave().unwrap();
}

/// The replaced disk comes back. All members ignore it.
#[test]
fn a_member_with_its_old_data_is_refused_after_they_were_replaced() {
    let mut cluster = start();
    let (data, old) = (cluster.data(1), cluster.scratch.path().join("old"));
    cluster.kill(1);
    fs::rename(&data, &old).unwrap();
    cluster.launch(1);
    eventually("member 1 has a new memory", || {
        cluster.log(1).contains("and it continues with memory 2.")
    });
    cluster.wait_connected();
    cluster.kill(1);
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&old, &data).unwrap();
    cluster.launch(1);
    eventually("it is refused", || cluster.refused(0, "other_memory") > 0);
    assert!(cluster.log(0).contains("empty its directory"), "it says what to do");
    let mut other = client_at(&cluster, 0);
    other.ask("room", &session_at(0, 3), 1).unwrap();
    assert!(other.entered(1, PATIENCE).unwrap().is_some(), "the others go on");
}

/// The home of a session dies for good with a holder inside. Other sessions go on when the holders
/// are out, and so does this session.
#[test]
fn a_member_that_is_gone_for_good_stops_nobody() {
    let mut cluster = start();
    let session = session_at(0, 3);
    let mut inside = client_at(&cluster, 0);
    inside.ask("room", &session, 1).unwrap();
    let first = inside.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let confirmed = renew(&mut inside, 1);
    cluster.kill(0);
    let killed = Instant::now();
    let mut other = client_at(&cluster, 1);
    other.ask("room", &session_at(1, 3), 2).unwrap();
    let mut epoch = None;
    while epoch.is_none() {
        assert!(killed.elapsed() < PATIENCE, "it stops others");
        epoch = other.entered(2, Duration::from_millis(300)).unwrap();
        if epoch.is_none() {
            other.ask("room", &session_at(1, 3), 2).unwrap();
        }
    }
    assert!(confirmed.elapsed() >= LEASE, "whoever was inside may still be");
    assert!(epoch > Some(first), "{epoch:?} after {first}");
    other.leave("room", 2).unwrap();
    // The session of the dead home has another home now.
    let places = Places::new().with(grouplock_quorum::opener());
    let room = places.open(cluster.place(1).as_str(), "room", &RoomOptions::new()).unwrap();
    let third = room.enter(&session).unwrap();
    assert!(Some(third.epoch()) > epoch);
}

/// Processes enter and leave beside one holder that stays. Then the home restarts.
fn passes_beside_one_holder(passes: u64) {
    let mut cluster = Cluster::start(Options { lease: "60s", ..Options::new(3) });
    cluster.wait_connected();
    let session = session_at(0, 3);
    let mut holder = client_at(&cluster, 0);
    holder.ask("room", &session, 1).unwrap();
    holder.entered(1, PATIENCE).unwrap().expect("the room is empty");
    let mut others = client_at(&cluster, 0);
    let mut settled = 0;
    for process in 2..2 + passes {
        others.ask("room", &session, process).unwrap();
        others.leave("room", process).unwrap();
        if process % 64 == 0 || process == 1 + passes {
            others.entered(process, PATIENCE).unwrap().expect("the session is inside");
        }
        if process == passes / 4 {
            settled = cluster.resident_kib(0);
        }
    }
    let inside = |cluster: &Cluster| cluster.metric(0, "grouplock_inside", "");
    eventually("all but the holder have left", || inside(&cluster) == 1);
    let grown = cluster.resident_kib(0).saturating_sub(settled);
    println!("{passes} passes: {settled} KiB after a quarter of them, {grown} KiB more at the end");
    assert!(grown < 4 * 1024, "its memory has grown by {grown} KiB since {settled} KiB");
    let length = cluster.get(0, "/status.json").len();
    assert!(length < 16 * 1024, "its status has {length} bytes");
    cluster.stop(0);
    let length = fs::metadata(cluster.data(0).join("log")).unwrap().len();
    assert!(length < 5 * 1024 * 1024, "the log has {length} bytes");
    cluster.launch(0);
    assert_eq!(inside(&cluster), 1, "who has left is inside again after a restart");
    // When the holder leaves, no process is left.
    let mut holder = client_at(&cluster, 0);
    holder.leave("room", 1).unwrap();
    eventually("the room is empty", || inside(&cluster) == 0);
    let mut next = client_at(&cluster, 1);
    next.ask("room", &session_at(1, 3), 2).unwrap();
    next.entered(2, PATIENCE).unwrap().expect("the room is empty");
}

#[test]
fn a_process_that_left_beside_a_holder_has_left_after_a_restart() {
    passes_beside_one_holder(2_000);
}

#[test]
#[ignore = "takes long; cargo xtask soak runs it"]
fn larger_passes_beside_one_holder() {
    passes_beside_one_holder(50_000);
}
