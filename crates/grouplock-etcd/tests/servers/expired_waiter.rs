//! A waiter whose lease has ended must not be admitted.
//!
//! etcd's own lock admits it: the waiter waits until all keys before its own are gone, and does not
//! check that its own still exists. The first test is the control: the schedule finds the bug where
//! there is one. The second test runs the same schedule with a room of ours.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Places, Room, RoomError, RoomOptions, Standing};
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, gateway};

/// Leases of a minute, so that none expires by itself on a slow machine. The test revokes them,
/// which is the same for a waiter. etcd's lock keeps the lease of a waiter alive by itself.
fn lease(cluster: &Cluster) -> Value {
    cluster.call("/v3/lease/grant", &json!({ "TTL": 60 }))["ID"].clone()
}

/// Requests etcd's own lock. The thread ends with the answer.
fn lock(server: SocketAddr, lease: &Value) -> JoinHandle<std::io::Result<Value>> {
    let request = json!({ "name": "bG9jaw==", "lease": lease });
    std::thread::spawn(move || {
        gateway::call(server, "/v3/lock/lock", &request, Duration::from_secs(20))
    })
}

/// Waits until the lock has `count` keys. The owner of a key waits, or will find the keys before
/// its own.
fn await_keys(cluster: &Cluster, count: u64) {
    let everything = json!({ "key": "bG9jay8=", "range_end": "bG9jazA=", "count_only": true });
    let deadline = Instant::now() + Duration::from_secs(20);
    while gateway::number::<u64>(&cluster.call("/v3/kv/range", &everything)["count"]) != count {
        assert!(Instant::now() < deadline, "there are never {count} keys");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn etcds_own_lock_lets_it_in() {
    let Some(cluster) = Cluster::start(1) else { return };
    let server = cluster.endpoints()[0];
    let [first, second, third] = [0; 3].map(|_| lease(&cluster));
    let holder = lock(server, &first).join().expect("no panic").expect("the lock is free");
    let doomed = lock(server, &second);
    await_keys(&cluster, 2);
    cluster.call("/v3/lease/revoke", &json!({ "ID": second }));
    let waiter = lock(server, &third);
    await_keys(&cluster, 2);
    assert!(!doomed.is_finished() && !waiter.is_finished());
    cluster.call("/v3/lock/unlock", &json!({ "key": holder["key"] }));
    let waiter = waiter.join().expect("no panic").expect("its turn");
    let let_in = doomed.join().expect("no panic").is_ok();
    // The rightful holder is still inside at the same time.
    let value = json!({ "key": waiter["key"], "count_only": true });
    assert_eq!(cluster.call("/v3/kv/range", &value)["count"], "1");
    // Newer versions refuse. Debian's version does not.
    let version = cluster::version().unwrap_or_default();
    let known = version == "etcd 3.4.23";
    assert!(let_in || !known, "{version} was expected to let in a waiter whose lease is gone");
}

/// A room through a client of its own. Clients with different settings do not share a lease.
fn room(cluster: &Cluster, client: u32) -> Room {
    let place = format!("{}&timeout={}s", cluster.place(60), 5 + client);
    let places = Places::new().with(grouplock_etcd::opener());
    places.open(&place, "lock", &RoomOptions::new()).expect("the room can be opened")
}

fn leases(cluster: &Cluster) -> BTreeSet<String> {
    let all = cluster.call("/v3/lease/leases", &json!({}));
    let all = all["leases"].as_array().into_iter().flatten();
    all.filter_map(|lease| lease["ID"].as_str().map(str::to_owned)).collect()
}

/// Requests the room. The thread ends with the answer.
fn enter(room: &Room, session: &'static str) -> JoinHandle<Result<Guard<'static>, RoomError>> {
    let room = room.clone();
    std::thread::spawn(move || room.request(session).timeout(Duration::from_secs(20)).enter_owned())
}

fn await_waiters(room: &Room, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while room.snapshot().expect("the room can be looked at").waiters() != count {
        assert!(Instant::now() < deadline, "there are never {count} who wait");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_room_does_not_let_it_in() {
    let Some(cluster) = Cluster::start(1) else { return };
    let [first, second, third] = [0, 1, 2].map(|client| room(&cluster, client));
    let holder = first.enter("holder").expect("the room is empty");
    let before = leases(&cluster);
    let doomed = enter(&second, "doomed");
    await_waiters(&first, 1);
    let its: Vec<String> = leases(&cluster).difference(&before).cloned().collect();
    assert_eq!(its.len(), 1, "one client has come, and one lease with it");
    cluster.call("/v3/lease/revoke", &json!({ "ID": its[0] }));
    let waiter = enter(&third, "waiter");
    await_waiters(&first, 1);
    assert_eq!(holder.standing(), Standing::Held);
    holder.leave().expect("it was held");
    let waiter = waiter.join().expect("no panic").expect("its turn");
    let doomed = doomed.join().expect("no panic");
    assert!(matches!(doomed, Err(RoomError::Lost(_))), "{doomed:?}");
    assert_eq!(waiter.standing(), Standing::Held);
    // It can request again, like any other client.
    assert!(second.try_enter("doomed").is_err_and(|error| error.is_conflict()));
    waiter.leave().expect("it was held");
    second.enter("doomed").expect("the room is empty").leave().expect("it was held");
}
