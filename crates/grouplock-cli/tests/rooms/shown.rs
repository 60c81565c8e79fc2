//! `status`, `top --once`, `doctor`, `remove`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use grouplock_testing::{Running, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::errors::unprivileged;
use crate::place::{Place, children, line_of, state, told};

#[test]
fn status_shows_holders_and_waiters() {
    let place = Place::new();
    let (code, text, _) = place.said(&["status"]);
    assert_eq!((code, text), (0, format!("no rooms in {}\n", place.rooms().display())));
    let holder = place.occupy("db", "backup");
    let _waiter = Running::start(place.grouplock(&["run", "db", "migration", "--", "true", "x"]));
    until("it waits", || place.waiters("db") == 1);
    let (code, text, _) = place.said(&["status"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text.lines().collect();
    let epoch = &place.status("db")["epoch"];
    assert_eq!(lines[0], format!("db  policy fifo, epoch {epoch}"));
    assert_eq!(lines[1], "  inside: backup");
    assert!(lines[2].contains(&format!(" {}  ", holder.pid())), "{text}");
    assert_eq!(lines[3], "  waiting: migration");
    assert!(lines[4].ends_with("  true x"), "{text}");
    assert_eq!(place.said(&["status", "db"]).1.lines().count(), lines.len());

    let status = place.status("db");
    let member = &status["inside"]["members"][0];
    assert_eq!(member["pid"], holder.pid());
    for text in ["id", "host", "user", "command"] {
        assert!(member[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {member}");
    }
    assert_eq!(status["waiting"][0]["session"], "migration");
    assert_eq!((&status["policy"], &status["deaths"]), (&"fifo".into(), &0.into()));
    let all: serde_json::Value =
        serde_json::from_str(&place.said(&["status", "--json"]).1).expect("it is JSON");
    assert_eq!(all[0]["room"], "db");
}

#[test]
fn status_remembers_the_recent_past() {
    let place = Place::new();
    for session in ["a", "b", "a"] {
        assert_eq!(place.said(&["run", "r", session, "--", "true"]).0, 0);
    }
    let recent = &place.status("r")["recent"];
    let sessions: Vec<_> =
        recent.as_array().expect("a list").iter().map(|p| &p["session"]).collect();
    assert_eq!(sessions, ["a", "b", "a"]);
    assert!(recent[0]["ended"].as_f64() >= recent[0]["began"].as_f64());
}

#[test]
fn names_cannot_colour_the_terminal() {
    let place = Place::new();
    let holder = place.occupy("r", "a\u{1b}[31m");
    for arguments in [
        &["status"][..],
        &["top", "--once"],
        &["run", "-n", "r", "b", "--", "true"],
        &["run", "-v", "-w", "0.1", "r", "b", "--", "true"],
        &["acquire", "-n", "r", "b"],
        &["remove", "r"],
    ] {
        let (_, text, trouble) = place.said(arguments);
        let all = text + &trouble;
        assert!(!all.contains('\u{1b}') && all.contains("a\u{fffd}[31m"), "{arguments:?}: {all}");
    }
    drop(holder);
    let (_, _, trouble) = place.said(&["run", "-w", "60", "r", "b", "--", "true"]);
    assert!(trouble.contains("died inside `r` in the session `a\u{fffd}[31m`"), "{trouble}");
    assert_eq!(place.said(&["run", "r\u{9b}2J", "b", "--", "true"]).0, 0);
    let (_, text, _) = place.said(&["doctor"]);
    assert!(!text.contains('\u{9b}') && text.contains("r\u{fffd}2J"), "{text}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    assert_eq!(place.said(&["run", "r", "a", "--", "true"]).0, 0);
    for command in ["status", "status --json", "status r", "top --once", "man", "completions bash"]
    {
        let (code, _, trouble) = told(&mut place.script(&format!("\"$G\" {command} > /dev/full")));
        assert_eq!(code, 125, "{command}");
        assert!(trouble.contains("No space left on device"), "{command}: {trouble}");
        let (code, _, trouble) = told(&mut place.script(&format!("\"$G\" {command} >&-")));
        assert_eq!(code, 125, "{command}");
        assert!(trouble.contains("Bad file descriptor"), "{command}: {trouble}");
        // A reader that closes the pipe is no error.
        let closed = format!("{{ sleep 0.1; \"$G\" {command}; echo $? >&2; }} | true");
        assert_eq!(told(&mut place.script(&closed)).2, "0\n", "{command}");
    }
    for nowhere in ["> /dev/full", ">&-"] {
        let acquire = format!("\"$G\" acquire --for 1 r a {nowhere}");
        assert_eq!(told(&mut place.script(&acquire)).0, 125, "{nowhere}");
        let free = place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0;
        assert_eq!(free, 0, "{nowhere}: nobody has it");
    }
}

#[test]
fn a_label_is_shown_instead_of_the_command() {
    let place = Place::new();
    let script = format!("'{}' status r", env!("CARGO_BIN_EXE_grouplock"));
    let (_, text, _) = place.said(&["run", "--label", "nightly backup", "r", "s", "-c", &script]);
    assert!(text.contains("  nightly backup\n") && !text.contains("status r"), "{text}");
    let (_, token, _) = place.said(&["acquire", "--label", "by hand", "r", "s"]);
    assert!(place.said(&["status", "r"]).1.contains("  by hand\n"));
    assert_eq!(place.said(&["release", token.trim()]).0, 0);
}

#[test]
fn to_look_at_a_room_it_need_not_be_writable() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    for (path, mode) in [
        (place.path().to_owned(), 0o755),
        (place.rooms(), 0o755),
        (place.rooms().join("r.room"), 0o644),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let at = place.rooms().to_string_lossy().into_owned();
    let (code, text, trouble) = told(&mut unprivileged(&place, &["status", "--at", &at, "r"]));
    assert_eq!(code, 0, "{trouble}");
    assert!(text.contains("  inside: a") && text.contains(&holder.pid().to_string()), "{text}");
    let run = ["run", "--at", &at, "r", "a", "--", "true"];
    let (code, _, trouble) = told(&mut unprivileged(&place, &run));
    assert_eq!(code, 125);
    assert!(trouble.contains("no permission to open"), "{trouble}");
}

#[test]
fn top_prints_a_picture() {
    let place = Place::new();
    assert!(place.said(&["top", "--once"]).1.contains("no rooms yet"));
    assert_eq!(place.said(&["run", "gpu0", "model A", "--", "sleep", "4"]).0, 0);
    let holder = place.occupy("gpu0", "model B");
    let _waiter = Running::start(place.grouplock(&["run", "gpu0", "model C", "--", "true"]));
    until("it waits", || place.waiters("gpu0") == 1);
    let (code, text, _) = place.said(&["top", "--once"]);
    assert_eq!(code, 0);
    assert_eq!(text.lines().count(), 24);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for expected in ["> gpu0", "inside: model B", "waiting 1: model C", "A model A  B model B"] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
    assert!(text.contains(&holder.pid().to_string()), "{text}");
    let strip = text.lines().rev().nth(1).expect("a strip");
    assert!(strip.ends_with('B') && strip.contains('A') && strip.starts_with('·'), "{strip}");
    let (code, _, trouble) = place.said(&["top"]);
    assert_eq!(code, 125);
    assert!(trouble.contains("top needs a terminal"), "{trouble}");
}

#[test]
fn a_room_in_use_is_not_removed() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let (code, _, trouble) = place.said(&["remove", "r"]);
    assert_eq!(code, 125);
    assert!(trouble.contains("is in use by"), "{trouble}");
    holder.send(Signal::SIGTERM);
    assert_eq!(holder.code(), Some(143));
    assert_eq!(place.said(&["remove", "r"]), (0, String::new(), String::new()));
    let (code, _, trouble) = place.said(&["remove", "r"]);
    assert_eq!(code, 125);
    assert!(trouble.contains("there is no room `r`"), "{trouble}");
}

#[test]
fn doctor_finds_nothing_wrong_where_nothing_is() {
    let place = Place::new();
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("a room was created, entered, left and removed"), "{text}");
    assert!(!place.rooms().exists(), "it leaves nothing behind");
    let _holder = place.occupy("r", "a");
    fs::write(place.rooms().join("notes.txt"), "").expect("it can be written");
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("room `r`: 1 inside, 0 waiting"), "{text}");
    assert!(text.contains("files that are not rooms: notes.txt"), "{text}");
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let place = Place::new();
    assert_eq!(place.said(&["run", "r", "s", "--", "true"]).0, 0);
    let file = fs::read_dir(place.rooms()).expect("it is there").flatten().next();
    let file = file.expect("the room has a file").path();
    fs::write(&file, "not a room").expect("it can be written");
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("WRONG room `r`: ") && text.contains("      → "), "{text}");
    assert!(text.ends_with("1 thing is wrong\n"), "{text}");

    fs::remove_file(&file).expect("it can be removed");
    fs::set_permissions(place.rooms(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("WRONG rooms cannot live in"), "{text}");

    let (code, text, _) = place.said(&["doctor", "--at", "smoke://localhost:1"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("correct --at or GROUPLOCK_AT"), "{text}");
    let kinds = [("etcd", cfg!(feature = "etcd")), ("gbp", cfg!(feature = "gbp"))];
    for (scheme, there) in kinds {
        let servers = format!("{scheme}://localhost:1");
        let (code, text, _) = place.said(&["doctor", "--at", &servers]);
        assert_eq!(code, 1, "{text}");
        let built = format!("--features {scheme}");
        let advice = if there { "check that the servers run" } else { &*built };
        assert!(text.contains(advice), "{text}");
        assert!(text.ends_with("1 thing is wrong\n"), "said once: {text}");
    }
    let mut no_place = place.grouplock(&["doctor", "--at", ""]);
    let (code, text, _) = told(&mut no_place);
    assert_eq!(code, 1, "{text}");
}

#[test]
fn doctor_sees_a_command_that_is_stopped() {
    let place = Place::new();
    let pid = place.file("pid");
    let script = format!("echo $$ > '{}'; exec sleep 1000", pid.display());
    let holder = Running::start(place.grouplock(&["run", "r", "a", "-c", &script]));
    let command: i32 = line_of(&pid).parse().expect("a number");
    let _waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
    until("it waits", || place.waiters("r") == 1);
    kill(Pid::from_raw(command), Signal::SIGSTOP).expect("it is there");
    until("it is stopped", || state(command) == Some('T'));
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 1, "{text}");
    let expected =
        format!("room `r`: process {command}, the command of {}, is stopped inside", holder.pid());
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn doctor_sees_a_holder_that_is_stopped() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let _waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
    until("it waits", || place.waiters("r") == 1);
    holder.send(Signal::SIGSTOP);
    until("it is stopped", || state(holder.pid()) == Some('T'));
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 1, "{text}");
    let expected = format!("room `r`: process {} is stopped inside, and 1 wait", holder.pid());
    assert!(text.contains(&expected), "{text}");
    for child in children(holder.pid()) {
        // The guardian and the command end with it.
        _ = kill(Pid::from_raw(child), Signal::SIGCONT);
    }
}
