//! Messages on the wire, counted by the members of real clusters and compared with the formulas,
//! and the latency.
//!
//! `cargo run --release -p grouplock-quorum --example wire -- --out docs/quorum` writes `wire.md`
//! and `wire.svg`.

mod members;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use grouplock_quorum::{Coterie, MemberId, home};
use grouplock_room::{Places, Room, RoomOptions};
use grouplock_testing::plot;
use members::Members;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZES: [u16; 3] = [3, 7, 13];
const THREADS: usize = 24;
const ENTRIES: usize = 20;
const PASSAGES: usize = 300;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["member", config] => members::serve(config),
        ["--out", directory] => write_page(Path::new(directory)),
        _ => Err("usage: wire --out DIRECTORY".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The counters of the members: messages of the protocol by kind, without repeated ones.
#[derive(Clone, Debug, Default)]
struct Counts {
    kinds: BTreeMap<&'static str, i64>,
    repeated: i64,
    stages: i64,
    entries: i64,
}

/// Each message is counted once: where it is sent if a member sends it, where it arrives if a
/// process sends it.
const KINDS: [(&str, &str); 9] = [
    ("ask", "received"),
    ("enter", "sent"),
    ("leave", "received"),
    ("request", "sent"),
    ("locked", "sent"),
    ("release", "sent"),
    ("inquire", "sent"),
    ("relinquish", "sent"),
    ("contested", "sent"),
];

impl Counts {
    fn of(members: &Members) -> Result<Self> {
        let mut counts = Counts::default();
        let name = "grouplock_messages_total";
        for (kind, direction) in KINDS {
            let (kind_label, direction) =
                (format!("kind=\"{kind}\""), format!("direction=\"{direction}\""));
            let count = |repeated| members.sum(name, &[&kind_label, &direction, repeated]);
            counts.kinds.insert(kind, count("repeated=\"false\"")? as i64);
            counts.repeated += count("repeated=\"true\"")? as i64;
        }
        counts.stages = members.sum("grouplock_stages_total", &[])? as i64;
        counts.entries = members.sum("grouplock_entries_total", &[])? as i64;
        Ok(counts)
    }

    /// The counters when they do not change any more.
    fn at_rest(members: &Members) -> Result<Self> {
        let mut last = Counts::of(members)?;
        loop {
            sleep(Duration::from_millis(60));
            let next = Counts::of(members)?;
            if next.kinds == last.kinds {
                return Ok(next);
            }
            last = next;
        }
    }

    fn since(&self, before: &Counts) -> Counts {
        let kinds = self.kinds.iter().map(|(kind, count)| (*kind, count - before.kinds[kind]));
        Counts {
            kinds: kinds.collect(),
            repeated: self.repeated - before.repeated,
            stages: self.stages - before.stages,
            entries: self.entries - before.entries,
        }
    }

    fn sent(&self) -> i64 {
        self.kinds.values().sum()
    }

    /// The messages of a stage without the three messages of each process.
    fn a_stage(&self) -> f64 {
        (self.sent() - 3 * self.entries) as f64 / self.stages as f64
    }

    fn kind(&self, kind: &str) -> i64 {
        self.kinds.get(kind).copied().unwrap_or(0)
    }
}

fn room(members: &Members) -> Result<Room> {
    let places = Places::new().with(grouplock_quorum::opener());
    Ok(places.open(&members.place(), "room", &RoomOptions::new())?)
}

/// A session whose home is that member.
fn session_at(member: MemberId, members: u16, nth: usize) -> String {
    let names = (0..).map(|n| format!("session {n}"));
    names.filter(|name| home(name, members) == member).nth(nth).unwrap_or_default()
}

/// The cost of `l` processes of one session inside together, at each home: the least and the most.
fn idle(members: &Members, l: u32) -> Result<(i64, i64)> {
    let room = room(members)?;
    let mut costs = Vec::new();
    for home in (0..members.count()).map(MemberId) {
        let session = session_at(home, members.count(), 0);
        let before = Counts::at_rest(members)?;
        let guards =
            (0..l).map(|_| room.enter(&session)).collect::<std::result::Result<Vec<_>, _>>()?;
        if guards.iter().any(|guard| guard.epoch() != guards[0].epoch()) {
            return Err("they were not inside together".into());
        }
        for guard in guards {
            guard.leave()?;
        }
        costs.push(Counts::at_rest(members)?.since(&before).sent());
    }
    let least = costs.iter().min().copied().unwrap_or(0);
    Ok((least, costs.iter().max().copied().unwrap_or(0)))
}

/// Many threads and twice as many sessions as members.
fn contended(members: &Members) -> Result<Counts> {
    let room = room(members)?;
    let count = members.count();
    let homes = (0..count).map(MemberId);
    let sessions: Vec<_> =
        homes.flat_map(|home| (0..2).map(move |nth| session_at(home, count, nth))).collect();
    let before = Counts::at_rest(members)?;
    let failed = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let mut random = fastrand::Rng::with_seed(thread as u64);
            for _ in 0..ENTRIES {
                let session = &sessions[random.usize(..sessions.len())];
                let request = room.request(session).priority(random.i32(0..10));
                request.enter().and_then(grouplock_room::Guard::leave)?;
            }
            Ok::<(), grouplock_room::RoomError>(())
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().find_map(|thread| match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("a thread panicked".to_owned()),
        })
    });
    match failed {
        Some(failed) => Err(failed.into()),
        None => Ok(Counts::at_rest(members)?.since(&before)),
    }
}

