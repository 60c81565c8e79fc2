//! The settings that must be equal at all members.

use std::time::Duration;

use grouplock_quorum::wire::{Cluster, CoterieKind, Peer};
use grouplock_quorum::{Admission, Precedence, Settings};

#[test]
fn only_what_must_be_the_same_everywhere_is_in_the_fingerprint() {
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
    let mut others: Vec<Cluster> = vec![cluster.clone(); 6];
    others[0].name = "text".into();
    others[1].members.pop();
    others[2].coterie = CoterieKind::Majority;
    others[3].settings.lease = Some(Duration::from_secs(60));
    others[4].settings.admission = Admission::InOrder;
    others[5].settings.precedence = Precedence::Static;
    for other in others {
        assert_ne!(other.fingerprint(), same, "{other:?}");
    }
    // These settings can change at one member after the other.
    let mut others: Vec<Cluster> = vec![cluster.clone(); 4];
    others[0].members[1] = peer(9);
    others[1].members[2].name = "b".into();
    others[2].settings.retry = Duration::from_secs(2);
    others[3].clock_tolerance = Duration::from_secs(6);
    for other in others {
        assert_eq!(other.fingerprint(), same, "{other:?}");
    }
}
