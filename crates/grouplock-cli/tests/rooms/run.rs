//! `grouplock run`: options, exit codes, environment, descriptors.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

use grouplock_testing::{Running, until};

use crate::place::{Place, install, line_of, told};

#[test]
fn the_exit_code_is_the_commands_own() {
    let place = Place::new();
    for code in [0, 1, 7, 123, 124, 125, 255] {
        let script = format!("exit {code}");
        assert_eq!(place.said(&["run", "r", "s", "-c", &script]).0, code);
        assert_eq!(place.said(&["run", "r", "s", "--", "sh", "-c", &script]).0, code);
    }
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("USR1", 138)] {
        let script = format!("kill -{signal} $$");
        assert_eq!(place.said(&["run", "r", "s", "-c", &script]).0, code);
    }
    assert!(place.is_empty("r"));
}

#[test]
fn a_command_that_cannot_be_run_gives_126_and_127() {
    let place = Place::new();
    let (code, _, trouble) = place.said(&["run", "r", "s", "--", "no-such-command"]);
    assert_eq!(code, 127);
    assert_eq!(trouble, "grouplock: no-such-command: command not found\n");
    let file = place.file("not-executable");
    fs::write(&file, "").expect("it can be written");
    let (code, _, trouble) = place.said(&["run", "r", "s", "--", &file.to_string_lossy()]);
    assert_eq!(code, 126);
    assert!(trouble.contains("not-executable: cannot be run: Permission denied"), "{trouble}");
    fs::write(&file, "#!/no/such/shell\n").expect("it can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let script = place.file("script");
    install(&file, &script);
    for name in [&*script.to_string_lossy(), "script"] {
        let mut run = place.grouplock(&["run", "r", "s", "--", name]);
        let (code, _, trouble) = told(run.env("PATH", place.path()));
        assert_eq!(code, 126, "{trouble}");
        assert!(trouble.contains("the interpreter it asks for was not found"), "{trouble}");
    }
    assert!(place.is_empty("r"));
}

#[test]
fn the_same_session_shares_and_another_waits() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    assert_eq!(place.said(&["run", "-n", "r", "a", "--", "true"]).0, 0);
    let mark = place.file("mark");
    let script = format!("echo in > '{}'", mark.display());
    let waiter = Running::start(place.grouplock(&["run", "r", "b", "-c", &script]));
    until("b waits", || place.waiters("r") == 1);
    assert!(!mark.exists());
    holder.send(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(holder.code(), Some(143));
    assert_eq!(waiter.code(), Some(0));
    assert!(mark.exists());
}

#[test]
fn without_time_to_wait_it_is_124_or_what_was_asked_for() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    let (code, _, trouble) = place.said(&["run", "-n", "r", "b", "--", "true"]);
    assert_eq!(code, 124);
    assert_eq!(trouble, "grouplock: the room is occupied by the session `a`\n");
    for option in ["--no-wait", "--nonblock", "-n"] {
        assert_eq!(place.said(&["run", option, "r", "b", "--", "true"]).0, 124);
    }
    for time in ["0.2", "200ms", "0.2s"] {
        let start = Instant::now();
        let (code, _, trouble) = place.said(&["run", "-w", time, "r", "b", "--", "true"]);
        assert_eq!(code, 124);
        assert!(start.elapsed().as_millis() >= 200);
        assert_eq!(trouble, "grouplock: not admitted within 0.2 s\n");
    }
    assert_eq!(place.said(&["run", "-E", "9", "-n", "r", "b", "--", "true"]).0, 9);
    let quiet =
        place.said(&["run", "-q", "--conflict-exit-code=0", "--timeout=0", "r", "b", "--", "true"]);
    assert_eq!(quiet, (0, String::new(), String::new()));
    assert_eq!(place.waiters("r"), 0);
}

