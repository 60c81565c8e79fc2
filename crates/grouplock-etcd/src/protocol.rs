//! What is asked of etcd, and what the answers mean. No clocks, no network: the model in `tests/model` explores this
//! text.
//!
//! Whether somebody is inside is decided by the queue alone: it is those of the first session, in the order of
//! creation, up to the first of another session. Nothing is ever created in front of an entry that exists, so one whom
//! nobody of another session precedes stays so, for as long as its own key exists. That is all that has to be checked
//! in the transaction that lets somebody in ([`Ticket::claim`]); what was seen of the others cannot become false.
//!
//! | transaction | if | then |
//! |---|---|---|
//! | [`knock`](Ticket::knock) | nobody is there | put me, and open the phase |
//! | [`enter`](Ticket::enter) | nobody of another session is there | put me, and open the phase or join it |
//! | | else | put me (if I want to wait) |
//! | [`claim`](Ticket::claim) | my key is the one I made | open the phase or join it |
//! | [`leave`](Ticket::leave) | my key is the one I made | delete me |
//! | [`abandon`](Ticket::abandon) | | delete me, whatever has become of me |
//! | [`bury`](Ticket::bury) | my key is the one I made | write down who died, delete their marks |
//!
//! To open is to put the key `phase`, whose revision is the epoch. To join is to find one's own session there, and somebody of it
//! in the queue. A request may be sent twice, and the copies may arrive late. One that finds its own key puts it once more, which
//! changes neither its place nor the phase, and tells what is. One that arrives after its sender has left finds a
//! tombstone, which whoever has sent twice leaves behind.

use crate::keys::{Keys, Span};
use crate::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest,
    Request, RequestOp, Response, TargetUnion, TxnRequest, TxnResponse,
};

/// Transactions may have 128 steps; this leaves some for other things.
pub const MOST_BURIED: usize = 100;

/// One who wants to enter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Which room.
    pub keys: Keys,
    /// Which session.
    pub session: String,
    /// Who: never used by anybody else, and never again.
    pub id: String,
    /// The lease its key goes away with.
    pub lease: i64,
}

/// What an answer says about the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Inside.
    Inside(Inside),
    /// In the queue, at this place: the revision at which its key was made.
    Queued(i64),
    /// Not there. The session that came in last.
    Absent(Option<String>),
}

/// One who is inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inside {
    /// The revision at which its key was made.
    pub place: i64,
    /// The revision at which the phase was opened.
    pub epoch: i64,
    /// Whether it has opened the phase itself.
    pub opener: bool,
    /// The phase before, if it has opened its own just now: its epoch and its session.
    pub before: Option<(i64, String)>,
    /// The marks of those who came in and are not there any more without having left.
    pub dead: Vec<KeyValue>,
    /// What was last written down about the dead.
    pub died: Option<KeyValue>,
}

impl Inside {
    /// Those who died in phases before this one.
    pub fn died_before(&self) -> impl Iterator<Item = &KeyValue> {
        self.dead.iter().filter(|mark| mark.create_revision < self.epoch)
    }
}

impl Ticket {
    fn key(&self) -> Vec<u8> {
        self.keys.entry(&self.session, &self.id)
    }

    fn mark(&self) -> Vec<u8> {
        self.keys.mark(&self.id)
    }

    /// Asks for entry. `who` and `mark` are the values of the keys. If it would have to wait, it takes its place in
    /// the queue only if `wait` says so.
    pub fn enter(&self, who: &[u8], mark: &[u8], wait: bool) -> TxnRequest {
        let me = put(self.key(), who, self.lease);
        let nobody_else = self.keys.others(&self.session).map(|span| none_in(&span)).to_vec();
        let somebody_of_us = Compare {
            result: CompareResult::Greater.into(),
            ..none_in(&self.keys.session(&self.session))
        };
        let come_in = TxnRequest {
            compare: vec![somebody_of_us, self.phase_is_ours()],
            success: self.steps([me.clone(), put(self.mark(), mark, 0)]),
            failure: self.steps([me.clone(), put(self.mark(), mark, 0), self.open()]),
        };
        let stay_out = if wait { self.steps([me]) } else { self.steps([]) };
        let come = TxnRequest {
            compare: nobody_else,
            success: vec![step(Request::Txn(come_in))],
            failure: stay_out,
        };
        TxnRequest {
            compare: vec![made_at(self.keys.tombstone(&self.id), 0)],
            success: vec![step(Request::Txn(come))],
            failure: self.steps([]),
        }
    }

