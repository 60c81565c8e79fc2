//! What a client says of itself, and what it refuses before it connects.

use std::time::Duration;

use grouplock_quorum::wire::LONGEST_COMMAND;
use grouplock_room::{Places, Room, RoomOptions, Standing};
use grouplock_testing::actor::{Actor, listen, role, say};

use crate::cluster::client::session_at;
use crate::cluster::{Cluster, Options, eventually};

fn open(place: &str) -> Room {
    let places = Places::new().with(grouplock_quorum::opener());
    places.open(place, "room", &RoomOptions::new()).unwrap()
}

fn refusal(place: &str) -> String {
    let places = Places::new().with(grouplock_quorum::opener());
    match places.open(place, "room", &RoomOptions::new()) {
        Ok(_) => panic!("{place} is refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn half_of_what_tls_needs_is_refused_with_what_is_missing() {
    let message = refusal("gbp://127.0.0.1:1?cert=/c.pem");
    assert!(message.contains("cacert (or GROUPLOCK_GBP_CACERT)"), "{message}");
    assert!(message.contains("key (or GROUPLOCK_GBP_KEY)"), "{message}");
    let message = refusal("gbp://127.0.0.1:1?cacert=/no/ca.pem&cert=/c.pem&key=/k.pem");
    assert!(message.contains("/c.pem"), "{message}");
}

#[test]
fn what_is_not_known_is_refused() {
    assert!(refusal("gbp://127.0.0.1:1?ttl=3").contains("ttl"));
    assert!(refusal("gbp://127.0.0.1:1/path").contains("/path"));
}

#[test]
fn nothing_that_it_says_of_itself_is_too_long() {
    let cluster = Cluster::start(Options::new(1));
    let places = Places::new().with(grouplock_quorum::opener());
    let long = "ö".repeat(LONGEST_COMMAND);
    for (name, options) in
        [("named", RoomOptions::new().command(long)), ("unnamed", RoomOptions::new())]
    {
        let room = places.open(cluster.place(0).as_str(), name, &options).unwrap();
        let inside = room.enter("session").unwrap();
        let seen = room.snapshot().unwrap().inside.unwrap().members.remove(0);
        match name {
            "named" => assert_eq!(seen.command, "ö".repeat(LONGEST_COMMAND / 2)),
            _ => assert!(!seen.command.is_empty()),
        }
        assert!(!seen.host.is_empty() && !seen.user.is_empty());
        assert_eq!(seen.pid, std::process::id());
        inside.leave().unwrap();
    }
}

/// Its clock is a minute behind or ahead of the time of day, as after a pause of the machine, or
/// after the time of day was set.
#[test]
fn a_client_whose_clock_is_not_the_time_of_day_is_served() {
    if let Some(role) = role() {
        let room = open(&role[0]);
        let inside = room.enter(&session_at(0, 3)).unwrap();
        say("inside");
        while listen().as_deref() == Some("standing") {
            say(&format!("{:?}", inside.standing()));
        }
        inside.leave().unwrap();
        return room.enter(&session_at(1, 3)).unwrap().leave().unwrap();
    }
    let mut cluster = Cluster::start(Options { lease: "12s", ..Options::new(3) });
    cluster.wait_connected();
    let mut actors = ["-60", "60"].map(|clock| {
        let test = "client::a_client_whose_clock_is_not_the_time_of_day_is_served";
        Actor::start_by(test, &[&cluster.place(0)], |command| {
            command.env("GROUPLOCK_TEST_CLOCK", clock);
        })
    });
    for actor in &actors {
        assert_eq!(actor.hear().as_deref(), Some("inside"));
    }
    let renewed = |cluster: &Cluster| {
        cluster.metric(0, "grouplock_messages_total", "kind=\"renewed\",direction=\"sent\"")
    };
    eventually("their home renews their leases", || renewed(&cluster) > 4);
    cluster.kill(0);
    cluster.launch(0);
    eventually("it renews them after a restart", || renewed(&cluster) > 2);
    for actor in &mut actors {
        actor.tell("standing");
        assert_eq!(actor.hear(), Some(format!("{:?}", Standing::Held)));
        actor.tell("leave");
    }
    for actor in &mut actors {
        assert!(actor.end().success());
    }
    assert_eq!(cluster.refused(0, "clock"), 0);
}

/// It hears that it was admitted when its lease is over, and must not wait forever.
#[test]
fn a_waiter_that_was_stopped_while_it_was_admitted_gets_an_error() {
    let test = "client::a_waiter_that_was_stopped_while_it_was_admitted_gets_an_error";
    if let Some(role) = role() {
        match open(&role[0]).enter(&session_at(1, 3)) {
            Ok(_) => say("inside"),
            Err(error) => say(&error.to_string()),
        }
        return;
    }
    let cluster = Cluster::start(Options::new(3));
    cluster.wait_connected();
    let room = open(&cluster.place(0));
    let inside = room.enter(&session_at(0, 3)).unwrap();
    let waiter = Actor::start(test, &[&cluster.place(0)]);
    eventually("it waits", || !room.snapshot().unwrap().waiting.is_empty());
    waiter.stop();
    inside.leave().unwrap();
    eventually("it is admitted", || room.snapshot().unwrap().inside.is_some());
    eventually("it counts as dead", || room.snapshot().unwrap().inside.is_none());
    waiter.signal(nix::sys::signal::Signal::SIGCONT);
    let said = waiter.hear_within(Duration::from_secs(60)).expect("it does not wait forever");
    assert!(said.contains("has ended the holding"), "{said}");
}
