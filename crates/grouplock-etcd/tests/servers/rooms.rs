//! The promises of rooms on etcd that the suite does not test, on a real server.

use crate::{actor, server};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, gateway};
use crate::server::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grouplock_room::{
    Guard, Loss, Places, Room, RoomError, RoomName, RoomOptions, Standing, remote,
};
use grouplock_testing::{Scratch, until};
use nix::sys::signal::Signal;
use serde_json::json;

const LONG: Duration = Duration::from_secs(15);

fn open(place: &str, room: &str) -> Room {
    let places = Places::new().with(grouplock_etcd::opener());
    places.open(place, room, &RoomOptions::new()).expect("it opens")
}

/// A place of its own on the shared server.
fn place(server: &Server, options: &str) -> String {
    format!("etcd://{}/{}?{options}", server.endpoint(), server::fresh_prefix())
}

/// The same place with a short lease, for holders that are to lose it. The lease is long enough to
/// be kept on a busy machine until then.
fn short_of(place: &str) -> String {
    let (same, _) = place.split_once('?').expect("it has options");
    format!("{same}?ttl=3")
}

fn prefix(place: &str) -> &str {
    place.split(['/', '?']).nth(3).expect("it has a prefix")
}

/// Not a test: what [`actor::start`] runs. Enters and prints its epoch, or the error. If it has to
/// wait, it prints that first.
#[test]
fn actor() {
    let Some(role) = actor::role() else { return };
    let room = open(&role[0], &role[1]);
    // Called at once, and then not again during a test.
    let waiting = room.request(&role[2]).progress(Duration::from_secs(3600), |_| {
        actor::say("waiting");
        ControlFlow::Continue(())
    });
    match waiting.enter() {
        Ok(guard) => {
            actor::say(&format!("inside {}", guard.epoch()));
            while let Some(command) = actor::listen() {
                match command.as_str() {
                    "standing" => actor::say(match guard.standing() {
                        Standing::Held => "held",
                        Standing::Lost(_) => "lost",
                        Standing::Left => "left",
                    }),
                    "sleep" => {
                        remote::pretend_to_sleep(Duration::from_secs(3600));
                        actor::say("slept");
                    }
                    other => panic!("what is {other}?"),
                }
            }
        }
        Err(error) => actor::say(&format!("refused: {error}")),
    }
}

/// etcd's own lock admits it.
#[test]
fn a_waiter_whose_lease_expired_while_it_waited_is_not_admitted() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let room = open(&place, "old bug");
    let inside = room.enter("a").expect("it is empty");
    let waiter = actor::start(module_path!(), &[&short_of(&place), "old bug", "b"], &[]);
    // It knows that it waits. It is stopped only after it has heard that.
    assert_eq!(waiter.hear().as_deref(), Some("waiting"));
    // It notices nothing of the next steps.
    waiter.signal(Signal::SIGSTOP);
    until("its lease is over", || room.snapshot().expect("it can be looked at").waiters() == 0);
    inside.leave().expect("it can be left");
    let other = room.request("c").timeout(LONG).enter().expect("nobody is in front of it");
    waiter.signal(Signal::SIGCONT);
    let said = waiter.hear().expect("it says something");
    assert!(said.starts_with("refused: the holding was lost"), "{said}");
    assert_eq!(other.standing(), Standing::Held);
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!((seen.session(), seen.epoch), (Some("c"), other.epoch()));
}

#[test]
fn a_holder_that_was_stopped_for_longer_than_its_lease_knows_it_at_once() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let room = open(&place, "stopped");
    let mut stopped = actor::start(module_path!(), &[&short_of(&place), "stopped", "a"], &[]);
    let said = stopped.hear().expect("it enters");
    let epoch: u64 = said.strip_prefix("inside ").expect("it enters").parse().expect("a number");
    stopped.tell("standing");
    assert_eq!(stopped.hear().as_deref(), Some("held"));
    stopped.signal(Signal::SIGSTOP);
    let next = room.request("b").timeout(LONG).enter().expect("the lease runs out");
    assert!(next.epoch() > epoch, "what is behind the room can refuse the old one");
    assert_eq!(next.recovered().map(|died| (died.epoch, died.pid)), Some((epoch, stopped.pid())));
    // It learns of the loss before it can do anything else.
    stopped.tell("standing");
    stopped.signal(Signal::SIGCONT);
    assert_eq!(stopped.hear().as_deref(), Some("lost"));
}

