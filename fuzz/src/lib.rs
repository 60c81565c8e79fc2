//! Fuzzing of untrusted input: frames of the network, a member's log, a room's file, and words on
//! the command line. The code must refuse or understand any input. It must not panic, hang or take
//! much memory.
//!
//! Each target takes bytes. `tests` makes them at random, for a moment or for
//! `GROUPLOCK_FUZZ_SECONDS` seconds. The program `guided` gets them from libFuzzer, which keeps
//! inputs that reach new code and continues from them. `cargo xtask soak fuzz` runs both.
//! `docs/verification.md` says how to repeat a finding.

pub mod order;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use grouplock_quorum::node::storage::{FORMAT, Head, Storage};
use grouplock_quorum::wire::{CoterieKind, Frame, Reader, encode};
use grouplock_quorum::{Durable, MemberId, ProcessId, ProcessMessage, Record, Time, Vote};
use grouplock_room::{Enter, Place, Policy, Room, RoomError, RoomName, parse_duration};
use grouplock_testing::Scratch;

/// Code that reads untrusted input.
pub trait Target {
    /// Valid bytes: random bytes hardly pass the first check.
    fn right(&self) -> Vec<u8>;

    /// Reads the bytes.
    ///
    /// # Panics
    /// If it does something with the bytes that it must not do.
    fn read(&self, bytes: &[u8]);
}

/// A target.
pub type AnyTarget = Box<dyn Target + Send + Sync>;

/// Makes a target, and its files if it has some.
pub type Make = fn() -> AnyTarget;

/// All targets by name.
pub const TARGETS: [(&str, Make); 6] = [
    ("frames", || Box::new(Frames)),
    ("log", || Box::new(Log::new(false))),
    ("summed-log", || Box::new(Log::new(true))),
    ("room-file", || Box::new(RoomFile::new(false))),
    ("room-in-use", || Box::new(RoomFile::new(true))),
    ("words", || Box::new(Words)),
];

/// Makes the target of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> AnyTarget {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.expect("a target of this name").1()
}

/// Frames from the network.
struct Frames;

/// All frames in the bytes, up to the first invalid one.
fn frames(bytes: &[u8]) -> Vec<Frame> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (mut reader, mut frames) = (Reader::new(bytes), Vec::new());
        while let Ok(Some(frame)) = reader.next().await {
            frames.push(frame);
        }
        frames
    })
}

fn written(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        encode(frame, &mut bytes).expect("what was read can be written");
    }
    bytes
}

impl Target for Frames {
    fn right(&self) -> Vec<u8> {
        let (attempt, session, stay) = (1, "session".to_owned(), None);
        let (priority, sent, delay, pid) = (0, Time::ZERO, std::time::Duration::ZERO, 1);
        let message = ProcessMessage::Ask { attempt, session, stay, priority, sent, delay, pid };
        let (room, process) = ("room".to_owned(), ProcessId(7));
        let right = [
            Frame::Ping,
            Frame::Process { room, process, message, about: None },
            Frame::Look { question: 1, room: Some("room".to_owned()), brief: false },
            Frame::Pong,
        ];
        let bytes = written(&right);
        assert_eq!(frames(&bytes), right);
        bytes
    }

    /// A frame that is understood can be written and read again, and stays the same.
    fn read(&self, bytes: &[u8]) {
        // Also as one frame with the right length, so that its content is checked.
        let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
        framed.extend_from_slice(bytes);
        for bytes in [bytes, &framed] {
            let understood = frames(bytes);
            assert_eq!(frames(&written(&understood)), understood);
        }
    }
}

/// A member's log.
struct Log {
    scratch: Scratch,
    right: Vec<u8>,
    /// The state of the rooms after each batch.
    states: Vec<BTreeMap<Arc<str>, Durable>>,
    /// Whether the checksums are corrected before the log is read, so that the code behind them is
    /// reached.
    summed: bool,
}

