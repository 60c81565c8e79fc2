//! The frames of a connection, and the limits of what is in them.

use std::time::Duration;

use grouplock_room::RoomName;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cluster::{Cluster, Fingerprint, Versions};
use super::reason::Reason;
use super::seen::Seen;
use crate::message::{GroupMessage, PeerMessage, ProcessMessage};
use crate::name::{MemberId, ProcessId};
use crate::rank::Claim;
use crate::time::Time;

/// The longest name of a session, in bytes: as in rooms in a directory.
pub const LONGEST_SESSION: usize = 512;
/// The longest name of a machine, in bytes. The sender shortens longer ones.
pub const LONGEST_HOST: usize = 64;
/// The longest name of a user, in bytes. The sender shortens longer ones.
pub const LONGEST_USER: usize = 64;
/// The longest command line, in bytes. The sender shortens longer ones.
pub const LONGEST_COMMAND: usize = 256;

/// A side that has written nothing for this long writes a keep-alive frame.
pub const PING_AFTER: Duration = Duration::from_secs(2);
/// A side that has read nothing for this long closes the connection.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);

/// A frame.
///
/// Members dial each other in both directions. A member sends to another over the connection that
/// it dialled itself. Clients dial members, one connection to each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Frame {
    /// The first frame, from the dialler.
    Hello(Hello),
    /// The first answer.
    Welcome(Welcome),
    /// The connection is closed after this.
    Refused {
        /// The reason.
        reason: Reason,
    },
    /// Between members.
    Peer {
        /// The room.
        room: String,
        /// The message.
        message: PeerMessage,
    },
    /// From a client to the home of a session.
    Process {
        /// The room.
        room: String,
        /// The process of the client.
        process: ProcessId,
        /// The message.
        message: ProcessMessage,
        /// With the first Ask, and again after a reconnect.
        about: Option<About>,
    },
    /// From the home of a session to a client.
    Group {
        /// The room.
        room: String,
        /// The process of the client.
        process: ProcessId,
        /// The message.
        message: GroupMessage,
    },
    /// From home to client, once per request, if it was not granted at once: the request is in the
    /// queue.
    Queued {
        /// The room.
        room: String,
        /// The process of the client.
        process: ProcessId,
        /// The request.
        attempt: u64,
        /// Its claim among the waiting requests.
        claim: Claim,
        /// The session that is inside, if this member is its home. If it is the session of the
        /// request, rivals prevent joining it.
        inside: Option<String>,
    },
    /// From a client: asks what the member sees.
    Look {
        /// Chosen by the client. Every piece of the answer repeats it.
        question: u64,
        /// The room; `None` asks for the names of all rooms.
        room: Option<String>,
        /// Only the stage, and the best claim for each session.
        brief: bool,
    },
    /// A piece of the answer. The last is [`Seen::End`].
    Seen {
        /// The question's number.
        question: u64,
        /// The piece.
        seen: Seen,
    },
    /// Asks for a Pong.
    Ping,
    /// The answer to Ping. A client also sends it when it has nothing else to send.
    Pong,
    /// From home to client: the request is refused. The connection and all other requests stay.
    Denied {
        /// The room.
        room: String,
        /// The process of the client.
        process: ProcessId,
        /// The request.
        attempt: u64,
        /// The reason.
        reason: Reason,
    },
    /// Between members, first on each connection. Other frames do not count before it. It is
    /// repeated when it has changed.
    Memory {
        /// The memory of the sender.
        mine: Memory,
        /// For a member that has no memory.
        recall: Option<Recall>,
    },
}

/// The name of a member's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How many times the member has started without data; 0 until it has started.
    pub generation: u32,
    /// A random number, made with the data.
    pub id: u64,
}

impl Memory {
    /// Whether the member has not started yet, so that it may have forgotten something.
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
    /// The last memory that it had.
    pub known: Memory,
    /// A number above all that are remembered of it.
    pub floor: u64,
}

/// The frame of the dialler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The cluster that the dialler expects. A member always names it; a client does once it knows
    /// it.
    pub cluster: Option<Fingerprint>,
    /// Whether the dialler is a member or a client.
    pub role: Role,
    /// Its clock.
    pub now: Time,
    /// The versions that it speaks.
    pub versions: Versions,
}

/// The kind of dialler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Role {
    /// A member.
    Member {
        /// Its number.
        id: MemberId,
        /// Random for each start. It distinguishes two processes with one number from one that
        /// dials again.
        incarnation: u64,
    },
    /// A client.
    Client {
        /// Random for each client, and known only to it and members: it authorises a client to
        /// speak for its processes. It is the same on all its connections.
        client: u64,
    },
}

/// The answer to Hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The cluster.
    pub cluster: Cluster,
    /// The member that answers.
    pub me: MemberId,
    /// Random for each start of the member.
    pub incarnation: u64,
    /// Its clock.
    pub now: Time,
    /// The version that both speak from now on.
    pub version: u16,
}

/// What a process shows of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The machine it runs on.
    pub host: String,
    /// The name of its user.
    pub user: String,
    /// Its id there.
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
    /// When it asked.
    pub since: Time,
    /// Its priority.
    pub priority: i32,
    /// How long it expects to stay.
    pub expected: Option<Duration>,
}

impl Frame {
    /// Its name in messages.
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

    /// Checks all names in the frame. To be called before a frame from others is used.
    ///
    /// # Errors
    /// The first bad name.
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

/// A name is bad, or a text is too long.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadName {
    /// It is not the name of a room.
    #[error("{0}")]
    Room(String),
    /// It is too long.
    #[error("{what} has {length} bytes, at most {most} are allowed")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The longest possible.
        most: usize,
    },
}

fn room(name: &str) -> Result<(), BadName> {
    RoomName::new(name).map(drop).map_err(|error| BadName::Room(error.to_string()))
}

fn at_most(what: &'static str, text: &str, most: usize) -> Result<(), BadName> {
    let length = text.len();
    if length > most { Err(BadName::TooLong { what, length, most }) } else { Ok(()) }
}
