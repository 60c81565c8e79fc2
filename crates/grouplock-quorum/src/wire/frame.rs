//! What is said on a connection.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cluster::{Cluster, Fingerprint};
use super::limits::{
    BadName, LONGEST_COMMAND, LONGEST_HOST, LONGEST_SESSION, LONGEST_USER, at_most, room,
};
use super::reason::Reason;
use super::seen::Seen;
use super::versions::Versions;
use crate::message::{GroupMessage, PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId};
use crate::rank::Claim;
use crate::time::Time;

/// One thing said.
///
/// Members dial each other both ways; what a member sends to another goes over the connection it dialled. Clients
/// dial members, one connection to each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Frame {
    /// First, from the dialler.
    Hello(Hello),
    /// First answer.
    Welcome(Welcome),
    /// The connection is closed after this.
    Refused {
        /// Why.
        reason: Reason,
    },
    /// Between members.
    Peer {
        /// In which room.
        room: String,
        /// What.
        message: PeerMessage,
    },
    /// From a client to the home of a session.
    Process {
        /// In which room.
        room: String,
        /// Which of the client's processes.
        process: ProcessId,
        /// What.
        message: ProcessMessage,
        /// With the first Ask, and again after a reconnect.
        about: Option<About>,
    },
    /// From the home of a session to a client.
    Group {
        /// In which room.
        room: String,
        /// Which of the client's processes.
        process: ProcessId,
        /// What.
        message: GroupMessage,
    },
    /// From home to client, once per request and only if it was not granted at once: it is in the queue.
    Queued {
        /// In which room.
        room: String,
        /// Which of the client's processes.
        process: ProcessId,
        /// The request.
        attempt: u64,
        /// How it stands among those who wait.
        claim: Claim,
        /// The session that is inside, if this member is its home. If it is the one that was asked for, others wait for whose sake
        /// nobody joins it.
        inside: Option<String>,
    },
    /// From a client: what do you see?
    Look {
        /// Chosen by the client, and repeated in every piece of the answer.
        question: u64,
        /// In which room. `None`: which rooms are there?
        room: Option<String>,
        /// Only the stage, and of those who wait only the best claim for each session.
        brief: bool,
    },
    /// A piece of the answer. The last is [`Seen::End`].
    Seen {
        /// The question's number.
        question: u64,
        /// The piece.
        seen: Seen,
    },
    /// Are you there? Answered by Pong.
    Ping,
    /// Yes.
    Pong,
    /// From home to client: that request is refused. The connection and all other requests stay.
    Denied {
        /// In which room.
        room: String,
        /// Which of the client's processes.
        process: ProcessId,
        /// The request.
        attempt: u64,
        /// Why.
        reason: Reason,
    },
    /// Between members, the first on each connection: nothing else counts before it. Said again when it has changed.
    Memory {
        /// Which the sender has.
        mine: Memory,
        /// For a member that has none.
        recall: Option<Recall>,
    },
}

/// Which data a member has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How many times it has begun without any; 0 until it has begun.
    pub generation: u32,
    /// Made up with them.
    pub id: u64,
}

impl Memory {
    /// Whether the member that has it has not begun yet, so that it may have forgotten something.
    pub fn is_blank(self) -> bool {
        self.generation == 0
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory {}.{:016x}", self.generation, self.id)
    }
}

/// What is known of a member that has no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The last that it had.
    pub known: Memory,
    /// Above every number that is remembered of it.
    pub floor: u64,
}

/// Who dials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Which cluster the dialler thinks it talks to. Members always say it; a client does once it knows.
    pub cluster: Option<Fingerprint>,
    /// What it is.
    pub role: Role,
    /// Its clock.
    pub now: Time,
    /// What it speaks.
    pub versions: Versions,
}

/// What a dialler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Role {
    /// A member.
    Member {
        /// Its number.
        id: MemberId,
        /// Random for each start, so that two with one number are told from one that dials again.
        incarnation: u64,
    },
    /// A client.
    Client {
        /// Random for each client, and told nobody but members: only who knows it speaks for its processes. The
        /// same for all its connections.
        client: u64,
    },
}

/// Who was dialled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// All there is to know of the cluster.
    pub cluster: Cluster,
    /// Which member answers.
    pub me: MemberId,
    /// Random for each start of the member.
    pub incarnation: u64,
    /// Its clock.
    pub now: Time,
    /// What both speak from now on.
    pub version: u16,
}

/// What a process says of itself, for those who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The machine it runs on.
    pub host: String,
    /// The name of its user.
    pub user: String,
    /// Its number there.
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
    /// When it asked.
    pub since: Time,
    /// What it asked with.
    pub priority: i32,
    /// How long it expects to stay.
    pub expected: Option<Duration>,
}

impl Frame {
    /// What it is called in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Frame::Hello(_) => "Hello",
            Frame::Welcome(_) => "Welcome",
            Frame::Refused { .. } => "Refused",
            Frame::Peer { .. } => "Peer",
            Frame::Process { .. } => "Process",
            Frame::Group { .. } => "Group",
            Frame::Queued { .. } => "Queued",
            Frame::Look { .. } => "Look",
            Frame::Seen { .. } => "Seen",
            Frame::Ping => "Ping",
            Frame::Pong => "Pong",
            Frame::Denied { .. } => "Denied",
            Frame::Memory { .. } => "Memory",
        }
    }

    /// Whether all names in it are names. Who acts on a frame from a stranger asks first.
    ///
    /// # Errors
    /// The first that is none.
    pub fn check_names(&self) -> Result<(), BadName> {
        match self {
            Frame::Peer { room: name, .. }
            | Frame::Group { room: name, .. }
            | Frame::Queued { room: name, .. }
            | Frame::Look { room: Some(name), .. } => room(name),
            Frame::Process { room: name, message, about, .. } => {
                room(name)?;
                if let ProcessMessage::Ask { session, .. } = message {
                    at_most("the name of the session", session, LONGEST_SESSION)?;
                }
                about.as_ref().map_or(Ok(()), |about| {
                    at_most("the name of the machine", &about.host, LONGEST_HOST)?;
                    at_most("the name of the user", &about.user, LONGEST_USER)?;
                    at_most("the command line", &about.command, LONGEST_COMMAND)
                })
            }
            _ => Ok(()),
        }
    }
}
