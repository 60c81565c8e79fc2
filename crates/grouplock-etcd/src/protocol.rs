//! The transactions, and the meaning of their answers. This module has no clock and no network: the
//! model in `tests/model` explores this text.
//!
//! The queue alone decides who is inside. Entries are ordered by their creation. The first session
//! is inside, up to the first entry of another session. An entry is never created before an entry
//! that exists. So if no other session precedes an entry, none ever will while the entry exists.
//! The transaction that admits checks that the entry exists. Nothing else that was read can become
//! false.
//!
//! | transaction | if | then | else |
//! |---|---|---|---|
//! | [`knock`](Entrant::knock) | nobody is present | put my entry and mark, delete `p/` | nothing |
//! | [`join`](Entrant::join) | no other session is present, and the first holder still is | put my entry and mark | nothing |
//! | [`enter`](Entrant::enter) | no other session is present | put my entry and mark; delete `p/` if my session was not present | put my entry (if I may wait) |
//! | [`settle`](Entrant::settle) | my entry is the one I made, no phase of mine is written | write the phase | |
//! | [`claim`](Entrant::claim) | my entry is the one I made | put my mark; write the phase if there is none of mine | nothing |
//! | [`leave`](Entrant::leave) | | delete my entry and mark | |
//! | [`hand_over`](Entrant::hand_over) | my entry and those of the next session exist | delete mine, put their marks, write their phase | delete mine |
//! | [`abandon`](Entrant::abandon) | | delete my entry and mark, put a tombstone | |
//! | [`bury`](Entrant::bury) | my entry is the one I made; `died`, if written, is as I read it | write `died`, delete marks of the dead | |
//!
//! A process is *present* if one of its keys has a lease. A mark has no lease, so the marks of the
//! dead delay nobody.
//!
//! # Epochs
//! 1. A holder that enters an empty room has the revision of its entry as epoch. It writes no
//!    phase.
//! 2. Every other holder takes the epoch from the phase `p/<session>`. If there is none, it writes
//!    one first.
//! 3. If the writer saw holders of its session, it writes the revision at which the first of them
//!    entered. The holder of rule 1 agrees, if it is still present: it entered first, because
//!    nobody was present.
//! 4. If the writer saw no holder, the revision of its transaction is the epoch.
//! 5. A holder that enters an empty room deletes the phase. A holder that opens the phase of
//!    another session deletes the old one. So a written phase is the phase of the holders inside.
//!
//! # Repeated requests
//! A request may be sent twice, and copies may arrive late. A copy that finds its own entry puts it
//! again, which does not change the position. A sender that has sent twice leaves a tombstone. A
//! copy that arrives after that finds the tombstone. Ids are never reused, so leaving needs no
//! condition.

use crate::keys::{Keys, Span};
use crate::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, KeyValue, PutRequest, Request,
    RequestOp, Response, TargetUnion, TxnRequest, TxnResponse,
};
use crate::view::{Entry, Phase, View};

/// A transaction may have 128 steps. The rest is for other steps.
pub const MOST_BURIED: usize = 100;

/// A request at the servers, from its first transaction until it has left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entrant {
    /// The keys of the room.
    pub keys: Keys,
    /// Its group: see [`keys`](crate::keys).
    pub group: String,
    /// Its id, which nobody else has and which is never used again.
    pub id: String,
    /// The lease of its entry.
    pub lease: i64,
}

/// What an answer says about a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is inside.
    Inside(Holder),
    /// It is inside at this position, but its epoch or the deaths are not known yet. With the view,
    /// if it was complete.
    Unsettled(i64, Option<View>),
    /// It waits at this position: the revision at which its entry was made.
    Queued(i64),
    /// It is not present. With the first group of the queue.
    Absent(Option<String>),
}

