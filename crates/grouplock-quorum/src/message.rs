//! What is said between members, and between processes and the group of their session.
//!
//! A transport carries these as they are. It may lose, repeat, delay and reorder them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::death::{Death, Died};
use crate::rank::{Claim, Rank};
use crate::time::Time;

/// Between members: from a group to an arbiter of its quorum, or back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        /// The last death that the arbiter knows of.
        died: Option<Died>,
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
        /// The last death that the group knows of.
        died: Option<Died>,
    },
}

impl PeerMessage {
    /// Whether it is for the arbiter, not for the group.
    pub fn is_for_arbiter(&self) -> bool {
        use PeerMessage::{Release, Relinquish, Request};
        matches!(self, Request { .. } | Relinquish { .. } | Release { .. })
    }

    /// What it is called in statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            PeerMessage::Request { .. } => "request",
            PeerMessage::Locked { .. } => "locked",
            PeerMessage::Inquire { .. } => "inquire",
            PeerMessage::Contested { .. } => "contested",
            PeerMessage::Relinquish { .. } => "relinquish",
            PeerMessage::Release { .. } => "release",
        }
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
        /// How long a message between the two takes, as the process has measured it: the paper's tc.
        delay: Duration,
        /// What the process is called on its machine: told if it dies inside.
        pid: u32,
    },
    /// Rel-Process: the request is over, whether it was granted or not.
    Leave {
        /// The request.
        attempt: u64,
        /// The process knows that it was granted, and so was told of who had died.
        entered: bool,
    },
    /// I am alive and inside.
    Renew {
        /// The request.
        attempt: u64,
        /// When it was sent, by the process's clock.
        sent: Time,
    },
}

impl ProcessMessage {
    /// Which request it is about.
    pub fn attempt(&self) -> u64 {
        let (ProcessMessage::Ask { attempt, .. }
        | ProcessMessage::Leave { attempt, .. }
        | ProcessMessage::Renew { attempt, .. }) = self;
        *attempt
    }

    /// What it is called in statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            ProcessMessage::Ask { .. } => "ask",
            ProcessMessage::Leave { .. } => "leave",
            ProcessMessage::Renew { .. } => "renew",
        }
    }
}

/// From the home of a session to a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        /// Somebody died inside: in the stage before, or in this one.
        recovered: Option<Death>,
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

impl GroupMessage {
    /// What it is called in statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            GroupMessage::Enter { .. } => "enter",
            GroupMessage::Renewed { .. } => "renewed",
            GroupMessage::Gone { .. } => "gone",
        }
    }
}
