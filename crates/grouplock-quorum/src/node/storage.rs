//! The data of a member, on disk.
//!
//! There is one file, `log`. The member only appends to it. It consists of batches. Each batch is
//! written by one call, and is flushed before anything that depends on it is sent:
//!
//! ```text
//! "GBPb" · length of payload, u32 · CRC32 of number and payload, u32 · number of batch, u64 · payload
//! ```
//!
//! Numbers are little-endian. The payload is a list of entries in postcard. The first batch
//! contains the head, which names the owner of the file. When the file has become much longer than
//! its content needs, the member writes a new file under another name and renames it. If that
//! fails, for example because of missing space or descriptors, the member continues with the old
//! file and tries again later.
//!
//! **Torn or damaged?** After a batch was flushed, a *seal* is written behind it: an empty batch.
//! So a bad batch before a good one is damage, and the member does not start: it might have
//! forgotten a vote. A bad batch at the end was never acknowledged, and is removed. The seal is
//! flushed with the next batch, or when the engine is idle ([`rest`](Storage::rest)). Only if the
//! machine stops before that, damage to the last batch looks like a torn batch.
//!
//! **A failed write or flush** ends the member. The state of the data is unknown then, and a second
//! flush may succeed although data are lost.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::MemberId;
use crate::record::{Durable, Record};
use crate::wire::{CoterieKind, Memory};

const MARK: &[u8; 4] = b"GBPb";
const HEAD: usize = 20;
/// How many rooms are in one batch of a new file.
const ROOMS_PER_BATCH: usize = 256;
/// A file that is shorter than this is not rewritten.
pub const SMALL: u64 = 1024 * 1024;
/// A file is rewritten when it is this many times longer than when it was new.
const GROWTH: u64 = 4;

/// The owner of the file. It has no addresses and no times, because they may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The format of the file.
    pub format: u32,
    pub cluster: String,
    pub me: MemberId,
    pub members: u16,
    pub coterie: CoterieKind,
}

/// The format of new files.
pub const FORMAT: u32 = 1;

/// Borrowed when it is written, owned when it is read.
#[derive(Serialize, Deserialize)]
enum LogEntry<'a> {
    Head(Cow<'a, Head>),
    Room(Cow<'a, str>, Cow<'a, Durable>),
    Record(Cow<'a, str>, Cow<'a, Record>),
    Fact(Fact),
    /// The room is forgotten, except for the floor.
    Retired(Cow<'a, str>),
}

/// Facts beside the rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// The memory of this member.
    Memory(Memory),
    /// The memory of another member.
    Peer(MemberId, Memory),
    /// Unknown rooms start above this number.
    Floor(u64),
}

#[derive(Debug, Default)]
struct Facts {
    memory: Memory,
    peers: BTreeMap<MemberId, Memory>,
    floor: u64,
}

impl Facts {
    fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Memory(memory) => self.memory = memory,
            Fact::Peer(peer, memory) => _ = self.peers.insert(peer, memory),
            Fact::Floor(floor) => self.floor = floor.max(self.floor),
        }
    }

    fn all(&self) -> Vec<Fact> {
        let peers = self.peers.iter().map(|(peer, memory)| Fact::Peer(*peer, *memory));
        [Fact::Memory(self.memory), Fact::Floor(self.floor)].into_iter().chain(peers).collect()
    }
}

/// An error of a member's disk.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The system refused an operation.
    #[error("cannot {what} `{path}`: {source}", path = .path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("`{path}` is used by another process: is this member running already?", path = .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The data belong to another member.
    #[error(
        "`{path}` belongs to {found}, but this is {expected}: a member needs its own data",
        path = .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The owner of the data.
        found: String,
        /// The member that wanted to use them.
        expected: String,
    },
    /// The data are damaged.
    #[error(
        "`{path}` is damaged at byte {at}, in saved data: a vote may be lost, so this member must not vote; \
         restore the disk, or stop all members and clients and start the cluster with empty data",
        path = .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position.
        at: u64,
    },
    /// The file is not a log.
    #[error("`{path}` is not the log of a member: {reason}", path = .path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// An open log.
