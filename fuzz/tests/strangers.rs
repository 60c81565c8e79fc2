//! What strangers send: frames of the network, a member's log, a room's file, and words on the command
//! line. Whatever it is, it is refused or understood; nothing panics, hangs or takes much memory.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use grouplock_quorum::node::storage::{FORMAT, Head, Storage};
use grouplock_quorum::wire::{CoterieKind, Frame, Reader, encode};
use grouplock_quorum::{MemberId, ProcessId, ProcessMessage, Record, Time, Vote};
use grouplock_room::{Place, Policy, Room, RoomName, parse_duration};

/// A directory that is gone after the test.
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

/// Calls `target` with one thing after the other that is made up, `times` times, or for as many
/// milliseconds as `GROUPLOCK_FUZZ_MS` says. A panic is reported with the seed that leads to it;
/// `GROUPLOCK_FUZZ_SEED` repeats it.
fn fuzz(times: u64, target: impl Fn(&mut Rng)) {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let end = variable("GROUPLOCK_FUZZ_MS").map(|ms| Instant::now() + Duration::from_millis(ms));
    let first = variable("GROUPLOCK_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
    for seed in (0..).map(|number| first.wrapping_add(number)) {
        let done = seed.wrapping_sub(first);
        if end.map_or(done == times, |end| Instant::now() >= end) {
            break;
        }
        let run = AssertUnwindSafe(|| target(&mut Rng::with_seed(seed)));
        if let Err(panic) = catch_unwind(run) {
            eprintln!("GROUPLOCK_FUZZ_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// Up to `most` bytes, few of them more often than many.
fn made_up(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = rng.usize(..=most) >> rng.u32(0..6);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Bytes that were right, with some changed, removed or repeated. With bytes made up from nothing,
/// hardly anything beyond the first check would be reached.
fn changed(right: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for _ in 0..rng.usize(0..8) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(0..6) {
            0 => bytes[at] = rng.u8(..),
            1 => bytes[at] ^= 1 << rng.u8(0..8),
            2 => bytes[at] = *rng.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap_or(&0),
            3 => drop(bytes.drain(at..(at + rng.usize(0..16)).min(bytes.len()))),
            4 => {
                let piece = bytes[at..(at + 16).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// All frames in the bytes, up to the first that is none.
fn read(bytes: &[u8]) -> Vec<Frame> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (mut reader, mut frames) = (Reader::new(bytes), Vec::new());
        while let Ok(Some(frame)) = reader.next().await {
            frames.push(frame);
        }
        frames
    })
}

/// What was understood is written and read as the same again.
fn same_again(frames: &[Frame]) {
    let mut again = Vec::new();
    for frame in frames {
        encode(frame, &mut again).expect("what was read can be written");
    }
    assert_eq!(read(&again), frames);
}

#[test]
fn frames_of_any_bytes() {
    fuzz(20_000, |rng| {
        let bytes = &made_up(rng, 200)[..];
        // The length is right: what follows is looked at.
        let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
        framed.extend_from_slice(bytes);
        same_again(&read(&framed));
        same_again(&read(bytes));
    });
}

#[test]
fn frames_that_were_right_before() {
    let (attempt, session, stay) = (1, "session".to_owned(), None);
    let message = ProcessMessage::Ask { attempt, session, stay, priority: 0, sent: Time::ZERO };
    let (room, process) = ("room".to_owned(), ProcessId(7));
    let frames = [
        Frame::Ping,
        Frame::Process { room, process, message, about: None },
        Frame::Look { question: 1, room: Some("room".to_owned()), brief: false },
        Frame::Pong,
    ];
    let mut right = Vec::new();
    for frame in &frames {
        encode(frame, &mut right).expect("they are short");
    }
    assert_eq!(read(&right), frames);
    fuzz(20_000, |rng| same_again(&read(&changed(&right, rng))));
}

#[test]
fn a_log_that_was_right_before() {
    let scratch = Scratch::new();
    let head = || {
        let (cluster, coterie) = ("fuzz".to_owned(), CoterieKind::Majority);
        Head { format: FORMAT, cluster, me: MemberId(1), members: 3, coterie }
    };
    let open = || Storage::open(&scratch.0, head());
    let mut storage = open().expect("a new log");
    let mut states = vec![storage.rooms().clone()];
    for grant in 1..4 {
        let vote = Record::Vote(Vote { grant, ..Vote::default() });
        storage.commit(vec![(Arc::from("room"), vote)]).expect("it can be written");
        states.push(storage.rooms().clone());
    }
    drop(storage);
    let log = scratch.0.join("log");
    let right = fs::read(&log).expect("it is there");
    fuzz(200, |rng| {
        let bytes = changed(&right, rng);
        fs::write(&log, &bytes).expect("it can be written");
        match open() {
            // The end may be missing, as after a crash. Nothing else was ever voted.
            Ok(storage) => assert!(states.contains(storage.rooms())),
            // What cannot be understood is left for whoever has to repair it.
            Err(_) => assert_eq!(fs::read(&log).expect("it is there"), bytes),
        }
    });
}

#[test]
fn a_rooms_file_that_was_right_before() {
    let scratch = Scratch::new();
    let file = scratch.0.join("r.room");
    Room::open(scratch.0.as_path(), "r").and_then(|room| room.enter("a")?.leave()).expect("a room");
    let right = fs::read(&file).expect("it is there");
    fuzz(200, |rng| {
        // A new file: nobody has the old one open any more.
        _ = fs::remove_file(&file);
        fs::write(&file, changed(&right, rng)).expect("it can be written");
        if let Ok(room) = Room::open(scratch.0.as_path(), "r") {
            // What they say does not matter, only that they come back.
            _ = room.snapshot();
            _ = room.request("b").timeout(Duration::from_millis(20)).enter().map(drop);
        }
    });
}

#[test]
fn places_durations_policies_and_names() {
    // What means something in one of them, and some that means nothing.
    let alphabet: Vec<char> = "etcdgbpfilh:/?&=,.@%[]0123456789smdw-+ éx\0".chars().collect();
    fuzz(20_000, |rng| {
        let length = rng.usize(0..24);
        let text: String = (0..length).filter_map(|_| rng.choice(&alphabet)).collect();
        words(&text);
        words(&format!("etcd://{text}"));
        words(&format!("gbp://h:1{text}"));
        words(&format!("3{text}"));
        words(&format!("batch:{text}"));
    });
}

/// What is understood as a place reads as it is written.
fn words(text: &str) {
    if let Ok(place) = text.parse::<Place>() {
        assert_eq!(place.to_string().parse::<Place>().ok(), Some(place));
    }
    _ = parse_duration(text);
    if let Ok(policy) = text.parse::<Policy>() {
        assert_eq!(policy.to_string().parse::<Policy>().ok(), Some(policy));
    }
    if let Ok(name) = RoomName::new(text) {
        assert_eq!(RoomName::decode(&name.encoded()).as_ref(), Some(&name));
    }
}
