//! A process writes nonsense into the mapped file. The others may report that the room is corrupt.
//! They must not crash, hang or loop without end.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use grouplock_room::{Room, RoomError, RoomOptions};
use grouplock_testing::Random;
use proptest::prelude::*;

use crate::process::{self, Actor, Scratch};

/// Where the slots begin.
const SLOTS: u64 = 23_808;

const SESSIONS: [&str; 3] = ["a", "b", "a longer name of a session"];

/// The errors that a participant may report.
fn acceptable(error: &RoomError) -> bool {
    error.is_conflict()
        || matches!(
            error,
            RoomError::Corrupt { .. }
                | RoomError::Removed { .. }
                | RoomError::Stalled { .. }
                | RoomError::Lost(_)
                | RoomError::Full { .. }
                | RoomError::Foreign { .. }
                | RoomError::Version { .. }
        )
}

/// Not a test: a process that uses the room until an error says that the room is useless.
#[test]
fn actor() {
    let Some(role) = process::role() else { return };
    let end = Instant::now() + Duration::from_millis(role[1].parse().expect("a number"));
    let mut turn: usize = role[2].parse().expect("a number");
    process::say("ready");
    let mut work = || -> Result<(), RoomError> {
        let room = Room::open(role[0].as_str(), "room")?;
        while Instant::now() < end {
            turn = turn.wrapping_mul(31).wrapping_add(7);
            let session = SESSIONS[turn / 16 % SESSIONS.len()];
            match room.request(session).timeout(Duration::from_millis(40)).enter() {
                Ok(guard) => {
                    if turn.is_multiple_of(4) {
                        room.snapshot()?;
                    }
                    guard.leave()?;
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    match work() {
        Ok(()) => process::say("nothing noticed"),
        Err(error) if acceptable(&error) => process::say(&format!("told: {error}")),
        Err(error) => process::say(&format!("trouble: {error:?}")),
    }
}

/// An important word: in the header, or in a slot in use.
fn target(random: &mut Random, length: u64) -> u64 {
    match random.next() % 8 {
        0..3 => 48 + random.next() % 250,
        3..6 => SLOTS + random.next() % 4 * 1024 + random.next() % 96,
        6 => random.next() % 5376,
        _ => random.next() % length,
    }
}

fn scribble_while_others_work(seed: u64, rounds: u32) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let (mut told, mut round) = (0, 0);
    // Whether a process notices a write in time depends on the load. Without a report, go on.
    while round < rounds || (told == 0 && round < 20 * rounds) {
        round += 1;
        let scratch = Scratch::new();
        let directory = scratch.text();
        drop(Room::open(directory, "room").expect("it can be made"));
        let actors: Vec<_> = (0..3)
            .map(|number| {
                let turn = (number * 7919).to_string();
                Actor::start("scribble::actor", &[directory, "600", &turn])
            })
            .collect();
        for actor in &actors {
            assert_eq!(actor.hear().as_deref(), Some("ready"));
        }
        let path = scratch.path().join("room.room");
        let file = OpenOptions::new().write(true).open(&path).expect("it is ours");
        let length = file.metadata().expect("it is there").len();
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..=random.next() % 6 {
            let (at, value) = (target(&mut random, length - 8), random.next());
            let bytes = value.to_ne_bytes();
            let size = [1, 4, 8][(random.next() % 3) as usize];
            // The file is the same memory.
            file.write_all_at(&bytes[..size], at).expect("it can be written");
        }
        for mut actor in actors {
            let said = actor.hear();
            let said = said.unwrap_or_else(|| panic!("seed {seed}, round {round}: silence"));
            assert!(!said.starts_with("trouble"), "seed {seed}, round {round}: {said}");
            told += u32::from(said.starts_with("told"));
            assert!(actor.end().success(), "seed {seed}, round {round}: a process crashed");
        }
    }
    println!("{round} rounds: {told} of {} processes were told of corruption", 3 * round);
    assert!(told > 0, "no nonsense was noticed at all");
}

#[test]
fn scribbling_while_others_work() {
    scribble_while_others_work(0x5eed, 12);
}

/// `cargo test --release -p grouplock-room --test directory scribble -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; cargo xtask soak runs it"]
fn scribbling_for_long() {
    for seed in 1..10 {
        scribble_while_others_work(seed * 0x9e37_79b9, 40);
    }
}

/// The file of a backup that was made during work, or of a machine that crashed: each page is from
/// another moment. No participant in it lives, so it is recovered and used.
#[test]
fn an_image_of_different_moments_is_put_in_order() {
    const PAGE: usize = 4096;
    let scratch = Scratch::new();
    let directory = scratch.text();
    drop(Room::open(directory, "room").expect("it can be made"));
    let actors: Vec<_> = (0..4)
        .map(|number: usize| {
            let turn = (number * 7919).to_string();
            Actor::start("scribble::actor", &[directory, "700", &turn])
        })
        .collect();
    for actor in &actors {
        assert_eq!(actor.hear().as_deref(), Some("ready"));
    }
    let mut images = Vec::new();
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(5));
        images.push(std::fs::read(scratch.path().join("room.room")).expect("it is there"));
    }
    for mut actor in actors {
        assert_eq!(actor.hear().as_deref(), Some("nothing noticed"));
        assert!(actor.end().success());
    }
    let occupied = |image: &[u8]| image != &images[0][..];
    assert!(images.iter().any(|image| occupied(image)), "nothing has happened");
    let mut random = Random::new(0x5eed);
    for round in 0..300 {
        let mut mixed = images[0].clone();
        for (number, page) in mixed.chunks_mut(PAGE).enumerate() {
            let from = &images[random.next() as usize % images.len()][number * PAGE..];
            page.copy_from_slice(&from[..page.len()]);
        }
        let place = Scratch::new();
        std::fs::write(place.path().join("room.room"), &mixed).expect("it can be written");
        let room = Room::open(place.path(), "room")
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        let mut epoch = 0;
        for session in SESSIONS {
            let guard = room.request(session).timeout(process::LONG).enter();
            let guard = guard.unwrap_or_else(|error| panic!("round {round}, {session}: {error}"));
            let now = guard.epoch();
            assert!(now > epoch, "round {round}, {session}: epoch {now} after {epoch}");
            epoch = guard.epoch();
            guard.leave().unwrap_or_else(|error| panic!("round {round}, {session}: {error}"));
        }
        let seen = room.snapshot().expect("it can be looked at");
        assert_eq!((seen.session(), seen.waiters()), (None, 0), "round {round}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A file that is nonsense from the start, or after a valid header.
    #[test]
    fn opening_and_using_any_image(
        writes in prop::collection::vec((0_usize..6, any::<prop::sample::Index>(), any::<u64>()), 0..40),
    ) {
        let scratch = Scratch::new();
        let small = RoomOptions::new().capacity(std::num::NonZeroU16::new(4).expect("not zero"));
        let other = Room::open_with(scratch.path(), "room", &small).expect("it can be made");
        other.enter("a").expect("it is empty").leave().expect("it can be left");
        let path = scratch.path().join("room.room");
        let file = OpenOptions::new().write(true).open(path).expect("it is ours");
        let length = file.metadata().expect("it is there").len() as usize;
        for (kind, index, value) in writes {
            // The latch stays unchanged: participants wait ten seconds for a live process that
            // seems to hold it.
            let at = match kind {
                0 => 128 + index.index(14) * 8,
                1 => 192 + index.index(120) * 8,
                2 => SLOTS as usize + index.index(4) * 1024 + index.index(12) * 8,
                3 => SLOTS as usize + index.index(512) * 8,
                4 => index.index(6) * 8,
                _ => 192 + index.index(length - 200),
            };
            let value = if value.is_multiple_of(3) { value % 5 } else { value };
            file.write_all_at(&value.to_ne_bytes(), at as u64).expect("it can be written");
        }
        let use_it = |room: &Room| -> Result<(), RoomError> {
            room.snapshot()?;
            for session in SESSIONS {
                let guard = room.request(session).timeout(Duration::from_millis(20)).enter()?;
                _ = (guard.recovered(), guard.standing());
                guard.leave()?;
            }
            Ok(())
        };
        for room in [Ok(other), Room::open(scratch.path(), "room")] {
            if let Err(error) = room.and_then(|room| use_it(&room)) {
                prop_assert!(acceptable(&error), "{error:?}");
            }
        }
    }
}
