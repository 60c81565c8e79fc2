//! Signals that are sent to `grouplock run`.

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use grouplock_testing::{Running, until, with_default_signals};
use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;

use crate::place::{Place, children, line_of, state, told};

#[test]
fn signals_are_passed_on_to_the_command() {
    let place = Place::new();
    for (signal, name) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGUSR2, "USR2"),
        (Signal::SIGALRM, "ALRM"),
        (Signal::SIGWINCH, "WINCH"),
    ] {
        let (ready, got) =
            (place.file(&format!("ready-{name}")), place.file(&format!("got-{name}")));
        let script = format!(
            "trap 'echo {name} > \"{}\"; exit 42' {name}; echo > '{}'; while :; do sleep 0.05; done",
            got.display(),
            ready.display()
        );
        let running = Running::start(place.grouplock(&["run", "r", "s", "-c", &script]));
        until("the trap is set", || ready.exists());
        running.send(signal);
        assert_eq!(running.code(), Some(42), "{name}");
        assert_eq!(line_of(&got), name);
    }
    assert!(place.is_empty("r"));
}

#[test]
fn a_signal_ends_the_wait_and_leaves_nothing_in_the_queue() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
        (Signal::SIGUSR1, 138),
        (Signal::SIGUSR2, 140),
    ] {
        let waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
        until("it waits", || place.waiters("r") == 1);
        waiter.send(Signal::SIGWINCH);
        waiter.send(signal);
        assert_eq!(waiter.code(), Some(code));
        // It is withdrawn, not just dead: no other process has to notice a death first.
        assert_eq!(place.waiters("r"), 0);
        assert_eq!(place.said(&["run", "-n", "r", "a", "--", "true"]).0, 0);
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let place = Place::new();
    let pid = place.file("pid");
    let script = format!(
        "trap '' HUP; exec '{}' run r s -c 'echo $PPID > \"{}\"; read line; kill -HUP $$; echo $line'",
        env!("CARGO_BIN_EXE_grouplock"),
        pid.display()
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = Running::start(shell);
    let ours: i32 = line_of(&pid).parse().expect("a number");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(ours), Signal::SIGHUP).expect("it is there");
    let mut stdin = shell.0.stdin.take().expect("it is piped");
    stdin.write_all(b"alive\n").expect("the command reads");
    assert_eq!(shell.stdout().to_end(), "alive\n");
    assert_eq!(shell.code(), Some(0));
}

#[test]
fn a_command_stopped_on_its_own_does_not_stop_us() {
    let place = Place::new();
    let pid = place.file("pid");
    let script = format!("echo $$ > '{}'; kill -STOP $$; exit 5", pid.display());
    let running = Running::start(place.grouplock(&["run", "r", "s", "-c", &script]));
    let command: i32 = line_of(&pid).parse().expect("a number");
    until("it is stopped", || state(command) == Some('T'));
    assert_ne!(state(running.pid()), Some('T'));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(command), Signal::SIGCONT)
        .expect("it is there");
    assert_eq!(running.code(), Some(5));
}

#[test]
fn a_caller_that_ignores_sigchld_does_not_hang_us() {
    let place = Place::new();
    for time in ["0", "0.1"] {
        let script = format!("sleep {time}; exit 7");
        let mut command = place.grouplock(&["run", "r", "s", "-c", &script]);
        ignoring(&mut command, &[Signal::SIGCHLD]);
        assert_eq!(Running::start(command).code(), Some(7));
        assert!(place.is_empty("r"));
    }
}

/// Starts the command with ignored signals. Shells cannot ignore all of them.
fn ignoring<'c>(command: &'c mut Command, signals: &'static [Signal]) -> &'c mut Command {
    let ignore = move || {
        for signal in signals {
            // SAFETY: `SIG_IGN` is no function of ours.
            unsafe { nix::sys::signal::signal(*signal, SigHandler::SigIgn) }?;
        }
        Ok(())
    };
    // SAFETY: it runs between fork and exec, makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(ignore) }
}

