//! What is asked of etcd, and what the answers mean. No clocks, no network: the model in `tests/model` explores this
//! text.
//!
//! Whether somebody is inside is decided by the queue alone. Entries are ordered by creation; the first session is
//! inside, up to the first entry of another session. Nothing is ever created in front of an entry that exists. So an
//! entry that nobody of another session precedes stays so while it exists. The transaction that lets somebody in checks
//! that the entry exists; what was seen of the others cannot become false.
//!
//! | transaction | if | then | else |
//! |---|---|---|---|
//! | [`knock`](Ticket::knock) | nobody is present | put my entry and mark, delete `p/` | nothing |
//! | [`join`](Ticket::join) | nobody of another session is present, and the first holder still is | put my entry and mark | nothing |
//! | [`enter`](Ticket::enter) | nobody of another session is present | put my entry and mark; delete `p/` if nobody of mine was present | put my entry (if I want to wait) |
//! | [`settle`](Ticket::settle) | my entry is the one I made, no phase of mine is written | write the phase | |
//! | [`claim`](Ticket::claim) | my entry is the one I made | put my mark; write the phase if there is none of mine | nothing |
//! | [`leave`](Ticket::leave) | | delete my entry and mark | |
//! | [`hand_over`](Ticket::hand_over) | my entry and those of the next session exist | delete mine, put their marks, write their phase | delete mine |
//! | [`abandon`](Ticket::abandon) | | delete my entry and mark, put a tombstone | |
//! | [`bury`](Ticket::bury) | my entry is the one I made | write down who died, delete their marks | |
//!
//! *Present* is who has a key with a lease. A mark has none, so the marks of the dead hold nobody up.
//!
//! # Epochs
//! 1. The one who comes to an empty room has the revision of its entry as epoch, and writes no phase.
//! 2. Everybody else takes the epoch from the phase `p/<session>`. If there is none, it writes one first.
//! 3. Who writes it, and saw holders of its session, writes the revision at which the first of them came in. So the one
//!    of rule 1 agrees, if it is still present: nobody came in before it, as nobody was present.
//! 4. Who writes it, and saw no holder, lets the revision of that transaction be the epoch.
//! 5. A phase is deleted by whoever comes to an empty room and by whoever opens another session's phase. So the phase that
//!    is written is the one of those inside.
//!
//! # Repeated requests
//! A request may be sent twice, and the copies may arrive late. One that finds its own entry puts it once more, which does
//! not change its place. One that arrives after its sender has left finds a tombstone, which whoever has sent twice
//! leaves behind. Ids are never used again, so leaving needs no condition.

use crate::keys::{Keys, Span};
use crate::proto::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, KeyValue, PutRequest, Request,
    RequestOp, Response, TargetUnion, TxnRequest, TxnResponse,
};
use crate::view::{Entry, Phase, View};

/// Transactions may have 128 steps; this leaves some for other things.
pub const MOST_BURIED: usize = 100;

/// One who wants to enter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Which room.
    pub keys: Keys,
    /// Which group: see [`keys`](crate::keys).
    pub group: String,
    /// Who: never used by anybody else, and never again.
    pub id: String,
    /// The lease its entry goes away with.
    pub lease: i64,
}

/// What an answer says about the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Inside.
    Inside(Inside),
    /// In front, at this place, but the epoch or the dead are not known yet. What was seen, if that was everything.
    Unsettled(i64, Option<View>),
    /// In the queue, at this place: the revision at which its entry was made.
    Queued(i64),
    /// Not present. The group that is first in the queue.
    Absent(Option<String>),
}

/// A holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inside {
    /// The revision at which its entry was made.
    pub place: i64,
    /// The epoch of its phase.
    pub epoch: i64,
    /// Whether it is the one who buries the dead of the phases before.
    pub opener: bool,
    /// The marks of those who died in phases before this one and are not buried.
    pub dead: Vec<KeyValue>,
    /// The epoch of the phase before, if it is known and somebody died in it; else 0.
    pub before: i64,
    /// What was last written down about the dead.
    pub died: Option<KeyValue>,
    /// Whether the room is on the list of rooms.
    pub made: bool,
}

