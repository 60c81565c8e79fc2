//! What is asked and answered, and what can be wrong about it.

use grouplock_etcd::proto::{DeleteRangeRequest, KeyValue, Request, RequestOp, TxnRequest};
use grouplock_etcd::protocol::{Entrant, Holder};
use grouplock_etcd::view::{Entry, Phase, View};

use crate::truth::epoch_told;

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// Nothing.
    None,
    /// Who comes in from the queue does not check that its own entry still exists: etcd's old bug.
    ClaimUnchecked,
    /// Who comes in from the queue always begins a new epoch, although a holder of its session is
    /// inside.
    ClaimOpens,
    /// Who comes in from the queue leaves the phase of the session before.
    ClaimKeepsPhase,
    /// Who leaves after having asked twice leaves no tombstone.
    NoTombstone,
    /// Who is queued comes in without waiting for its turn.
    Impatient,
    /// Who enters at once does not look for others in the queue.
    Blind,
    /// Who knocks does not look for anybody in the queue.
    BlindKnock,
    /// Who knocks does not look for its tombstone.
    UndeadKnock,
    /// Who comes to an empty room leaves the phase that is over.
    KnockKeepsPhase,
    /// Who is inside believes it for as long as it likes.
    Trusting,
    /// Who enters a room that is empty joins the phase that is over, if it was one of its session.
    JoinsAlone,
    /// Who joins by a view does not check that its witness is present.
    NoWitness,
    /// Who joins by a view does not look for others in the queue.
    BlindJoin,
    /// Who writes the epoch down does not check that nobody else has.
    SettlesTwice,
    /// Who writes the epoch down takes its own position.
    SettlesOwn,
    /// Who leaves lets in those whose entries are gone.
    HeirsUnchecked,
    /// Who leaves lets others in although its own session is still inside.
    HandsOverEarly,
    /// Who leaves lets others in, and leaves its own phase as it is.
    HandOverKeepsPhase,
    /// Who opens a phase does not say that somebody died before it.
    Silent,
    /// Who was told of the dead writes that down although it is not present any more.
    BuriesLate,
    /// Who gives up leaves its mark.
    KeepsMark,
    /// Who was let in by another does not ask its own clock.
    TrustsTheWatch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Knock,
    Join(Phase, i64, Entry),
    Enter,
    /// What is there?
    Look(i64),
    Settle(i64, View),
    Claim(i64, View),
    /// The position, whether it has asked twice, and what the mirror shows, if it has one.
    Leave(i64, bool, Option<View>),
    Abandon,
    Bury(Grave),
}

/// What the one who has opened a phase was told of the dead, to be written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grave {
    pub(crate) inside: Holder,
    /// Only that it has noticed: it holds back before it comes in.
    pub(crate) notice: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Inside(Holder),
    Unsettled(i64, Option<View>),
    Queued(i64),
    Absent,
    /// To one who has knocked or joined: it is not so.
    NotSo,
    Left,
    NoLease,
}