    /// Asks for entry to a room that is likely to be empty. Then it does what [`enter`](Ticket::enter) would do, and else nothing. etcd
    /// takes much longer for transactions within transactions, and most rooms are empty most of the time.
    pub fn knock(&self, who: &[u8], mark: &[u8]) -> TxnRequest {
        let me = put(self.key(), who, self.lease);
        TxnRequest {
            compare: vec![none_in(&self.keys.queue()), made_at(self.keys.tombstone(&self.id), 0)],
            success: vec![
                step(Request::Range(self.keys.deaths().request(false))),
                me,
                put(self.mark(), mark, 0),
                self.open(),
            ],
            failure: Vec::new(),
        }
    }

    /// What the answer to [`knock`](Ticket::knock) means; `None` if nothing was done.
    pub fn read_knock(&self, response: TxnResponse) -> Option<Inside> {
        let revision = response.header.as_ref()?.revision;
        if !response.succeeded {
            return None;
        }
        let (mut looks, mut before) = (Vec::new(), None);
        collect(response, &mut looks, &mut before);
        let (died, dead) = looks.pop()?.into_iter().partition(|kv| kv.key == self.keys.died());
        let died: Vec<KeyValue> = died;
        Some(Inside {
            // Everything in a transaction has one revision.
            place: revision,
            epoch: revision,
            opener: true,
            before: before.and_then(|kv: KeyValue| Some((kv.mod_revision, text(kv.value)?))),
            // Nobody was there, so nobody of those who came in and did not leave is alive.
            dead,
            died: died.into_iter().next(),
        })
    }

    /// Comes in from the queue. Only for one whom nobody of another session precedes.
    pub fn claim(&self, place: i64, mark: &[u8]) -> TxnRequest {
        let come_in = TxnRequest {
            compare: vec![self.phase_is_ours()],
            success: self.steps([put(self.mark(), mark, 0)]),
            failure: self.steps([put(self.mark(), mark, 0), self.open()]),
        };
        TxnRequest {
            compare: vec![made_at(self.key(), place)],
            success: vec![step(Request::Txn(come_in))],
            failure: self.steps([]),
        }
    }

    /// Leaves the room or the queue. With a tombstone if its request may still be on its way.
    pub fn leave(&self, place: i64, resent: bool) -> TxnRequest {
        let mut success = vec![delete(self.key()), delete(self.mark())];
        if resent {
            success.push(put(self.keys.tombstone(&self.id), b"", self.lease));
        }
        TxnRequest {
            compare: vec![made_at(self.key(), place)],
            success,
            failure: vec![look(self.mark())],
        }
    }

    /// Makes sure that nothing is left of a request whose answer was never heard, and that nothing will be.
    pub fn abandon(&self) -> TxnRequest {
        let tombstone = put(self.keys.tombstone(&self.id), b"", self.lease);
        let success = vec![delete(self.key()), delete(self.mark()), tombstone];
        TxnRequest { compare: Vec::new(), success, failure: Vec::new() }
    }

    /// For one who has opened a phase and found marks of the dead: at most [`MOST_BURIED`] at a time.
    pub fn bury(&self, inside: &Inside, marks: &[&KeyValue], died: Option<&[u8]>) -> TxnRequest {
        let mut success: Vec<_> = marks.iter().map(|mark| delete(mark.key.clone())).collect();
        let mut compare = vec![made_at(self.key(), inside.place)];
        if let Some(died) = died {
            success.push(put(self.keys.died(), died, 0));
            compare.push(Compare {
                result: CompareResult::Equal.into(),
                target: CompareTarget::Mod.into(),
                key: self.keys.died(),
                target_union: Some(TargetUnion::ModRevision(
                    inside.died.as_ref().map_or(0, |died| died.mod_revision),
                )),
                range_end: Vec::new(),
            });
        }
        TxnRequest { compare, success, failure: Vec::new() }
    }

    /// Opens a phase.
    fn open(&self) -> RequestOp {
        step(Request::Put(PutRequest {
            key: self.keys.phase(),
            value: self.session.clone().into_bytes(),
            lease: 0,
            prev_kv: true,
        }))
    }

