//! Signals that are sent to `grouplock run`.

use std::io::Write;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::place::{Place, Running, line_of, state, until};

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
        // Withdrawn, not just dead: nobody has to find out first.
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
