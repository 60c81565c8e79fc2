//! Many commands enter and leave, and are killed at random moments: in a session, alone (`-x`), at
//! most three together (`--at-most`), by `run` and by the descriptor of a script (`enter --fd`).
//!
//! The commands inside watch each other by locks of the kernel, which are independent of the room.
//! Each locks the file of its session while it lives, and then checks whether the file of another
//! session is locked. Of two that overlap, the second sees the first, killed or not. A command that
//! is alone locks its file exclusively. A command with a limit takes one of three more locks, and
//! one of these must be free.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use grouplock_testing::{LONG, Random, Running, until};

use crate::place::{Place, mentioning};

const SESSIONS: [&str; 5] = ["backup", "migration", "model A", "model B", "größer"];

/// No wait may be longer: phases take milliseconds.
const FOREVER: &str = "40";

/// The variable with the directory of the files, the session of the visitor, and the length of its
/// stay.
const ROLE: &str = "GROUPLOCK_TEST_VISITOR";

/// Exit code of a visitor that met a visitor of another session.
const MET: i32 = 99;

/// How many visitors with a limit may be inside together.
const MOST: usize = 3;

/// How a visitor enters: the arguments of `grouplock`.
const WAYS: [(&str, &[&str]); 3] = [("", &[]), ("-x", &["-x"]), ("--at-most", &["--at-most", "3"])];

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

/// Not a test: a command inside.
#[test]
fn visitor() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut role = role.split('|');
    let mut next = || role.next().expect("it was told");
    let directory = Path::new(next());
    let session: usize = next().parse().expect("a number");
    let stay: u64 = next().parse().expect("a number");
    let mark = directory.join(format!("inside-{}", next()));
    let how = next();
    File::create(&mark).expect("it can be made");
    let files: Vec<File> = (0..SESSIONS.len())
        .map(|number| {
            let path = directory.join(format!("session-{number}"));
            File::options().create(true).append(true).open(path).expect("it can be opened")
        })
        .collect();
    let locked = match how {
        "-x" => files[session].try_lock().is_ok(),
        _ => files[session].try_lock_shared().is_ok(),
    };
    if !locked {
        report(directory, &format!("{} met one that is alone, or is", SESSIONS[session]));
    }
    let place = (how == "--at-most").then(|| {
        let free = (0..MOST).find_map(|number| {
            let path = directory.join(format!("limit-{session}-{number}"));
            let file =
                File::options().create(true).append(true).open(path).expect("it can be opened");
            file.try_lock().is_ok().then_some(file)
        });
        free.unwrap_or_else(|| report(directory, &format!("too many in {}", SESSIONS[session])))
    });
    look(&files, session, directory);
    std::thread::sleep(Duration::from_micros(stay));
    look(&files, session, directory);
    // A byte for each visit. It is appended, so that none is lost.
    (&files[session]).write_all(b".").expect("it can be written");
    // It may have been removed after a kill.
    _ = fs::remove_file(&mark);
    // Before the end: the kernel closes all descriptors in any order. The descriptor that keeps the
    // holding of a killed script could be closed before the lock that shows this visitor.
    drop((files, place));
    std::process::exit(0);
}

/// Reports every visitor of another session that is inside now.
fn look(files: &[File], session: usize, directory: &Path) {
    let locks = fs::read_to_string("/proc/locks").expect("/proc is mounted");
    for (number, file) in files.iter().enumerate() {
        if number != session && is_locked(file, &locks) {
            report(directory, &format!("{} met {}", SESSIONS[session], SESSIONS[number]));
        }
    }
}

fn report(directory: &Path, trouble: &str) -> ! {
    let report = File::options().create(true).append(true).open(directory.join("trouble"));
    let trouble = format!("{trouble}\n");
    report.expect("it can be opened").write_all(trouble.as_bytes()).expect("it fits");
    std::process::exit(MET);
}

/// Whether the file is locked. Does not lock it.
fn is_locked(file: &File, locks: &str) -> bool {
    let inode = format!(":{} ", file.metadata().expect("it is open").ino());
    locks.lines().any(|line| line.contains("FLOCK") && line.contains(&inode))
}

struct Storm {
    processes: usize,
    time: Duration,
    /// The mean time between two kills.
    pace: Duration,
}

impl Storm {
    fn start(place: &Place, number: usize, random: &mut Random) -> Running {
        let mut session = below(random, SESSIONS.len());
        let stay = below(random, 40_000);
        let this = std::env::current_exe().expect("we know who we are");
        let this = this.to_string_lossy();
        // All visitors of one session have the limit. Visitors without a limit would fill the room
        // up.
        let way = if session == 0 { 2 } else { usize::from(below(random, 5) == 0) };
        let (how, options) = WAYS[way];
        if how == "-x" {
            // In a session that others share.
            session = session.max(1);
        }
        let name = SESSIONS[session];
        let visitor = [&this, "storm::visitor", "--exact", "--nocapture", "--test-threads=1"];
        let mut command = if below(random, 3) == 0 {
            let enter = format!(
                "exec 9<>\"$(\"$G\" path storm)\" || exit; \"$G\" enter -q -w {FOREVER} --fd 9 {} storm '{name}' || exit; \
                 \"$0\" \"$@\" || exit; \"$G\" leave --fd 9",
                options.join(" ")
            );
            let mut script = place.script(&enter);
            script.args(visitor);
            script
        } else {
            let mut run = place.grouplock(&["run", "-q", "-w", FOREVER]);
            run.args(options).args(["storm", name, "--"]).args(visitor);
            run
        };
        command.env(ROLE, format!("{}|{session}|{stay}|{number}|{how}", place.path().display()));
        command.stdout(Stdio::null());
        Running::start(command)
    }