/// The clock of the standard library stops while a machine sleeps. The clocks of the servers do
/// not.
#[test]
fn a_holder_whose_machine_slept_knows_it_at_once() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=60");
    let mut sleeper = actor::start(module_path!(), &[&place, "asleep", "a"], &[]);
    assert!(sleeper.hear().is_some_and(|said| said.starts_with("inside")));
    for (told, heard) in [("standing", "held"), ("sleep", "slept"), ("standing", "lost")] {
        sleeper.tell(told);
        assert_eq!(sleeper.hear().as_deref(), Some(heard));
    }
}

#[test]
fn a_holder_that_is_alone_shares_with_nobody() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let room = open(&place, "alone");
    let alone = room.request("s").alone().enter().expect("it is empty");
    for session in ["s", "t", ""] {
        let error = room.try_enter(session).expect_err("somebody is alone");
        assert!(matches!(&error, RoomError::Occupied { inside } if inside.as_deref() == Some("s")));
    }
    assert!(room.request("s").alone().no_wait().enter().is_err());
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!((seen.session(), seen.holders(), seen.epoch), (Some("s"), 1, alone.epoch()));
    std::thread::scope(|scope| {
        let waiting = [scope.spawn(|| room.request("s").timeout(LONG).enter()), {
            until("one waits", || room.snapshot().expect("it can be looked at").waiters() == 1);
            scope.spawn(|| room.request("s").alone().timeout(LONG).enter())
        }];
        until("both wait", || room.snapshot().expect("it can be looked at").waiters() == 2);
        alone.leave().expect("it can be left");
        let [first, second] = waiting;
        let first = first.join().expect("no panic").expect("its turn");
        assert!(!second.is_finished(), "it waits for the other to leave");
        let epoch = first.epoch();
        first.leave().expect("it can be left");
        let second = second.join().expect("no panic").expect("its turn");
        assert!(second.epoch() > epoch);
        second.leave().expect("it can be left");
    });
    let limited = room.request("s").at_most(2.try_into().expect("not zero")).enter();
    assert!(matches!(limited, Err(RoomError::Unsupported { .. })), "{limited:?}");
}

#[test]
fn a_room_that_nobody_uses_can_be_removed() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let places = Places::new().with(grouplock_etcd::opener());
    let room = open(&place, "removed");
    let (one, other) = (room.enter("a").expect("empty"), room.enter("a").expect("shared"));
    let error = places.remove(place.as_str(), "removed").expect_err("somebody is inside");
    assert!(matches!(error, RoomError::InUse { .. }), "{error}");
    drop((one, other));
    places.remove(place.as_str(), "removed").expect("nobody uses it");
    let left = server.told(&["get", "--prefix", prefix(&place), "--keys-only"]);
    assert_eq!(left.trim(), "");
    assert_eq!(places.list(place.as_str()).expect("none"), []);
    // A tombstone stays until its lease ends, and makes no room.
    server.told(&["put", &format!("{}/removed/t/0-0", prefix(&place)), ""]);
    assert_eq!(places.list(place.as_str()).expect("none"), []);
    let error = places.open(place.as_str(), "removed", &RoomOptions::new().existing(true));
    assert!(matches!(error, Err(RoomError::NoSuchRoom { .. })), "{error:?}");
    // An open handle makes the room again.
    room.enter("b").expect("it is empty").leave().expect("it can be left");
    assert_eq!(places.list(place.as_str()).expect("one").len(), 1);
}

/// What the documentation promises for a user's own transactions.
#[test]
fn a_transaction_with_the_fence_is_done_only_while_its_holder_holds() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let room = open(&place, "fence");
    let target = format!("{}-result", prefix(&place));
    let write = |fence: &[u8], value: &str| {
        let request = json!({
            "compare": [{
                "key": STANDARD.encode(fence), "target": "CREATE", "result": "GREATER",
                "create_revision": "0"
            }],
            "success": [{ "request_put": {
                "key": STANDARD.encode(&target), "value": STANDARD.encode(value)
            } }]
        });
        let address = server.endpoint().parse().expect("an address");
        let answer = gateway::call(address, "/v3/kv/txn", &request, LONG).expect("it answers");
        answer["succeeded"] == true
    };
    for alone in [false, true] {
        let request = room.request("writers").timeout(LONG);
        let inside = if alone { request.alone() } else { request }.enter().expect("it is empty");
        let fence = grouplock_etcd::fence_key(&place, "fence", &inside).expect("a place");
        assert!(write(&fence, "inside"), "it holds");
        // It goes on as if it still held.
        revoke_lease(&server, &place);
        assert!(!write(&fence, "too late"), "its lease is gone");
        until("it knows", || matches!(inside.standing(), Standing::Lost(_)));
        drop(inside);
        let next = room.request("others").timeout(LONG).enter().expect("it is empty");
        assert!(!write(&fence, "too late"), "somebody else is inside");
        next.leave().expect("it can be left");
    }
    assert_eq!(server.told(&["get", "--print-value-only", &target]).trim(), "inside");
}

