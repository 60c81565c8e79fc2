//! Rooms on a cluster with TLS.

use crate::cluster::{Cluster, Options};
use grouplock_quorum::{MemberId, home};
use grouplock_room::{Places, Room, RoomError, RoomOptions};

fn open(place: &str) -> Result<Room, RoomError> {
    Places::new().with(grouplock_quorum::opener()).open(place, "room", &RoomOptions::new())
}

fn refusal(place: &str) -> String {
    open(place).expect_err("it is refused").to_string()
}

#[test]
fn a_client_with_a_certificate_enters_at_every_home_and_one_without_does_not() {
    let cluster = Cluster::start(Options { tls: true, ..Options::new(3) });
    cluster.wait_connected();
    let file = |name: &str| cluster.scratch.path().join(name).display().to_string();
    let place = |cert: &str, name: &str| {
        let (at, cacert) = (cluster.address(0), file("ca.pem"));
        let (cert, key) = (file(&format!("{cert}.pem")), file(&format!("{cert}.key")));
        format!("gbp://{at}?cacert={cacert}&cert={cert}&key={key}&name={name}")
    };
    let room = open(&place("client", "member-0.test")).expect("it is welcome");
    // The client dials the other two by the names that the cluster reports.
    for member in (0..3).map(MemberId) {
        let names = (0..).map(|n| format!("session {n}"));
        let session = names.into_iter().find(|name| home(name, 3) == member);
        let guard = room.enter(&session.expect("names do not run out")).expect("it is empty");
        guard.leave().expect("it can be left");
    }
    assert_eq!(room.snapshot().expect("it can be looked at").unanswered, [""; 0]);
    let another = refusal(&place("client", "member-1.test"));
    assert!(another.contains("TLS: ") && another.contains("member-1.test"), "{another}");
    let plain = refusal(&cluster.place(0));
    assert!(plain.contains("cannot be reached"), "{plain}");
    let stranger = refusal(&place("stranger", "member-0.test"));
    assert!(stranger.contains("cannot be reached"), "{stranger}");
}