#[test]
fn the_command_knows_where_it_is() {
    let place = Place::new();
    let script = "echo \"$GROUPLOCK_ROOM|$GROUPLOCK_SESSION|$GROUPLOCK_EPOCH|$GROUPLOCK_HOLDER|$GROUPLOCK_AT|${GROUPLOCK_RECOVERED-no}\"; \
                  exec \"$0\" status --json \"$GROUPLOCK_ROOM\"";
    let program = env!("CARGO_BIN_EXE_grouplock");
    let (code, text, _) =
        place.said(&["run", "a room", "die Sitzung", "--", "sh", "-c", script, program]);
    assert_eq!(code, 0);
    let (line, status) = text.split_once('\n').expect("a line and a status");
    let status: serde_json::Value = serde_json::from_str(status).expect("it is JSON");
    let holder = status["inside"]["members"][0]["id"].as_str().expect("the holder has a name");
    let rooms = place.rooms();
    let epoch = &status["epoch"];
    assert_eq!(line, format!("a room|die Sitzung|{epoch}|{holder}|{}|no", rooms.display()));
    // A relative place stays the same for a command that changes its directory.
    let mut relative = place.grouplock(&["run", "--at", "rooms", "r", "s", "-c"]);
    relative.arg("cd /; echo $GROUPLOCK_AT").current_dir(place.path());
    let (_, text, _) = told(&mut relative);
    assert_eq!(text.trim_end(), rooms.to_string_lossy());
}

/// The epoch that a command of this session gets.
fn epoch_inside(place: &Place, session: &str) -> u64 {
    let (_, text, _) = place.said(&["run", "r", session, "-c", "echo $GROUPLOCK_EPOCH"]);
    text.trim().parse().expect("an epoch is a number")
}

#[test]
fn the_epoch_grows_when_the_session_changes_and_is_shared_by_its_holders() {
    let place = Place::new();
    let epoch = |session: &str| epoch_inside(&place, session);
    let first = epoch("a");
    assert!(epoch("b") > first);
    let _holder = place.occupy("r", "c");
    assert_eq!(epoch("c"), epoch("c"));
}

#[test]
fn epochs_do_not_go_back_when_a_room_is_removed() {
    let place = Place::new();
    let epoch = |session: &str| epoch_inside(&place, session);
    let first = ["a", "b", "a", "b"].map(epoch)[3];
    assert_eq!(place.said(&["remove", "r"]).0, 0);
    let second = epoch("a");
    assert!(second > first, "{second} after {first}");
    for entry in fs::read_dir(place.rooms()).expect("it is there").flatten() {
        fs::remove_file(entry.path()).expect("it is ours");
    }
    let third = epoch("a");
    assert!(third > second, "{third} after {second}");
}

#[test]
fn priority_decides_in_a_room_with_that_policy_and_batch_lets_newcomers_join() {
    let place = Place::new();
    let order = place.file("order");
    let policy = ["run", "--policy=priority:1000s", "p", "now", "--", "true"];
    assert_eq!(place.said(&policy).0, 0);
    let holder = place.occupy("p", "now");
    let mut waiters = Vec::new();
    for (priority, session) in [("-1", "later"), ("0", "then"), ("5", "soon")] {
        let script = format!("echo {session} >> '{}'", order.display());
        let arguments = ["run", "--priority", priority, "p", session, "-c", &script];
        waiters.push(Running::start(place.grouplock(&arguments)));
        until("it waits", || place.waiters("p") == waiters.len());
    }
    drop(holder);
    for waiter in waiters {
        assert_eq!(waiter.code(), Some(0));
    }
    assert_eq!(fs::read_to_string(&order).expect("all have written"), "soon\nthen\nlater\n");

    assert_eq!(place.said(&["run", "--policy=batch:1", "b", "x", "--", "true"]).0, 0);
    let _inside = place.occupy("b", "x");
    let _waiting = Running::start(place.grouplock(&["run", "b", "y", "--", "true"]));
    until("y waits", || place.waiters("b") == 1);
    assert_eq!(place.said(&["run", "-n", "b", "x", "--", "true"]).0, 0, "one may pass");
    assert_eq!(place.said(&["run", "-n", "b", "x", "--", "true"]).0, 124, "the next may not");
}

