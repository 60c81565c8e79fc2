//! More connections than a member accepts.

use std::net::TcpStream;
use std::time::Instant;

use crate::cluster::client::{Raw, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_quorum::GroupMessage;
use grouplock_quorum::wire::Frame;
use grouplock_room::{Places, RoomError, RoomOptions, Snapshot};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The number of connections with which a review ended a member.
const SILENT: usize = 1100;

/// This process also needs a descriptor for each of them.
fn raise_own_limit() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if soft < 4096 {
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(4096), hard).unwrap();
    }
}

fn silent(address: &str, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(address).expect("the system takes it")).collect()
}

#[test]
fn silent_connections_end_nothing() {
    raise_own_limit();
    let mut cluster = Cluster::prepare(Options { lease: "60s", ..Options::new(3) });
    // Far fewer descriptors than connections, with no way to get more.
    cluster.descriptors.insert(0, 256);
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    let address = cluster.address(0);
    let (session, other) = (session_at(0, 3), session_at(1, 3));
    let open = |place: &str| {
        let places = Places::new().with(grouplock_quorum::opener());
        places.open(place, "room", &RoomOptions::new()).expect("it is welcome")
    };
    let room = open(&cluster.place(0));
    let holder = room.enter(&session).expect("the room is empty");

    let crowd = silent(&address, SILENT);
    eventually("all have been accepted", || {
        cluster.metric(0, "grouplock_connections_total", "") >= SILENT as u64
    });
    // A client or a member that identifies itself is accepted while all of them are connected. The
    // client connects from the same address as others.
    let late = open(&format!("gbp://{address},{}", cluster.address(2)));
    let late = late.enter(&session).expect("the session is inside");
    cluster.kill(1);
    cluster.launch(1);
    cluster.wait_connected();
    let more = silent(&address, SILENT);
    assert!(matches!(room.try_enter(&other), Err(RoomError::Occupied { .. })));
    holder.leave().expect("nothing was lost");
    late.leave().expect("nothing was lost");
    let next = room.request(&other).timeout(PATIENCE).enter().expect("both have left");
    next.leave().expect("nothing was lost");

    assert!(cluster.refused(0, "too_many") > 0, "no place was ever missing");
    assert!(!cluster.log(0).contains("cannot accept"), "descriptors ran out");
    drop((crowd, more));
    assert_eq!(cluster.stop(0), Some(0), "it ended before it was told to");
}

/// Makes `rooms` rooms, and takes snapshots of all.
fn status_of(rooms: u64) {
    let cluster = Cluster::start(Options { lease: "60s", ..Options::new(3) });
    cluster.wait_connected();
    let session = session_at(0, 3);
    let (mut client, _) = Raw::client(&cluster.address(0), 1).unwrap();
    let name = |room: u64| format!("room-{room}");
    let all: Vec<_> = (1..=rooms).collect();
    for some in all.chunks(64) {
        for room in some {
            client.ask(&name(*room), &session, *room).unwrap();
        }
        let mut inside = 0;
        while inside < some.len() {
            let heard = client.hear(PATIENCE).unwrap().expect("each room is empty");
            let enter = |message: &_| matches!(message, GroupMessage::Enter { .. });
            inside += usize::from(matches!(&heard, Frame::Group { message, .. } if enter(message)));
        }
        for room in some {
            client.leave(&name(*room), *room).unwrap();
        }
    }
    eventually("all have left", || cluster.metric(0, "grouplock_inside", "") == 0);
    let places = Places::new().with(grouplock_quorum::opener());
    let began = Instant::now();
    let seen = places.snapshots(cluster.place(0).as_str()).unwrap();
    println!("{rooms} rooms were looked at in {:?}", began.elapsed());
    let entered = |room: &Snapshot| room.recent.last().is_some_and(|past| past.entries == 1);
    let good = |seen: &Result<Snapshot, RoomError>| {
        seen.as_ref().is_ok_and(|room| entered(room) && room.unanswered.is_empty())
    };
    let bad = seen.iter().find(|(_, seen)| !good(seen));
    assert!(bad.is_none() && seen.len() as u64 == rooms, "{} rooms, {bad:?}", seen.len());
}

#[test]
fn all_rooms_are_checked() {
    status_of(500);
}

#[test]
#[ignore = "takes long; cargo xtask soak runs it"]
fn larger_as_many_rooms_as_there_can_be_are_checked() {
    status_of(65_536);
}

#[test]
fn clients_that_are_too_many_are_refused_and_members_are_not() {
    raise_own_limit();
    let mut cluster = Cluster::prepare(Options::new(3));
    cluster.descriptors.insert(0, 128);
    cluster.launch(0);
    let mut clients = Vec::new();
    let refused = loop {
        assert!(clients.len() < 128, "there is no end of them");
        match Raw::client(&cluster.address(0), clients.len() as u64) {
            Ok((client, _)) => clients.push(client),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("TooMany"), "{refused}");
    (1..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    // One client goes, so another is accepted.
    clients.pop();
    eventually("there is a place again", || Raw::client(&cluster.address(0), 1000).is_ok());
}

/// Members forget unused rooms, and remember their last epochs.
#[test]
fn rooms_that_nobody_uses_are_forgotten_and_their_epochs_go_on() {
    let mut cluster = Cluster::prepare(Options { lease: "60s", ..Options::new(3) });
    for id in 0..3 {
        cluster.set(id, "GROUPLOCK_TEST_KEPT", "300");
        cluster.launch(id);
    }
    cluster.wait_connected();
    let places = Places::new().with(grouplock_quorum::opener());
    let place = cluster.place(0);
    let open =
        |name: &str| places.open(place.as_str(), name, &RoomOptions::new()).expect("it is welcome");
    let room = open("held");
    let held = room.enter(&session_at(0, 3)).expect("the room is empty");
    let enter = |round: u16| {
        let pass = |room: u16| {
            let name = open(&format!("room-{room}"));
            let guard = name.enter(&session_at((room + round) % 3, 3)).expect("the room is empty");
            let epoch = guard.epoch();
            guard.leave().expect("nothing was lost");
            epoch
        };
        (0..20).map(pass).collect::<Vec<_>>()
    };
    let rooms = |id| cluster.metric(id, "grouplock_rooms", "");
    let before = [enter(0), enter(1)];
    // A member without a part in a stage never hears of the room.
    eventually("only the one that is held is known", || (0..3).all(|id| rooms(id) <= 1));
    assert_eq!(rooms(0), 1, "somebody is inside");
    let after = enter(2);
    for room in 0..20 {
        let epochs = [before[0][room], before[1][room], after[room]];
        assert!(epochs.is_sorted_by(|a, b| a < b), "room {room}: {epochs:?}");
    }
    eventually("only the one that is held is known", || (0..3).all(|id| rooms(id) <= 1));
    held.leave().expect("nothing was lost");
    eventually("none is known", || (0..3).all(|id| rooms(id) == 0));
    (0..3).for_each(|id| assert_eq!(cluster.stop(id), Some(0)));
    (0..3).for_each(|id| cluster.launch(id));
    cluster.wait_connected();
    assert!((0..3).all(|id| cluster.metric(id, "grouplock_rooms", "") == 0), "a log has a room");
    let room = open("room-0");
    let last = room.enter(&session_at(0, 3)).expect("the room is empty");
    assert!(last.epoch() > after[0], "{} after {}", last.epoch(), after[0]);
}
