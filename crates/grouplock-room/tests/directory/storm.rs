//! Many processes enter and leave, and die at random moments.
//!
//! A [ledger](Ledger), which is independent of the room, shows whether two sessions were inside
//! together. A process that waits too long reports it. At the end the room must work as before.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use grouplock_room::{Policy, Room, RoomOptions};
use grouplock_testing::Random;
use grouplock_testing::overlaps::{self, Ledger};

use crate::process::{self, Actor, LONG, Scratch, until};

const SESSIONS: [&str; 5] = ["backup", "migration", "model A", "model B", "größer"];

/// No wait may be longer: phases take milliseconds.
const FOREVER: Duration = Duration::from_secs(30);

/// A wait that gets a line in the output. It is no failure.
const LATE: Duration = Duration::from_secs(2);

fn pause(random: &mut Random, most: u64) {
    let time = Duration::from_micros(random.below(most + 1));
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

/// The storm ends when this file exists.
const OVER: &str = "over";

fn ledger(directory: &Path) -> Ledger {
    Ledger::open(directory.join("ledger"))
}

/// This file has a line for each late wait.
const LATE_WAITS: &str = "late waits";

fn note_late_wait(directory: &Path, place: &str, waited: Duration) {
    let notes = OpenOptions::new().create(true).append(true).open(directory.join(LATE_WAITS));
    let now = Duration::from_nanos(overlaps::now() as u64);
    let line = format!("process {place} waited {waited:.1?} until {now:.1?}\n");
    notes.and_then(|mut notes| notes.write_all(line.as_bytes())).expect("it can be written");
}

/// Measures how long this machine delays a thread that sleeps for a moment.
struct Pauses {
    longest: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Pauses {
    fn watch() -> Self {
        let pauses = Pauses { longest: Arc::default(), over: Arc::default() };
        let (longest, over) = (Arc::clone(&pauses.longest), Arc::clone(&pauses.over));
        std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                let before = Instant::now();
                std::thread::sleep(Duration::from_millis(20));
                longest.fetch_max(before.elapsed().as_millis() as u64, Ordering::SeqCst);
            }
        });
        pauses
    }

    fn longest(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::SeqCst))
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Not a test: one process in the storm.
#[test]
fn actor() {
    let Some(role) = process::role() else { return };
    let [directory, place, seed] = &role[..] else { panic!("no part in a storm: {role:?}") };
    let mut random = Random::new(seed.parse().expect("a seed"));
    if let Err(trouble) = weather(Path::new(directory), place, &mut random) {
        process::say(&format!("trouble: {trouble}"));
        std::process::exit(3);
    }
}

fn weather(directory: &Path, place: &str, random: &mut Random) -> Result<(), String> {
    let mut page = ledger(directory).page(place);
    let mut room = Room::open(directory, "storm").map_err(|e| e.to_string())?;
    while !directory.join(OVER).exists() {
        if random.below(50) == 0 {
            room = Room::open(directory, "storm").map_err(|e| e.to_string())?;
        }
        let session = SESSIONS[random.below(SESSIONS.len() as u64) as usize];
        let request = room.request(session).priority(random.below(3) as i32);
        let (request, patient) = match random.below(8) {
            0 => (request.no_wait(), false),
            1 => (request.timeout(Duration::from_micros(random.below(3000))), false),
            _ => (request.timeout(FOREVER), true),
        };
        let asked = Instant::now();
        let entered = request.enter();
        if asked.elapsed() > LATE {
            note_late_wait(directory, place, asked.elapsed());
        }
        match entered {
            Ok(guard) => {
                page.enter(overlaps::now(), session, guard.epoch());
                pause(random, 800);
                page.leave(overlaps::now());
                guard.leave().map_err(|error| error.to_string())?;
            }
            Err(error) if error.is_conflict() && !patient => {}
            Err(error) => return Err(format!("{place}: {error}")),
        }
        pause(random, 400);
    }
    Ok(())
}

struct Storm {
    processes: usize,
    time: Duration,
    policy: Policy,
    /// The mean time between two kills.
    pace: Duration,
}