impl Log {
    fn new(summed: bool) -> Self {
        let scratch = Scratch::new();
        let mut log = Log { scratch, right: Vec::new(), states: Vec::new(), summed };
        let mut storage = log.open().expect("a new log");
        log.states.push(storage.rooms().clone());
        for grant in 1..4 {
            let vote = Record::Vote(Vote { grant, ..Vote::default() });
            storage.commit(vec![(Arc::from("room"), vote)]).expect("it can be written");
            log.states.push(storage.rooms().clone());
        }
        drop(storage);
        log.right = fs::read(log.path()).expect("it is there");
        log
    }

    fn path(&self) -> PathBuf {
        self.scratch.join("log")
    }

    fn open(&self) -> Result<Storage, impl std::error::Error + use<>> {
        let (cluster, coterie) = ("fuzz".to_owned(), CoterieKind::Majority);
        let head = Head { format: FORMAT, cluster, me: MemberId(1), members: 3, coterie };
        Storage::open(self.scratch.path(), head)
    }
}

/// The bytes of a log with right lengths and checksums, as far as they have batches: a mark, the
/// length of the part after the head, its sum together with the number, the number.
fn summed(bytes: &[u8]) -> Vec<u8> {
    const MARK: &[u8] = b"GBPb";
    let mut bytes = bytes.to_vec();
    let is_mark = |at: &usize| bytes[*at..].starts_with(MARK);
    let mut starts: Vec<usize> = (0..bytes.len()).filter(is_mark).collect();
    starts.push(bytes.len());
    for pair in starts.windows(2) {
        let Some((head, payload)) = bytes[pair[0]..pair[1]].split_first_chunk_mut::<20>() else {
            continue;
        };
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head[12..]);
        sum.update(payload);
        head[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[8..12].copy_from_slice(&sum.finalize().to_le_bytes());
    }
    bytes
}

impl Target for Log {
    fn right(&self) -> Vec<u8> {
        assert_eq!(summed(&self.right), self.right, "sums are made as the log makes them");
        self.right.clone()
    }

    fn read(&self, bytes: &[u8]) {
        let bytes = if self.summed { summed(bytes) } else { bytes.to_vec() };
        fs::write(self.path(), &bytes).expect("it can be written");
        match self.open() {
            // With right sums, any content is possible.
            Ok(_) if self.summed => {}
            // The end may be missing, as after a crash. Nothing else was ever voted.
            Ok(storage) => assert!(self.states.contains(storage.rooms())),
            // A log that cannot be understood stays, so that a person can repair it.
            Err(_) => assert_eq!(fs::read(self.path()).expect("it is there"), bytes),
        }
    }
}

/// The file of a room in a directory. Its checksum is corrected before it is read, so that the code
/// behind it is reached. A test of the room shows that a wrong one is noticed.
struct RoomFile {
    scratch: Scratch,
    /// Whether the bytes are written over the file while it has a holder and a waiter. Otherwise no
    /// process has it open, and all participants in the bytes are dead.
    in_use: bool,
}

impl RoomFile {
    fn new(in_use: bool) -> Self {
        RoomFile { scratch: Scratch::new(), in_use }
    }

    fn path(&self) -> PathBuf {
        self.scratch.join("r.room")
    }

    fn open(&self) -> Result<Room, RoomError> {
        Room::open(self.scratch.path(), "r")
    }

    /// A new file: no process has the old one open any more.
    fn put(&self, bytes: &[u8]) {
        _ = fs::remove_file(self.path());
        fs::write(self.path(), bytes).expect("it can be written");
    }

    /// Writes over the file, but not over the latch: the room would only wait for a latch whose
    /// owner seems to live. It keeps the length: a shorter file ends its users by a signal, which
    /// cannot be avoided.
    fn overwrite(&self, bytes: &[u8]) {
        let file = File::options().write(true).open(self.path()).expect("it is there");
        let (before, rest) = bytes.split_at_checked(LATCH.start).unwrap_or((bytes, &[]));
        let behind = rest.get(LATCH.len()..).unwrap_or_default();
        let written = file.write_all_at(before, 0);
        written.and_then(|()| file.write_all_at(behind, LATCH.end as u64)).expect("as above");
    }