/// One process, alone: microseconds to enter and leave, and the part for the members' flushes.
struct Latency {
    median: f64,
    ninety: f64,
    flushes: f64,
    flushing: f64,
}

fn latency(members: &Members) -> Result<Latency> {
    let room = room(members)?;
    let session = session_at(MemberId(0), members.count(), 0);
    for _ in 0..20 {
        room.enter(&session)?.leave()?;
    }
    let flush = |part: &str| members.sum(&format!("grouplock_flush_seconds_{part}"), &[]);
    let (count, sum) = (flush("count")?, flush("sum")?);
    let mut times = Vec::new();
    for _ in 0..PASSAGES {
        let start = Instant::now();
        room.enter(&session)?.leave()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let passages = PASSAGES as f64;
    Ok(Latency {
        median: times[PASSAGES / 2],
        ninety: times[PASSAGES * 9 / 10],
        flushes: (flush("count")? - count) / passages,
        flushing: (flush("sum")? - sum) / passages * 1e6,
    })
}

fn contended_row(size: u16, q: i64, policy: &str, counts: &Counts) -> String {
    let [i, y, n] = ["inquire", "relinquish", "contested"].map(|kind| counts.kind(kind));
    // A stage asks each member of its quorum once. Further requests were sent for a better claim.
    let r = counts.kind("request") - (q - 1) * counts.stages;
    let counted = 3 * counts.entries + 3 * (q - 1) * counts.stages + i + 2 * y + n + r;
    format!(
        "| {size} | {q} | {policy} | {} | {} | {i} | {y} | {n} | {r} | {} | {counted} | {} | {:.2} | {} | {} |",
        counts.entries,
        counts.stages,
        counts.sent(),
        counts.repeated,
        counts.a_stage(),
        3 * (q - 1),
        6 * (q - 1),
    )
}

fn write_page(directory: &Path) -> Result<()> {
    let disk = std::env::temp_dir();
    let memory = PathBuf::from("/dev/shm");
    let mut idle_rows = String::new();
    let mut contended_rows = String::new();
    let mut latency_rows = String::new();
    let names = ["contended, fifo", "contended, priority", "3(q−1), idle", "6(q−1)"];
    let mut lines: Vec<plot::Line> = names.map(|name| (name.to_owned(), Vec::new())).to_vec();
    for size in SIZES {
        let q = i64::try_from(Coterie::plane(size)?.largest_quorum())?;
        let members = Members::start(size, "fifo", &memory)?;
        for l in [1, 2, 5] {
            let (least, most) = idle(&members, l)?;
            let formula = 3 * i64::from(l) + 3 * (q - 1);
            let met = if (least, most) == (formula, formula) { "yes" } else { "**no**" };
            writeln!(idle_rows, "| {size} | {q} | {l} | {least} – {most} | {formula} | {met} |")?;
        }
        let fifo = contended(&members)?;
        drop(members);
        let by_priority = contended(&Members::start(size, "priority:100ms", &memory)?)?;
        for (policy, counts) in [("fifo", &fifo), ("priority", &by_priority)] {
            writeln!(contended_rows, "{}", contended_row(size, q, policy, counts))?;
        }
        let x = f64::from(size);
        lines[0].1.push((x, fifo.a_stage()));
        lines[1].1.push((x, by_priority.a_stage()));
        lines[2].1.push((x, 3.0 * (q - 1) as f64));
        lines[3].1.push((x, 6.0 * (q - 1) as f64));
        for (what, base) in [("disk", &disk), ("memory", &memory)] {
            let members = Members::start(size, "fifo", base)?;
            let Latency { median, ninety, flushes, flushing } = latency(&members)?;
            writeln!(
                latency_rows,
                "| {size} | {what} | {median:.0} | {ninety:.0} | {flushes:.1} | {flushing:.0} |"
            )?;
        }
    }
    let svg = plot::draw("Messages per stage, without 3l", "members", "messages", false, &lines);
    fs::write(directory.join("wire.svg"), svg.to_string())?;
    fs::write(directory.join("wire.md"), page(&idle_rows, &contended_rows, &latency_rows))?;
    Ok(())
}

fn page(idle: &str, contended: &str, latency: &str) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let entries = THREADS * ENTRIES;
    format!(
        "\
# GBP on the wire

*For people who study GBP, or who run a cluster.*

Written by `cargo run --release -p grouplock-quorum --example wire -- --out docs/quorum`, on {model}, {cores} cores; the figures are those of one run. Members are processes that talk over TCP on one machine, policy `fifo`; they count their messages themselves (`grouplock_messages_total`). A message of a member to itself does not count. Renewals of leases, and messages that are repeated after a second without an answer, are counted separately. So are frames that are not part of the protocol: the notice that a request waits, looks, and keep-alive frames. [The simulation](README.md); [the algorithm](../algorithms/gbp.md).

## Nobody competes

l processes of one session enter together, then leave. Every home is measured: the smallest and the largest count.

| members | q | l | sent | 3l + 3(q−1) | exactly |
|---|---|---|---|---|---|
{idle}
## All compete

{THREADS} threads, two sessions at every home, {entries} entries, each with a priority from 0 to 9, which matters with the policy `priority:100ms`. I inquiries, Y returned votes, N notices of competition (not in the paper), R requests repeated for a better claim; \"counted\" is 3·entries + 3(q−1)·stages + I + 2Y + N + R. \"a stage\" is the cost without the three messages of each process; 6(q−1) is the cost if every vote is asked back once, by our count of three messages for a yield; the paper counts two, and has 5(q−1).

| members | q | policy | entries | stages | I | Y | N | R | sent | counted | repeated | a stage | 3(q−1) | 6(q−1) |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{contended}
![messages per stage](wire.svg)

## How long it takes

One process enters and leaves, alone, {PASSAGES} times; microseconds. Leaving includes the confirmation by the home. Records are flushed to a file system on disk, or to one in memory, where flushing costs nothing. \"flushes\" and \"flushing\" are sums over all members for one passage, from `grouplock_flush_seconds`; those of different members overlap.

| members | log on | median | 90 % | flushes | flushing |
|---|---|---|---|---|---|
{latency}"
    )
}