/// A holder, and what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The revision at which its entry was made.
    pub position: i64,
    /// The epoch of its phase.
    pub epoch: i64,
    /// It opened the phase, so it must bury the dead of earlier phases.
    pub opened_phase: bool,
    /// The marks of the dead of earlier phases that are not buried.
    pub dead: Vec<KeyValue>,
    /// The epoch of the phase before, if it is known and had a death; else 0.
    pub before: i64,
    /// The last record of deaths.
    pub died: Option<KeyValue>,
    /// The room is on the list of rooms.
    pub is_listed: bool,
}

impl Entrant {
    fn entry(&self) -> Vec<u8> {
        self.keys.entry(&self.group, &self.id)
    }

    /// Its entry and its mark. Deleting them means to [`leave`](Entrant::leave).
    pub fn pair(&self) -> Span {
        self.keys.pair(&self.group, &self.id)
    }

    fn put_pair(&self, who: &[u8], mark: &[u8]) -> [RequestOp; 2] {
        let key = self.keys.mark(&self.group, &self.id);
        [put(self.entry(), who, self.lease), put(key, mark, 0)]
    }

    fn no_tombstone(&self) -> Compare {
        made_at(self.keys.tombstone(&self.id), 0)
    }

    fn no_other_session(&self) -> [Compare; 2] {
        self.keys.others(&self.group).map(|span| no_lease_in(&span))
    }

    fn no_phase(&self) -> Compare {
        made_at(self.keys.phase(&self.group), 0)
    }

    /// Asks for entry to a room that is probably empty. If it is, this does the same as
    /// [`enter`](Entrant::enter), else nothing. etcd needs longer for nested transactions, and most
    /// rooms are empty most of the time.
    pub fn knock(&self, who: &[u8], mark: &[u8]) -> TxnRequest {
        TxnRequest {
            compare: vec![no_lease_in(&self.keys.queue()), self.no_tombstone()],
            success: self.open(who, mark),
            failure: Vec::new(),
        }
    }

    /// Asks for entry to a known phase. Its first holder is the witness: while it is present, the
    /// phase lasts. So the number of holders makes no difference to etcd.
    pub fn join(&self, witness: (i64, &Entry), who: &[u8], mark: &[u8]) -> TxnRequest {
        let (position, Entry { group, id, .. }) = witness;
        let mut compare = vec![made_at(self.keys.entry(group, id), position), self.no_tombstone()];
        compare.extend(self.no_other_session());
        let mut success = self.put_pair(who, mark).to_vec();
        success.push(look(&self.pair()));
        TxnRequest { compare, success, failure: Vec::new() }
    }

    /// Asks for entry. `who` and `mark` are the values of the keys. If the request must wait, it
    /// joins the queue only if `wait` is set.
    pub fn enter(&self, who: &[u8], mark: &[u8], wait: bool) -> TxnRequest {
        let looks = |span: Span| [look(&self.pair()), look(&span)];
        let join = |span: Span| [&self.put_pair(who, mark)[..], &looks(span)].concat();
        let unless_open = TxnRequest {
            compare: vec![self.no_phase()],
            success: join(self.keys.state()),
            failure: join(self.keys.summary()),
        };
        let come_in = TxnRequest {
            compare: vec![no_lease_in(&self.keys.group(&self.group))],
            success: self.open(who, mark),
            failure: vec![step(Request::Txn(unless_open))],
        };
        let queue_up = TxnRequest {
            compare: vec![self.no_tombstone()],
            success: [&[put(self.entry(), who, self.lease)][..], &looks(self.keys.summary())]
                .concat(),
            failure: looks(self.keys.summary()).to_vec(),
        };
        let stay_out = if wait {
            vec![step(Request::Txn(queue_up))]
        } else {
            looks(self.keys.state()).to_vec()
        };
        let mut compare = vec![self.no_tombstone()];
        compare.extend(self.no_other_session());
        TxnRequest { compare, success: vec![step(Request::Txn(come_in))], failure: stay_out }
    }