/// A client learns all members from the member that it knows.
#[test]
fn members_are_learnt_if_the_place_says_so() {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let named = cluster.endpoints()[0];
    let room = open(&format!("etcd://{named}?ttl=3&members=all"), "members");
    let inside = room.enter("a").expect("it is empty");
    // The renewals report the members.
    let first = inside.watch().valid_until().expect("it has a lease");
    until("it was renewed", || inside.watch().valid_until().expect("a lease") > first);
    cluster.kill(0);
    inside.leave().expect("another member answers");
    drop(room.request("b").timeout(LONG).enter().expect("another member answers"));
}

#[test]
fn many_requests_that_join_at_once_all_enter() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20");
    let room = open(&place, "many");
    let epochs: std::collections::BTreeSet<u64> = std::thread::scope(|scope| {
        let join = || scope.spawn(|| room.enter("s").expect("it is shared"));
        let all: Vec<_> = (0..1000).map(|_| join()).collect();
        let guards: Vec<_> = all.into_iter().map(|one| one.join().expect("no panic")).collect();
        assert_eq!(room.snapshot().expect("it can be looked at").holders(), 1000);
        guards.iter().map(Guard::epoch).collect()
    });
    assert_eq!(epochs.len(), 1, "they are inside together: {epochs:?}");
}

#[test]
fn a_lease_is_renewed_for_as_long_as_somebody_is_inside() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let room = open(&place, "renewed");
    let guard = room.enter("a").expect("it is empty");
    let first = guard.watch().valid_until().expect("it has a lease");
    let trusted = Duration::from_secs(4);
    assert!(first <= Instant::now() + trusted, "trusted for less than it lasts");
    until("its first promise is over", || Instant::now() > first);
    assert_eq!(guard.standing(), Standing::Held);
    assert!(guard.watch().valid_until().expect("it has a lease") > first);
    guard.leave().expect("it can be left");
}

#[test]
fn a_lease_that_was_taken_away_is_replaced_when_somebody_enters() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=60");
    let room = open(&place, "taken");
    let guard = room.enter("a").expect("it is empty");
    revoke_lease(&server, &place);
    let next = room.try_enter("b").expect("with another lease");
    assert_eq!(next.standing(), Standing::Held);
    until("the other knows", || matches!(guard.standing(), Standing::Lost(_)));
    assert!(next.recovered().is_some(), "it did not leave by itself");
}

/// Revokes the first lease of a key under the prefix of the place.
fn revoke_lease(server: &Server, place: &str) {
    let keys = server.told(&["get", "--prefix", prefix(place), "-w", "fields"]);
    let leases = keys.lines().filter_map(|line| line.strip_prefix("\"Lease\" : "));
    let lease = leases.map(|lease| lease.parse::<i64>().expect("a number")).max();
    server.told(&["lease", "revoke", &format!("{:x}", lease.expect("it has one"))]);
}

#[test]
fn a_loss_is_reported_at_once_if_the_lease_is_revoked() {
    let Some(server) = server::shared() else { return };
    // Its next renewal would be in 20 s.
    let place = place(&server, "ttl=60");
    let room = open(&place, "revoked");
    // First before the holder watches its key. Then, unless the machine is very slow, after that.
    for pause in [0, 500] {
        let guard = room.enter("a").expect("it is empty");
        std::thread::sleep(Duration::from_millis(pause));
        assert_eq!(guard.standing(), Standing::Held, "nothing has happened");
        revoke_lease(&server, &place);
        let told = guard.watch().wait_until(Instant::now() + LONG);
        assert!(matches!(told, Standing::Lost(Loss::Revoked(_))), "{told:?}");
        room.request("b").timeout(LONG).enter().expect("it is empty").leave().expect("it is left");
    }
}

