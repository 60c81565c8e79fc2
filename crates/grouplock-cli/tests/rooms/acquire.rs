//! `grouplock acquire` and `grouplock release`.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grouplock_testing::{Running, current_test, skip, until};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;

use crate::place::{Place, line_of, mentioning, state, told};

fn acquire(place: &Place, arguments: &[&str]) -> String {
    let all: Vec<&str> = ["acquire"].iter().chain(arguments).copied().collect();
    let (code, token, trouble) = place.said(&all);
    assert_eq!(code, 0, "{trouble}");
    assert_eq!(token.lines().count(), 1);
    token.trim_end().to_owned()
}

fn keeper(token: &str) -> i32 {
    token.split(':').next().and_then(|pid| pid.parse().ok()).expect("it begins with the keeper")
}

#[test]
fn what_is_acquired_is_held_until_it_is_released() {
    let place = Place::new();
    let token = acquire(&place, &["r", "a"]);
    assert_eq!(place.said(&["run", "-n", "r", "b", "--", "true"]).0, 124);
    assert_eq!(place.said(&["run", "-n", "r", "a", "--", "true"]).0, 0);
    let second = acquire(&place, &["r", "a"]);
    assert_ne!(token, second);
    assert_eq!(place.said(&["release", &token]), (0, String::new(), String::new()));
    assert_eq!(state(keeper(&token)), None);
    assert_eq!(place.said(&["run", "-n", "r", "b", "--", "true"]).0, 124, "the second still holds");
    assert_eq!(place.said(&["release", &second]).0, 0);
    assert!(place.is_empty("r"));
    assert_eq!(place.status("r")["deaths"], 0);
    let (code, _, trouble) = place.said(&["release", &token]);
    assert_eq!(code, 123);
    assert!(trouble.contains("is not held any more"), "{trouble}");
}

#[test]
fn a_script_holds_the_room_for_as_long_as_it_lives() {
    let place = Place::new();
    let got = place.file("token");
    let script = format!(
        "token=$('{}' acquire r a) || exit; echo $token > '{}'; read line",
        env!("CARGO_BIN_EXE_grouplock"),
        got.display()
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    let shell = Running::start({
        shell.stdin(Stdio::piped());
        std::mem::replace(shell, Command::new("true"))
    });
    let token = line_of(&got);
    assert_eq!(place.said(&["run", "-n", "r", "b", "--", "true"]).0, 124);
    shell.send(Signal::SIGKILL);
    assert_eq!(place.said(&["run", "-w", "60", "r", "b", "--", "true"]).0, 0);
    until("the keeper has ended", || state(keeper(&token)).is_none());
    assert_eq!(place.status("r")["deaths"], 0, "it left, and did not die");
}

#[test]
fn a_subshell_or_timeout_that_ends_does_not_end_the_holding() {
    let place = Place::new();
    for (number, call) in [
        "$(\"$G\" acquire r a || exit 1)",
        "$(timeout 60 \"$G\" acquire r a)",
        "$(\"$G\" acquire r a | cat)",
        "$( (cat < /dev/null; \"$G\" acquire r a || exit) | cat)",
        "$(env timeout 60 \"$G\" acquire r a || exit 1)",
        "$(sh -c '\"$G\" acquire --for $PPID r a; exit')",
    ]
    .iter()
    .enumerate()
    {
        let got = place.file(&format!("token-{number}"));
        let script = format!("token={call}; echo $token > '{}'; read line", got.display());
        let mut command = place.script(&script);
        command.stdin(Stdio::piped());
        let script = Running::start(command);
        let token = line_of(&got);
        assert!(!token.is_empty(), "{call}");
        // Longer than the keeper needs to notice the end of its owner.
        assert_eq!(
            place.said(&["run", "-q", "-w", "0.3", "r", "b", "--", "true"]).0,
            124,
            "{call}"
        );
        assert_eq!(place.said(&["held", &token]).0, 0, "{call}");
        drop(script);
        assert_eq!(place.said(&["run", "-w", "60", "r", "b", "--", "true"]).0, 0, "{call}");
    }
}

#[test]
fn a_script_can_learn_that_its_keeper_was_killed() {
    let place = Place::new();
    let token = acquire(&place, &["r", "a"]);
    assert_eq!(place.said(&["held", &token]), (0, String::new(), String::new()));
    let keeper = nix::unistd::Pid::from_raw(keeper(&token));
    nix::sys::signal::kill(keeper, Signal::SIGKILL).expect("it is there");
    until("it is dead", || state(keeper.as_raw()).is_none());
    let (code, _, trouble) = place.said(&["held", &token]);
    assert_eq!(code, 123);
    assert!(trouble.contains("is not held any more"), "{trouble}");
}

#[test]
fn release_kills_no_process_of_another_namespace() {
    let place = Place::new();
    let token = acquire(&place, &["r", "a"]);
    // In another pid namespace, a process gets the number of the keeper.
    let script = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid || exit 99; sleep 1000 & echo $!; \"$G\" release '{token}'; \
         echo $?; kill -0 $! && echo alive",
        keeper(&token) - 1
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script]);
    unshare.env("G", env!("CARGO_BIN_EXE_grouplock"));
    let (code, text, trouble) = told(&mut unshare);
    if text.lines().next() != Some(&keeper(&token).to_string()) {
        skip(&current_test(), &format!("no namespace with the numbers we want: {code} {trouble}"));
        return;
    }
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["125", "alive"], "{trouble}");
    assert!(trouble.contains("another namespace of processes"), "{trouble}");
    assert_eq!(place.said(&["release", &token]).0, 0, "here it can");
}

