//! What a member shows of a room: its own part. All members together show the whole room.

use serde::{Deserialize, Serialize};

use super::frame::About;
use crate::name::ProcessId;
use crate::rank::{Claim, Rank};
use crate::time::Time;

/// A piece of the answer to [`Look`](super::Frame::Look). The pieces arrive in this order, and
/// [`End`](Seen::End) is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Seen {
    /// Names of rooms. There may be several such pieces.
    Rooms(Vec<String>),
    /// The room; missing if this member does not know it.
    Stage(Stage),
    /// The processes inside here, in order of entry. There may be several such pieces.
    Inside(Vec<Participant>),
    /// The processes that wait here, the best claim first. There may be several such pieces.
    Waiting(Vec<Waiter>),
    /// Past stages, the oldest first. There may be several such pieces.
    Past(Vec<PastStage>),
    /// The end of the answer.
    End,
}

/// One member's part in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The number of the last stage that began here.
    pub stage: u64,
    /// The highest epoch that was held here or is known to be over.
    pub epoch: u64,
    /// The stage that is open here.
    pub inside: Option<Inside>,
    /// How many votes have arrived, while the group competes.
    pub votes: Option<u16>,
    /// The stage that has this member's vote.
    pub voted_for: Option<Rank>,
    /// The stages that wait for this member's vote, the first first.
    pub electors: Vec<Rank>,
    /// How many processes have died inside here, as far as it is known.
    pub deaths: u64,
    /// The time of this answer, by the member's clock.
    pub now: Time,
}

/// An open stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// Another session waits.
    pub contested: bool,
    /// When it began.
    pub began: Time,
}

/// A process inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Which process.
    pub process: ProcessId,
    /// When it entered.
    pub since: Time,
    /// What it shows of itself; missing if it was not heard since the member started.
    pub about: Option<About>,
}

/// A waiting process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Which process.
    pub process: ProcessId,
    /// Its session.
    pub session: String,
    /// Its claim, comparable between members.
    pub claim: Claim,
    /// When it began to wait.
    pub since: Time,
    /// What it shows of itself.
    pub about: Option<About>,
}

/// A past stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastStage {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// When the first process entered.
    pub began: Time,
    /// When the last process left.
    pub ended: Time,
    /// How many processes entered.
    pub entries: u64,
    /// Whether one of them died inside.
    pub died: bool,
}
