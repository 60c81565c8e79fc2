//! The messages between members, and between a process and the home of its session.
//!
//! A transport carries them unchanged. It may lose, repeat, delay and reorder them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::death::{Death, KnownDeath};
use crate::rank::{Claim, Rank};
use crate::time::Time;

/// Between members: from a group to an arbiter, or back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PeerMessage {
    /// The paper's Req-Group, from group to arbiter: asks for the vote. It is repeated with a
    /// better rank when a more urgent process joins, and while the vote is needed, which renews its
    /// lease.
    Request {
        /// The rank of the stage.
        rank: Rank,
        /// When it was sent, by the group's clock.
        sent: Time,
        /// An epoch that the arbiter must know before it votes.
        epoch: u64,
    },
    /// Rec-Group, from arbiter to group: you have my vote.
    Locked {
        /// The stage that has the vote.
        stage: u64,
        /// The number of the grant.
        grant: u64,
        /// The highest epoch that the arbiter knows.
        epoch: u64,
        /// The `sent` of the last request that the arbiter heard. The lease of the vote began at
        /// that time or later.
        heard: Time,
        /// The best claim of other groups that wait for the vote.
        rival: Option<Claim>,
        /// The last death that the arbiter knows.
        died: Option<KnownDeath>,
    },
    /// Rel-Group, from arbiter to group: a better rank waits. Return my vote unless you are inside.
    Inquire {
        /// The stage that has the vote.
        stage: u64,
        /// The grant in question.
        grant: u64,
        /// The claim of the better rank.
        rival: Claim,
        /// It was sent before, without an answer.
        again: bool,
    },
    /// Not in the paper, from arbiter to group: another group waits for the vote than before, or
    /// none. Without it, a group could admit new processes forever because it knows of no rival, or
    /// keep them out because of a rival that withdrew.
    Contested {
        /// The stage that has the vote.
        stage: u64,
        /// The grant in question.
        grant: u64,
        /// The best claim of other groups that wait for the vote.
        rival: Option<Claim>,
        /// It was sent before. A group that is past the stage answers with RELEASE.
        again: bool,
    },
    /// Rep-Rel-Group, from group to arbiter: here is your vote. I still want it.
    Relinquish {
        /// The stage.
        stage: u64,
        /// The grant that is returned.
        grant: u64,
    },
    /// Lib-Group, from group to arbiter: this stage and all before it are over.
    Release {
        /// The last stage that is over.
        stage: u64,
        /// The highest epoch that the group has held.
        epoch: u64,
        /// The last death that the group knows.
        died: Option<KnownDeath>,
    },
}

impl PeerMessage {
    /// Whether it is for the arbiter of a member, not for its group.
    pub fn is_for_arbiter(&self) -> bool {
        use PeerMessage::{Release, Relinquish, Request};
        matches!(self, Request { .. } | Relinquish { .. } | Release { .. })
    }

    /// Its name in statistics.
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

/// From a process to the home of its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProcessMessage {
    /// The paper's Req-Process.
    Ask {
        /// The number of the request, counted by the process.
        attempt: u64,
        /// The session.
        session: String,
        /// How long it intends to stay; `None` if it does not know. Then it joins a stage only if
        /// no other group competes.
        stay: Option<Duration>,
        /// The priority. A larger one goes first.
        priority: i32,
        /// When it was sent, by the process's clock.
        sent: Time,
        /// How long a message between the two takes, as the process measured it: the paper's tc.
        delay: Duration,
        /// The id of the process on its machine, for the report of its death.
        pid: u32,
    },
    /// Rel-Process: the request is over. It may have been granted or not.
    Leave {
        /// The request.
        attempt: u64,
        /// The process knows that it was granted, so it has learnt of earlier deaths.
        entered: bool,
    },
    /// The process is alive and inside.
    Renew {
        /// The request.
        attempt: u64,
        /// When it was sent, by the process's clock.
        sent: Time,
    },
}

impl ProcessMessage {
    /// The number of the request.
    pub fn attempt(&self) -> u64 {
        let (ProcessMessage::Ask { attempt, .. }
        | ProcessMessage::Leave { attempt, .. }
        | ProcessMessage::Renew { attempt, .. }) = self;
        *attempt
    }

    /// Its name in statistics.
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
    /// The paper's Rep-Process: you are inside. It is repeated as a question. A process that is not
    /// inside answers [`Leave`](ProcessMessage::Leave). If the process no longer exists, the
    /// transport answers for it.
    Enter {
        /// The request.
        attempt: u64,
        /// The epoch of the stage.
        epoch: u64,
        /// The `sent` of the last message from the process.
        heard: Time,
        /// A death in the stage before, or in this one.
        recovered: Option<Death>,
    },
    /// The lease is renewed.
    Renewed {
        /// The request.
        attempt: u64,
        /// The `sent` of the last message from the process.
        heard: Time,
    },
    /// The process is not inside with that request: its lease has ended.
    Gone {
        /// The request.
        attempt: u64,
    },
}

impl GroupMessage {
    /// Its name in statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            GroupMessage::Enter { .. } => "enter",
            GroupMessage::Renewed { .. } => "renewed",
            GroupMessage::Gone { .. } => "gone",
        }
    }
}