#[test]
fn another_owner_can_be_named_and_a_limit() {
    let place = Place::new();
    let owner = Running::start({
        let mut sleep = Command::new("sleep");
        sleep.arg("1000");
        sleep
    });
    acquire(&place, &["--for", &owner.pid().to_string(), "r", "a"]);
    assert_eq!(place.said(&["run", "-n", "r", "b", "--", "true"]).0, 124);
    drop(owner);
    assert_eq!(place.said(&["run", "-w", "60", "r", "b", "--", "true"]).0, 0);
    let (code, _, trouble) = place.said(&["acquire", "--for", "999999999", "r", "a"]);
    assert_eq!(code, 125);
    assert!(trouble.contains("there is no process 999999999"), "{trouble}");

    let start = Instant::now();
    acquire(&place, &["--duration-limit", "300ms", "r", "a"]);
    assert_eq!(place.said(&["run", "-w", "60", "r", "b", "--", "true"]).0, 0);
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn the_keeper_holds_no_descriptor_of_the_caller() {
    let place = Place::new();
    // `output` returns at the end of both pipes. It would not return if the keeper held one.
    let script = format!(
        "exec 9>'{}'; '{}' acquire r a --for {}",
        place.file("nine").display(),
        env!("CARGO_BIN_EXE_grouplock"),
        std::process::id()
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    let (code, token, trouble) = told(shell);
    assert_eq!(code, 0, "{trouble}");
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", keeper(&token))).expect("it lives");
    let targets = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    assert!(!targets.into_iter().any(|target| target.ends_with("nine")));
    assert_eq!(place.said(&["release", token.trim()]).0, 0);
}

#[test]
fn an_acquire_that_cannot_is_124_and_leaves_nobody() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let (code, text, trouble) = place.said(&["acquire", "-n", "r", "b"]);
    assert_eq!((code, text.as_str()), (124, ""));
    assert!(trouble.contains("occupied by the session `a`"), "{trouble}");
    assert_eq!(
        place.said(&["acquire", "-q", "-w", "0.1", "-E", "3", "r", "b"]),
        (3, String::new(), String::new())
    );
    let session = format!("session of {}", place.path().display());
    let waiting = Running::start(place.grouplock(&["acquire", "r", &session]));
    until("it waits", || place.waiters("r") == 1);
    waiting.send(Signal::SIGKILL);
    drop(waiting);
    until("the keeper has withdrawn", || place.waiters("r") == 0);
    until("the keeper has ended", || mentioning(&session).is_empty());
    let waiting = Running::start(place.grouplock(&["acquire", "r", &session]));
    until("it waits", || place.waiters("r") == 1);
    waiting.send(Signal::SIGTERM);
    assert_eq!(waiting.ending().signal(), Some(Signal::SIGTERM as i32));
    until("the keeper has withdrawn", || place.waiters("r") == 0);
    drop(holder);
}

#[test]
fn an_acquire_that_is_killed_before_it_has_printed_the_token_holds_nothing() {
    let place = Place::new();
    let (reader, mut writer) = std::io::pipe().expect("there are descriptors");
    // The pipe is full, so that the token cannot be printed.
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("it is open");
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).expect("it is open");
    let mut command = place.grouplock(&["acquire", "--for", "1", "r", "a"]);
    command.stdout(writer);
    let running = Running::start(command);
    until("the keeper is inside", || !place.is_empty("r"));
    running.send(Signal::SIGKILL);
    drop(running);
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0, 0);
    assert_eq!(place.status("r")["deaths"], 0, "it left, and did not die");
    drop(reader);
}

#[test]
fn a_token_that_is_none_is_named() {
    let place = Place::new();
    let (code, _, trouble) = place.said(&["release", "nonsense"]);
    assert_eq!(code, 125);
    assert!(
        trouble.contains("`nonsense` is not a token: expected the output of `grouplock acquire`"),
        "{trouble}"
    );
    // `release` does not kill a process that is no keeper, whatever the token says.
    let innocent = Running::start({
        let mut sleep = Command::new("sleep");
        sleep.arg("1000");
        sleep
    });
    let real = acquire(&place, &["r", "a"]);
    let forged = real.replace(&keeper(&real).to_string(), &innocent.pid().to_string());
    assert_eq!(place.said(&["release", &forged]).0, 123);
    assert!(state(innocent.pid()).is_some());
}