#[test]
fn dispositions_reach_the_command_as_they_came() {
    let place = Place::new();
    let ask = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"];
    for signals in [
        &[][..],
        &[Signal::SIGPIPE],
        &[Signal::SIGCHLD],
        &[Signal::SIGHUP, Signal::SIGUSR1],
        &[Signal::SIGPIPE, Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGTSTP],
    ] {
        let mut with = place.grouplock(&["run", "r", "s", "--"]);
        let mut without = Command::new("env");
        with_default_signals(&mut without);
        let (code, text, trouble) = told(ignoring(with.args(ask), signals));
        assert_eq!(code, 0, "{trouble}");
        assert_eq!(text, told(ignoring(without.args(ask), signals)).1, "{signals:?}");
    }
}

#[test]
fn we_die_by_the_signal_that_ended_the_command() {
    let place = Place::new();
    for number in [2, 6, 9, 10, 13, 15, 35] {
        let script = format!("ulimit -c 0; kill -{number} $$");
        let running = Running::start(place.grouplock(&["run", "r", "s", "-c", &script]));
        assert_eq!(running.ending().signal(), Some(number));
        assert!(place.is_empty("r"));
    }
    assert_eq!(place.status("r")["deaths"], 0);
    let _holder = place.occupy("r", "a");
    let waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
    until("it waits", || place.waiters("r") == 1);
    waiter.send(Signal::SIGINT);
    assert_eq!(waiter.ending().signal(), Some(2));
}

/// Whether a signal is pending for a process.
fn is_pending(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 << (signal as i32 - 1) != 0)
}

/// Sends a TERM to each of `targets`, a process or a group, while a command waits for them. Returns
/// how often `grouplock run` forwarded one.
fn passed_on(place: &Place, before: &str, targets: &[fn(i32) -> i32]) -> usize {
    let (ready, got) = (place.file("ready"), place.file("got"));
    _ = fs::remove_file(&ready);
    let script = format!(
        "trap 'echo > \"{got}\"' TERM; trap 'exit 42' USR1; echo > '{ready}'; while :; do sleep 0.02; done",
        got = got.display(),
        ready = ready.display()
    );
    let words: Vec<&str> = before.split_whitespace().chain(["sh", "-c", &script]).collect();
    let mut command = place.grouplock(&["run", "--json", "r", "s", "--"]);
    command.args(words).process_group(0).stderr(Stdio::piped());
    let mut running = Running::start(command);
    let events = running.stderr();
    until("the traps are set", || ready.exists());
    for target in targets {
        _ = fs::remove_file(&got);
        kill(Pid::from_raw(target(running.pid())), Signal::SIGTERM).expect("it is there");
        until("it has come", || got.exists());
        // The kernel would merge an earlier second one with the first.
        until("we have dealt with it", || {
            let ours = children(running.pid()).into_iter().chain([running.pid()]);
            ours.into_iter().all(|pid| !is_pending(pid, Signal::SIGTERM))
        });
    }
    running.send(Signal::SIGUSR1);
    assert_eq!(running.code(), Some(42));
    events.to_end().matches("\"forwarded\",\"signal\":\"SIGTERM\"").count()
}

#[test]
fn a_signal_to_the_whole_group_is_not_sent_to_the_command_again() {
    let place = Place::new();
    let group: fn(i32) -> i32 = |ours| -ours;
    let alone: fn(i32) -> i32 = |ours| ours;
    for _ in 0..5 {
        assert_eq!(passed_on(&place, "", &[group, group]), 0);
        assert_eq!(passed_on(&place, "", &[group, alone]), 1);
    }
    assert_eq!(passed_on(&place, "", &[alone]), 1);
    // A command in its own process group gets it from `grouplock run`.
    assert_eq!(passed_on(&place, "setsid", &[group]), 1);
}

#[test]
fn orphans_that_become_ours_are_reaped() {
    let place = Place::new();
    let pid = place.file("pid");
    // The first process of a container gets all orphans. A program that replaces a shell gets the
    // children of the shell.
    let script =
        format!("sleep 0.2 & echo $! > '{}'; exec \"$G\" run r s -- sleep 1000", pid.display());
    let _running = Running::start(place.script(&script));
    let orphan = line_of(&pid);
    until("it is reaped", || !std::path::Path::new(&format!("/proc/{orphan}")).exists());
}
