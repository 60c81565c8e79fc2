//! Deliberate faults in requests and clients.

use grouplock_etcd::proto::{DeleteRangeRequest, Request, RequestOp, TxnRequest};
use grouplock_etcd::protocol::Entrant;
use grouplock_etcd::view::View;

use crate::asks::{Ask, Grave};
use crate::truth::{process, read_id};

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// No fault.
    None,
    /// A claim does not check that its own entry still exists. This is etcd's old bug.
    ClaimUnchecked,
    /// A claim always begins a new epoch, even with a holder of its session inside.
    ClaimOpens,
    /// A claim keeps the phase of the session before.
    ClaimKeepsPhase,
    /// A client that asked twice leaves no tombstone when it leaves.
    NoTombstone,
    /// A waiter claims before its turn.
    Impatient,
    /// A client that enters at once does not check the queue for others.
    Blind,
    /// A knock does not check the queue.
    BlindKnock,
    /// A knock does not check for its tombstone.
    UndeadKnock,
    /// A knock at an empty room keeps the phase that is over.
    KnockKeepsPhase,
    /// A holder ignores its own clock.
    Trusting,
    /// A client that enters an empty room joins the phase that is over, if it has its session.
    JoinsAlone,
    /// A join by a view does not check that its witness is present.
    NoWitness,
    /// A join by a view does not check the queue for others.
    BlindJoin,
    /// A client that writes the epoch does not check that it is not written yet.
    SettlesTwice,
    /// A client that writes the epoch takes its own position.
    SettlesOwn,
    /// A client that leaves admits waiters whose entries are gone.
    HeirsUnchecked,
    /// A client that leaves admits others while its own session is still inside.
    HandsOverEarly,
    /// A client that leaves admits others and keeps its own phase.
    HandOverKeepsPhase,
    /// The opener of a phase does not write that there was a death before it.
    Silent,
    /// A client with a report of deaths writes it down although it is not present any more.
    BuriesLate,
    /// A client that withdraws leaves its mark.
    KeepsMark,
    /// A client that another admitted does not check its own clock.
    TrustsTheWatch,
    /// A holder that learns of a death enters at once.
    IgnoresDelay,
    /// A holder that waits after a death does not write when it noticed it.
    Unnoticed,
    /// The opener of a phase buries the dead before it enters.
    BuriesEarly,
    /// A watch is set again, and the room is not read.
    RestartsUnread,
    /// The room is read before the watch is set.
    ReadsFirst,
    /// A client that asked twice and may not wait leaves its entry.
    NeverForgets,
}

impl Mutant {
    /// The transaction that is sent, with the fault of this mutant.
    pub(crate) fn request(self, entrant: &Entrant, ask: &Ask) -> TxnRequest {
        let mut request = match ask {
            Ask::Knock => entrant.knock(b"w", &mark(&entrant.id)),
            Ask::Join(_, position, entry) => {
                entrant.join((*position, entry), b"w", &mark(&entrant.id))
            }
            Ask::Enter(wait) => entrant.enter(b"w", &mark(&entrant.id), *wait),
            Ask::Look(_) => TxnRequest::default(),
            Ask::Settle(position, view) => entrant.settle(*position, view).0,
            Ask::Claim(position, view) => entrant.claim(*position, view, &mark(&entrant.id)),
            Ask::Leave(position, resent, view) => {
                self.leave(entrant, *position, *resent, view.as_ref())
            }
            Ask::Abandon => entrant.abandon(),
            Ask::Notice(Grave { inside, deaths }) => {
                deaths.notice(entrant, inside).expect("there is something to write")
            }
            Ask::Bury(Grave { inside, deaths }) => {
                deaths.burials(entrant, inside).pop().expect("somebody is dead")
            }
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
                // The knock must stay recognisable.
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
            (Mutant::JoinsAlone, Ask::Enter(_)) => {
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
            (Mutant::Blind, Ask::Enter(_)) => request.compare.truncate(1),
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
        let heirs: Vec<_> = heirs.into_iter().map(|(its, one)| (its, one, mark(&one.id))).collect();
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

/// The first transaction nested in a transaction.
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

/// The mark of a client: it names the client as a process.
fn mark(id: &str) -> Vec<u8> {
    format!("{{\"pid\":{}}}", process(read_id(id))).into_bytes()
}