#[derive(Debug)]
pub struct Storage {
    directory: PathBuf,
    head: Head,
    file: File,
    /// The number of the next batch.
    next: u64,
    length: u64,
    /// The file is rewritten when it is longer than this.
    enough: u64,
    rooms: BTreeMap<Arc<str>, Durable>,
    facts: Facts,
    buffer: Vec<u8>,
    /// A seal was written but not flushed.
    loose: bool,
    /// The directory. It is open from the start, so that renaming a new log can be flushed.
    folder: File,
    /// Locked as long as the directory is used.
    _lock: Flock<File>,
}

impl Storage {
    /// Opens a member's directory. Makes it if it does not exist.
    pub fn open(directory: &Path, head: Head) -> Result<Self, StorageError> {
        // Names of sessions are private.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(io_error("make the directory", directory))?;
        let lock = lock(directory)?;
        let folder = File::open(directory).map_err(io_error("open", directory))?;
        let path = directory.join("log");
        if !path.try_exists().map_err(io_error("look for", &path))? {
            // The member has not begun. The others know whether it had other data.
            let memory = Memory { generation: 0, id: fastrand::u64(1..) };
            let facts = Facts { memory, ..Facts::default() };
            write_anew(directory, &head, &facts, &BTreeMap::new())?;
            put_in_place(directory, &folder)?;
        }
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        let Contents { rooms, facts, next, length, sealed } = read(&bytes, &path, &head)?;
        let file = File::options().append(true).open(&path).map_err(io_error("open", &path))?;
        if length < bytes.len() as u64 {
            let lost = bytes.len() as u64 - length;
            tracing::warn!(
                "the last {lost} bytes of `{}` are incomplete, as after a crash; they are removed",
                path.display()
            );
            file.set_len(length).map_err(io_error("cut", &path))?;
            file.sync_all().map_err(io_error("flush", &path))?;
        }
        let mut storage = Storage {
            directory: directory.to_owned(),
            head,
            file,
            next,
            length,
            // The length of the new file is not known. The present length must not replace it.
            enough: SMALL,
            rooms,
            facts,
            buffer: Vec::new(),
            loose: false,
            folder,
            _lock: lock,
        };
        if storage.facts.memory == Memory::default() {
            // A member that had begun wrote it before memories had names.
            storage.note(Fact::Memory(Memory { generation: 1, id: fastrand::u64(..) }))?;
        }
        if !sealed {
            // The member relies on what it read from now on.
            storage.append(&[], &path)?;
            storage.loose = true;
        }
        storage.compact_if_long()?;
        Ok(storage)
    }

    /// The last saved data of each room.
    pub fn rooms(&self) -> &BTreeMap<Arc<str>, Durable> {
        &self.rooms
    }

    /// The memory of this member.
    pub fn memory(&self) -> Memory {
        self.facts.memory
    }

    /// The last known memory of a member.
    pub fn memory_of(&self, peer: MemberId) -> Memory {
        self.facts.peers.get(&peer).copied().unwrap_or_default()
    }

    /// A number above all that others may remember of this member in unknown rooms.
    pub fn floor(&self) -> u64 {
        self.facts.floor
    }

    /// Writes a fact to disk.
    pub fn note(&mut self, fact: Fact) -> Result<(), StorageError> {
        self.write(&[LogEntry::Fact(fact)])?;
        self.facts.apply(fact);
        Ok(())
    }

    /// Forgets rooms. All their numbers are at most `highest`.
    pub fn retire(&mut self, rooms: &[Arc<str>], highest: u64) -> Result<(), StorageError> {
        let floor = Fact::Floor(highest);
        let retired = rooms.iter().map(|room| LogEntry::Retired(Cow::Borrowed(&**room)));
        self.write(&[LogEntry::Fact(floor)].into_iter().chain(retired).collect::<Vec<_>>())?;
        self.facts.apply(floor);
        for room in rooms {
            self.rooms.remove(room);
        }
        self.compact_if_long()
    }