#[test]
fn what_was_said_about_the_duration_is_shown() {
    let place = Place::new();
    let script = format!("'{}' status r", env!("CARGO_BIN_EXE_grouplock"));
    let (_, text, _) = place.said(&["run", "--duration", "2m", "-p", "3", "r", "s", "-c", &script]);
    assert!(text.contains(" of 2 min, priority 3"), "{text}");
}

#[test]
fn of_our_descriptors_only_that_of_the_room_reaches_the_command_and_all_of_the_caller_do() {
    let place = Place::new();
    // The listing is the command itself, and has a descriptor of the directory.
    let list = "ls /proc/self/fd | tr '\\n' ' '";
    let (_, without, _) = told(std::process::Command::new("sh").args(["-c", list]));
    let (_, with, _) = place.said(&["run", "r", "s", "-c", list]);
    let with: Vec<&str> = with.split_whitespace().filter(|number| *number != "100").collect();
    assert_eq!(with, without.split_whitespace().collect::<Vec<_>>());
    let (_, file, _) = place.said(&["run", "r", "s", "--", "readlink", "/proc/self/fd/100"]);
    assert!(file.trim_end().ends_with("rooms/r.room"), "{file}");
    let script = format!(
        "exec 5>'{}'; '{}' run r s -c 'echo from inside >&5'",
        place.file("five").display(),
        env!("CARGO_BIN_EXE_grouplock")
    );
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    assert_eq!(told(shell).0, 0);
    assert_eq!(line_of(&place.file("five")), "from inside");
}

#[test]
fn stdin_belongs_to_the_command() {
    let place = Place::new();
    let mut cat = place.grouplock(&["run", "r", "s", "--", "cat"]);
    cat.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut cat = Running::start(cat);
    let mut stdin = cat.0.stdin.take().expect("it is piped");
    stdin.write_all(b"through").expect("it can be written");
    drop(stdin);
    assert_eq!(cat.stdout().to_end(), "through");
}

#[test]
fn sigpipe_ends_the_command_as_it_would_without_us() {
    let place = Place::new();
    let script = format!(
        "{{ '{}' run r s -- sh -c 'yes; echo $? >&2' || true; }} | head -n 1 > /dev/null",
        env!("CARGO_BIN_EXE_grouplock")
    );
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    let (_, _, trouble) = told(shell);
    assert_eq!(trouble.trim(), "141", "128 + SIGPIPE");
}

#[test]
fn piped_it_is_silent_unless_asked_to_speak() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let start = |arguments: &[&str]| {
        let mut run = place.grouplock(arguments);
        run.stderr(Stdio::piped());
        let mut running = Running::start(run);
        let words = running.stderr();
        (running, words)
    };
    let (silent, trouble) = start(&["run", "r", "b", "--", "true"]);
    let (_loud, words) = start(&["run", "-v", "r", "b", "--", "true"]);
    until("both wait", || place.waiters("r") == 2);
    words.until_says("grouplock: waiting for b in r, next; inside: a (");
    // Longer than the time between two checks of the room, after which it must not repeat the
    // message.
    std::thread::sleep(std::time::Duration::from_millis(700));
    drop(holder);
    let trouble = trouble.to_end();
    assert_eq!(silent.code(), Some(0));
    // The holder was killed with SIGKILL, which is always reported.
    assert_eq!(
        trouble.lines().filter(|line| !line.contains("died inside")).count(),
        0,
        "{trouble}"
    );
    let words = words.to_end();
    assert!(words.contains("grouplock: inside r: b, epoch "), "{words}");
    assert_eq!(words.matches("waiting for b in r, next").count(), 1, "{words}");
}
