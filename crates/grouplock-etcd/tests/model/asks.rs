//! What is asked and answered, and what can be wrong about it.

use grouplock_etcd::proto::{KeyValue, Request, TxnRequest};
use grouplock_etcd::protocol::{Inside, Ticket};

use crate::truth::epoch_told;

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// Nothing.
    None,
    /// Who comes in from the queue does not check that its own key is still there: the old bug.
    ClaimUnchecked,
    /// Who comes in from the queue always opens a phase.
    ClaimOpens,
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
    /// Who is inside believes it for as long as it likes.
    Trusting,
    /// Who enters a room that is empty joins the phase that is over, if it was one of its session.
    JoinsAlone,
    /// Who was told of the dead writes that down although it is not there any more.
    BuriesLate,
    /// Who was told of the dead takes those of its own phase for told of as well.
    BuriesAll,
    /// Who gives up leaves the mark that it has come in.
    KeepsMark,
    /// Who leaves does not look whether it is there.
    LeavesBlindly,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Ask {
    Knock,
    Enter,
    Claim(i64),
    Leave(i64, bool),
    Abandon,
    Bury(Grave),
}

/// What the one who has opened a phase was told of the dead, to be written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Grave {
    pub(crate) place: i64,
    pub(crate) epoch: i64,
    /// The keys of the marks.
    pub(crate) marks: Vec<Vec<u8>>,
    /// The revision of what was last written down.
    pub(crate) seen: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    Inside(i64, i64, Option<Grave>),
    Queued(i64),
    Absent,
    /// To one who has knocked: somebody is there.
    Occupied,
    Left(bool),
    NoLease,
}

impl Mutant {
    /// What is sent, with what is wrong about it.
    pub(crate) fn request(self, ticket: &Ticket, ask: &Ask) -> TxnRequest {
        let inner = |txn: &TxnRequest| match &txn.success[0].request {
            Some(Request::Txn(inner)) => inner.clone(),
            _ => panic!("a transaction within a transaction"),
        };
        let mut request = match ask {
            Ask::Knock => ticket.knock(b"w", b"m"),
            Ask::Enter => ticket.enter(b"w", b"m", true),
            Ask::Claim(place) => ticket.claim(*place, b"m"),
            Ask::Leave(place, resent) => ticket.leave(*place, *resent),
            Ask::Abandon => ticket.abandon(),
            Ask::Bury(grave) => grave.request(ticket),
        };
        match (self, ask) {
            (Mutant::ClaimUnchecked, Ask::Claim(_)) | (Mutant::LeavesBlindly, Ask::Leave(..)) => {
                request.compare.clear();
            }
            (Mutant::ClaimOpens, Ask::Claim(_)) => {
                let mut come_in = inner(&request);
                come_in.compare.push(request.compare[0].clone());
                come_in.compare[1].key = b"nothing".to_vec();
                request.success[0].request = Some(Request::Txn(come_in));
            }
            (Mutant::BlindKnock, Ask::Knock) | (Mutant::BuriesLate, Ask::Bury(_)) => {
                drop(request.compare.remove(0));
            }
            (Mutant::UndeadKnock, Ask::Knock) => drop(request.compare.pop()),
            (Mutant::JoinsAlone, Ask::Enter) => {
                let mut come = inner(&request);
                let mut come_in = inner(&come);
                come_in.compare.remove(0);
                come.success[0].request = Some(Request::Txn(come_in));
                request.success[0].request = Some(Request::Txn(come));
            }
            (Mutant::KeepsMark, Ask::Abandon) => drop(request.success.remove(1)),
            (Mutant::NoTombstone, Ask::Leave(place, _)) => request = ticket.leave(*place, false),
            (Mutant::NoTombstone, Ask::Abandon) => {
                request.success.pop();
            }
            (Mutant::Blind, Ask::Enter) => {
                let mut come = inner(&request);
                come.compare.clear();
                request.success[0].request = Some(Request::Txn(come));
            }
            _ => {}
        }
        request
    }
}

impl Grave {
    fn request(&self, ticket: &Ticket) -> TxnRequest {
        let mark = |key: &Vec<u8>| KeyValue { key: key.clone(), ..KeyValue::default() };
        let marks: Vec<KeyValue> = self.marks.iter().map(mark).collect();
        let died = KeyValue { mod_revision: self.seen, ..KeyValue::default() };
        let inside = Inside {
            place: self.place,
            epoch: self.epoch,
            opener: true,
            before: None,
            dead: Vec::new(),
            died: Some(died),
        };
        let marks: Vec<&KeyValue> = marks.iter().collect();
        ticket.bury(&inside, &marks, Some(&epoch_told(self.epoch)))
    }
}
