//! `grouplock run` inside `grouplock run`.

use std::fs;
use std::process::Stdio;

use grouplock_testing::{Running, until};
use nix::sys::signal::Signal;

use crate::place::{Place, told};

/// Runs a script in room `r`, session `a`, while `b` waits for the room too. Returns its exit code,
/// stdout and stderr.
fn while_another_waits(place: &Place, script: &str) -> (i32, String, String) {
    let waiting = place.file("waiting");
    _ = fs::remove_file(&waiting);
    let script = format!("while ! [ -e '{}' ]; do sleep 0.01; done; {script}", waiting.display());
    let mut outer = place.grouplock(&["run", "r", "a", "-c", &script]);
    outer.env("G", env!("CARGO_BIN_EXE_grouplock"));
    outer.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut outer = Running::start(outer);
    let (text, trouble) = (outer.stdout(), outer.stderr());
    until("it is inside", || !place.is_empty("r"));
    let waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
    until("b waits", || place.waiters("r") == 1);
    fs::write(&waiting, "").expect("it can be written");
    let (text, trouble) = (text.to_end(), trouble.to_end());
    let code = outer.code().expect("it has ended");
    assert_eq!(waiter.code(), Some(0));
    (code, text, trouble)
}

#[test]
fn the_same_session_runs_at_once_although_another_waits() {
    let place = Place::new();
    // Long enough that the run watches its holding.
    let show = "sleep 0.1; echo $GROUPLOCK_ROOM $GROUPLOCK_SESSION $GROUPLOCK_EPOCH; exit 3";
    for options in ["", "-n", "-w 60"] {
        let script = format!("echo $GROUPLOCK_EPOCH; \"$G\" run {options} r a -c '{show}'");
        let (code, text, trouble) = while_another_waits(&place, &script);
        assert_eq!((code, trouble.as_str()), (3, ""));
        let (outer, inner) = text.split_once('\n').expect("two lines");
        assert_eq!(inner, format!("r a {outer}\n"));
    }
    // The same with another room between them.
    let script = "\"$G\" run other x -- \"$G\" run other x -- \"$G\" run r a -- echo within";
    assert_eq!(while_another_waits(&place, script), (0, "within\n".to_owned(), String::new()));
}

#[test]
fn another_session_of_the_same_room_is_refused() {
    let place = Place::new();
    for (command, inner) in [
        ("run r b -- true", "`b`"),
        ("run -w 1h r b -- true", "`b`"),
        ("acquire --for $$ r b", "`b`"),
        ("run -x r a -- true", "it alone"),
    ] {
        let script = format!("\"$G\" {command}");
        let (code, _, trouble) = told(
            place
                .grouplock(&["run", "r", "a", "-c", &script])
                .env("G", env!("CARGO_BIN_EXE_grouplock")),
        );
        assert_eq!(code, 125, "{command}: {trouble}");
        assert!(trouble.contains("inside `r` in the session `a`"), "{trouble}");
        let why = format!("cannot enter {inner}: it would wait for its own end");
        assert!(trouble.contains(&why), "{trouble}");
    }
    let script = "\"$G\" acquire --for $$ r a || exit";
    let (code, text, trouble) = while_another_waits(&place, script);
    assert_eq!((code, text.as_str()), (124, ""), "not twice, but not for ever either: {trouble}");
}

#[test]
fn another_path_to_the_same_place_is_the_same_place() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.path(), place.file("link")).expect("it can be made");
    for other in ["link/rooms", "rooms/../rooms"] {
        let script = format!("\"$G\" run --at '{}' r b -- true", place.file(other).display());
        let mut outer = place.grouplock(&["run", "r", "a", "-c", &script]);
        let (code, _, trouble) = told(outer.env("G", env!("CARGO_BIN_EXE_grouplock")));
        assert_eq!(code, 125, "{other}: {trouble}");
        assert!(trouble.contains("it would wait for its own end"), "{trouble}");
    }
}

#[test]
fn what_the_environment_says_of_a_holding_that_has_ended_is_not_believed() {
    let place = Place::new();
    let (_, held, _) = place.said(&["run", "r", "a", "-c", "echo $GROUPLOCK_HELD"]);
    let mut other = place.grouplock(&["run", "-n", "r", "b", "--", "true"]);
    assert_eq!(told(other.env("GROUPLOCK_HELD", held.trim())).0, 0);
    let _holder = place.occupy("r", "b");
    let mut same = place.grouplock(&["run", "-n", "r", "a", "--", "true"]);
    assert_eq!(told(same.env("GROUPLOCK_HELD", held.trim())).0, 124);
}

#[test]
fn a_nested_run_that_outlives_the_outer_one_is_ended() {
    let place = Place::new();
    let got = place.file("got");
    let inner = "trap \"echo TERM\" TERM; echo ready; while :; do sleep 0.05; done";
    let script = format!(
        "\"$G\" run r a -c '{inner}' > '{0}' 2> '{0}.trouble' & until grep -q ready '{0}'; do sleep 0.01; done; \
         echo $! > '{0}.pid'",
        got.display()
    );
    let (code, _, trouble) = while_another_waits(&place, &script);
    assert_eq!(code, 0, "{trouble}");
    until("it was told", || fs::read_to_string(&got).is_ok_and(|text| text.contains("TERM")));
    let pid = fs::read_to_string(place.file("got.pid")).expect("it is there");
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().expect("a number"));
    _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
    let trouble = fs::read_to_string(place.file("got.trouble")).expect("it is there");
    assert!(trouble.contains("the `grouplock run` around this one has left"), "{trouble}");
}