impl Ticket {
    fn entry(&self) -> Vec<u8> {
        self.keys.entry(&self.group, &self.id)
    }

    /// Its entry and its mark. To delete them is to [`leave`](Ticket::leave).
    pub fn pair(&self) -> Span {
        self.keys.pair(&self.group, &self.id)
    }

    fn put_pair(&self, who: &[u8], mark: &[u8]) -> [RequestOp; 2] {
        let key = self.keys.mark(&self.group, &self.id);
        [put(self.entry(), who, self.lease), put(key, mark, 0)]
    }

    fn is_alive(&self) -> Compare {
        made_at(self.keys.tombstone(&self.id), 0)
    }

    fn nobody_else(&self) -> [Compare; 2] {
        self.keys.others(&self.group).map(|span| no_lease_in(&span))
    }

    fn no_phase(&self) -> Compare {
        made_at(self.keys.phase(&self.group), 0)
    }

    /// Asks for entry to a room that is likely to be empty. Then it does what [`enter`](Ticket::enter) would do, and
    /// else nothing. etcd takes longer for transactions within transactions, and most rooms are empty most of the time.
    pub fn knock(&self, who: &[u8], mark: &[u8]) -> TxnRequest {
        TxnRequest {
            compare: vec![no_lease_in(&self.keys.queue()), self.is_alive()],
            success: self.open(who, mark),
            failure: Vec::new(),
        }
    }

    /// Asks for entry to a phase that was seen, with its first holder as witness: while that one is present, the phase
    /// lasts. The number of holders makes no difference to etcd then.
    pub fn join(&self, witness: (i64, &Entry), who: &[u8], mark: &[u8]) -> TxnRequest {
        let (place, Entry { group, id, .. }) = witness;
        let mut compare = vec![made_at(self.keys.entry(group, id), place), self.is_alive()];
        compare.extend(self.nobody_else());
        let mut success = self.put_pair(who, mark).to_vec();
        success.push(look(&self.pair()));
        TxnRequest { compare, success, failure: Vec::new() }
    }

