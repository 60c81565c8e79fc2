//! What all members must agree on.

use std::time::Duration;

use grouplock_quorum::Settings;
use grouplock_quorum::wire::{Cluster, CoterieKind, Peer};

#[test]
fn whatever_differs_changes_the_fingerprint() {
    let peer = |port: u16| Peer { address: format!("127.0.0.1:{port}"), name: "a".into() };
    let cluster = Cluster {
        name: "test".into(),
        members: vec![peer(1), peer(2), peer(3)],
        coterie: CoterieKind::Plane,
        settings: Settings::default(),
        clock_tolerance: Duration::from_secs(5),
    };
    let same = cluster.clone().fingerprint();
    assert_eq!(cluster.fingerprint(), same);
    let mut others: Vec<Cluster> = vec![cluster.clone(); 5];
    others[0].name = "text".into();
    others[1].members.swap(0, 1);
    others[2].coterie = CoterieKind::Majority;
    others[3].settings.retry = Duration::from_secs(2);
    others[4].clock_tolerance = Duration::from_secs(6);
    for other in others {
        assert_ne!(other.fingerprint(), same, "{other:?}");
    }
}
