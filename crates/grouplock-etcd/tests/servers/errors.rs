//! The errors that users get if something is wrong with the place or the servers.

use crate::server;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use grouplock_room::{Places, Policy, Room, RoomError, RoomOptions};
use grouplock_testing::{LONG, until};

fn open(place: &str, options: &RoomOptions) -> Result<Room, RoomError> {
    Places::new().with(grouplock_etcd::opener()).open(place, "room", options)
}

#[test]
fn nobody_listens() {
    let place = format!("etcd://127.0.0.1:{}?timeout=300ms", server::free_port());
    let room = open(&place, &RoomOptions::new()).expect("nothing is asked yet");
    let started = Instant::now();
    for error in [room.enter("s").expect_err("nobody is there"), room.try_enter("s").expect_err("")]
    {
        assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(&place) && message.contains("refused"), "{message}");
    }
    let error = room.snapshot().expect_err("nobody is there");
    assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    let places = Places::new().with(grouplock_etcd::opener());
    let error = places.list(place.as_str()).expect_err("nobody is there");
    assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
    let existing = RoomOptions::new().existing(true);
    let error = open(&place, &existing).expect_err("nobody is there");
    assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
}

#[test]
fn somebody_listens_and_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = silent.local_addr().expect("it is bound");
    let place = format!("etcd://{address}?ttl=2&timeout=700ms");
    let room = open(&place, &RoomOptions::new()).expect("nothing is asked yet");
    let error = room.enter("s").expect_err("nothing is said");
    assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("no answer"), "{error}");
    // A request with a deadline fails at its deadline.
    let started = Instant::now();
    let error = room.request("s").timeout(Duration::from_millis(50)).enter();
    let error = error.expect_err("nothing is said");
    assert!(matches!(error, RoomError::TimedOut { .. }), "{error}");
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

#[test]
fn a_server_that_is_no_etcd_is_named() {
    use std::io::Write;
    let other = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = other.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in other.incoming().flatten() {
            _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let place = format!("etcd://{address}?timeout=500ms");
    let room = open(&place, &RoomOptions::new()).expect("nothing is asked yet");
    let error = room.enter("s").expect_err("it makes no sense");
    assert!(matches!(error, RoomError::Unreachable { .. }), "{error}");
}

#[test]
fn one_of_the_servers_is_enough() {
    let Some(server) = server::shared() else { return };
    let nobody = server::free_port();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    silent.set_nonblocking(true).expect("it is bound");
    let place = format!(
        "etcd://127.0.0.1:{nobody},{},{}/{}?ttl=3",
        silent.local_addr().expect("it is bound"),
        server.endpoint(),
        server::fresh_prefix()
    );
    let room = open(&place, &RoomOptions::new()).expect("nothing is asked yet");
    // How often the silent one was asked since the last time: each attempt has its connection.
    let asked = || std::iter::from_fn(|| silent.accept().ok()).count();
    let guard = room.enter("s").expect("the third answers");
    assert!(asked() > 0, "it is asked before the third");
    // On a busy machine, the third may be too slow for one attempt.
    until("the third is asked first now", || {
        room.enter("s").expect("it is shared").leave().expect("it can be left");
        asked() == 0
    });
    drop(guard);
}

#[test]
fn options_that_make_no_sense() {
    for (place, said) in [
        ("etcd://h:1?ttl=never", "ttl cannot be `never`: expected whole seconds"),
        ("etcd://h:1?color=red", "`color`: expected one of cacert"),
        ("etcd://h:1?cert=/x", "both or none"),
    ] {
        let message = open(place, &RoomOptions::new()).expect_err("it makes no sense").to_string();
        assert!(message.contains(said), "{message}");
    }
    for policy in [Policy::Batch { passes: 3 }, Policy::Priority { aging: Duration::ZERO }] {
        let error = open("etcd://h:1", &RoomOptions::new().policy(policy));
        let error = error.expect_err("it cannot be done");
        assert!(matches!(error, RoomError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(&policy.to_string()), "{error}");
    }
    let error = open("etcd://me:secret@h:1", &RoomOptions::new()).expect_err("not in a place");
    assert!(error.to_string().contains("passwords"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
