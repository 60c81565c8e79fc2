//! Messages that arrive late, or not at all: a request may be executed when its sender has given it
//! up, and a part of what an answer promises may be over when it arrives.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::server::{self, Server};
use grouplock_room::{Places, Room, RoomOptions};
use grouplock_testing::until;

/// A proxy in front of a server.
struct Proxy {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The number of the next connection.
    connections: usize,
    /// When the first connection was made.
    connected: Option<Instant>,
    /// What clients send over connections with smaller numbers is held back.
    held_below: usize,
    /// What is held back: the connections to the server, and the bytes in pieces.
    held: Vec<(TcpStream, Vec<u8>)>,
    /// How many requests over such connections are answered.
    answered: usize,
    /// Answers over connections with smaller numbers are lost.
    lost_below: usize,
    /// How long answers take.
    delay: Duration,
}

impl Proxy {
    fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (endpoint, state) = (server.endpoint(), Arc::new(Mutex::new(State::default())));
        let ours = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&endpoint) else { return };
                _ = join(&ours, &client, &server);
            }
        });
        Proxy { address, state }
    }

    fn place(&self, options: &str) -> String {
        format!("etcd://{}/{}?{options}", self.address, server::fresh_prefix())
    }

    /// From now on, requests over the present connections are held back. Without connections: those
    /// over the first. If `all` is set, also those over later connections.
    fn hold(&self, all: bool) {
        let mut state = lock(&self.state);
        let below = state.connections.max(1);
        state.held_below = if all { usize::MAX } else { below };
        state.answered = 0;
    }

    /// From now on, answers over the present connections are lost. Without connections: those over
    /// the first.
    fn lose_answers(&self) {
        let mut state = lock(&self.state);
        state.lost_below = state.connections.max(1);
    }

    /// What was held back arrives at the server. Requests with this key in them are answered.
    fn release(&self, key: &[u8]) {
        let held = std::mem::take(&mut lock(&self.state).held);
        let names = |bytes: &[u8]| bytes.windows(key.len()).any(|part| part == key);
        let requests = held.iter().filter(|(_, bytes)| names(bytes)).count();
        assert!(requests > 0, "a request was held back");
        for (mut server, bytes) in held {
            server.write_all(&without_ends(&bytes)).expect("the server is connected");
        }
        until("they are answered", || lock(&self.state).answered >= requests);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to carry the bytes of a new connection.
fn join(state: &Arc<Mutex<State>>, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let number = {
        let mut state = lock(state);
        state.connected.get_or_insert_with(Instant::now);
        state.connections += 1;
        state.connections - 1
    };
    let (requests, answers) = (client.try_clone()?, server.try_clone()?);
    let (client, server) = (client.try_clone()?, server.try_clone()?);
    let (ours, theirs) = (Arc::clone(state), Arc::clone(state));
    std::thread::spawn(move || carry_requests(&ours, number, requests, server));
    std::thread::spawn(move || carry_answers(&theirs, number, answers, client));
    Ok(())
}

fn carry_requests(state: &Mutex<State>, number: usize, mut from: TcpStream, mut to: TcpStream) {
    let mut part = [0; 1 << 14];
    while let Ok(length @ 1..) = from.read(&mut part) {
        let mut now = lock(state);
        if number >= now.held_below {
            drop(now);
            _ = to.write_all(&part[..length]);
        } else if let Ok(server) = to.try_clone() {
            now.held.push((server, part[..length].to_vec()));
        }
    }
    // The server must not notice that the client is gone whose request is held back, or it would
    // not execute the request.
    if number >= lock(state).held_below {
        _ = to.shutdown(Shutdown::Both);
    }
}

fn carry_answers(state: &Mutex<State>, number: usize, mut from: TcpStream, mut to: TcpStream) {
    let mut part = [0; 1 << 14];
    while let Ok(length @ 1..) = from.read(&mut part) {
        let bytes = &part[..length];
        let ends = |(kind, frame): &(u8, &[u8])| *kind == HEADERS && frame[4] & END_STREAM > 0;
        let mut now = lock(state);
        let (is_held, is_lost) = (number < now.held_below, number < now.lost_below);
        now.answered += if is_held { frames(bytes).filter(ends).count() } else { 0 };
        let delay = now.delay;
        drop(now);
        std::thread::sleep(delay);
        // The client may be gone. The answers are counted all the same.
        if !is_lost && to.write_all(bytes).is_err() && !is_held {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Both);
}

const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

/// The frames of HTTP/2 with their kinds.
fn frames(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let [a, b, c, kind, _, ..] = *rest else { return None };
        let length = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        let (frame, more) = rest.split_at(length.min(rest.len()));
        rest = more;
        Some((kind, frame))
    })
}

/// Without the frames by which a client withdraws its requests.
fn without_ends(bytes: &[u8]) -> Vec<u8> {
    let kept = frames(bytes).filter(|(kind, _)| !matches!(*kind, RST_STREAM | GOAWAY));
    kept.flat_map(|(_, frame)| frame).copied().collect()
}

fn open(place: &str) -> Room {
    let places = Places::new().with(grouplock_etcd::opener());
    places.open(place, "late", &RoomOptions::new()).expect("it opens")
}