#[test]
fn a_holder_without_answers_knows_its_loss_before_others_are_admitted() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let server = Server::single(scratch.path(), &[], "http");
    let place = place(&server, "ttl=3");
    let room = open(&place, "silence");
    let guard: Guard<'_> = room.enter("a").expect("it is empty");
    let watch = guard.watch();
    server.signal(Signal::SIGSTOP);
    let stopped = Instant::now();
    assert!(matches!(watch.wait_until(stopped + LONG), Standing::Lost(_)));
    server.signal(Signal::SIGCONT);
    // The last renewal was sent before the server was stopped, so the servers' lease lasts at most
    // three seconds from then on. The promise must end before that. This thread may learn of the
    // loss later, on a busy machine.
    assert!(watch.valid_until().expect("it had a lease") < stopped + Duration::from_secs(3));
    assert!(matches!(guard.leave(), Err(RoomError::Lost(_))));
    // It goes on with another lease.
    let again = room.request("b").timeout(LONG).enter().expect("the old lease runs out");
    again.leave().expect("it can be left");
}

/// A request with a late answer may still have been executed, and may be executed again at any
/// time.
#[test]
fn requests_that_were_sent_twice_leave_nothing_behind() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let server = Server::single(scratch.path(), &[], "http");
    let place = place(&server, "ttl=20");
    let room = open(&place, "twice");
    room.enter("a").expect("it is empty").leave().expect("it can be left");
    for (session, stop) in [("a", 400), ("b", 1000), ("a", 3000)] {
        server.signal(Signal::SIGSTOP);
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| room.request(session).timeout(LONG).enter());
            std::thread::sleep(Duration::from_millis(stop));
            server.signal(Signal::SIGCONT);
            let guard = entering.join().expect("no panic").expect("the server is there again");
            guard.leave().expect("it can be left");
        });
    }
    std::thread::sleep(Duration::from_millis(100));
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!((seen.holders(), seen.waiters(), seen.deaths), (0, 0, 0), "{seen:?}");
    room.request("c").no_wait().enter().expect("it is empty").leave().expect("it can be left");
}

#[test]
fn a_room_has_the_keys_that_are_documented() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let room = open(&place, "a room/1");
    let keys = || {
        let listed = server.told(&["get", "--prefix", prefix(&place), "--keys-only"]);
        let keys = listed.lines().filter(|line| !line.is_empty());
        keys.map(|key| key.split_once('/').expect("it has a prefix").1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(), Vec::<String>::new(), "a room is made by its first guest");
    let guard = room.enter("ab").expect("it is empty");
    let id = guard.holder();
    let (base, entry) = ("a%20room%2F1", format!("a%20room%2F1/q/6162/{id}"));
    let (made, mark) = (format!("{base}/made"), format!("{entry}."));
    assert_eq!(keys(), [made.clone(), entry.clone(), mark.clone()]);
    let value = server.told(&["get", "--print-value-only", &format!("{}/{entry}", prefix(&place))]);
    for said in [r#""session":"ab""#, &format!(r#""pid":{}"#, std::process::id())] {
        assert!(value.contains(said), "{value}");
    }
    let fellow = room.enter("ab").expect("it is shared");
    assert_eq!(fellow.epoch(), guard.epoch());
    let second = format!("{base}/q/6162/{}", fellow.holder());
    let phase = format!("{base}/p/6162");
    let mut all = [made.clone(), phase.clone(), entry, mark, second.clone(), format!("{second}.")];
    all.sort();
    assert_eq!(keys(), all);
    guard.leave().expect("it can be left");
    fellow.leave().expect("it can be left");
    assert_eq!(keys(), [made.clone(), phase]);
    room.enter("c").expect("it is empty").leave().expect("it can be left");
    assert_eq!(keys(), [made], "who comes to an empty room deletes the phase");
}

/// With a lease of five minutes the queue is read every hundred seconds. Only the watch reports
/// earlier.
#[test]
fn a_waiter_is_woken_by_the_watch() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=300");
    let room = open(&place, "watch");
    std::thread::scope(|scope| {
        let mut inside = room.enter("0").expect("it is empty");
        for session in ["1", "2", "3"] {
            let next = scope.spawn(|| room.request(session).timeout(LONG).enter());
            until("it waits", || room.snapshot().expect("it can be looked at").waiters() == 1);
            inside.leave().expect("it can be left");
            let left = Instant::now();
            inside = next.join().expect("no panic").expect("it is told");
            assert!(left.elapsed() < LONG / 2, "after {:?}", left.elapsed());
        }
        inside.leave().expect("it can be left");
    });
}

