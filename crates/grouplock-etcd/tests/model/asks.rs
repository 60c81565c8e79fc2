//! Requests and answers.

use grouplock_etcd::deaths::Deaths;
use grouplock_etcd::proto::TxnResponse;
use grouplock_etcd::protocol::Holder;
use grouplock_etcd::view::{Entry, Phase, View};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Knock,
    Join(Phase, i64, Entry),
    /// Whether the client may wait.
    Enter(bool),
    /// Which keys exist?
    Look(i64),
    Settle(i64, View),
    Claim(i64, View),
    /// The position, whether the client has asked twice, and its mirror, if it has one.
    Leave(i64, bool, Option<View>),
    Abandon,
    /// Writes when the deaths were noticed.
    Notice(Grave),
    Bury(Grave),
}

impl Ask {
    /// Whether this is a request to enter.
    pub(crate) fn enters(&self) -> bool {
        matches!(self, Ask::Knock | Ask::Join(..) | Ask::Enter(_))
    }
}

/// A new holder, and what it knows about deaths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grave {
    pub(crate) inside: Holder,
    pub(crate) deaths: Deaths,
}

/// A request on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) round: u8,
    pub(crate) lease: i64,
    pub(crate) ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Inside(Holder),
    Unsettled(i64, Option<View>),
    Queued(i64),
    Absent,
    /// The answer to a knock or a join whose condition does not hold.
    NotSo,
    Left,
    NoLease,
    Noticed(TxnResponse),
}
