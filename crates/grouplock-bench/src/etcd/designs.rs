//! Designs of a lock on etcd, from the simplest to the room that ships. Each passes the lock alone,
//! in turns with the others.

use grouplock_etcd::keys::Keys;
use grouplock_etcd::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, DeleteRangeResponse, PutResponse,
    Request, RequestOp, TargetUnion, TxnRequest, TxnResponse,
};
use grouplock_etcd::protocol::Entrant;

use super::party::{Party, Peer};
use super::rpc::Connection;
use super::server::Server;
use crate::report::Outcome;

/// The designs, and what they do to enter and to leave. The last is the one to compare with.
pub(super) const ALL: [(Peer, &str); 7] = [
    (Peer::Put, "put one key; delete it. No lock: nothing is checked"),
    (Peer::Guarded, "one key by a transaction; delete it by a transaction that checks it"),
    (Peer::Single, "one key by a transaction; delete it"),
    (Peer::Pair, "two adjacent keys by a transaction; delete both by one request"),
    (Peer::Shipped, "the requests of a room, by a runtime on the calling thread"),
    (Peer::Room, "a room"),
    (Peer::Rpc, "RPC"),
];

/// The times of all designs in milliseconds, in their order: a list per round. Each round begins
/// with another one. The first round does not count.
pub(super) fn measure(
    server: &Server,
    rounds: usize,
    passages: usize,
) -> Outcome<Vec<Vec<Vec<f64>>>> {
    let start = |(peer, _)| Party::start(peer, &server.endpoint, "designs", "session");
    let mut parties = ALL.into_iter().map(start).collect::<Outcome<Vec<_>>>()?;
    let mut times = vec![Vec::new(); ALL.len()];
    for round in 0..=rounds {
        for turn in 0..ALL.len() {
            let design = (round + turn) % ALL.len();
            let passed = parties[design].pass(passages)?;
            if round > 0 {
                times[design].push(passed);
            }
        }
    }
    Ok(times)
}

/// A holder of the size of a room's, as JSON.
const WHO: &[u8] = br#"{"session":"session","host":"machine","pid":12345,"user":"somebody","command":"grouplock-bench part party","since":1700000000000,"priority":0}"#;
const MARK: &[u8] =
    br#"{"session":"session","host":"machine","pid":12345,"since":1700000000000,"priority":0}"#;

/// A lock of one of the designs. They differ in what they leave out of a room's requests.
#[derive(Debug)]
pub(super) struct DesignLock {
    design: Peer,
    connection: Connection,
    entrant: Entrant,
    passages: u64,
    /// The revision at which the key was made.
    position: i64,
}

impl DesignLock {
    pub(super) fn new(design: Peer, endpoint: &str, name: &str) -> Outcome<Self> {
        let connection = Connection::new(endpoint)?;
        // Each design has a room of its own.
        let keys = Keys::new(format!("grouplock/{name}-{design:?}/"));
        let (lease, group) = (connection.lease, "73657373696f6e".to_owned());
        let entrant = Entrant { keys, group, id: String::new(), lease };
        Ok(DesignLock { design, connection, entrant, passages: 0, position: 0 })
    }

    pub(super) fn enter(&mut self) -> Outcome<()> {
        self.passages += 1;
        self.entrant.id = format!("{:016x}-{}", self.connection.lease, self.passages);
        let mut request = self.entrant.knock(WHO, MARK);
        // Its steps: read the state, put the entry, put the mark, delete the phase.
        let steps = match self.design {
            Peer::Put | Peer::Guarded | Peer::Single => 1..2,
            Peer::Pair => 1..3,
            _ => 0..request.success.len(),
        };
        if self.design != Peer::Shipped {
            // Nobody is present.
            request.compare.truncate(1);
        }
        request.success = request.success.drain(steps).collect();
        if let (Peer::Put, [RequestOp { request: Some(Request::Put(put)) }]) =
            (self.design, &request.success[..])
        {
            let PutResponse { .. } = self.connection.call("/etcdserverpb.KV/Put", put.clone())?;
            return Ok(());
        }
        let answer: TxnResponse = self.connection.call("/etcdserverpb.KV/Txn", request)?;
        self.position = answer.header.map_or(0, |header| header.revision);
        if answer.succeeded { Ok(()) } else { Err("another process uses the lock".into()) }
    }

    pub(super) fn leave(&mut self) -> Outcome<()> {
        let pair = self.entrant.pair();
        let both = matches!(self.design, Peer::Pair | Peer::Shipped);
        let range_end = if both { pair.end } else { Vec::new() };
        let delete = DeleteRangeRequest { key: pair.start.clone(), range_end };
        let deleted = if self.design == Peer::Guarded {
            let mine = Compare {
                result: CompareResult::Equal.into(),
                target: CompareTarget::Create.into(),
                key: pair.start,
                target_union: Some(TargetUnion::CreateRevision(self.position)),
                range_end: Vec::new(),
            };
            let success = vec![RequestOp { request: Some(Request::DeleteRange(delete)) }];
            let request = TxnRequest { compare: vec![mine], success, failure: Vec::new() };
            let answer: TxnResponse = self.connection.call("/etcdserverpb.KV/Txn", request)?;
            i64::from(answer.succeeded)
        } else {
            let path = "/etcdserverpb.KV/DeleteRange";
            let DeleteRangeResponse { deleted, .. } = self.connection.call(path, delete)?;
            deleted
        };
        let all = if both { 2 } else { 1 };
        if deleted == all { Ok(()) } else { Err("the keys of the lock are gone".into()) }
    }
}
