//! What strangers send: frames of the network, a member's log, a room's file, and words on the command
//! line. Whatever it is, it is refused or understood; nothing panics, hangs or takes much memory.
//!
//! Each target takes bytes. `tests` makes them up at random, for a moment or as long as
//! `GROUPLOCK_FUZZ_MS` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use grouplock_quorum::node::storage::{FORMAT, Head, Storage};
use grouplock_quorum::wire::{CoterieKind, Frame, Reader, encode};
use grouplock_quorum::{Durable, MemberId, ProcessId, ProcessMessage, Record, Time, Vote};
use grouplock_room::{Place, Policy, Room, RoomName, parse_duration};

/// Something that reads what strangers send.
pub trait Target {
    /// Bytes that are right: those made up from nothing hardly reach beyond the first check.
    fn right(&self) -> Vec<u8>;

    /// Lets it read them.
    ///
    /// # Panics
    /// If it does with them what it must not.
    fn read(&self, bytes: &[u8]);
}

/// All targets by name. Those with files make them now.
pub fn targets() -> Vec<(&'static str, Box<dyn Target + Send + Sync>)> {
    vec![
        ("frames", Box::new(Frames)),
        ("log", Box::new(Log::new(false))),
        ("summed-log", Box::new(Log::new(true))),
        ("room-file", Box::new(RoomFile::new())),
        ("words", Box::new(Words)),
    ]
}

/// A directory that is gone when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only that each number is given once matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("grouplock-fuzz-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a directory for the test can be made");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Frames that come over the network.
struct Frames;

/// All frames in the bytes, up to the first that is none.
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
        let message = ProcessMessage::Ask { attempt, session, stay, priority: 0, sent: Time::ZERO };
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

    /// What is understood is written and read as the same again.
    fn read(&self, bytes: &[u8]) {
        // Also as one frame whose length is right: what follows is looked at.
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
    /// What the rooms were after each batch.
    states: Vec<BTreeMap<Arc<str>, Durable>>,
    /// Whether the checksums are made right before it is read: so what is behind them is reached.
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
        self.scratch.0.join("log")
    }

    fn open(&self) -> Result<Storage, impl std::error::Error + use<>> {
        let (cluster, coterie) = ("fuzz".to_owned(), CoterieKind::Majority);
        let head = Head { format: FORMAT, cluster, me: MemberId(1), members: 3, coterie };
        Storage::open(&self.scratch.0, head)
    }
}

/// The bytes of a log with right lengths and checksums, as far as they have batches: a mark, the length of
/// what follows the head, its sum together with the number, the number.
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
            // Somebody who makes right sums may write what he likes.
            Ok(_) if self.summed => {}
            // The end may be missing, as after a crash. Nothing else was ever voted.
            Ok(storage) => assert!(self.states.contains(storage.rooms())),
            // What cannot be understood is left for whoever has to repair it.
            Err(_) => assert_eq!(fs::read(self.path()).expect("it is there"), bytes),
        }
    }
}

/// The file of a room in a directory.
struct RoomFile(Scratch);

impl RoomFile {
    fn new() -> Self {
        RoomFile(Scratch::new())
    }
}

impl Target for RoomFile {
    /// With one inside and one who waits: in a copy of the file they are dead.
    fn right(&self) -> Vec<u8> {
        _ = fs::remove_file(self.0.0.join("r.room"));
        let room = Room::open(self.0.0.as_path(), "r").expect("a room");
        let inside = room.enter("a").expect("nobody is inside");
        let mut waiting = room.request("b").enter_async();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut waiting).poll(&mut context).is_pending());
        let bytes = fs::read(self.0.0.join("r.room")).expect("it is there");
        drop((waiting, inside));
        bytes
    }

    fn read(&self, bytes: &[u8]) {
        let file = self.0.0.join("r.room");
        // A new file: nobody has the old one open any more.
        _ = fs::remove_file(&file);
        fs::write(&file, bytes).expect("it can be written");
        if let Ok(room) = Room::open(self.0.0.as_path(), "r") {
            // What they say does not matter, only that they come back.
            _ = room.snapshot();
            _ = room.request("b").timeout(Duration::from_millis(20)).enter().map(drop);
        }
    }
}

/// Places, durations, policies and names, as on the command line.
struct Words;

impl Target for Words {
    fn right(&self) -> Vec<u8> {
        b"etcd://h:1,i:2/p?a=b&c=d".to_vec()
    }

    /// What is understood reads as it is written.
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