    /// Enters an empty room: reads the state, puts both keys, deletes the phase.
    fn open(&self, who: &[u8], mark: &[u8]) -> Vec<RequestOp> {
        let mut steps = vec![look(&self.keys.state())];
        steps.extend(self.put_pair(who, mark));
        steps.push(delete(&self.keys.phases()));
        steps
    }

    /// Reads the answer to [`knock`](Entrant::knock), [`join`](Entrant::join) or
    /// [`enter`](Entrant::enter); `None` if nothing was done. `joined` is the phase that the
    /// request named.
    pub fn read(&self, response: TxnResponse, joined: Option<&Phase>) -> Option<Outcome> {
        let revision = response.header.as_ref()?.revision;
        let found = Found::of(response);
        let mut looks = found.looks.into_iter();
        if found.deleted.is_some() {
            let view = View::of(&self.keys, revision, &looks.next()?);
            // Nobody was present, so all marks are of the dead. All steps of a transaction have one
            // revision.
            return Some(Outcome::Inside(Holder {
                position: revision,
                epoch: revision,
                opened_phase: true,
                dead: view.dead().cloned().collect(),
                before: view.phase.map_or(0, |phase| phase.epoch),
                died: view.died,
                is_listed: view.is_listed,
            }));
        }
        let pair = View::of(&self.keys, revision, &looks.next()?);
        let view = looks.next().map(|kvs| View::of(&self.keys, revision, &kvs));
        let Some((position, entry)) = pair.entries().next() else {
            let first = view.as_ref().and_then(View::first_group);
            return Some(Outcome::Absent(first.map(str::to_owned)));
        };
        if pair.mark(entry).is_none() {
            return Some(Outcome::Queued(position));
        }
        let phase = joined.or_else(|| view.as_ref()?.phase_of(&self.group));
        Some(match phase {
            Some(phase) if phase.deaths.is_none() => {
                let died = view.as_ref().and_then(|view| view.died.clone());
                let is_listed = view.as_ref().is_none_or(|view| view.is_listed);
                let (opened_phase, dead) = (false, Vec::new());
                Outcome::Inside(Holder {
                    position,
                    epoch: phase.epoch,
                    opened_phase,
                    dead,
                    before: 0,
                    died,
                    is_listed,
                })
            }
            Some(_) => Outcome::Unsettled(position, None),
            None => {
                // Without my own entry the view is not complete.
                let whole = view.filter(|view| view.entries().any(|(its, _)| its == position));
                Outcome::Unsettled(position, whole)
            }
        })
    }

    /// The holder at this position in a view; `None` if its phase is not written.
    pub fn inside(&self, position: i64, view: &View) -> Option<Holder> {
        let phase = view.phase_of(&self.group)?;
        Some(self.holder(position, view, phase.epoch, phase.deaths.unwrap_or(0)))
    }

    fn holder(&self, position: i64, view: &View, epoch: i64, before: i64) -> Holder {
        let dead = view.dead().filter(|mark| mark.create_revision < epoch).cloned().collect();
        let opened =
            |entry: &Entry| view.mark(entry).is_some_and(|mark| mark.create_revision == epoch);
        let opened_phase =
            view.entries().find(|(_, entry)| opened(entry)).is_some_and(|(its, _)| its == position);
        Holder {
            position,
            epoch,
            opened_phase,
            dead,
            before,
            died: view.died.clone(),
            is_listed: view.is_listed,
        }
    }

    /// Writes the epoch of a phase that has begun without a written phase. Also returns the holder.
    pub fn settle(&self, position: i64, view: &View) -> (TxnRequest, Holder) {
        let epoch = view.unwritten_epoch(&self.group).unwrap_or(position);
        let inside = self.holder(position, view, epoch, 0);
        let value = Phase::value(epoch, (!inside.dead.is_empty()).then_some(0));
        let request = TxnRequest {
            compare: vec![made_at(self.entry(), position), self.no_phase()],
            success: self.keys.write_phase(&self.group, &value).to_vec(),
            failure: Vec::new(),
        };
        (request, inside)
    }

