//! `-x`, `--at-most`, set-up, tear-down and the report of deaths: each does its job.

use std::fs;
use std::num::NonZeroU16;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use grouplock_room::{Room, RoomOptions};
use grouplock_testing::{Running, until};
use nix::sys::signal::Signal;

use crate::place::Place;

/// Starts several runs together, and waits until all have succeeded.
fn all_succeed(place: &Place, runs: &[&[&str]]) {
    let started: Vec<_> = runs.iter().map(|run| Running::start(place.grouplock(run))).collect();
    for (run, arguments) in started.into_iter().zip(runs) {
        assert_eq!(run.code(), Some(0), "{arguments:?}");
    }
}

/// Fails if another command of this kind runs at the same time.
const ALONE: &str = "mkdir \"$0\" && sleep 0.1 && rmdir \"$0\"";

#[test]
fn two_migrations_are_never_inside_together() {
    let place = Place::new();
    let mark = place.file("mark").display().to_string();
    let run = ["run", "-x", "database", "migration", "--", "sh", "-c", ALONE, &mark];
    let unnamed = ["run", "--exclusive", "database", "--", "sh", "-c", ALONE, &mark];
    all_succeed(&place, &[&run, &run, &unnamed, &run]);
    // Without the option they overlap.
    let shared = "touch \"$0.$$\"; for i in $(seq 600); do \
                  [ $(ls \"$0\".* | wc -l) = 2 ] && exit 0; sleep 0.1; done; exit 1";
    let run = ["run", "database", "migration", "--", "sh", "-c", shared, &mark];
    all_succeed(&place, &[&run, &run]);
}

#[test]
fn at_most_two_builds_run_together() {
    let place = Place::new();
    let log = place.file("log").display().to_string();
    // Everybody stays until the test says so, for a minute at most.
    let script = "echo + >> \"$0\"; for i in $(seq 600); do [ -e \"$0.go\" ] && break; sleep 0.1; \
                  done; echo - >> \"$0\"";
    let run = ["run", "--at-most", "2", "machine", "build", "--", "sh", "-c", script, &log];
    let runs = [0; 5].map(|_| Running::start(place.grouplock(&run)));
    until("two are inside", || fs::read_to_string(&log).is_ok_and(|log| log == "+\n+\n"));
    until("three wait", || place.waiters("machine") == 3);
    fs::write(place.file("log.go"), "").expect("it can be written");
    for run in runs {
        assert_eq!(run.code(), Some(0));
    }
    let (mut now, mut most) = (0, 0);
    for line in fs::read_to_string(&log).expect("it was written").lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2));
}

#[test]
fn a_model_is_loaded_once_and_unloaded_by_the_last() {
    let place = Place::new();
    let (loaded, log) = (place.file("loaded"), place.file("log"));
    let (file, log_text) = (loaded.display().to_string(), log.display().to_string());
    let run = |model: &str| {
        vec![
            "run".to_owned(),
            "--setup".to_owned(),
            format!("[ ! -e {file} ] && echo $GROUPLOCK_SESSION > {file} && echo up >> {log_text}"),
            "--teardown".to_owned(),
            format!("rm {file} && echo down >> {log_text}"),
            "gpu".to_owned(),
            model.to_owned(),
            "-c".to_owned(),
            // The loaded model is the needed one.
            format!("sleep 0.05; [ \"$(cat {file})\" = \"{model}\" ]"),
        ]
    };
    let runs = [run("A"), run("B"), run("A"), run("A"), run("B")];
    let runs: Vec<Vec<&str>> =
        runs.iter().map(|run| run.iter().map(String::as_str).collect()).collect();
    let runs: Vec<&[&str]> = runs.iter().map(Vec::as_slice).collect();
    all_succeed(&place, &runs);
    assert!(!loaded.exists(), "the last one unloads");
    let log = fs::read_to_string(log).expect("it was written");
    let lines: Vec<_> = log.lines().collect();
    assert!(lines.chunks(2).all(|pair| pair == ["up", "down"]), "{lines:?}");
}

