//! Rooms on etcd pass the conformance suite on a real server.

use crate::{actor, server};
use std::sync::Arc;
use std::time::Duration;

use crate::actor::Actor;
use crate::server::Server;
use grouplock_room::conformance::{Subject, Victim};
use grouplock_room::{Guard, Places, Room, RoomError, RoomOptions};

/// A place of its own on the shared server. No other test has its lease.
struct OnEtcd {
    server: Arc<Server>,
    place: String,
}

struct Process(Actor);

impl Victim for Process {
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn kill(mut self: Box<Self>) {
        self.0.kill();
    }
}

impl OnEtcd {
    fn new(server: Arc<Server>) -> Self {
        let place = format!("etcd://{}/{}?ttl=5", server.endpoint(), server::fresh_prefix());
        OnEtcd { server, place }
    }
}

impl Subject for OnEtcd {
    fn open(&self, room: &str, options: &RoomOptions) -> Result<Room, RoomError> {
        Places::new().with(grouplock_etcd::opener()).open(self.place.as_str(), room, options)
    }

    fn victim(&self, room: &str, session: &str) -> Option<Box<dyn Victim>> {
        Some(Box::new(Process(actor::start(module_path!(), &[&self.place, room, session], &[]))))
    }

    /// Revokes the lease of the holder's key.
    fn take_away(&self, _: &str, guard: &Guard<'_>) -> bool {
        let prefix = self.place.split(['/', '?']).nth(3).expect("it has a prefix");
        let keys = self.server.told(&["get", "--prefix", prefix, "-w", "fields"]);
        let mine = keys.split("\"Key\" : ").find(|key| {
            key.contains("/q/")
                && key.lines().next().is_some_and(|k| k.contains(guard.holder().as_str()))
        });
        let lease = mine.and_then(|key| key.lines().find_map(|l| l.strip_prefix("\"Lease\" : ")));
        let lease: i64 = lease.expect("the key has a lease").parse().expect("a number");
        self.server.told(&["lease", "revoke", &format!("{lease:x}")]);
        true
    }

    fn soon(&self) -> Duration {
        Duration::from_secs(15)
    }
}

macro_rules! with_server {
    () => {
        match server::shared() {
            Some(server) => OnEtcd::new(server),
            None => return,
        }
    };
}

grouplock_room::conformance_tests!(with_server!());

/// Not a test: what [`actor::start`] runs.
#[test]
fn actor() {
    let Some(role) = actor::role() else { return };
    let places = Places::new().with(grouplock_etcd::opener());
    let room = places.open(role[0].as_str(), &role[1], &RoomOptions::new()).expect("it opens");
    let guard = room.enter(&role[2]).expect("it is admitted at some time");
    actor::say("inside");
    while actor::listen().is_some() {}
    drop(guard);
}