    /// Enters from the queue. Only valid if no other session precedes the request in this view.
    pub fn claim(&self, position: i64, view: &View, mark: &[u8]) -> TxnRequest {
        let key = self.keys.mark(&self.group, &self.id);
        let mut open = vec![put(key.clone(), mark, 0)];
        let value = Phase::value(view.unwritten_epoch(&self.group).unwrap_or(0), deaths_in(view));
        open.extend(self.keys.write_phase(&self.group, &value));
        let come_in = TxnRequest {
            compare: vec![self.no_phase()],
            success: open,
            failure: vec![put(key, mark, 0), look(&self.keys.summary())],
        };
        TxnRequest {
            compare: vec![made_at(self.entry(), position)],
            success: vec![step(Request::Txn(come_in))],
            failure: Vec::new(),
        }
    }

    /// Reads the answer to [`claim`](Entrant::claim); `None` if the entry is gone.
    pub fn read_claim(&self, response: TxnResponse, position: i64, view: &View) -> Option<Holder> {
        let revision = response.header.as_ref()?.revision;
        if !response.succeeded {
            return None;
        }
        let found = Found::of(response);
        let Some(summary) = found.looks.first() else {
            let epoch = view.unwritten_epoch(&self.group).unwrap_or(revision);
            let before = deaths_in(view).unwrap_or(0);
            return Some(Holder {
                opened_phase: epoch == revision,
                ..self.holder(position, view, epoch, before)
            });
        };
        let summary = View::of(&self.keys, revision, summary);
        let phase = summary.phase_of(&self.group)?;
        let holder = self.holder(position, view, phase.epoch, phase.deaths.unwrap_or(0));
        // `died` reports the dead that were buried in the meantime.
        let dead = if phase.deaths.is_some() { holder.dead } else { Vec::new() };
        Some(Holder { dead, died: summary.died, is_listed: summary.is_listed, ..holder })
    }

    /// Leaves the room or the queue. Puts a tombstone if a copy of the request may still arrive.
    pub fn leave(&self, resent: bool) -> TxnRequest {
        let mut success = vec![delete(&self.pair())];
        if resent {
            success.push(put(self.keys.tombstone(&self.id), b"", self.lease));
        }
        TxnRequest { compare: Vec::new(), success, failure: Vec::new() }
    }

    /// Leaves the room and admits the [heirs](View::heirs), each with the value of its mark.
    pub fn hand_over(
        &self,
        position: i64,
        view: &View,
        heirs: &[(i64, &Entry, Vec<u8>)],
        resent: bool,
    ) -> TxnRequest {
        let TxnRequest { success: leave, .. } = self.leave(resent);
        let mut compare = vec![made_at(self.entry(), position)];
        let mut success = leave.clone();
        for (position, Entry { group, id, .. }, mark) in heirs {
            compare.push(made_at(self.keys.entry(group, id), *position));
            success.push(put(self.keys.mark(group, id), mark, 0));
        }
        if let Some((_, heir, _)) = heirs.first() {
            let value = Phase::value(0, deaths_in(view));
            success.extend(self.keys.write_phase(&heir.group, &value));
        }
        TxnRequest { compare, success, failure: leave }
    }

    /// How many of the two keys [`leave`](Entrant::leave) or [`hand_over`](Entrant::hand_over)
    /// deleted.
    pub fn read_leave(response: TxnResponse) -> i64 {
        Found::of(response).deleted.unwrap_or(0)
    }

    /// Removes a request whose answer never arrived, and prevents its late copies.
    pub fn abandon(&self) -> TxnRequest {
        self.leave(true)
    }