    fn phase_is_ours(&self) -> Compare {
        Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Value.into(),
            key: self.keys.phase(),
            target_union: Some(TargetUnion::Value(self.session.clone().into_bytes())),
            range_end: Vec::new(),
        }
    }

    /// Some steps, and then a look at everything that [`read`](Ticket::read) wants to know.
    fn steps<const N: usize>(&self, steps: [RequestOp; N]) -> Vec<RequestOp> {
        let looks = [
            look(self.key()),
            look(self.mark()),
            look(self.keys.phase()),
            look(self.keys.died()),
            step(Request::Range(self.keys.marks().request(false))),
            step(Request::Range(self.keys.session(&self.session).request(true))),
        ];
        steps.into_iter().chain(looks).collect()
    }

    /// What the answer to [`enter`](Ticket::enter) or [`claim`](Ticket::claim) means; `None` if it is no such answer.
    pub fn read(&self, response: TxnResponse) -> Option<Standing> {
        let (mut looks, mut before) = (Vec::new(), None);
        collect(response, &mut looks, &mut before);
        let [mine, mark, phase, died, marks, fellows] = <[_; 6]>::try_from(looks).ok()?;
        let phase = phase.into_iter().next();
        let Some(mine) = mine.into_iter().next() else {
            return Some(Standing::Absent(phase.and_then(|phase| text(phase.value))));
        };
        let place = mine.create_revision;
        let (Some(mark), Some(phase)) = (mark.into_iter().next(), phase) else {
            return Some(Standing::Queued(place));
        };
        let epoch = phase.mod_revision;
        let lives = |mark: &KeyValue| {
            let id = self.keys.read_mark(&mark.key);
            id.is_some_and(|id| {
                let key = self.keys.entry(&self.session, &id);
                fellows.iter().any(|fellow| fellow.key == key)
            })
        };
        Some(Standing::Inside(Inside {
            place,
            epoch,
            opener: mark.create_revision == epoch,
            before: before.and_then(|kv: KeyValue| Some((kv.mod_revision, text(kv.value)?))),
            dead: marks.into_iter().filter(|mark| !lives(mark)).collect(),
            died: died.into_iter().next(),
        }))
    }

    /// Whether [`leave`](Ticket::leave) has found what it was to delete. If not: whether the mark is still there,
    /// which shows that nobody has left by it.
    pub fn read_leave(response: &TxnResponse) -> Left {
        if response.succeeded {
            return Left::Now;
        }
        let mark = response.responses.first().and_then(|op| op.response.as_ref());
        match mark {
            Some(Response::Range(range)) if range.kvs.is_empty() => Left::WithoutTrace,
            _ => Left::Taken,
        }
    }
}

/// What became of leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// It has left.
    Now,
    /// It was not there, and neither was its mark: it has left before, or somebody has buried it.
    WithoutTrace,
    /// It was not there, but its mark was: its lease is gone.
    Taken,
}

/// The looks of all the transactions within each other, in order; and what an opener has found.
fn collect(response: TxnResponse, looks: &mut Vec<Vec<KeyValue>>, before: &mut Option<KeyValue>) {
    for op in response.responses {
        match op.response {
            Some(Response::Range(range)) => looks.push(range.kvs),
            Some(Response::Put(put)) => *before = put.prev_kv.or(before.take()),
            Some(Response::Txn(inner)) => collect(inner, looks, before),
            Some(Response::DeleteRange(_)) | None => {}
        }
    }
}

fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok()
}

fn step(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn put(key: Vec<u8>, value: &[u8], lease: i64) -> RequestOp {
    step(Request::Put(PutRequest { key, value: value.to_vec(), lease, prev_kv: false }))
}

fn delete(key: Vec<u8>) -> RequestOp {
    step(Request::DeleteRange(DeleteRangeRequest { key, range_end: Vec::new() }))
}

fn look(key: Vec<u8>) -> RequestOp {
    step(Request::Range(RangeRequest { key, ..RangeRequest::default() }))
}

/// The key was made at that revision; at 0: it is not there.
fn made_at(key: Vec<u8>, revision: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Create.into(),
        key,
        target_union: Some(TargetUnion::CreateRevision(revision)),
        range_end: Vec::new(),
    }
}

/// There is no key in that span.
fn none_in(span: &Span) -> Compare {
    Compare { range_end: span.end.clone(), ..made_at(span.start.clone(), 0) }
}
