//! Changes of a running cluster: other versions, other addresses and settings, other certificates.

use std::fs;

use grouplock_quorum::wire::Frame;
use grouplock_room::{Places, Room, RoomError, RoomOptions};
use nix::sys::signal::Signal;

use crate::cluster::client::{Raw, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, certificates, eventually, request};

fn open(place: &str) -> Result<Room, RoomError> {
    Places::new().with(grouplock_quorum::opener()).open(place, "room", &RoomOptions::new())
}

/// Enters one session of every home.
fn assert_serves(room: &Room, members: u16) {
    for member in 0..members {
        let session = session_at(member, members);
        let guard = room.request(&session).timeout(PATIENCE).enter().expect("it is served");
        guard.leave().expect("it was kept");
    }
}

#[test]
fn members_are_upgraded_one_after_the_other() {
    let mut cluster = Cluster::start(Options::new(3));
    cluster.wait_connected();
    let room = open(&cluster.place(0)).unwrap();
    assert_serves(&room, 3);
    for id in 0..3 {
        assert_eq!(cluster.stop(id), Some(0));
        cluster.set(id, "GROUPLOCK_TEST_VERSIONS", "3-4");
        cluster.launch(id);
        cluster.wait_connected();
        // The client has the old version all the time.
        assert_serves(&room, 3);
    }
    // A member without the old version is too new for the client, but not for the other members.
    cluster.stop(0);
    cluster.unset(0);
    cluster.set(0, "GROUPLOCK_TEST_VERSIONS", "4-4");
    cluster.launch(0);
    cluster.wait_connected();
    let another = format!("gbp://127.0.0.1:1,{}", cluster.address(0));
    let why = open(&another).map(drop).expect_err("it is too old").to_string();
    assert!(why.contains("version 3 is spoken there, 4 here"), "{why}");
    assert!(cluster.refused(0, "version") > 0);
}

/// The bytes that the last release sends.
#[test]
fn a_member_and_a_client_of_the_version_before_get_the_reason() {
    let before = include_bytes!("../core/frames/version-2.bin");
    let cluster = Cluster::start(Options::new(3));
    let mut hellos = before.as_slice();
    for who in ["member", "client"] {
        let length = 4 + u32::from_be_bytes(*hellos.first_chunk().unwrap()) as usize;
        let (hello, rest) = hellos.split_at(length);
        hellos = rest;
        let mut raw = Raw::connect(&cluster.address(0)).unwrap();
        raw.write(hello).unwrap();
        assert_eq!(raw.refusal(), "version", "{who}");
    }
    eventually("both are counted", || cluster.refused(0, "version") == 2);
    assert!(cluster.log(0).contains("version 2 is spoken there, 3 here"), "{}", cluster.log(0));
}

#[test]
fn names_and_times_are_changed_at_one_member_after_the_other() {
    let mut cluster = Cluster::start(Options::new(3));
    cluster.wait_connected();
    for id in 0..3 {
        cluster.stop(id);
        let file = fs::read_to_string(cluster.config(id)).unwrap();
        let file = file.replace("retry = \"200ms\"", "retry = \"250ms\"");
        let file = file.replace("clock_tolerance = \"5s\"", "clock_tolerance = \"6s\"");
        // Member 2 gets a certificate for another name. Only members with the new setting know the
        // name.
        fs::write(cluster.config(id), file.replace("member-2.test", "elsewhere.test")).unwrap();
        cluster.launch(id);
        cluster.wait_connected();
    }
    assert_serves(&open(&cluster.place(0)).unwrap(), 3);
    // The common settings must still agree.
    cluster.stop(1);
    let file = fs::read_to_string(cluster.config(1)).unwrap();
    fs::write(cluster.config(1), file.replace("\"fifo\"", "\"static\"")).unwrap();
    cluster.launch(1);
    eventually("it is refused", || cluster.refused(0, "wrong_cluster") > 0);
}