impl Mutant {
    /// What is sent, with what is wrong about it.
    pub(crate) fn request(self, entrant: &Entrant, ask: &Ask) -> TxnRequest {
        let mut request = match ask {
            Ask::Knock => entrant.knock(b"w", b"m"),
            Ask::Join(_, position, entry) => entrant.join((*position, entry), b"w", b"m"),
            Ask::Enter => entrant.enter(b"w", b"m", true),
            Ask::Look(_) => TxnRequest::default(),
            Ask::Settle(position, view) => entrant.settle(*position, view).0,
            Ask::Claim(position, view) => entrant.claim(*position, view, b"m"),
            Ask::Leave(position, resent, view) => {
                self.leave(entrant, *position, *resent, view.as_ref())
            }
            Ask::Abandon => entrant.abandon(),
            Ask::Bury(grave) => grave.request(entrant),
        };
        match (self, ask) {
            (Mutant::ClaimUnchecked, Ask::Claim(..)) => request.compare.clear(),
            (Mutant::ClaimOpens | Mutant::Silent, Ask::Claim(..)) => {
                let value = |value: &[u8]| match self {
                    Mutant::Silent => until_space(value),
                    _ => b"0".to_vec(),
                };
                change_phase(&mut inner(&mut request).success, value);
            }
            (Mutant::Silent, Ask::Settle(..) | Ask::Leave(..)) => {
                change_phase(&mut request.success, until_space);
            }
            (Mutant::ClaimKeepsPhase, Ask::Claim(..)) => {
                keep_phases(&mut inner(&mut request).success);
            }
            (Mutant::KnockKeepsPhase, Ask::Knock) => {
                // It still has to be recognised.
                request
                    .success
                    .retain(|step| !matches!(step.request, Some(Request::DeleteRange(_))));
                let nothing =
                    DeleteRangeRequest { key: b"nothing".to_vec(), range_end: Vec::new() };
                let request_op = RequestOp { request: Some(Request::DeleteRange(nothing)) };
                request.success.push(request_op);
            }
            (Mutant::BlindKnock, Ask::Knock) | (Mutant::BuriesLate, Ask::Bury(_)) => {
                drop(request.compare.remove(0));
            }
            (Mutant::UndeadKnock, Ask::Knock) | (Mutant::SettlesTwice, Ask::Settle(..)) => {
                drop(request.compare.pop());
            }
            (Mutant::NoWitness, Ask::Join(..)) => drop(request.compare.remove(0)),
            (Mutant::BlindJoin, Ask::Join(..)) => request.compare.truncate(2),
            (Mutant::JoinsAlone, Ask::Enter) => {
                let come_in = inner(&mut request);
                let unless_open = come_in.failure[0].clone();
                if let Some(Request::Txn(join)) = unless_open.request {
                    *come_in = join;
                }
            }
            (Mutant::SettlesOwn, Ask::Settle(position, _)) => {
                change_phase(&mut request.success, |_| position.to_string().into_bytes());
            }
            (Mutant::KeepsMark, Ask::Abandon) => {
                if let Some(Request::DeleteRange(delete)) = &mut request.success[0].request {
                    delete.range_end.clear();
                }
            }
            (Mutant::NoTombstone, Ask::Abandon | Ask::Leave(..)) => {
                request.success.retain(|step| match &step.request {
                    Some(Request::Put(put)) => put.lease == 0,
                    _ => true,
                });
            }
            (Mutant::Blind, Ask::Enter) => request.compare.truncate(1),
            _ => {}
        }
        request
    }

    fn leave(
        self,
        entrant: &Entrant,
        position: i64,
        resent: bool,
        view: Option<&View>,
    ) -> TxnRequest {
        let mut heirs = view.map(|view| view.heirs(position)).unwrap_or_default();
        if let (Mutant::HandsOverEarly, Some(view)) = (self, view) {
            heirs = view.entries().filter(|(_, one)| one.group != entrant.group).take(1).collect();
        }
        let (Some(view), false) = (view, heirs.is_empty()) else { return entrant.leave(resent) };
        let heirs: Vec<_> = heirs.into_iter().map(|(its, one)| (its, one, b"m".to_vec())).collect();
        let mut request = entrant.hand_over(position, view, &heirs, resent);
        if self == Mutant::HeirsUnchecked {
            request.compare.truncate(1);
        }
        if self == Mutant::HandOverKeepsPhase {
            keep_phases(&mut request.success);
        }
        request
    }
}

/// The transaction that is done first within a transaction.
fn inner(txn: &mut TxnRequest) -> &mut TxnRequest {
    match &mut txn.success[0].request {
        Some(Request::Txn(inner)) => inner,
        _ => panic!("a transaction within a transaction"),
    }
}

fn is_phase(key: &[u8]) -> bool {
    key.starts_with(b"p/r/p")
}

fn until_space(value: &[u8]) -> Vec<u8> {
    value.iter().copied().take_while(|byte| *byte != b' ').collect()
}

fn change_phase(steps: &mut [RequestOp], change: impl Fn(&[u8]) -> Vec<u8>) {
    for step in steps {
        if let Some(Request::Put(put)) = &mut step.request
            && is_phase(&put.key)
        {
            put.value = change(&put.value);
        }
    }
}

fn keep_phases(steps: &mut Vec<RequestOp>) {
    steps.retain(|step| match &step.request {
        Some(Request::DeleteRange(delete)) => !is_phase(&delete.key),
        _ => true,
    });
}

impl Grave {
    fn request(&self, entrant: &Entrant) -> TxnRequest {
        let marks: Vec<&KeyValue> =
            if self.notice { Vec::new() } else { self.inside.dead.iter().collect() };
        let told = if self.notice { b"noticed".to_vec() } else { epoch_told(self.inside.epoch) };
        entrant.bury(&self.inside, &marks, Some(&told))
    }
}