#[test]
fn rooms_are_listed_and_looked_for() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let places = Places::new().with(grouplock_etcd::opener());
    let existing = RoomOptions::new().existing(true);
    let error = places.open(place.as_str(), "one", &existing).expect_err("nobody was there");
    assert!(matches!(error, RoomError::NoSuchRoom { .. }), "{error}");
    assert_eq!(places.list(place.as_str()).expect("none"), []);
    for name in ["two", "one", "strange / name"] {
        drop(open(&place, name).enter("s").expect("it is empty"));
    }
    let names = places.list(place.as_str()).expect("three");
    let names: Vec<_> = names.iter().map(RoomName::as_str).collect();
    assert_eq!(names, ["one", "strange / name", "two"]);
    places.open(place.as_str(), "one", &existing).expect("somebody was there");
}

#[test]
fn after_a_death_the_next_hold_back_if_the_place_says_so() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=20&delay=700ms");
    let room = open(&place, "delay");
    // After a holder that left there is no delay.
    let started = Instant::now();
    room.enter("a").expect("it is empty").leave().expect("it can be left");
    room.enter("b").expect("it is empty").leave().expect("it can be left");
    let mut victim = actor::start(module_path!(), &[&short_of(&place), "delay", "a"], &[]);
    assert!(victim.hear().is_some_and(|said| said.starts_with("inside")));
    assert!(started.elapsed() < LONG);
    victim.kill();
    let gone = || room.snapshot().expect("it can be looked at").holders() == 0;
    until("its lease is over", gone);
    let noticed = Instant::now();
    let error = room.try_enter("b").expect_err("it would have to hold back");
    assert!(error.is_conflict(), "{error}");
    let next = room.request("b").timeout(LONG).enter().expect("after the delay");
    assert!(noticed.elapsed() >= Duration::from_millis(650), "after {:?}", noticed.elapsed());
    assert!(next.recovered().is_some());
    next.leave().expect("it can be left");
    let after = room.enter("c").expect("it is empty");
    assert_eq!(after.recovered(), None);
}

#[test]
fn handles_of_a_process_share_a_lease_and_leave_none_behind() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=60");
    let leases = || server.told(&["lease", "list"]).lines().filter(|l| l.len() == 16).count();
    let rooms: Vec<_> = (0..5).map(|n| open(&place, &format!("room {n}"))).collect();
    let guards: Vec<_> = rooms.iter().map(|room| room.enter("s").expect("it is empty")).collect();
    let keys = server.told(&["get", "--prefix", prefix(&place), "-w", "fields"]);
    let mut used: Vec<_> = keys.lines().filter(|line| line.starts_with("\"Lease\"")).collect();
    used.retain(|line| !line.ends_with(": 0"));
    assert_eq!(used.len(), 5);
    used.dedup();
    let number = used.as_slice();
    let [number] = number else { panic!("one lease, not {number:?}") };
    let number: i64 = number.rsplit(' ').next().expect("a number").parse().expect("a number");
    let listed = || server.told(&["lease", "list"]).contains(&format!("{number:x}"));
    assert!(listed() && leases() > 0);
    drop(guards);
    drop(rooms);
    until("the lease is given back", || !listed());
}

/// Two processes with a client each.
#[test]
fn a_child_after_fork_must_open_the_room_itself() {
    let Some(server) = server::shared() else { return };
    let place = Arc::new(place(&server, "ttl=5"));
    let room = open(&place, "fork");
    drop(room.enter("a").expect("it is empty"));
    // SAFETY: the child only calls the room, and ends. The call fails before it locks or sends
    // anything.
    match unsafe { nix::unistd::fork() }.expect("it can be forked") {
        nix::unistd::ForkResult::Child => {
            let refused = matches!(room.try_enter("b"), Err(RoomError::Forked));
            // SAFETY: the child must not clean up anything of this process.
            unsafe { nix::libc::_exit(i32::from(!refused)) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            let status = nix::sys::wait::waitpid(child, None).expect("it is our child");
            assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
        }
    }
}
