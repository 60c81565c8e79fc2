//! What can go wrong, in words for the person who has to do something about it.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::Loss;
use crate::policy::Policy;

/// Why a room could not be opened, entered, left or looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// The text that should say where rooms live cannot be understood.
    #[error("`{place}` is no place for rooms: {reason}")]
    BadPlace {
        /// The text.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The place is well-formed, but this program was built without, or not given, the backend for it.
    #[error(
        "no backend for `{scheme}://` rooms is available here, so `{place}` cannot be used; \
         known: {known}"
    )]
    NoBackend {
        /// The place asked for.
        place: String,
        /// Its scheme.
        scheme: String,
        /// What would have been possible.
        known: String,
    },

    /// The name of a room is empty or too long.
    #[error("`{name}` cannot be the name of a room: {reason}")]
    BadRoomName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The name of a session is longer than the backend can keep.
    #[error("the name of the session has {length} bytes; at most {max} are possible")]
    SessionTooLong {
        /// Its length in bytes.
        length: usize,
        /// The longest possible.
        max: usize,
    },

    /// An option has a value that makes no sense.
    #[error("{what} cannot be {value}: {expected}")]
    BadOption {
        /// Which option.
        what: &'static str,
        /// What it was set to.
        value: String,
        /// What it could be set to.
        expected: String,
    },

    /// The directory cannot be trusted or is none.
    #[error("rooms cannot live in `{path}`: {reason}", path = .path.display())]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// The room's file is something that must not be opened: a symbolic link, a directory, somebody else's.
    #[error("`{path}` is not used as a room: {reason}", path = .path.display())]
    UnsafeFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// The file system does not keep locks and mapped memory coherent between its users.
    #[error(
        "`{path}` is on a {kind} file system, where rooms cannot work: mapped memory and locks are \
         not shared between machines; choose a local directory or a room on a server",
        path = .path.display()
    )]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },

    /// Permission denied.
    #[error("no permission to {what} `{path}`", path = .path.display())]
    Permission {
        /// What was tried: "open", "create", …
        what: &'static str,
        /// On what.
        path: PathBuf,
    },

    /// The file system is mounted read-only.
    #[error("cannot {what} `{path}`: the file system is read-only", path = .path.display())]
    ReadOnly {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
    },

    /// The file system is full, or a quota is used up.
    #[error(
        "no space left to create `{path}`, which takes {bytes} bytes; nothing was left behind",
        path = .path.display()
    )]
    NoSpace {
        /// The file that was to be made.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },

    /// Any other failure of the operating system.
    #[error("cannot {what} `{path}`: {source}", path = .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// There is a file of the room's name that is no room. It is left as it is.
    #[error(
        "`{path}` is not a room: {reason}; it was left untouched",
        path = .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How that was seen.
        reason: String,
    },

    /// The room was made by another version of this library.
    #[error(
        "the room in `{path}` has format {found}, this program reads format {supported}; \
         it was left untouched: end the programs that use it and remove the file, or use their version",
        path = .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The version this library reads.
        supported: u32,
    },

    /// The shared state contradicts itself: some process wrote into it what does not belong there.
    #[error(
        "the room in `{path}` is corrupt: {reason}; end the programs that use it and remove the file",
        path = .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },

    /// The room's file was removed or retired while this handle was open. Open the room again.
    #[error("the room in `{path}` was removed; open it again", path = .path.display())]
    Removed {
        /// Where it was.
        path: PathBuf,
    },

    /// There is no such room, and it was not to be created.
    #[error("there is no room `{name}` in `{place}`")]
    NoSuchRoom {
        /// The room.
        name: String,
        /// Where it was looked for.
        place: String,
    },

    /// Somebody is inside or waits, so the room cannot be removed.
    #[error("the room in `{path}` is in use by {users}", path = .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// Who uses it.
        users: String,
    },

    /// All places for participants are taken.
    #[error(
        "the room in `{path}` has {capacity} places for participants and all are taken",
        path = .path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// How many there are.
        capacity: usize,
    },

    /// A policy was asked for and the room has another one.
    #[error(
        "the room has the policy {has}, not {asked}: a room keeps the policy it was created with"
    )]
    PolicyMismatch {
        /// The room's policy.
        has: Policy,
        /// The one asked for.
        asked: Policy,
    },

    /// Entry was asked for without waiting, and it would have to wait.
    #[error("the room is occupied{}", inside_text(.inside.as_ref()))]
    Occupied {
        /// The session inside, if it is known.
        inside: Option<String>,
    },

    /// Entry was not possible in time.
    #[error("not admitted within {:.3} s", .waited.as_secs_f64())]
    TimedOut {
        /// How long it was waited.
        waited: Duration,
    },

    /// The [progress callback](crate::Entry::progress) ended the wait.
    #[error("the wait was ended")]
    Withdrawn,

    /// A live process is in the middle of an update and does not finish it.
    #[error(
        "the room in `{path}` does not move: {who} is in the middle of an update for more than {} s; \
         is it stopped?", .waited.as_secs(),
        path = .path.display()
    )]
    Stalled {
        /// The file.
        path: PathBuf,
        /// The process, as far as it is known.
        who: String,
        /// How long it was waited.
        waited: Duration,
    },

    /// The handle belongs to the parent of this process.
    #[error("this room was opened before fork(); the child has to open it itself")]
    Forked,

    /// The holding was lost before it was given back.
    #[error("the holding was lost: {0}")]
    Lost(#[from] Loss),

    /// A server cannot be reached, or not enough of them.
    #[error("`{place}` cannot be reached: {reason}")]
    Unreachable {
        /// Where.
        place: String,
        /// What happened.
        reason: String,
    },

    /// The backend cannot do this.
    #[error("{backend} rooms cannot do this: {what}")]
    Unsupported {
        /// The kind of rooms.
        backend: &'static str,
        /// What was asked for.
        what: String,
    },

    /// The [set-up](crate::Entry::set_up) failed. The room was left, and is set up for nobody.
    #[error("the set-up failed: {0}")]
    SetUp(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// The [tear-down](crate::Entry::tear_down) failed. The room was left, and is set up for nobody.
    #[error("the tear-down failed: {0}")]
    TearDown(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// A failure that only the backend can describe.
    #[error("{0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl RoomError {
    /// Whether this only says that the room was not free: [`Occupied`](RoomError::Occupied) or
    /// [`TimedOut`](RoomError::TimedOut).
    pub fn is_conflict(&self) -> bool {
        matches!(self, RoomError::Occupied { .. } | RoomError::TimedOut { .. })
    }
}

fn inside_text(inside: Option<&String>) -> String {
    inside.map(|session| format!(" by the session `{session}`")).unwrap_or_default()
}

impl From<Infallible> for RoomError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
