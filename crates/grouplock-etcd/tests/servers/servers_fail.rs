//! The clusters of the fault tests do what those tests need: they lose a leader and elect another.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// Waits for a leader that is not `old`.
fn another_leader(cluster: &Cluster, old: usize) -> usize {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let leader = cluster.leader();
        if leader != old {
            return leader;
        }
        assert!(Instant::now() < deadline, "{old} still leads");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back() {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let old = cluster.leader();
    cluster.kill(old);
    another_leader(&cluster, old);
    cluster.restart(old);
    cluster.await_health();
}

#[test]
fn a_stopped_leader_is_replaced_and_comes_back() {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let old = cluster.leader();
    cluster.stop(old);
    another_leader(&cluster, old);
    cluster.go_on(old);
    cluster.await_health();
}

#[test]
fn a_leader_that_is_cut_off_is_replaced_and_comes_back() {
    let Some(mut cluster) = Cluster::start_apart() else { return };
    let old = cluster.leader();
    cluster.network().link_to_members(old, false);
    let new = another_leader(&cluster, old);
    // Clients still reach it.
    assert!(cluster.answers(old));
    cluster.network().link_to_clients(old, false);
    assert!(!cluster.answers(old) && cluster.answers(new));
    cluster.network().link_to_members(old, true);
    cluster.network().link_to_clients(old, true);
    cluster.await_health();
}