    fn rage(&self) {
        let seed = std::env::var("GROUPLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x5707);
        println!("seed {seed} (GROUPLOCK_SEED={seed} to repeat the choices)");
        let mut random = Random::new(seed);
        let place = Place::new();
        let trouble = || fs::read_to_string(place.file("trouble")).unwrap_or_default();
        let mut running: Vec<Option<Running>> =
            (0..self.processes).map(|n| Some(Self::start(&place, n, &mut random))).collect();
        let (mut finished, mut kills, mut inside) = (0, 0, 0);
        let visits = || -> u64 {
            let file = |n| place.file(&format!("session-{n}"));
            (0..SESSIONS.len()).map(|n| fs::metadata(file(n)).map_or(0, |facts| facts.len())).sum()
        };
        let start = Instant::now();
        let mut next_kill = start + self.pace;
        // Longer on a busy machine, until there were enough visits.
        while start.elapsed() < self.time
            || start.elapsed() < LONG && (visits() <= 50 || kills <= 20 || inside <= 3)
        {
            std::thread::sleep(Duration::from_millis(2));
            if Instant::now() >= next_kill {
                let mean = self.pace.as_micros() as usize;
                next_kill =
                    Instant::now() + Duration::from_micros(below(&mut random, 2 * mean) as u64);
                let is_inside = |n: &usize| place.file(&format!("inside-{n}")).exists();
                // Most visitors wait most of the time. Half of the kills hit holders.
                let holders: Vec<usize> = (0..self.processes).filter(is_inside).collect();
                let number = match below(&mut random, 2) {
                    0 if !holders.is_empty() => holders[below(&mut random, holders.len())],
                    _ => below(&mut random, self.processes),
                };
                inside += u32::from(is_inside(&number));
                kills += 1;
                // Dropping kills it with SIGKILL.
                running[number] = None;
                _ = fs::remove_file(place.file(&format!("inside-{number}")));
                running[number] = Some(Self::start(&place, number, &mut random));
                continue;
            }
            for (number, slot) in running.iter_mut().enumerate() {
                let child = slot.as_mut().expect("each place is taken");
                if let Some(status) = child.0.try_wait().expect("it is our child") {
                    assert_eq!(status.code(), Some(0), "{status}: {}", trouble());
                    finished += 1;
                    *slot = Some(Self::start(&place, number, &mut random));
                }
            }
        }
        for child in running.into_iter().flatten() {
            assert_eq!(child.code(), Some(0), "{}", trouble());
        }
        assert_eq!(trouble(), "");
        let visits = visits();
        let deaths = place.status("storm")["deaths"].as_u64().expect("a number");
        println!(
            "{} processes, {:?}: {finished} ended well during the storm, {visits} visits, {kills} kills, \
             {inside} of them inside, {deaths} deaths inside noticed",
            self.processes, self.time
        );
        assert!(visits > 50 && kills > 20 && deaths > 0, "that was no storm");
        until("nobody is left", || mentioning(&place.path().to_string_lossy()).is_empty());
        assert!(place.is_empty("storm"));
        for session in SESSIONS {
            assert_eq!(place.said(&["run", "-q", "-n", "storm", session, "--", "true"]).0, 0);
        }
    }
}

#[test]
fn a_short_storm_of_commands() {
    Storm { processes: 24, time: Duration::from_secs(8), pace: Duration::from_millis(30) }.rage();
}

/// `cargo test --release -p grouplock-cli --test rooms -- --ignored --nocapture`
#[test]
#[ignore = "takes a minute and a half; cargo xtask soak runs it"]
fn a_long_storm_of_commands() {
    Storm { processes: 200, time: Duration::from_secs(60), pace: Duration::from_millis(30) }.rage();
}

/// The locks by which the storm detects overlaps do detect them.
#[test]
fn visitors_of_different_sessions_see_each_other() {
    let place = Place::new();
    let this = std::env::current_exe().expect("we know who we are");
    let visit = |session: usize, stay: u64, how: &str| {
        let mut command = std::process::Command::new(&this);
        command.args(["storm::visitor", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, format!("{}|{session}|{stay}|{session}|{how}", place.path().display()));
        Running::start({
            command.stdout(Stdio::null());
            command
        })
    };
    let first = visit(0, u64::MAX, "");
    until("the first is there", || {
        let locks = fs::read_to_string("/proc/locks").expect("/proc is mounted");
        File::open(place.file("session-0")).is_ok_and(|file| is_locked(&file, &locks))
    });
    assert_eq!(visit(0, 0, "").code(), Some(0), "the same session may be there");
    assert_eq!(visit(1, 0, "").code(), Some(MET));
    assert_eq!(visit(0, 0, "-x").code(), Some(MET));
    drop(first);
    assert_eq!(visit(1, 0, "").code(), Some(0), "the first is gone");
    assert_eq!(visit(0, 0, "-x").code(), Some(0));
    let limited: Vec<_> = (0..MOST).map(|_| visit(2, u64::MAX, "--at-most")).collect();
    until("all are there", || {
        let locks = fs::read_to_string("/proc/locks").expect("/proc is mounted");
        let locked = |number| {
            let file = File::open(place.file(&format!("limit-2-{number}")));
            file.is_ok_and(|file| is_locked(&file, &locks))
        };
        (0..MOST).all(locked)
    });
    assert_eq!(visit(2, 0, "--at-most").code(), Some(MET), "one too many");
    drop(limited);
}