/// The same room, not through the proxy.
fn directly(server: &Server, place: &str) -> Room {
    let (_, rest) = place.split_once("//").expect("a place");
    let (_, rest) = rest.split_once('/').expect("a prefix");
    open(&format!("etcd://{}/{rest}", server.endpoint()))
}

/// A part of the keys of entries of the session `s`.
const KEY: &[u8] = b"/late/q/73/";

fn tombstones(server: &Server, place: &str) -> usize {
    let prefix = place.split(['/', '?']).nth(3).expect("it has a prefix");
    let keys = server.told(&["get", "--prefix", &format!("{prefix}/late/t/"), "--keys-only"]);
    keys.lines().filter(|line| !line.is_empty()).count()
}

fn assert_empty(room: &Room) {
    let seen = room.snapshot().expect("it can be looked at");
    assert_eq!((seen.holders(), seen.waiters()), (0, 0), "{seen:?}");
}

/// A request is still on its way when its sender has sent it again, has entered and has left.
#[test]
fn a_request_that_arrives_after_its_sender_has_left_admits_nobody() {
    let Some(server) = server::shared() else { return };
    for waits in [false, true] {
        let proxy = Proxy::before(&server);
        let place = proxy.place("ttl=20&timeout=30s");
        let (room, other) = (open(&place), directly(&server, &place));
        if waits {
            // After this it does not assume that the room is empty.
            let fellow = other.enter("s").expect("it is empty");
            room.enter("s").expect("it is shared").leave().expect("it was held");
            fellow.leave().expect("it was held");
        } else {
            room.enter("s").expect("it is empty").leave().expect("it was held");
        }
        let inside = waits.then(|| other.enter("t").expect("it is empty"));
        assert_eq!(room.snapshot().expect("it can be looked at").holders(), usize::from(waits));
        proxy.hold(false);
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| room.enter("s"));
            if let Some(inside) = inside {
                until("it waits", || other.snapshot().expect("it can be looked at").waiters() == 1);
                inside.leave().expect("it was held");
            }
            let guard = entering.join().expect("no panic").expect("over another connection");
            guard.leave().expect("it was held");
        });
        assert_empty(&other);
        proxy.release(KEY);
        assert_empty(&other);
    }
}

/// A request that failed is still on its way: it was not allowed to wait, or there was no answer.
#[test]
fn a_request_that_arrives_after_its_failure_admits_nobody() {
    let Some(server) = server::shared() else { return };
    for answered in [true, false] {
        let proxy = Proxy::before(&server);
        let place = proxy.place(if answered { "ttl=20&timeout=30s" } else { "ttl=20&timeout=3s" });
        let (room, other) = (open(&place), directly(&server, &place));
        room.enter("s").expect("it is empty").leave().expect("it was held");
        let inside = answered.then(|| other.enter("t").expect("it is empty"));
        proxy.hold(!answered);
        let error = room.try_enter("s").expect_err("it may not wait, or nobody answers");
        assert_eq!(error.is_conflict(), answered, "{error}");
        if !answered {
            // Later connections reach the server.
            proxy.hold(false);
        }
        until("it is prevented", || tombstones(&server, &place) > 0);
        drop(inside);
        assert_empty(&other);
        proxy.release(KEY);
        assert_empty(&other);
    }
}

/// A holder that leaves is not told that it has lost its holding, only because the answer was lost.
#[test]
fn a_leave_without_an_answer_is_repeated() {
    let Some(server) = server::shared() else { return };
    let proxy = Proxy::before(&server);
    let room = open(&proxy.place("ttl=20"));
    let guard = room.enter("s").expect("it is empty");
    proxy.lose_answers();
    guard.leave().expect("it was held");
}

/// The server may have made the lease at the first attempt to get it.
#[test]
fn a_lease_is_trusted_from_the_first_attempt_to_get_it() {
    let Some(server) = server::shared() else { return };
    for request_is_lost in [true, false] {
        let proxy = Proxy::before(&server);
        // It is renewed after 20 s.
        let room = open(&proxy.place("ttl=60&timeout=30s"));
        if request_is_lost {
            proxy.hold(false);
        } else {
            proxy.lose_answers();
        }
        let guard = room.enter("s").expect("over another connection");
        let trusted = guard.watch().valid_until().expect("it has a lease");
        // The client connects for its first attempt.
        let asked = lock(&proxy.state).connected.expect("it has connected");
        assert!(trusted <= asked + Duration::from_secs(48), "{:?}", trusted - asked);
        guard.leave().expect("it was held");
    }
}

/// The servers count from when they receive a request, not from when their answer arrives.
#[test]
fn a_renewed_lease_is_trusted_from_when_its_request_was_sent() {
    const DELAY: Duration = Duration::from_millis(300);
    let Some(server) = server::shared() else { return };
    let proxy = Proxy::before(&server);
    lock(&proxy.state).delay = DELAY;
    let room = open(&proxy.place("ttl=9&timeout=30s"));
    let guard = room.enter("s").expect("it is empty");
    let valid_until = || guard.watch().valid_until().expect("it has a lease");
    let first = valid_until();
    until("it is renewed", || valid_until() > first);
    let (trusted, now) = (valid_until(), Instant::now());
    assert!(trusted + DELAY <= now + Duration::from_millis(7200), "{:?}", trusted - now);
    guard.leave().expect("it was held");
}
