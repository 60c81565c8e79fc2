//! Members in processes of their own: processes enter, share and exclude, and the metrics count
//! them.

use std::time::Duration;

use crate::cluster::client::{Raw, Walker, session_at};
use crate::cluster::{Cluster, Options, PATIENCE, eventually};
use grouplock_quorum::{Coterie, Settings};

const SOON: Duration = Duration::from_millis(400);

#[test]
fn a_session_is_shared_and_others_wait() {
    // This test renews no lease.
    let cluster = Cluster::start(Options { lease: "60s", ..Options::new(3) });
    cluster.wait_connected();
    let (a, b) = (session_at(0, 3), session_at(1, 3));
    let (mut first, _) = Raw::client(&cluster.address(0), 1).unwrap();
    let (mut second, _) = Raw::client(&cluster.address(0), 2).unwrap();
    let (mut other, _) = Raw::client(&cluster.address(1), 3).unwrap();
    first.ask("room", &a, 10).unwrap();
    let epoch = first.entered(10, PATIENCE).unwrap().expect("the room is empty");
    second.ask("room", &a, 20).unwrap();
    assert_eq!(second.entered(20, PATIENCE).unwrap(), Some(epoch));
    other.ask("room", &b, 30).unwrap();
    assert_eq!(other.entered(30, SOON).unwrap(), None);
    first.leave("room", 10).unwrap();
    assert_eq!(other.entered(30, SOON).unwrap(), None);
    second.leave("room", 20).unwrap();
    let next = other.entered(30, PATIENCE).unwrap().expect("the room is empty again");
    assert!(next > epoch);
    // Another room is independent.
    first.ask("elsewhere", &a, 11).unwrap();
    assert!(first.entered(11, PATIENCE).unwrap().is_some());
}

/// Messages of one kind, over all members. Ask and Leave are counted where they arrive, all other
/// kinds where they are sent.
fn messages(cluster: &Cluster, kind: &str) -> u64 {
    let direction = if matches!(kind, "ask" | "leave") { "received" } else { "sent" };
    let labels = format!("kind=\"{kind}\",direction=\"{direction}\",repeated=\"false\"");
    sum(cluster, "grouplock_messages_total", &labels)
}

fn sum(cluster: &Cluster, name: &str, labels: &str) -> u64 {
    (0..cluster.len()).map(|id| cluster.metric(id, name, labels)).sum()
}

const KINDS: [&str; 9] =
    ["ask", "enter", "leave", "request", "locked", "release", "inquire", "relinquish", "contested"];

/// A cluster that repeats no message during a test.
fn without_repeats(members: u16) -> Cluster {
    let cluster = Cluster::start(Options { retry: "10s", lease: "60s", ..Options::new(members) });
    cluster.wait_connected();
    cluster
}

fn wait_until_all_is_received(cluster: &Cluster) {
    let released = "kind=\"release\",direction=\"received\"";
    eventually("all is released", || {
        sum(cluster, "grouplock_messages_total", released) == messages(cluster, "release")
            && sum(cluster, "grouplock_inside", "") == 0
    });
    let repeated = sum(cluster, "grouplock_messages_total", "repeated=\"true\"");
    assert_eq!(repeated, 0, "something was said again");
}

/// The size of the quorums of a plane.
fn quorum(members: u16) -> u64 {
    Coterie::plane(members).unwrap().largest_quorum() as u64
}

#[test]
fn an_idle_stage_costs_what_the_formula_says() {
    for members in [3, 7, 13] {
        let cluster = without_repeats(members);
        let session = session_at(2, members);
        let (mut client, _) = Raw::client(&cluster.address(2), 1).unwrap();
        let stages = 5;
        for stage in 0..stages {
            client.ask("room", &session, stage).unwrap();
            client.entered(stage, PATIENCE).unwrap().expect("the room is empty");
            client.leave("room", stage).unwrap();
        }
        let q = quorum(members);
        eventually("all is released", || messages(&cluster, "release") == stages * (q - 1));
        wait_until_all_is_received(&cluster);
        let all: u64 = KINDS.iter().map(|kind| messages(&cluster, kind)).sum();
        assert_eq!(all, stages * (3 + 3 * (q - 1)), "{members} members");
    }
}

#[test]
fn a_contended_room_costs_what_the_formula_says() {
    for members in [3, 7, 13] {
        let cluster = without_repeats(members);
        let settings = Settings {
            retry: Duration::from_secs(10),
            lease: Some(Duration::from_secs(60)),
            ..Settings::default()
        };
        let (clients, rounds) = (5, 6);
        std::thread::scope(|scope| {
            for client in 0..clients {
                let addresses = cluster.addresses();
                scope.spawn(move || {
                    let mut walker = Walker::new(&addresses, settings, "room");
                    for round in 0..rounds {
                        let session = session_at((client + round) % members, members);
                        walker.enter(&session, PATIENCE).expect("it is let in");
                        walker.leave();
                    }
                });
            }
        });
        let entries = u64::from(clients * rounds);
        eventually("all have left", || messages(&cluster, "leave") == entries);
        wait_until_all_is_received(&cluster);
        let of = |kind| messages(&cluster, kind);
        let stages = sum(&cluster, "grouplock_stages_total", "");
        let (i, y, n) = (of("inquire"), of("relinquish"), of("contested"));
        let all: u64 = KINDS.iter().map(|kind| of(kind)).sum();
        let formula = 3 * entries + 3 * (quorum(members) - 1) * stages + i + 2 * y + n;
        println!(
            "{members} members, {entries} entries in {stages} stages: {all} messages, I = {i}, Y = {y}, N = {n}"
        );
        assert_eq!(all, formula, "{members} members");
        assert!(i + n > 0, "nobody had to wait");
    }
}