#[test]
fn a_set_up_stays_and_the_next_learns_of_another() {
    let place = Place::new();
    let show = "echo ${GROUPLOCK_PREVIOUS-nothing}";
    let run =
        |session| place.said(&["run", "--setup", "echo set up", "board", session, "-c", show]);
    assert_eq!(run("v1").1, "set up\nnothing\n");
    assert_eq!(run("v1").1, "nothing\n");
    assert_eq!(run("v2").1, "set up\nv1\n");
    let (code, text, trouble) =
        place.said(&["run", "--setup", "exit 7", "board", "v3", "--", "echo", "not run"]);
    assert_eq!((code, text.as_str()), (7, ""));
    assert!(trouble.contains("the set-up failed"), "{trouble}");
    assert_eq!(run("v3").1, "set up\nnothing\n", "the next one tries");
    assert!(place.status("board")["inside"].is_null());
}

#[test]
fn a_death_is_reported_until_a_command_has_repaired_it() {
    let place = Place::new();
    let running = place.occupy("db", "migration");
    running.send(Signal::SIGKILL);
    drop(running);
    let show = "echo ${GROUPLOCK_RECOVERED_SESSION-nobody}: ${GROUPLOCK_RECOVERED_COMMAND-nothing}";
    let run = |options: &[&str], script: &str| {
        let head = ["run", "-q", "-w", "60"];
        let rest = ["db", "read", "-c", script];
        place.said(&[&head[..], options, &rest].concat())
    };
    until("it is told", || run(&[], show).1.starts_with("migration: "));
    assert!(run(&[], show).1.starts_with("migration: "), "nobody has repaired it");
    assert_eq!(run(&["--repaired"], "exit 3").0, 3);
    assert!(run(&[], show).1.starts_with("migration: "), "the repair has failed");
    assert_eq!(run(&["--repaired"], "true").0, 0);
    assert_eq!(run(&[], show).1, "nobody: nothing\n");
}

#[test]
fn one_participant_too_many_gets_an_error_or_waits() {
    let place = Place::new();
    let one = RoomOptions::new().capacity(NonZeroU16::MIN);
    let room = Room::open_with(place.rooms(), "small", &one).expect("it is new");
    let inside = room.enter("s").expect("it is empty");
    let (code, _, trouble) = place.said(&["run", "small", "s", "--", "true"]);
    assert_eq!(code, 125);
    assert!(
        trouble.contains("slots for at most 1") && trouble.contains("--wait-if-full"),
        "{trouble}"
    );
    let waits = ["run", "--wait-if-full"];
    let (code, _, trouble) =
        place.said(&[&waits, &["-w", "0.3", "small", "s", "-c", "true"][..]].concat());
    assert_eq!((code, trouble.contains("within 0.3 s")), (124, true), "{trouble}");
    let mark = place.file("mark").display().to_string();
    let waiting = place.grouplock(&[&waits, &["small", "s", "--", "touch", &mark][..]].concat());
    let waiting = Running::start(waiting);
    // The test can only see that it has not ended: it is in no line yet.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!place.file("mark").exists());
    drop(inside);
    drop(room);
    assert_eq!(waiting.code(), Some(0));
    assert!(place.file("mark").exists());
    let room = Room::open(place.rooms(), "small").expect("it is there");
    let _inside = room.enter("s").expect("it is empty");
    let waiting =
        Running::start(place.grouplock(&[&waits, &["small", "s", "-c", "true"][..]].concat()));
    std::thread::sleep(Duration::from_millis(100));
    waiting.send(Signal::SIGTERM);
    assert_eq!(waiting.ending().signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn what_nobody_uses_is_removed() {
    let place = Place::new();
    let _holder = place.occupy("used", "s");
    for room in ["one", "two"] {
        assert_eq!(place.said(&["run", room, "s", "--", "true"]).0, 0);
    }
    assert_eq!(place.said(&["remove", "--unused"]), (0, "one\ntwo\n".to_owned(), String::new()));
    assert_eq!(place.said(&["remove", "--unused"]), (0, String::new(), String::new()));
    assert!(place.said(&["status"]).1.starts_with("used "));
    // A file that is not a room stays, and does not keep the others.
    std::fs::write(place.rooms().join("a.room"), "not a room").expect("it is ours");
    assert_eq!(place.said(&["run", "two", "s", "--", "true"]).0, 0);
    let (code, text, trouble) = place.said(&["remove", "--unused"]);
    assert_eq!((code, text.as_str()), (125, "two\n"), "{trouble}");
    assert!(trouble.contains("a.room` is not a room"), "{trouble}");
}
