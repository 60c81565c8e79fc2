//! What a client says of itself, and what it refuses before it connects.

use grouplock_quorum::wire::LONGEST_COMMAND;
use grouplock_room::{Places, RoomOptions};

use crate::cluster::{Cluster, Options};

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
