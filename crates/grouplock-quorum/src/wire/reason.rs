//! Why somebody is not listened to.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cluster::Fingerprint;
use super::frame::Memory;
use super::versions::Versions;
use crate::name::{MemberId, ProcessId};

/// Why a member refused. It tells the other side, writes a line in its log and counts it under [`label`](Reason::label).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum Reason {
    /// Not the opening of this protocol.
    #[error("not a GBP connection: {0}")]
    NotGbp(String),
    /// Another version of it.
    #[error("version {theirs} is spoken there, {ours} here")]
    Version {
        /// Of who was refused.
        theirs: Versions,
        /// Of who refused.
        ours: Versions,
    },
    /// No or not the right certificate, or no TLS.
    #[error("not authenticated: {0}")]
    Unauthenticated(String),
    /// A frame that is none.
    #[error("a malformed frame: {0}")]
    Malformed(String),
    /// A frame that is too long.
    #[error("a frame of {length} bytes; at most {most} are possible")]
    TooLong {
        /// Its length.
        length: u64,
        /// The longest possible.
        most: u64,
    },
    /// A frame before Hello, a second Hello, or none in time.
    #[error("{0}")]
    OutOfTurn(String),
    /// A frame that only a member may send, or only a client.
    #[error("a {frame} frame from a {role}")]
    NotItsRole {
        /// The frame.
        frame: String,
        /// What the sender is.
        role: String,
    },
    /// No such member.
    #[error("{member} is none of the {members} members of this cluster")]
    UnknownMember {
        /// Who it says it is.
        member: MemberId,
        /// How many there are.
        members: u16,
    },
    /// The configurations differ.
    #[error(
        "another cluster: name, number of members, coterie, policy, admission, votes or lease differ (fingerprint {theirs}, expected {ours})"
    )]
    WrongCluster {
        /// Of who was refused.
        theirs: Fingerprint,
        /// Of who refused.
        ours: Fingerprint,
    },
    /// Two processes with one number.
    #[error("{0} is connected already, and alive: two members have one id")]
    TwoWithOneId(MemberId),
    /// The clocks are too far apart.
    #[error(
        "the clocks are {:.3} s apart, at most {:.3} s are tolerated", .apart.as_secs_f64(), .tolerance.as_secs_f64()
    )]
    Clock {
        /// How far.
        apart: Duration,
        /// How far they may be.
        tolerance: Duration,
    },
    /// The name of a room or session is none, or something else is too long.
    #[error("{0}")]
    BadName(String),
    /// A process that another client speaks for.
    #[error("{0} belongs to another client")]
    NotItsProcess(ProcessId),
    /// What the protocol itself refuses.
    #[error("{0}")]
    Protocol(String),
    /// There is no room for more.
    #[error("too many {what}: {most} are possible")]
    TooMany {
        /// Of what.
        what: String,
        /// How many there can be.
        most: u64,
    },
    /// The other side does not read what it is sent.
    #[error("{0} frames wait to be read by the other side")]
    NotReading(u64),
    /// The member is about to end.
    #[error("this member is ending")]
    Ending,
    /// Other data than it had.
    #[error(
        "{member} comes with {theirs}, but had {known}: what it has voted since is not in it. Give it back its own data, or \
         empty its directory, so that it asks the others"
    )]
    OtherMemory {
        /// Who was refused.
        member: MemberId,
        /// What it has.
        theirs: Memory,
        /// What it is known to have had.
        known: Memory,
    },
}

impl Reason {
    /// What it is called in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Reason::NotGbp(_) => "not_gbp",
            Reason::Version { .. } => "version",
            Reason::Unauthenticated(_) => "unauthenticated",
            Reason::Malformed(_) => "malformed",
            Reason::TooLong { .. } => "too_long",
            Reason::OutOfTurn(_) => "out_of_turn",
            Reason::NotItsRole { .. } => "not_its_role",
            Reason::UnknownMember { .. } => "unknown_member",
            Reason::WrongCluster { .. } => "wrong_cluster",
            Reason::TwoWithOneId(_) => "two_with_one_id",
            Reason::Clock { .. } => "clock",
            Reason::BadName(_) => "bad_name",
            Reason::NotItsProcess(_) => "not_its_process",
            Reason::Protocol(_) => "protocol",
            Reason::TooMany { .. } => "too_many",
            Reason::NotReading(_) => "not_reading",
            Reason::Ending => "ending",
            Reason::OtherMemory { .. } => "other_memory",
        }
    }
}