    /// Asks for entry. `who` and `mark` are the values of the keys. If it would have to wait, it takes its place in
    /// the queue only if `wait` says so.
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
            compare: vec![self.is_alive()],
            success: [&[put(self.entry(), who, self.lease)][..], &looks(self.keys.summary())]
                .concat(),
            failure: looks(self.keys.summary()).to_vec(),
        };
        let stay_out = if wait {
            vec![step(Request::Txn(queue_up))]
        } else {
            looks(self.keys.state()).to_vec()
        };
        let mut compare = vec![self.is_alive()];
        compare.extend(self.nobody_else());
        TxnRequest { compare, success: vec![step(Request::Txn(come_in))], failure: stay_out }
    }

    /// Comes to an empty room: what was there, my keys, and no phase.
    fn open(&self, who: &[u8], mark: &[u8]) -> Vec<RequestOp> {
        let mut steps = vec![look(&self.keys.state())];
        steps.extend(self.put_pair(who, mark));
        steps.push(delete(&self.keys.phases()));
        steps
    }

    /// What the answer to [`knock`](Ticket::knock), [`join`](Ticket::join) or [`enter`](Ticket::enter) means; `None` if
    /// nothing was done. `joined` is the phase that was to be joined.
    pub fn read(&self, response: TxnResponse, joined: Option<&Phase>) -> Option<Standing> {
        let revision = response.header.as_ref()?.revision;
        let found = Found::of(response);
        let mut looks = found.looks.into_iter();
        if found.deleted.is_some() {
            let view = View::of(&self.keys, revision, &looks.next()?);
            // Nobody was present, so all marks are those of the dead. Everything in a transaction has one revision.
            return Some(Standing::Inside(Inside {
                place: revision,
                epoch: revision,
                opener: true,
                dead: view.dead().cloned().collect(),
                before: view.phase.map_or(0, |phase| phase.epoch),
                died: view.died,
                made: view.made,
            }));
        }
        let pair = View::of(&self.keys, revision, &looks.next()?);
        let view = looks.next().map(|kvs| View::of(&self.keys, revision, &kvs));
        let Some((place, entry)) = pair.entries().next() else {
            let first = view.as_ref().and_then(View::first_group);
            return Some(Standing::Absent(first.map(str::to_owned)));
        };
        if pair.mark(entry).is_none() {
            return Some(Standing::Queued(place));
        }
        let phase = joined.or_else(|| view.as_ref()?.phase_of(&self.group));
        Some(match phase {
            Some(phase) if phase.deaths.is_none() => {
                let died = view.as_ref().and_then(|view| view.died.clone());
                let made = view.as_ref().is_none_or(|view| view.made);
                let (opener, dead) = (false, Vec::new());
                Standing::Inside(Inside {
                    place,
                    epoch: phase.epoch,
                    opener,
                    dead,
                    before: 0,
                    died,
                    made,
                })
            }
            Some(_) => Standing::Unsettled(place, None),
            None => {
                // Without my own entry it is not everything.
                let whole = view.filter(|view| view.entries().any(|(its, _)| its == place));
                Standing::Unsettled(place, whole)
            }
        })
    }

    /// What a holder knows that finds itself inside in a view; `None` if the phase is not written down.
    pub fn inside(&self, place: i64, view: &View) -> Option<Inside> {
        let phase = view.phase_of(&self.group)?;
        Some(self.told(place, view, phase.epoch, phase.deaths.unwrap_or(0)))
    }

    fn told(&self, place: i64, view: &View, epoch: i64, before: i64) -> Inside {
        let dead = view.dead().filter(|mark| mark.create_revision < epoch).cloned().collect();
        let opened =
            |entry: &Entry| view.mark(entry).is_some_and(|mark| mark.create_revision == epoch);
        let opener =
            view.entries().find(|(_, entry)| opened(entry)).is_some_and(|(its, _)| its == place);
        Inside { place, epoch, opener, dead, before, died: view.died.clone(), made: view.made }
    }

    /// Writes down the epoch of a phase that has begun, which it has seen without a phase. With the epoch.
    pub fn settle(&self, place: i64, view: &View) -> (TxnRequest, Inside) {
        let epoch = view.unwritten_epoch(&self.group).unwrap_or(place);
        let inside = self.told(place, view, epoch, 0);
        let value = Phase::value(epoch, (!inside.dead.is_empty()).then_some(0));
        let request = TxnRequest {
            compare: vec![made_at(self.entry(), place), self.no_phase()],
            success: self.keys.write_phase(&self.group, &value).to_vec(),
            failure: Vec::new(),
        };
        (request, inside)
    }

    /// Comes in from the queue. Only for one whom, in this view, nobody of another session precedes.
    pub fn claim(&self, place: i64, view: &View, mark: &[u8]) -> TxnRequest {
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
            compare: vec![made_at(self.entry(), place)],
            success: vec![step(Request::Txn(come_in))],
            failure: Vec::new(),
        }
    }

    /// What the answer to [`claim`](Ticket::claim) means; `None` if its entry is gone.
    pub fn read_claim(&self, response: TxnResponse, place: i64, view: &View) -> Option<Inside> {
        let revision = response.header.as_ref()?.revision;
        if !response.succeeded {
            return None;
        }
        let found = Found::of(response);
        let Some(summary) = found.looks.first() else {
            let epoch = view.unwritten_epoch(&self.group).unwrap_or(revision);
            let before = deaths_in(view).unwrap_or(0);
            return Some(Inside {
                opener: epoch == revision,
                ..self.told(place, view, epoch, before)
            });
        };
        let summary = View::of(&self.keys, revision, summary);
        let phase = summary.phase_of(&self.group)?;
        let told = self.told(place, view, phase.epoch, phase.deaths.unwrap_or(0));
        // Who was buried in the meantime is told of by `died`.
        let dead = if phase.deaths.is_some() { told.dead } else { Vec::new() };
        Some(Inside { dead, died: summary.died, made: summary.made, ..told })
    }

    /// Leaves the room or the queue. With a tombstone if its request may still be on its way.
    pub fn leave(&self, resent: bool) -> TxnRequest {
        let mut success = vec![delete(&self.pair())];
        if resent {
            success.push(put(self.keys.tombstone(&self.id), b"", self.lease));
        }
        TxnRequest { compare: Vec::new(), success, failure: Vec::new() }
    }

    /// Leaves the room, and lets the [heirs](View::heirs) in: each with the value of its mark.
    pub fn hand_over(
        &self,
        place: i64,
        view: &View,
        heirs: &[(i64, &Entry, Vec<u8>)],
        resent: bool,
    ) -> TxnRequest {
        let TxnRequest { success: leave, .. } = self.leave(resent);
        let mut compare = vec![made_at(self.entry(), place)];
        let mut success = leave.clone();
        for (place, Entry { group, id, .. }, mark) in heirs {
            compare.push(made_at(self.keys.entry(group, id), *place));
            success.push(put(self.keys.mark(group, id), mark, 0));
        }
        if let Some((_, heir, _)) = heirs.first() {
            let value = Phase::value(0, deaths_in(view));
            success.extend(self.keys.write_phase(&heir.group, &value));
        }
        TxnRequest { compare, success, failure: leave }
    }

    /// How many of its two keys [`leave`](Ticket::leave) or [`hand_over`](Ticket::hand_over) has deleted.
    pub fn read_leave(response: TxnResponse) -> i64 {
        Found::of(response).deleted.unwrap_or(0)
    }

    /// Makes sure that nothing is left of a request whose answer was never heard, and that nothing will be.
    pub fn abandon(&self) -> TxnRequest {
        self.leave(true)
    }

    /// For one who has opened a phase and found marks of the dead: at most [`MOST_BURIED`] at a time.
    pub fn bury(&self, inside: &Inside, marks: &[&KeyValue], died: Option<&[u8]>) -> TxnRequest {
        let single = |mark: &&KeyValue| delete(&Span { start: mark.key.clone(), end: Vec::new() });
        let mut success: Vec<_> = marks.iter().map(single).collect();
        let mut compare = vec![made_at(self.entry(), inside.place)];
        if let Some(died) = died {
            success.push(put(self.keys.died(), died, 0));
            let seen = inside.died.as_ref().map_or(0, |died| died.mod_revision);
            compare.push(changed_at(self.keys.died(), seen));
        }
        TxnRequest { compare, success, failure: Vec::new() }
    }
}

