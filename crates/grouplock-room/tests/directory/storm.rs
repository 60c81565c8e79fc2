//! Many processes come and go and are killed at random moments.
//!
//! A [ledger](crate::ledger) in which the room has no part tells whether two sessions were ever inside at once; whoever waits
//! too long says so; in the end the room must work as if nothing had happened.

use std::time::{Duration, Instant};

use grouplock_room::{Policy, Room, RoomOptions};

use crate::ledger::Ledger;
use crate::process::{self, Actor, LONG, Scratch, until};

const SESSIONS: [&str; 5] = ["backup", "migration", "model A", "model B", "größer"];

/// Nobody may wait longer: phases take milliseconds.
const FOREVER: Duration = Duration::from_secs(30);

/// A generator of numbers that are random enough, from a seed that is printed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn pause(&mut self, most: u64) {
        let time = Duration::from_micros(self.below(most + 1));
        if !time.is_zero() {
            std::thread::sleep(time);
        }
    }
}

/// Not a test: one process in the storm.
#[test]
fn actor() {
    let Some(role) = process::role() else { return };
    let directory = std::path::Path::new(&role[0]);
    let number: usize = role[1].parse().expect("a number");
    let processes: usize = role[2].parse().expect("a number");
    let mut random = Random(role[3].parse().expect("a seed"));
    if let Err(trouble) = weather(directory, number, processes, &mut random) {
        process::say(&format!("trouble: {trouble}"));
        std::process::exit(3);
    }
}

fn weather(
    directory: &std::path::Path,
    number: usize,
    processes: usize,
    random: &mut Random,
) -> Result<(), String> {
    let ledger = Ledger::open(&directory.join("ledger"));
    let entry = ledger.entry(number);
    let options = RoomOptions::new().history(random.below(2) == 0);
    let mut room = Room::open_with(directory, "storm", &options).map_err(|e| e.to_string())?;
    while ledger.over().load(std::sync::atomic::Ordering::SeqCst) == 0 {
        if random.below(50) == 0 {
            room = Room::open(directory, "storm").map_err(|e| e.to_string())?;
        }
        let session = random.below(SESSIONS.len() as u64) as usize;
        let request = room.request(SESSIONS[session]).priority(random.below(3) as i32);
        let (request, patient) = match random.below(8) {
            0 => (request.no_wait(), false),
            1 => (request.timeout(Duration::from_micros(random.below(3000))), false),
            _ => (request.timeout(FOREVER), true),
        };
        entry.set_waiting(true);
        let entered = request.enter();
        entry.set_waiting(false);
        match entered {
            Ok(guard) => {
                ledger.enter(number, processes, session, guard.epoch())?;
                random.pause(800);
                ledger.leave(number);
                guard.leave().map_err(|error| error.to_string())?;
            }
            Err(error) if error.is_conflict() && !patient => {}
            Err(error) => return Err(format!("{number}: {error}")),
        }
        random.pause(400);
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
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let directory = scratch.text();
        let ledger = Ledger::open(&scratch.path().join("ledger"));
        let options = RoomOptions::new().policy(self.policy);
        let room = Room::open_with(directory, "storm", &options).expect("it can be opened");
        let start = |number: usize, seed: u64| {
            let (number, processes) = (number.to_string(), self.processes.to_string());
            Actor::start("storm::actor", &[directory, &number, &processes, &seed.to_string()])
        };
        let mut actors: Vec<_> =
            (0..self.processes).map(|number| start(number, random.below(u64::MAX))).collect();
        let (mut kills, mut inside, mut waiting) = (0, 0, 0);
        let end = Instant::now() + self.time;
        while Instant::now() < end {
            random.pause(2 * self.pace.as_micros() as u64);
            let number = random.below(self.processes as u64) as usize;
            let entry = ledger.entry(number);
            entry.doom();
            (inside, waiting) =
                (inside + u64::from(entry.is_inside()), waiting + u64::from(entry.is_waiting()));
            actors[number].kill();
            kills += 1;
            if let Some(trouble) = actors[number].hear() {
                panic!("{trouble}");
            }
            entry.clear();
            actors[number] = start(number, random.below(u64::MAX));
        }
        let entries = || -> Vec<u64> {
            (0..self.processes).map(|number| ledger.entry(number).entries()).collect()
        };
        // A place whose processes were all killed early needs a little longer.
        until("every place has entered", || entries().iter().all(|entries| *entries > 0));
        ledger.over().store(1, std::sync::atomic::Ordering::SeqCst);
        for actor in &mut actors {
            if let Some(trouble) = actor.hear() {
                panic!("{trouble}");
            }
            assert!(actor.end().success(), "it did not end well: {:?}", room.snapshot());
        }
        let entries = entries();
        let total: u64 = entries.iter().sum();
        let least = entries.iter().min().expect("there are some");
        println!(
            "{} processes, {:?}, {}: {total} entries (least of a place {least}), {kills} kills, \
             {inside} of them inside and {waiting} while waiting, {} deaths inside noticed",
            self.processes,
            self.time,
            self.policy,
            room.snapshot().expect("it can be looked at").deaths,
        );
        assert!(kills > 0 && inside + waiting > 0, "the storm hit nobody");
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
