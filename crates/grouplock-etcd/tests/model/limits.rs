//! Transactions on rooms with many processes: etcd runs transactions of at most 128 steps.

use std::time::Duration;

use grouplock_etcd::deaths::Deaths;
use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::{KeyValue, TxnRequest};
use grouplock_etcd::protocol::{Entrant, Outcome};
use grouplock_etcd::view::View;

use crate::store::Store;

const MOST: usize = 128;
const LEASE: i64 = 100;

fn entrant(group: &str, id: &str) -> Entrant {
    Entrant { keys: Keys::new("p/r/"), group: group.to_owned(), id: id.to_owned(), lease: LEASE }
}

fn is_small(request: &TxnRequest) -> bool {
    let TxnRequest { compare, success, failure } = request;
    compare.len() <= MOST && success.len() <= MOST && failure.len() <= MOST
}

fn mark(pid: usize) -> Vec<u8> {
    format!("{{\"pid\":{pid}}}").into_bytes()
}

#[test]
fn a_holder_with_many_waiters_hands_over() {
    let mut store = Store::new([LEASE]);
    let first = entrant("a", "first");
    store.txn(&first.knock(b"w", b"m")).expect("a lease");
    let position = store.revision;
    for n in 0..MOST {
        store.txn(&entrant("b", &n.to_string()).enter(b"w", b"m", true)).expect("a lease");
    }
    let view = store.view(&first.keys);
    let heirs: Vec<_> = view.heirs(position).into_iter().map(|(p, e)| (p, e, mark(0))).collect();
    let leave = first.hand_over(position, &view, &heirs, true);
    assert!(is_small(&leave), "{} and {}", leave.compare.len(), leave.success.len());
    let answer = store.txn(&leave).expect("a lease");
    assert!(answer.succeeded && heirs.len() > 1);
    assert_eq!(Entrant::read_leave(answer), 2);
}

/// All holders of a phase die. The next one learns of the last, and buries them all.
#[test]
fn the_last_of_many_deaths_is_reported_and_all_are_counted_and_buried() {
    let mut store = Store::new([LEASE, LEASE + 1]);
    let many = 2 * MOST;
    for n in 0..many {
        store.txn(&entrant("a", &n.to_string()).enter(b"w", &mark(n), true)).expect("a lease");
    }
    store.end(LEASE);
    let next = Entrant { lease: LEASE + 1, ..entrant("b", "next") };
    let answer = store.txn(&next.knock(b"w", b"m")).expect("a lease");
    let Some(Outcome::Inside(inside)) = next.read(answer, None) else { panic!("it is empty") };
    assert_eq!(inside.dead.len(), many);
    let deaths = Deaths::by(&inside, Duration::ZERO, 1);
    let report = deaths.report.clone().expect("of the deaths");
    // The numbers of the processes are those of their order.
    assert_eq!((report.pid as usize, report.total), (many - 1, many as u64));
    for request in deaths.burials(&next, &inside) {
        assert!(is_small(&request), "{}", request.success.len());
        store.txn(&request).expect("a lease");
    }
    let view = store.view(&next.keys);
    assert_eq!(view.dead().count(), 0);
    let died: Option<KeyValue> = view.died.filter(|kv| kv.value.ends_with(b"}"));
    assert!(died.is_some(), "it is written down");
}

/// Whatever a request to enter would find, and however late its copy arrives.
#[test]
fn a_copy_of_a_request_finds_its_tombstone_while_its_lease_lasts() {
    let own = Entrant { lease: LEASE + 1, ..entrant("a", "own") };
    for before in [None, Some(entrant("a", "fellow")), Some(entrant("b", "other"))] {
        let mut store = Store::new([LEASE, LEASE + 1]);
        if let Some(first) = &before {
            store.txn(&first.knock(b"w", b"m")).expect("a lease");
        }
        let view: View = store.view(&own.keys);
        let knock = own.knock(b"w", b"m");
        let join = view.entries().next().map(|witness| own.join(witness, b"w", b"m"));
        let enter = [true, false].map(|wait| own.enter(b"w", b"m", wait));
        store.txn(&own.abandon()).expect("a lease");
        for copy in [knock].into_iter().chain(join).chain(enter) {
            store.txn(&copy).expect("a lease");
            assert_eq!(store.view(&own.keys).entries().count(), usize::from(before.is_some()));
        }
        // Whoever removes the room must not let a copy in either.
        store.end(LEASE);
        store.txn(&own.keys.remove()).expect("no lease is needed");
        assert_eq!(store.keys.len(), 1, "the tombstone stays");
        store.end(LEASE + 1);
        assert_eq!(store.keys.len(), 0, "no copy can come any more");
    }
}