    /// Uses the room. The results do not matter, only that the calls return.
    fn visit(room: &Room, wait: Duration) {
        _ = room.snapshot();
        if let Ok(inside) = room.request("b").timeout(wait).enter() {
            _ = (inside.deaths(), inside.previous(), inside.prepared());
            _ = (inside.acknowledge(), inside.try_alone());
        }
        _ = room.request("c").alone().no_wait().enter().map(drop);
    }
}

/// How long to wait. Mostly this is too short to look for a dead owner in front, so that there is
/// time for more bytes.
fn patience(bytes: &[u8]) -> Duration {
    let some = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    Duration::from_millis(if some < 16 { 30 } else { 0 })
}

/// The offset of the latch.
const LATCH: Range<usize> = 64..72;

/// Begins to enter.
fn waiting(room: &Room, session: &str) -> Enter {
    let mut entry = room.request(session).enter_async();
    _ = Pin::new(&mut entry).poll(&mut Context::from_waker(Waker::noop()));
    entry
}

/// The bytes of a room with the right checksum: of the first forty, behind them.
fn with_sum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some((head, _)) = bytes.split_first_chunk_mut::<48>() {
        let sum = head[..40].iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        head[40..].copy_from_slice(&sum.to_ne_bytes());
    }
    bytes
}

impl Target for RoomFile {
    /// A room with ended phases, one of them with a death, and with two holders and two waiters.
    fn right(&self) -> Vec<u8> {
        _ = fs::remove_file(self.path());
        let room = self.open().expect("a room");
        drop(room.enter("over").expect("nobody is inside"));
        let inside = room.enter("dead").expect("nobody is inside");
        let bytes = fs::read(self.path()).expect("it is there");
        drop(inside);
        // In a copy of the file the owner is dead.
        self.put(&bytes);
        let room = self.open().expect("it was right");
        let inside = [0, 1].map(|_| room.enter("a").expect("whoever is inside is dead"));
        let waiting = ["b", "c"].map(|session| waiting(&room, session));
        let bytes = fs::read(self.path()).expect("it is there");
        let seen = room.snapshot().expect("it was right");
        assert_eq!((seen.holders(), seen.waiters(), seen.deaths), (2, 2, 1));
        drop((waiting, inside));
        assert_eq!(with_sum(&bytes), bytes, "the sum is made as the room makes it");
        bytes
    }

    fn read(&self, bytes: &[u8]) {
        let (bytes, wait) = (with_sum(bytes), patience(bytes));
        if !self.in_use {
            self.put(&bytes);
            if let Ok(room) = self.open() {
                Self::visit(&room, wait);
            }
            return;
        }
        _ = fs::remove_file(self.path());
        let room = self.open().expect("a room");
        let inside = room.enter("a").expect("nobody is inside");
        let waiting = waiting(&room, "b");
        self.overwrite(&bytes);
        // By a handle that has it open, and by one that opens it now.
        Self::visit(&room, wait);
        if let Ok(other) = self.open() {
            Self::visit(&other, wait);
        }
        _ = (inside.standing(), inside.leave());
        drop(waiting);
        Self::visit(&room, wait);
    }
}

/// Places, durations, policies and names from the command line.
struct Words;

impl Target for Words {
    fn right(&self) -> Vec<u8> {
        b"etcd://h:1,i:2/p?a=b&c=d".to_vec()
    }

    /// Text that is understood is written as the same text.
    fn read(&self, bytes: &[u8]) {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(place) = text.parse::<Place>() {
            assert_eq!(place.to_string().parse::<Place>().ok(), Some(place));
        }
        if let Ok(duration) = parse_duration(text) {
            let nanoseconds = format!("{}ns", duration.as_nanos());
            assert_eq!(parse_duration(&nanoseconds).ok(), Some(duration));
        }
        if let Ok(policy) = text.parse::<Policy>() {
            assert_eq!(policy.to_string().parse::<Policy>().ok(), Some(policy));
        }
        if let Ok(name) = RoomName::new(text) {
            assert_eq!(RoomName::decode(&name.encoded()).as_ref(), Some(&name));
        }
    }
}
