//! Why a member refuses somebody.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cluster::{Fingerprint, Versions};
use super::frame::Memory;
use crate::name::{MemberId, ProcessId};

/// Why a member refused. It sends this to the other side, logs it, and counts it under
/// [`label`](Reason::label).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The opening is not of this protocol.
    #[error("not a GBP connection: {0}")]
    NotGbp(String),
    /// No common version.
    #[error("version {theirs} is spoken there, {ours} here")]
    Version {
        /// The versions of the refused side.
        theirs: Versions,
        /// The versions of this member.
        ours: Versions,
    },
    /// The certificate is missing or wrong, or TLS is missing.
    #[error("not authenticated: {0}")]
    Unauthenticated(String),
    /// The bytes are not a frame.
    #[error("a malformed frame: {0}")]
    Malformed(String),
    /// A frame that is too long.
    #[error("a frame of {length} bytes; at most {most} are allowed")]
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
    /// There is no such member.
    #[error("{member} is not one of the {members} members of this cluster")]
    UnknownMember {
        /// The number that it claims.
        member: MemberId,
        /// How many members there are.
        members: u16,
    },
    /// The configurations differ.
    #[error(
        "another cluster: name, number of members, coterie, policy, admission, votes or lease differ (fingerprint {theirs}, expected {ours})"
    )]
    WrongCluster {
        /// The fingerprint of the refused side.
        theirs: Fingerprint,
        /// The fingerprint of this member.
        ours: Fingerprint,
    },
    /// Two processes have the same member number.
    #[error("{0} is already connected and alive: two processes have one member id")]
    TwoWithOneId(MemberId),
    /// The clocks are too far apart.
    #[error(
        "the clocks differ by {:.3} s, at most {:.3} s are allowed", .apart.as_secs_f64(), .tolerance.as_secs_f64()
    )]
    Clock {
        /// How far they differ.
        apart: Duration,
        /// How far they may differ.
        tolerance: Duration,
    },
    /// The name of a room or session is bad, or a text is too long.
    #[error("{0}")]
    BadName(String),
    /// The process belongs to another client.
    #[error("{0} belongs to another client")]
    NotItsProcess(ProcessId),
    /// The protocol core refused the message.
    #[error("{0}")]
    Protocol(String),
    /// There are too many.
    #[error("too many {what}: at most {most} are allowed")]
    TooMany {
        /// Of what.
        what: String,
        /// The limit.
        most: u64,
    },
    /// The other side does not read its frames.
    #[error("{0} frames wait to be read by the other side")]
    NotReading(u64),
    /// The member is stopping.
    #[error("this member is stopping")]
    Ending,
    /// The member has other data than before.
    #[error(
        "{member} has {theirs}, but it had {known}: its later votes are missing. Restore its own data, or empty its \
         directory; then it asks the other members"
    )]
    OtherMemory {
        /// The refused member.
        member: MemberId,
        /// Its memory.
        theirs: Memory,
        /// The memory that it had.
        known: Memory,
    },
}

impl Reason {
    /// Its label in metrics.
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
