//! Members in processes of their own: entering, sharing, excluding, the figures.

mod cluster;

use std::time::Duration;

use cluster::client::{Raw, session_at};
use cluster::{Cluster, Options, PATIENCE, eventually};

#[test]
fn member() {
    cluster::play_member();
}

const SOON: Duration = Duration::from_millis(400);

#[test]
fn a_session_is_shared_and_others_wait() {
    let cluster = Cluster::start(Options::new(3));
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
    // Another room has nothing to do with it.
    first.ask("elsewhere", &a, 11).unwrap();
    assert!(first.entered(11, PATIENCE).unwrap().is_some());
}

#[test]
fn an_idle_stage_costs_what_the_formula_says() {
    for members in [3, 7] {
        let cluster =
            Cluster::start(Options { retry: "10s", lease: "60s", ..Options::new(members) });
        cluster.wait_connected();
        let sum = |labels: &str| -> u64 {
            (0..cluster.len())
                .map(|id| cluster.metric(id, "grouplock_messages_total", labels))
                .sum()
        };
        let session = session_at(2, members);
        let (mut client, _) = Raw::client(&cluster.address(2), 1).unwrap();
        let stages = 5;
        for stage in 0..stages {
            client.ask("room", &session, stage).unwrap();
            client.entered(stage, PATIENCE).unwrap().expect("the room is empty");
            client.leave("room", stage).unwrap();
        }
        let q = if members == 3 { 2 } else { 3 };
        eventually("all is released", || {
            sum("kind=\"release\",direction=\"received\"") == stages * (q - 1)
        });
        // Ask and Leave are counted where they arrive, everything else where it is sent.
        let asked = sum("kind=\"ask\",direction=\"received\"");
        let left = sum("kind=\"leave\",direction=\"received\"");
        let sent = sum("direction=\"sent\",repeated=\"false\"");
        assert_eq!(asked + left + sent, stages * (3 + 3 * (q - 1)), "{members} members");
        assert_eq!(sum("direction=\"sent\",repeated=\"true\""), 0);
    }
}