    /// Buries at most [`MOST_BURIED`] dead. For the holder that opened the phase and found their
    /// marks.
    pub fn bury(&self, inside: &Holder, marks: &[&KeyValue], died: Option<&[u8]>) -> TxnRequest {
        let single = |mark: &&KeyValue| delete(&Span { start: mark.key.clone(), end: Vec::new() });
        let mut success: Vec<_> = marks.iter().map(single).collect();
        let mut compare = vec![made_at(self.entry(), inside.position)];
        if let Some(died) = died {
            success.push(put(self.keys.died(), died, 0));
            let seen = inside.died.as_ref().map_or(0, |died| died.mod_revision);
            compare.push(changed_at(self.keys.died(), seen));
        }
        TxnRequest { compare, success, failure: Vec::new() }
    }
}

impl Keys {
    /// Writes the phase of a group, and deletes the phase before it.
    fn write_phase(&self, group: &str, value: &[u8]) -> [RequestOp; 3] {
        let [before, behind] = self.other_phases(group);
        [put(self.phase(group), value, 0), delete(&before), delete(&behind)]
    }

    /// Adds the room to the list of rooms.
    pub fn make(&self) -> TxnRequest {
        TxnRequest {
            compare: vec![made_at(self.made(), 0)],
            success: vec![put(self.made(), b"", 0)],
            failure: Vec::new(),
        }
    }

    /// Removes the room if nobody is present.
    pub fn remove(&self) -> TxnRequest {
        TxnRequest {
            compare: vec![no_lease_in(&self.queue())],
            success: vec![delete(&self.remains())],
            failure: Vec::new(),
        }
    }
}

/// The value of a phase that must report the dead of this view.
fn deaths_in(view: &View) -> Option<i64> {
    let died = view.dead().next().is_some();
    died.then(|| view.phase.as_ref().map_or(0, |phase| phase.epoch))
}

/// The results of nested transactions, in order.
#[derive(Default)]
struct Found {
    looks: Vec<Vec<KeyValue>>,
    /// The count of the first deletion.
    deleted: Option<i64>,
}

impl Found {
    fn of(response: TxnResponse) -> Self {
        let mut found = Found::default();
        found.collect(response);
        found
    }

    fn collect(&mut self, response: TxnResponse) {
        for op in response.responses {
            match op.response {
                Some(Response::Range(range)) => self.looks.push(range.kvs),
                Some(Response::Txn(inner)) => self.collect(inner),
                Some(Response::DeleteRange(gone)) => _ = self.deleted.get_or_insert(gone.deleted),
                Some(Response::Put(_)) | None => {}
            }
        }
    }
}

fn step(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn put(key: Vec<u8>, value: &[u8], lease: i64) -> RequestOp {
    step(Request::Put(PutRequest { key, value: value.to_vec(), lease }))
}

fn delete(span: &Span) -> RequestOp {
    let (key, range_end) = (span.start.clone(), span.end.clone());
    step(Request::DeleteRange(DeleteRangeRequest { key, range_end }))
}

fn look(span: &Span) -> RequestOp {
    step(Request::Range(span.request(false)))
}

fn compare(target: CompareTarget, with: TargetUnion, key: Vec<u8>) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key,
        target_union: Some(with),
        range_end: Vec::new(),
    }
}

/// The key was made at that revision; for 0: the key does not exist.
fn made_at(key: Vec<u8>, revision: i64) -> Compare {
    compare(CompareTarget::Create, TargetUnion::CreateRevision(revision), key)
}

/// The key was last changed at that revision.
fn changed_at(key: Vec<u8>, revision: i64) -> Compare {
    compare(CompareTarget::Mod, TargetUnion::ModRevision(revision), key)
}

/// No key in the span has a lease, so nobody there is present. True for an empty span.
fn no_lease_in(span: &Span) -> Compare {
    let none = compare(CompareTarget::Lease, TargetUnion::Lease(0), span.start.clone());
    Compare { range_end: span.end.clone(), ..none }
}