#[test]
fn certificates_are_read_again_on_sighup() {
    let cluster = Cluster::start(Options { tls: true, ..Options::new(3) });
    cluster.wait_connected();
    let directory = cluster.scratch.path();
    let place = |of: &str| {
        let file = |name: &str| directory.join(of).join(name).display().to_string();
        let (at, cacert) = (cluster.address(0), file("ca.pem"));
        let (cert, key) = (file("client.pem"), file("client.key"));
        format!("gbp://{at}?cacert={cacert}&cert={cert}&key={key}&name=member-0.test")
    };
    // Another authority, and certificates of it for all members and clients. The present
    // certificates are kept.
    for old_or_new in ["old", "new"] {
        fs::create_dir(directory.join(old_or_new)).unwrap();
    }
    let files = || {
        let all = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|kind| kind == "pem" || kind == "key"))
    };
    for path in files() {
        fs::copy(&path, directory.join("old").join(path.file_name().unwrap())).unwrap();
    }
    certificates::make(&directory.join("new"), 3);
    let before = open(&place("old")).expect("it is welcome");
    let inside = before.enter(&session_at(0, 3)).expect("the room is empty");
    assert!(open(&place("new")).is_err(), "nobody knows that authority yet");

    // An invalid file changes nothing.
    fs::write(directory.join("ca.pem"), "nothing").unwrap();
    cluster.signal(0, Signal::SIGHUP);
    eventually("it says so", || cluster.log(0).contains("certificates stay as they were"));
    open(&place("old").replace("gbp://", "gbp://127.0.0.1:1,")).expect("it is welcome still");

    for path in files().collect::<Vec<_>>() {
        fs::copy(directory.join("new").join(path.file_name().unwrap()), &path).unwrap();
    }
    (0..3).for_each(|id| cluster.signal(id, Signal::SIGHUP));
    eventually("they have read them", || {
        (0..3).all(|id| cluster.log(id).contains("certificates were read again"))
    });
    let after = open(&place("new")).expect("it is welcome now");
    after.enter(&session_at(0, 3)).expect("the session is inside").leave().unwrap();
    inside.leave().expect("connections that stand are not touched");
    let old = place("old").replace("gbp://", "gbp://127.0.0.1:2,");
    assert!(open(&old).is_err(), "the old authority is not trusted any more");
}

/// The test simulates a pause of the machine for a minute.
#[test]
fn a_member_whose_clock_stood_still_sets_it_by_itself() {
    let mut cluster = Cluster::start(Options { lease: "60s", ..Options::new(3) });
    cluster.wait_connected();
    let room = open(&cluster.place(0)).unwrap();
    let inside = room.enter(&session_at(1, 3)).unwrap();
    cluster.kill(1);
    cluster.set(1, "GROUPLOCK_TEST_FIRST_CLOCK", "-60");
    cluster.launch(1);
    eventually("the others refuse it", || cluster.refused(0, "clock") > 0);
    eventually("it is one of them again", || {
        cluster.metric(0, "grouplock_members_connected", "") == 2
            && cluster.metric(1, "grouplock_members_connected", "") == 2
    });
    assert!(cluster.log(1).contains("starts again with the time of day"));
    assert_eq!(cluster.metric(1, "grouplock_inside", ""), 1, "who was inside is not any more");
    inside.leave().expect("it was kept");
    assert_serves(&room, 3);
    assert_eq!(cluster.stop(1), Some(0), "it does not hear signals any more");
}

#[test]
fn health_is_reported() {
    let cluster = Cluster::start(Options::new(1));
    assert_eq!(cluster.get(0, "/healthz"), "ok\n");
    let elsewhere = "GET /healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(request(cluster.status_address(0), elsewhere).starts_with("HTTP/1.1 404 "));
}

/// Its inbox is full, so nobody can even ask it.
#[test]
fn a_member_that_hangs_is_not_healthy() {
    let mut cluster = Cluster::start(Options::new(1));
    cluster.kill(0);
    // A member that has not begun would not hear the request.
    cluster.set(0, "GROUPLOCK_TEST_BEGUN", "1");
    cluster.set(0, "GROUPLOCK_TEST_HANG", "1");
    cluster.launch(0);
    let (mut raw, _) = Raw::client(&cluster.address(0), 1).expect("it has not voted yet");
    raw.ask("room", &session_at(0, 1), 1).expect("it reads");
    let look = Frame::Look { question: 1, room: Some("x".repeat(200)), brief: true };
    raw.flood(&look).expect_err("it reads all");
    let address = cluster.status_address(0);
    let paths = ["/healthz", "/metrics"].map(|path| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        (path, std::thread::spawn(move || request(address, &text)))
    });
    for (path, response) in paths {
        let response = response.join().expect("it connects");
        assert!(response.starts_with("HTTP/1.1 503 "), "{path}: `{response}`");
    }
}
