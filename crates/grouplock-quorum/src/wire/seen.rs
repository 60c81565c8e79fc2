//! What a member shows of a room: its part only. Whoever wants the whole asks all members.

use serde::{Deserialize, Serialize};

use super::frame::About;
use crate::name::ProcessId;
use crate::rank::{Claim, Rank};
use crate::time::Time;

/// A piece of an answer to [`Look`](super::Frame::Look). The pieces come in this order, and [`End`](Seen::End) is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Seen {
    /// Names of rooms; there may be several such pieces.
    Rooms(Vec<String>),
    /// The room; absent if this member has never heard of it.
    Stage(Stage),
    /// Those inside here, in order of entry; there may be several such pieces.
    Inside(Vec<Participant>),
    /// Those who wait here, the best claim first; there may be several such pieces.
    Waiting(Vec<Waiter>),
    /// Stages that are over, the oldest first; there may be several such pieces.
    Past(Vec<PastStage>),
    /// That was all.
    End,
}

/// One member's part in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The number of the last stage that was started here.
    pub stage: u64,
    /// The highest epoch held here or heard to be over, whichever is higher.
    pub epoch: u64,
    /// The stage that is under way here.
    pub inside: Option<Inside>,
    /// How many votes are in, while the group competes.
    pub votes: Option<u16>,
    /// Who has this member's vote.
    pub voted_for: Option<Rank>,
    /// Who waits for this member's vote, the first first.
    pub electors: Vec<Rank>,
    /// How many died inside here, as far as it is known.
    pub deaths: u64,
    /// When this was looked at, by the member's clock.
    pub now: Time,
}

/// The stage that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Whose turn it is.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// Somebody of another session waits.
    pub contested: bool,
    /// When it began.
    pub began: Time,
}

/// Someone inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Which process.
    pub process: ProcessId,
    /// Since when it is inside.
    pub since: Time,
    /// What it says of itself; absent if it has not been heard since the member started.
    pub about: Option<About>,
}

/// Someone who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Which process.
    pub process: ProcessId,
    /// For what.
    pub session: String,
    /// How it stands: comparable between members.
    pub claim: Claim,
    /// Since when it waits.
    pub since: Time,
    /// What it says of itself.
    pub about: Option<About>,
}

/// A stage that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastStage {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// When the first entered.
    pub began: Time,
    /// When the last left.
    pub ended: Time,
    /// How many entered.
    pub entries: u64,
    /// Whether one of them died inside.
    pub died: bool,
}
