//! Several rooms at once: `grouplock run ROOM SESSION --and ROOM SESSION`.

use std::fs;
use std::os::unix::process::CommandExt;

use grouplock_testing::{Running, until};
use nix::sys::signal::Signal;

use crate::place::{Place, children, state};

/// Makes a file when it is inside, waits for another file, and ends.
fn wait_inside(place: &Place, mark: &str, go: &str) -> String {
    let (mark, go) = (place.file(mark), place.file(go));
    format!("echo > '{}'; until [ -e '{}' ]; do sleep 0.01; done", mark.display(), go.display())
}

#[test]
fn runs_that_name_rooms_in_opposite_orders_do_not_deadlock() {
    let place = Place::new();
    let log = place.file("log");
    let work = format!("echo in >> '{0}'; sleep 0.05; echo out >> '{0}'", log.display());
    let run = |first, second| {
        let rest = ["-w", "20", first, "s", "--and", second, "s", "-c", &work];
        Running::start(place.grouplock(&[&["run", "-q", "-x"], &rest[..]].concat()))
    };
    // If each run entered in the order of its arguments: one is the next in `gpu`, the other is
    // inside `disk` and waits for `gpu`.
    let holder = place.occupy("gpu", "other");
    assert_eq!(place.said(&["run", "disk", "s", "--", "true"]).0, 0, "there is such a room");
    let one = run("gpu", "disk");
    until("one waits", || place.waiters("gpu") == 1);
    let other = run("disk", "gpu");
    until("both wait", || place.waiters("gpu") + place.waiters("disk") == 2);
    drop(holder);
    assert_eq!([one, other].map(Running::code), [Some(0), Some(0)]);
    let log = fs::read_to_string(log).expect("it was written");
    assert_eq!(log, "in\nout\nin\nout\n", "each did its work, alone");
}

/// Without the order, two runs that enter in the order of their arguments deadlock. So the test
/// above can fail.
#[test]
fn runs_that_enter_as_they_name_would_deadlock() {
    let place = Place::new();
    let nested = |first: &str, second: &str| {
        let (ours, other) = (place.file(first), place.file(second));
        // Each run waits until the other one is inside its first room.
        let script = format!(
            "echo > '{}'; until [ -e '{}' ]; do sleep 0.01; done; \"$G\" run -q -x -w 0.3 {second} s -- true",
            ours.display(),
            other.display()
        );
        let mut command = place.grouplock(&["run", "-q", "-x", first, "s", "-c", &script]);
        command.env("G", env!("CARGO_BIN_EXE_grouplock"));
        Running::start(command)
    };
    let codes = [nested("disk", "gpu"), nested("gpu", "disk")].map(Running::code);
    assert!(codes.contains(&Some(124)), "they got by each other: {codes:?}");
}

#[test]
fn a_command_is_inside_all_its_rooms_and_knows_them() {
    let place = Place::new();
    let show = "echo $GROUPLOCK_ROOM $GROUPLOCK_SESSION $GROUPLOCK_ROOM_2 $GROUPLOCK_SESSION_2 \
                $((GROUPLOCK_EPOCH > 0 && GROUPLOCK_EPOCH_2 > 0)) ${GROUPLOCK_RECOVERED_2-nobody}; ";
    let script = show.to_owned() + &wait_inside(&place, "inside", "go");
    let mut run = place.grouplock(&["run", "z", "a", "--and", "b", "c", "-c", &script]);
    run.stdout(std::process::Stdio::piped());
    let mut run = Running::start(run);
    let said = run.stdout();
    until("it is inside", || place.file("inside").exists());
    let enter = |room, session| place.said(&["run", "-q", "-n", room, session, "--", "true"]).0;
    assert_eq!(
        [enter("z", "x"), enter("b", "x"), enter("z", "a"), enter("b", "c")],
        [124, 124, 0, 0]
    );
    fs::write(place.file("go"), "").expect("it can be written");
    assert_eq!(run.code(), Some(0));
    assert_eq!(said.to_end(), "z a b c 1 nobody\n");
    assert!(place.is_empty("z") && place.is_empty("b"));
}

#[test]
fn a_run_that_cannot_enter_all_in_time_keeps_none() {
    let place = Place::new();
    let _holder = place.occupy("b", "other");
    for wait in [&["-n"][..], &["-w", "0.1"]] {
        let run = [&["run", "-q"], wait, &["a", "s", "--and", "b", "s", "--", "true"]].concat();
        assert_eq!(place.said(&run).0, 124);
        assert!(place.is_empty("a"));
    }
    // When a signal ends or stops the wait, the run leaves the rooms that it has entered. It has
    // its own process group: the kernel does not stop a process whose group has no parent outside.
    let mut waiting = place.grouplock(&["run", "-q", "a", "s", "--and", "b", "s", "--", "true"]);
    waiting.process_group(0);
    let waiting = Running::start(waiting);
    until("it waits", || place.waiters("b") == 1);
    assert_eq!(place.status("a")["inside"]["session"], "s");
    waiting.send(Signal::SIGTSTP);
    until("it is stopped", || state(waiting.pid()) == Some('T'));
    assert!(place.is_empty("a"), "nobody waits for one who is stopped");
    assert_eq!(place.waiters("b"), 0);
    waiting.send(Signal::SIGCONT);
    until("it waits again", || place.waiters("b") == 1);
    waiting.send(Signal::SIGTERM);
    assert_eq!(waiting.code(), Some(143));
    assert!(place.is_empty("a"));
}

#[test]
fn if_the_run_is_killed_no_room_is_free_before_the_command_is_dead() {
    let place = Place::new();
    let script = wait_inside(&place, "inside", "go");
    let run =
        Running::start(place.grouplock(&["run", "-q", "a", "s", "--and", "b", "s", "-c", &script]));
    until("it is inside", || place.file("inside").exists());
    let command = children(run.pid());
    run.send(Signal::SIGKILL);
    for room in ["a", "b"] {
        assert_eq!(place.said(&["run", "-q", "-w", "60", room, "t", "--", "true"]).0, 0);
        assert!(command.iter().all(|pid| state(*pid).is_none()));
        assert_eq!(place.status(room)["deaths"], 1);
    }
}

#[test]
fn what_several_rooms_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["a", "s", "--and", "a", "t"][..], "`a` is named twice"),
        (&["a", "s", "--and", "b"], "2 values required"),
        (&["--setup", "true", "a", "s", "--and", "b", "t"], "cannot be used with"),
        (&["--teardown", "true", "a", "s", "--and", "b", "t"], "cannot be used with"),
    ] {
        let (code, _, trouble) = place.said(&[&["run"], arguments, &["--", "true"]].concat());
        assert_eq!(code, 125, "{arguments:?}: {trouble}");
        assert!(trouble.contains(expected), "{arguments:?}: {trouble}");
    }
}

#[test]
fn a_run_inside_shows_the_variables_of_its_own_rooms_only() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_grouplock");
    let inner = format!("'{program}' run c z -- env");
    let (code, shown, trouble) = place.said(&["run", "a", "x", "--and", "b", "y", "-c", &inner]);
    assert_eq!(code, 0, "{trouble}");
    assert!(shown.contains("\nGROUPLOCK_ROOM=c\n"), "{shown}");
    assert!(!shown.contains("_2="), "{shown}");
    let inner = format!("'{program}' run c z --and d w -- env");
    let (_, shown, _) = place.said(&["run", "a", "x", "--and", "b", "y", "-c", &inner]);
    assert!(shown.contains("\nGROUPLOCK_ROOM_2=d\n"), "{shown}");
}