impl Keys {
    /// Writes the phase of a group, and deletes the one before.
    fn write_phase(&self, group: &str, value: &[u8]) -> [RequestOp; 3] {
        let [before, behind] = self.other_phases(group);
        [put(self.phase(group), value, 0), delete(&before), delete(&behind)]
    }

    /// Puts the room on the list of rooms.
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

/// What the next phase has to be told about the dead in this view.
fn deaths_in(view: &View) -> Option<i64> {
    let died = view.dead().next().is_some();
    died.then(|| view.phase.as_ref().map_or(0, |phase| phase.epoch))
}

/// What the transactions within each other have found, in order.
#[derive(Default)]
struct Found {
    looks: Vec<Vec<KeyValue>>,
    /// By the first deletion.
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

/// The key was made at that revision; at 0: it is not there.
fn made_at(key: Vec<u8>, revision: i64) -> Compare {
    compare(CompareTarget::Create, TargetUnion::CreateRevision(revision), key)
}

/// The key was changed last at that revision.
fn changed_at(key: Vec<u8>, revision: i64) -> Compare {
    compare(CompareTarget::Mod, TargetUnion::ModRevision(revision), key)
}

/// No key in that span has a lease, so nobody there is present. True if there is none.
fn no_lease_in(span: &Span) -> Compare {
    let none = compare(CompareTarget::Lease, TargetUnion::Lease(0), span.start.clone());
    Compare { range_end: span.end.clone(), ..none }
}