    /// Appends, flushes and seals. Returns how long the flush took.
    fn write(&mut self, entries: &[LogEntry<'_>]) -> Result<Duration, StorageError> {
        let path = self.directory.join("log");
        self.append(entries, &path)?;
        let began = Instant::now();
        self.file.sync_data().map_err(io_error("flush", &path))?;
        let took = began.elapsed();
        self.append(&[], &path)?;
        self.loose = true;
        Ok(took)
    }

    /// Writes all records to disk. Returns how long the flush took. After an error nothing more may
    /// be sent.
    pub fn commit(&mut self, records: Vec<(Arc<str>, Record)>) -> Result<Duration, StorageError> {
        let entries = records.iter().map(|(room, it)| record(room, it));
        let took = self.write(&entries.collect::<Vec<_>>())?;
        for (room, record) in records {
            self.rooms.entry(room).or_default().apply(record);
        }
        self.compact_if_long()?;
        Ok(took)
    }

    fn append(&mut self, entries: &[LogEntry<'_>], path: &Path) -> Result<(), StorageError> {
        self.buffer.clear();
        batch(&mut self.buffer, self.next, entries, path)?;
        self.file.write_all(&self.buffer).map_err(io_error("write", path))?;
        self.next += 1;
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// Flushes the last seal. To be called from time to time.
    pub fn rest(&mut self) -> Result<(), StorageError> {
        if std::mem::take(&mut self.loose) {
            self.file.sync_data().map_err(io_error("flush", &self.directory.join("log")))?;
        }
        Ok(())
    }

    fn compact_if_long(&mut self) -> Result<(), StorageError> {
        if self.length <= self.enough {
            return Ok(());
        }
        let new = match write_anew(&self.directory, &self.head, &self.facts, &self.rooms) {
            Ok(new) => new,
            Err(error) => {
                // Nothing is lost: the old log is complete.
                tracing::warn!("the log cannot be rewritten, it goes on growing: {error}");
                self.enough = self.length + SMALL;
                return Ok(());
            }
        };
        put_in_place(&self.directory, &self.folder)?;
        tracing::info!("the log was rewritten: {} bytes instead of {}", new.length, self.length);
        self.file = new.file;
        self.next = new.next;
        self.length = new.length;
        self.loose = false;
        self.enough = SMALL.max(GROWTH * new.length);
        Ok(())
    }

    /// The length of the log, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

fn record<'a>(room: &'a str, record: &'a Record) -> LogEntry<'a> {
    LogEntry::Record(Cow::Borrowed(room), Cow::Borrowed(record))
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
    move |source| StorageError::Io { what, path: path.to_owned(), source }
}

fn lock(directory: &Path) -> Result<Flock<File>, StorageError> {
    let path = directory.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(io_error("open", &path))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => StorageError::InUse { path: directory.to_owned() },
        other => io_error("lock", &path)(other.into()),
    })
}

/// Appends a batch to `bytes`.
fn batch(
    bytes: &mut Vec<u8>,
    number: u64,
    entries: &[LogEntry<'_>],
    path: &Path,
) -> Result<(), StorageError> {
    let payload = postcard::to_allocvec(entries).map_err(io::Error::other);
    let payload = payload.map_err(io_error("encode what is to be written to", path))?;
    let length = u32::try_from(payload.len()).map_err(io::Error::other);
    let length = length.map_err(io_error("write so much at once to", path))?;
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(number, &payload).to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(())
}

fn checksum(number: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

struct New {
    file: File,
    next: u64,
    length: u64,
}

/// Writes a new file with that content beside the old one.
fn write_anew(
    directory: &Path,
    head: &Head,
    facts: &Facts,
    rooms: &BTreeMap<Arc<str>, Durable>,
) -> Result<New, StorageError> {
    let new = directory.join("log.new");
    let mut bytes = Vec::new();
    let head = [LogEntry::Head(Cow::Borrowed(head))];
    let first: Vec<_> =
        head.into_iter().chain(facts.all().into_iter().map(LogEntry::Fact)).collect();
    batch(&mut bytes, 0, &first, &new)?;
    let mut next = 1;
    let beside: Vec<_> = rooms.iter().map(|(room, durable)| (room, durable.beside())).collect();
    let beside =
        beside.iter().flat_map(|(room, records)| records.iter().map(|it| record(room, it)));
    let entries = rooms
        .iter()
        .map(|(room, durable)| LogEntry::Room(Cow::Borrowed(&**room), Cow::Borrowed(durable)));
    let entries: Vec<_> = entries.chain(beside).collect();
    for chunk in entries.chunks(ROOMS_PER_BATCH) {
        batch(&mut bytes, next, chunk, &new)?;
        next += 1;
    }
    batch(&mut bytes, next, &[], &new)?;
    next += 1;
    let file = File::options().create(true).truncate(true).write(true).open(&new);
    let mut file = file.map_err(io_error("make", &new))?;
    file.write_all(&bytes).map_err(io_error("write", &new))?;
    file.sync_all().map_err(io_error("flush", &new))?;
    Ok(New { file, next, length: bytes.len() as u64 })
}

/// Replaces the old file by the new one. If it fails, either of them may be found later.
fn put_in_place(directory: &Path, folder: &File) -> Result<(), StorageError> {
    let new = directory.join("log.new");
    fs::rename(&new, directory.join("log")).map_err(io_error("give its name to", &new))?;
    folder.sync_all().map_err(io_error("flush", directory))
}

struct Contents {
    rooms: BTreeMap<Arc<str>, Durable>,
    facts: Facts,
    next: u64,
    /// How many bytes are good.
    length: u64,
    /// The file ends with a seal.
    sealed: bool,
}

fn read(bytes: &[u8], path: &Path, expected: &Head) -> Result<Contents, StorageError> {
    let not_a_log =
        |reason: &str| StorageError::NotALog { path: path.to_owned(), reason: reason.to_owned() };
    let Some((head, mut at)) = take(bytes, 0, Some(0)) else {
        return Err(not_a_log("it does not begin with a head"));
    };
    match head.as_slice() {
        [LogEntry::Head(head), ..] if **head == *expected => {}
        [LogEntry::Head(head), ..] => {
            return Err(StorageError::Foreign {
                path: path.to_owned(),
                found: head.to_string(),
                expected: expected.to_string(),
            });
        }
        _ => return Err(not_a_log("it does not begin with a head")),
    }
    let mut rooms: BTreeMap<Arc<str>, Durable> = BTreeMap::new();
    let mut facts = Facts::default();
    for entry in head {
        if let LogEntry::Fact(fact) = entry {
            facts.apply(fact);
        }
    }
    let (mut next, mut sealed) = (1, false);
    while at < bytes.len() {
        let Some((entries, end)) = take(bytes, at, Some(next)) else {
            if (at..bytes.len()).any(|later| take(bytes, later, None).is_some()) {
                return Err(StorageError::Damaged { path: path.to_owned(), at: at as u64 });
            }
            break;
        };
        sealed = entries.is_empty();
        for entry in entries {
            match entry {
                LogEntry::Head(_) => return Err(not_a_log("it has a second head")),
                LogEntry::Room(room, durable) => {
                    rooms.insert(room.into(), durable.into_owned());
                }
                LogEntry::Record(room, record) => {
                    rooms.entry(room.into()).or_default().apply(record.into_owned());
                }
                LogEntry::Fact(fact) => facts.apply(fact),
                LogEntry::Retired(room) => _ = rooms.remove(&*room),
            }
        }
        (at, next) = (end, next + 1);
    }
    Ok(Contents { rooms, facts, next, length: at as u64, sealed })
}

/// The batch at `at`, and its end; `None` if there is no good batch, or none with that number.
fn take(bytes: &[u8], at: usize, number: Option<u64>) -> Option<(Vec<LogEntry<'static>>, usize)> {
    let (head, rest) = bytes.get(at..)?.split_first_chunk::<HEAD>()?;
    let (mark, head) = head.split_first_chunk::<4>()?;
    let (length, head) = head.split_first_chunk::<4>()?;
    let (sum, head) = head.split_first_chunk::<4>()?;
    let found = u64::from_le_bytes(head.try_into().ok()?);
    if mark != MARK || number.is_some_and(|number| number != found) {
        return None;
    }
    let length = u32::from_le_bytes(*length) as usize;
    let payload = rest.get(..length)?;
    if checksum(found, payload) != u32::from_le_bytes(*sum) {
        return None;
    }
    let entries = postcard::from_bytes(payload).ok()?;
    Some((entries, at + HEAD + length))
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Head { format, cluster, me, members, coterie } = self;
        write!(f, "{me} of {members} ({coterie}) in the cluster `{cluster}`, format {format}")
    }
}