impl Storm {
    fn rage(&self) {
        let seed = std::env::var("GROUPLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x5707);
        println!("seed {seed} (GROUPLOCK_SEED={seed} to repeat the choices)");
        let mut random = Random::new(seed);
        let scratch = Scratch::new();
        let directory = scratch.text();
        let ledger = ledger(scratch.path());
        let options = RoomOptions::new().policy(self.policy);
        let room = Room::open_with(directory, "storm", &options).expect("it can be opened");
        let start = |place: &String, seed: u64| {
            Actor::start("storm::actor", &[directory, place, &seed.to_string()])
        };
        let mut actors: BTreeMap<String, Actor> = (0..self.processes)
            .map(|place| place.to_string())
            .map(|place| (place.clone(), start(&place, random.below(u64::MAX))))
            .collect();
        let pauses = Pauses::watch();
        // This shows whether the room or the machine caused the delay.
        let circumstances = || {
            let late = std::fs::read_to_string(scratch.path().join(LATE_WAITS));
            let late = late.unwrap_or_default();
            let pressure = ["cpu", "io", "memory"].map(|of| {
                let read = std::fs::read_to_string(format!("/proc/pressure/{of}"));
                format!("{of}: {}", read.unwrap_or_default().trim().replace('\n', "; "))
            });
            let pressure = pressure.join("\n");
            format!("the machine's longest pause was {:.1?}\n{pressure}\n{late}", pauses.longest())
        };
        let mut kills = 0;
        let end = Instant::now() + self.time;
        while Instant::now() < end {
            pause(&mut random, 2 * self.pace.as_micros() as u64);
            let place = random.below(self.processes as u64).to_string();
            let actor = actors.get_mut(&place).expect("each place is taken");
            ledger.kill(&place, || actor.kill());
            kills += 1;
            if let Some(trouble) = actor.hear() {
                panic!("{trouble}: {:?}\n{}", room.snapshot(), circumstances());
            }
            *actor = start(&place, random.below(u64::MAX));
        }
        // A visitor whose processes were all killed early needs a little longer.
        until("every place has entered", || ledger.entered_since(0).len() == self.processes);
        std::fs::write(scratch.path().join(OVER), "").expect("it can be written");
        for actor in actors.values_mut() {
            if let Some(trouble) = actor.hear() {
                panic!("{trouble}: {:?}\n{}", room.snapshot(), circumstances());
            }
            assert!(actor.end().success(), "it did not end well: {:?}", room.snapshot());
        }
        let stays = ledger.check(LONG).unwrap_or_else(|wrong| panic!("{wrong}"));
        let seen = room.snapshot().expect("it can be looked at");
        println!(
            "{} processes, {:?}, {}: {stays} stays, {kills} kills, {} deaths inside noticed",
            self.processes, self.time, self.policy, seen.deaths,
        );
        println!("{}", circumstances());
        assert!(kills > 0 && seen.deaths > 0, "the storm hit nobody");
        for session in SESSIONS {
            let entered = room.request(session).timeout(LONG).enter();
            entered.expect("the room works").leave().expect("it can be left");
        }
        let seen = room.snapshot().expect("it can be looked at");
        assert_eq!((seen.holders(), seen.waiters()), (0, 0), "{seen:?}");
    }
}

#[test]
fn a_short_storm() {
    let (processes, time) = (40, Duration::from_secs(8));
    Storm { processes, time, policy: Policy::Fifo, pace: Duration::from_millis(15) }.rage();
}

#[test]
fn a_short_storm_of_batches() {
    let (processes, time) = (16, Duration::from_secs(4));
    let policy = Policy::Batch { passes: 4 };
    Storm { processes, time, policy, pace: Duration::from_millis(15) }.rage();
}

#[test]
fn a_short_storm_with_priorities() {
    let (processes, time) = (16, Duration::from_secs(4));
    let policy = Policy::Priority { aging: Duration::from_millis(5) };
    Storm { processes, time, policy, pace: Duration::from_millis(15) }.rage();
}

/// `cargo test --release -p grouplock-room --test directory storm -- --ignored --nocapture`
#[test]
#[ignore = "takes a minute; cargo xtask soak runs it"]
fn a_long_storm() {
    let (processes, time) = (200, Duration::from_secs(60));
    Storm { processes, time, policy: Policy::Fifo, pace: Duration::from_millis(15) }.rage();
}
