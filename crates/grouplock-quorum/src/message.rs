//! What is said between members, and between processes and the group of their session.
//!
//! A transport carries these as they are. It may lose, repeat, delay and reorder them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rank::{Claim, Rank};
use crate::time::Time;

/// Between members: from a group to an arbiter of its quorum, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PeerMessage {
    /// The paper's Req-Group, group to arbiter: may I have your vote? Sent again with a better rank when someone
    /// more urgent joins, and while the vote is needed: that renews its lease.
    Request {
        /// How the stage stands.
        rank: Rank,
        /// When it was sent, by the group's clock.
        sent: Time,
        /// The highest epoch that the arbiter has to know of before it votes.
        epoch: u64,
    },
    /// Rec-Group, arbiter to group: you have my vote.
    Locked {
        /// The stage it is for.
        stage: u64,
        /// The arbiter's count of its grants.
        grant: u64,
        /// The highest epoch the arbiter has heard of.
        epoch: u64,
        /// The `sent` of the last request heard: the vote's lease began then, or later.
        heard: Time,
        /// The best claim of those others who wait for the vote.
        rival: Option<Claim>,
    },
    /// Rel-Group, arbiter to group: somebody ranks before you; give my vote back unless you are inside.
    Inquire {
        /// The stage that has the vote.
        stage: u64,
        /// The grant in question.
        grant: u64,
        /// The claim of the one who ranks before.
        rival: Claim,
        /// Sent before without an answer.
        again: bool,
    },
    /// Not in the paper, arbiter to group: who waits for the vote is another than you were told, or nobody any
    /// more. Without it a group would take itself for alone and let newcomers in for ever, or keep them
    /// out for the sake of somebody who gave up.
    Contested {
        /// The stage that has the vote.
        stage: u64,
        /// The grant in question.
        grant: u64,
        /// The best claim of those others who wait for the vote.
        rival: Option<Claim>,
        /// Sent before; a group that is past the stage says so.
        again: bool,
    },
    /// Rep-Rel-Group, group to arbiter: here is your vote back; I still want it.
    Relinquish {
        /// The stage.
        stage: u64,
        /// The grant that is given back.
        grant: u64,
    },
    /// Lib-Group, group to arbiter: this stage and all before are over.
    Release {
        /// The last stage that is over.
        stage: u64,
        /// The highest epoch the group has held.
        epoch: u64,
    },
}

impl PeerMessage {
    /// Whether it is for the arbiter, not for the group.
    pub fn is_for_arbiter(&self) -> bool {
        use PeerMessage::{Release, Relinquish, Request};
        matches!(self, Request { .. } | Relinquish { .. } | Release { .. })
    }
}

/// From a process to the home of the session it wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProcessMessage {
    /// The paper's Req-Process.
    Ask {
        /// The process's count of its requests.
        attempt: u64,
        /// What it wants to enter.
        session: String,
        /// How long it means to stay. `None` if it cannot say: then it joins a stage under way only if
        /// nobody competes.
        stay: Option<Duration>,
        /// Larger goes first.
        priority: i32,
        /// When it was sent, by the process's clock.
        sent: Time,
    },
    /// Rel-Process: the request is over, whether it was granted or not.
    Leave {
        /// The request.
        attempt: u64,
    },
    /// I am alive and inside.
    Renew {
        /// The request.
        attempt: u64,
        /// When it was sent, by the process's clock.
        sent: Time,
    },
}

/// From the home of a session to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GroupMessage {
    /// The paper's Rep-Process: you are in. Sent again as a question; who is not inside answers
    /// [`Leave`](ProcessMessage::Leave). A transport that finds no such process any more answers so in its place.
    Enter {
        /// The request.
        attempt: u64,
        /// The epoch of the stage.
        epoch: u64,
        /// The `sent` of the last message heard from the process.
        heard: Time,
    },
    /// The lease is extended.
    Renewed {
        /// The request.
        attempt: u64,
        /// The `sent` of the last message heard from the process.
        heard: Time,
    },
    /// You are not inside with that request: its lease ran out.
    Gone {
        /// The request.
        attempt: u64,
    },
}
