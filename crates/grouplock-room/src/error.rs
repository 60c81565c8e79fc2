//! Errors. Their messages say what is wrong and what to do.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::Loss;
use crate::policy::Policy;

/// Why a room could not be opened, entered, left or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// The text is not a valid place.
    #[error("`{place}` is not a place for rooms: {reason}")]
    BadPlace {
        /// The text.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// The place is valid, but this program has no backend for it.
    #[error(
        "this program has no backend for `{scheme}://`, so it cannot use `{place}`; \
         it can use: {known}"
    )]
    NoBackend {
        /// The place.
        place: String,
        /// Its scheme.
        scheme: String,
        /// The backends that this program has.
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

    /// The name of the session is longer than the backend can store.
    #[error("the name of the session has {length} bytes; at most {max} are allowed")]
    SessionTooLong {
        /// Its length in bytes.
        length: usize,
        /// The longest possible.
        max: usize,
    },

    /// The value of an option is not valid.
    #[error("{what} cannot be {value}: {expected}")]
    BadOption {
        /// The option.
        what: &'static str,
        /// Its value.
        value: String,
        /// The values that are valid.
        expected: String,
    },

    /// The directory is not safe to use, or it is not a directory.
    #[error("rooms cannot live in `{path}`: {reason}", path = .path.display())]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// The file is not safe to use: it is a symbolic link, a directory, or another user's.
    #[error("`{path}` is not used as a room: {reason}", path = .path.display())]
    UnsafeFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// The file system does not share locks and mapped memory between all its users.
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
        /// The failed operation: "open", "create", …
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
    },

    /// The file system is mounted read-only.
    #[error("cannot {what} `{path}`: the file system is read-only", path = .path.display())]
    ReadOnly {
        /// The failed operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
    },

    /// The file system is full, or a quota is used up.
    #[error(
        "no space left for `{path}`, which needs {bytes} bytes; nothing was left behind",
        path = .path.display()
    )]
    NoSpace {
        /// The file, which is new or must grow.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },

    /// Any other failure of the operating system.
    #[error("cannot {what} `{path}`: {source}", path = .path.display())]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// The file has the name of the room, but it is not a room. It is not changed.
    #[error(
        "`{path}` is not a room: {reason}; it was left untouched",
        path = .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why it is not a room.
        reason: String,
    },

    /// Another version of this library created the room.
    #[error(
        "the room in `{path}` has format {found}, this program reads format {supported}; \
         it was left untouched; end the programs that use it and remove the file, or use \
         their version",
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

    /// The shared state is contradictory: a process has written invalid data into it.
    #[error(
        "the room in `{path}` is corrupt: {reason}; end the programs that use it, then remove the \
         file",
        path = .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },

    /// The room's file was removed while this handle was open. Open the room again.
    #[error("the room in `{path}` was removed; open it again", path = .path.display())]
    Removed {
        /// The file.
        path: PathBuf,
    },

    /// The room does not exist, and the options do not allow to create it.
    #[error("there is no room `{name}` in `{place}`")]
    NoSuchRoom {
        /// The room.
        name: String,
        /// The place.
        place: String,
    },

    /// A process is inside or waits, so the room cannot be removed.
    #[error("the room in `{path}` is in use by {users}", path = .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The processes that use it.
        users: String,
    },

    /// All slots for participants are in use.
    #[error(
        "the room in `{path}` is full: it has slots for at most {capacity} participants",
        path = .path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The number of slots.
        capacity: usize,
    },

    /// The room does not have the policy that was asked for.
    #[error("the room has the policy {has}, not {asked}; ask for that policy, or for none")]
    PolicyMismatch {
        /// The room's policy.
        has: Policy,
        /// The one asked for.
        asked: Policy,
    },

    /// The request does not wait, and the room is not free.
    #[error("the room is occupied{}", inside_text(.inside.as_ref()))]
    Occupied {
        /// The session inside, if known.
        inside: Option<String>,
    },

    /// The time to wait is over.
    #[error("not admitted within {:.3} s", .waited.as_secs_f64())]
    TimedOut {
        /// The duration of the wait.
        waited: Duration,
    },

    /// The [progress callback](crate::Entry::progress) ended the wait.
    #[error("the wait was cancelled")]
    Withdrawn,

    /// A process that lives has begun an update and does not finish it.
    #[error(
        "the room in `{path}` is stalled: {who} has not finished an update within {} s; \
         is it stopped?", .waited.as_secs(),
        path = .path.display()
    )]
    Stalled {
        /// The file.
        path: PathBuf,
        /// The process, if known.
        who: String,
        /// The duration of the wait.
        waited: Duration,
    },

    /// The handle belongs to the parent of this process.
    #[error("this room was opened before fork(); the child must open it again")]
    Forked,

    /// The holding ended before the holder left.
    #[error("the holding was lost: {0}")]
    Lost(#[from] Loss),

    /// A server, or enough of them, cannot be reached.
    #[error("`{place}` cannot be reached: {reason}")]
    Unreachable {
        /// The place.
        place: String,
        /// The reason.
        reason: String,
    },

    /// The backend does not support this.
    #[error("{backend} rooms cannot do this: {what}")]
    Unsupported {
        /// The kind of rooms.
        backend: &'static str,
        /// The missing feature.
        what: String,
    },

    /// The [set-up](crate::Entry::set_up) failed. The room was left, and is not set up.
    #[error("the set-up failed: {0}")]
    SetUp(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// The [tear-down](crate::Entry::tear_down) failed. The room was left, and is not set up.
    #[error("the tear-down failed: {0}")]
    TearDown(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// A failure that only the backend can describe.
    #[error("{0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl RoomError {
    /// Whether the room was only not free in time: [`Occupied`](RoomError::Occupied) or
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
