//! `grouplock run`, `status` and `top` with rooms on a real etcd.

#[path = "../../grouplock-etcd/tests/servers/server/mod.rs"]
mod server;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use grouplock_testing::{Running, Scratch, until};
use nix::sys::signal::Signal;
use server::Server;

fn grouplock(place: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grouplock"));
    command.args(arguments).env("GROUPLOCK_AT", place).stdin(Stdio::null());
    for variable in ["ROOM", "SESSION", "EPOCH", "HOLDER", "RECOVERED"] {
        command.env_remove(format!("GROUPLOCK_{variable}"));
    }
    grouplock_testing::with_default_signals(&mut command);
    command
}

fn run(place: &str, arguments: &[&str]) -> Output {
    grouplock(place, arguments).output().expect("the program starts")
}

fn start(place: &str, arguments: &[&str]) -> Running {
    let mut command = grouplock(place, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

fn place(server: &Server, options: &str) -> String {
    format!("etcd://{}/{}?{options}", server.endpoint(), server::fresh_prefix())
}

/// The numbers of holders and waiters of the room `build`.
fn people(place: &str) -> (usize, usize) {
    let output = run(place, &["status", "--json", "build"]);
    let Ok(room) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else {
        let trouble = text(&output.stderr);
        assert!(trouble.contains("there is no room"), "{trouble}");
        return (0, 0);
    };
    let members = |phase: &serde_json::Value| phase["members"].as_array().map_or(0, Vec::len);
    let waiting = room["waiting"].as_array().expect("a list");
    (members(&room["inside"]), waiting.iter().map(members).sum())
}

#[test]
fn a_command_runs_inside_and_the_room_shows_it() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let script = "echo $GROUPLOCK_SESSION $GROUPLOCK_EPOCH $GROUPLOCK_AT; exit 7";
    let output = run(&place, &["run", "build", "release", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let [session, epoch, at] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("three words, not {said}")
    };
    assert_eq!((session, at), ("release", place.as_str()));
    assert!(epoch.parse::<u64>().is_ok_and(|epoch| epoch > 0), "{epoch}");

    let inside = start(&place, &["run", "build", "release", "--", "sleep", "1000"]);
    until("it is inside", || people(&place) == (1, 0));
    let refused = run(&place, &["run", "--no-wait", "build", "debug", "--", "true"]);
    assert_eq!(refused.status.code(), Some(124));
    assert!(text(&refused.stderr).contains("by the session `release`"), "{refused:?}");
    let shared = run(&place, &["run", "--no-wait", "build", "release", "--", "true"]);
    assert_eq!(shared.status.code(), Some(0), "{}", text(&shared.stderr));
    let waiting = start(&place, &["run", "build", "debug", "--", "true"]);
    until("another waits", || people(&place) == (1, 1));
    for arguments in [&["status"][..], &["top", "--once"]] {
        let shown = text(&run(&place, arguments).stdout);
        for word in ["build", "release", "debug", "sleep 1000"] {
            assert!(shown.contains(word), "{word} in {shown}");
        }
    }
    inside.send(Signal::SIGTERM);
    assert_eq!(inside.ending().signal(), Some(Signal::SIGTERM as i32));
    assert_eq!(waiting.code(), Some(0));
    assert_eq!(people(&place), (0, 0));
}

#[test]
fn a_wait_that_is_ended_leaves_nobody_in_the_queue() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let _inside = start(&place, &["run", "build", "a", "--", "sleep", "1000"]);
    until("it is inside", || people(&place) == (1, 0));
    let late = run(&place, &["run", "--timeout", "200ms", "build", "b", "--", "true"]);
    assert_eq!(late.status.code(), Some(124), "{}", text(&late.stderr));
    assert_eq!(people(&place), (1, 0));
    let waiting = start(&place, &["run", "build", "b", "--", "true"]);
    until("another waits", || people(&place) == (1, 1));
    waiting.send(Signal::SIGINT);
    assert_eq!(waiting.ending().signal(), Some(Signal::SIGINT as i32));
    assert_eq!(people(&place), (1, 0));
}

#[test]
fn a_command_is_stopped_before_its_lease_can_have_ended() {
    if !server::is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let server = Server::single(scratch.path(), &[], "http");
    let place = place(&server, "ttl=10");
    // Writes the time while it lives, in seconds since the machine started.
    let beats = scratch.path().join("beats");
    let script = format!("while :; do cat /proc/uptime >> '{}'; sleep 0.02; done", beats.display());
    let inside = start(&place, &["run", "build", "a", "--", "sh", "-c", &script]);
    until("the command runs", || beats.metadata().is_ok_and(|beats| beats.len() > 0));
    server.signal(Signal::SIGSTOP);
    let silence = uptime(&std::fs::read_to_string("/proc/uptime").expect("/proc is mounted"));
    assert_eq!(inside.code(), Some(123), "the place was lost");
    server.signal(Signal::SIGCONT);
    // The last renewal was sent before the silence, so the lease of the servers lasts ten seconds
    // at most from then on.
    let beats = std::fs::read_to_string(beats).expect("it has written");
    let (whole, _) = beats.rsplit_once('\n').expect("it has written a line");
    let last = uptime(whole.lines().last().expect("it has written a line"));
    assert!(last < silence + 10.0, "the command was alive {} s after", last - silence);
}

/// The first number in `/proc/uptime`.
fn uptime(text: &str) -> f64 {
    text.split(' ').next().and_then(|time| time.parse().ok()).expect("a time")
}

#[test]
fn a_command_whose_keeper_was_killed_is_gone_before_others_enter() {
    let Some(server) = server::shared() else { return };
    let place = place(&server, "ttl=5");
    let mark = format!("{}.5", 10_000 + std::process::id());
    let inside = start(&place, &["run", "build", "a", "--", "sleep", &mark]);
    until("it is inside", || people(&place) == (1, 0));
    let runs = || {
        let pattern = format!("sleep {mark}");
        let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
        entries.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default()).any(
            |line| {
                String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ") == pattern
            },
        )
    };
    until("the command runs", runs);
    drop(inside);
    let script = "echo $GROUPLOCK_RECOVERED";
    let next = run(&place, &["run", "-q", "build", "b", "--", "sh", "-c", script]);
    assert_eq!(next.status.code(), Some(0), "{}", text(&next.stderr));
    assert!(!runs(), "the command was killed");
    let recovered = text(&next.stdout).trim().parse::<u64>();
    assert!(recovered.is_ok(), "who comes next is told: {recovered:?}");
}

#[test]
fn what_is_wrong_is_said() {
    let place = format!("etcd://127.0.0.1:{}?timeout=200ms", server::free_port());
    for arguments in [&["run", "build", "a", "--", "true"][..], &["status"], &["top", "--once"]] {
        let output = run(&place, arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&place) && said.contains("cannot be reached"), "{said}");
    }
    let output = run("etcd://127.0.0.1:1?ttl=soon", &["run", "build", "a", "--", "true"]);
    assert!(text(&output.stderr).contains("ttl cannot be `soon`"), "{output:?}");
    let policy = ["run", "--policy", "batch:3", "build", "a", "--", "true"];
    let output = run(&place, &policy);
    assert!(text(&output.stderr).contains("etcd rooms cannot do this"), "{output:?}");
}
