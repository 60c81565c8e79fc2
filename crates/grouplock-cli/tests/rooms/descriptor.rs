//! `grouplock enter --fd` and `grouplock leave --fd`: a descriptor of the script keeps the holding.

use std::process::Stdio;

use grouplock_testing::{Running, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{Place, children, line_of, told};

/// Opens descriptor 9 on room `r`.
const OPEN: &str = "exec 9<>\"$(\"$G\" path r)\" || exit 99; ";

/// Runs a script that has descriptor 9 open on room `r`.
fn run(place: &Place, script: &str) -> (i32, String, String) {
    told(&mut place.script(&(OPEN.to_owned() + script)))
}

/// For a script: waits until a request of session `b` is in the line, or fails after a minute.
const WAITS: &str = "look=0; until \"$G\" status r | grep -q 'waiting: b'; \
                     do [ $((look += 1)) -lt 6000 ] || exit 99; sleep 0.01; done;";

/// A script that has entered by descriptor 9, runs `then`, and stays until it is killed.
fn inside(place: &Place, session: &str, then: &str) -> Running {
    let mark = place.file("entered");
    _ = std::fs::remove_file(&mark);
    let script = format!(
        "{OPEN} \"$G\" enter --fd 9 r {session} || exit; {then} echo > '{}'; read line",
        mark.display()
    );
    let mut command = place.script(&script);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    line_of(&mark);
    running
}

fn try_enter(place: &Place, session: &str) -> i32 {
    place.said(&["run", "-q", "-n", "r", session, "--", "true"]).0
}

#[test]
fn a_descriptor_keeps_the_room_until_it_is_left() {
    let place = Place::new();
    let (code, text, trouble) = run(
        &place,
        "\"$G\" enter --fd 9 r a || exit; \"$G\" run -q -n r b -- true; echo $?; \"$G\" run -n r a -- true; echo $?; \
         \"$G\" held --fd 9; echo $?; \"$G\" leave --fd 9; echo $?; \"$G\" run -n r b -- true; echo $?",
    );
    assert_eq!((code, text.as_str()), (0, "124\n0\n0\n0\n0\n"), "{trouble}");
    assert_eq!(place.status("r")["deaths"], 0, "it left, and did not die");
    assert!(place.is_empty("r"));
}

#[test]
fn a_holding_ends_with_the_script_however_that_ends() {
    let place = Place::new();
    let script = inside(&place, "a", "");
    assert_eq!(try_enter(&place, "b"), 124);
    script.send(Signal::SIGKILL);
    let show = "echo ${GROUPLOCK_RECOVERED_SESSION-nobody}";
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "-c", show]).1, "a\n");
}

#[test]
fn children_that_have_the_descriptor_are_protected() {
    let place = Place::new();
    let script = inside(&place, "a", "sleep 1000 &");
    let child = children(script.pid())[0];
    script.send(Signal::SIGKILL);
    drop(script);
    assert_eq!(try_enter(&place, "b"), 124, "the child goes on, so the room is kept");
    let (code, text, _) = place.said(&["doctor"]);
    assert_eq!(code, 0);
    assert!(text.contains(&format!("{child} still has it open")), "{text}");
    kill(Pid::from_raw(child), Signal::SIGKILL).expect("it is there");
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0, 0);
}

#[test]
fn an_enter_that_is_killed_while_it_waits_leaves_nothing() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let mut script = place.script(&format!("{OPEN} \"$G\" enter --fd 9 r b; read line"));
    script.stdin(Stdio::piped());
    let script = Running::start(script);
    until("it waits", || place.waiters("r") == 1);
    let enter = children(script.pid())[0];
    kill(Pid::from_raw(enter), Signal::SIGKILL).expect("it is there");
    until("it waits no more", || place.waiters("r") == 0);
    drop(holder);
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "c", "--", "true"]).0, 0);
}

#[test]
fn a_script_that_waits_for_its_turn_does_its_work_alone() {
    let place = Place::new();
    let mark = place.file("mark");
    // Fails if another script does the same at the same time.
    let script = format!(
        "{OPEN} \"$G\" enter --fd 9 -x r || exit; mkdir '{0}' && sleep 0.1 && rmdir '{0}' && echo done; \"$G\" leave --fd 9",
        mark.display()
    );
    let start = || {
        let mut command = place.script(&script);
        command.stdout(Stdio::piped());
        Running::start(command)
    };
    for mut script in [start(), start(), start()] {
        let said = script.stdout();
        assert_eq!(said.to_end(), "done\n");
        assert_eq!(script.code(), Some(0));
    }
    assert_eq!(place.status("r")["deaths"], 0);
}

#[test]
fn enter_keeps_to_its_options() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    let (code, _, trouble) = run(&place, "\"$G\" enter -n --fd 9 r b");
    assert_eq!(code, 124);
    assert!(trouble.contains("occupied by the session `a`"), "{trouble}");
    let (code, _, trouble) = run(&place, "\"$G\" enter -w 0.1 -E 3 --fd 9 r b");
    assert_eq!(code, 3);
    assert!(trouble.contains("not admitted within 0.1 s"), "{trouble}");
    assert_eq!(
        run(&place, "\"$G\" enter -q -n -x --fd 9 r a"),
        (124, String::new(), String::new())
    );
    assert_eq!(run(&place, "\"$G\" enter -q -n --at-most 1 --fd 9 r a").0, 124);
    let two = "\"$G\" enter -n --at-most 2 --fd 9 r a && \"$G\" run -q -n r a -- true 9>&-";
    assert_eq!(run(&place, two).0, 124, "three would be too many");
    let script = format!("{OPEN} \"$G\" enter --fd 9 r b; exit $?");
    let script = Running::start(place.script(&script));
    until("it waits", || place.waiters("r") == 1);
    kill(Pid::from_raw(children(script.pid())[0]), Signal::SIGTERM).expect("it is there");
    assert_eq!(script.code(), Some(143), "it dies by the signal that ends the wait");
    assert_eq!(place.waiters("r"), 0);
}

#[test]
fn a_script_can_learn_the_epoch() {
    let place = Place::new();
    let (code, text, trouble) = run(
        &place,
        "all=$(\"$G\" enter --fd 9 --export r \"it's\") || exit; eval \"$all\"; echo $GROUPLOCK_EPOCH; \
         echo \"$GROUPLOCK_SESSION\"; \"$G\" run -q r \"it's\" -c 'echo $GROUPLOCK_EPOCH'; \"$G\" leave --fd 9",
    );
    assert_eq!(code, 0, "{trouble}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[1], lines[0]), ("it's", lines[2]));
    assert!(lines[0].parse::<u64>().is_ok_and(|epoch| epoch > 0), "{text}");

    // A script that ignores the exit code is not inside by mistake.
    let _holder = place.occupy("r", "a");
    let careless = "eval \"$(\"$G\" enter -q -n --fd 9 --export r b)\" || exit; echo inside";
    assert_eq!(run(&place, careless), (124, String::new(), String::new()));
}

#[test]
fn a_run_inside_does_not_wait_for_itself() {
    let place = Place::new();
    let script = format!(
        "all=$(\"$G\" enter --fd 9 --export r a) || exit; eval \"$all\"; \
                  env -u GROUPLOCK_HELD \"$G\" run r b -- true 9>&- & \
                  {WAITS} \
                  \"$G\" run r a -- echo shared; \"$G\" leave --fd 9; wait $!"
    );
    let (code, text, trouble) = run(&place, &script);
    assert_eq!((code, text.as_str()), (0, "shared\n"), "{trouble}");
}

#[test]
fn wrong_descriptors_are_named_with_what_was_expected() {
    let place = Place::new();
    let file = place.file("other").display().to_string();
    for (script, expected) in [
        (
            "exec 9>&-; \"$G\" enter --fd 9 r a".to_owned(),
            "--fd 9: no such descriptor is open; `exec 9<>",
        ),
        ("exec 9>&-; \"$G\" leave --fd 9".to_owned(), "--fd 9: no such descriptor is open"),
        (format!("exec 9<>'{file}'; \"$G\" enter --fd 9 r a"), "other and not on the room's file"),
        (
            "exec 9<>\"$(\"$G\" path q)\"; \"$G\" enter --fd 9 r a".to_owned(),
            "q.room and not on the room's file",
        ),
        (format!("exec 9<>'{file}'; \"$G\" leave --fd 9"), "which is not a room"),
        (format!("exec 9<>'{file}'; \"$G\" held --fd 9"), "which is not a room"),
        (
            "exec 9<\"$(\"$G\" path r)\"; \"$G\" enter --fd 9 r a".to_owned(),
            "open for reading only",
        ),
        (
            "\"$G\" enter --fd 9 r a; \"$G\" enter --fd 9 r a".to_owned(),
            "already keeps a holding in this room",
        ),
        ("\"$G\" enter --fd 9 r a; \"$G\" enter --fd 9 r b".to_owned(), "in the session `a`"),
        ("\"$G\" enter --at etcd://h:1 --fd 9 r a".to_owned(), "only rooms in a directory"),
        ("\"$G\" path --at gbp://h:1 r".to_owned(), "only rooms in a directory"),
    ] {
        let (code, _, trouble) = run(&place, &script);
        assert_eq!(code, 125, "{script}: {trouble}");
        assert!(trouble.contains(expected), "{script}: {trouble}");
    }
    let (code, _, trouble) = run(&place, "\"$G\" leave --fd 9");
    assert_eq!(code, 123);
    assert!(trouble.contains("--fd 9: it keeps no holding"), "{trouble}");
}

#[test]
fn a_descriptor_that_has_emptied_the_room_gets_an_error_and_others_a_new_room() {
    let place = Place::new();
    let script = "exec 9>\"$(\"$G\" path r)\"; \"$G\" enter --fd 9 r a";
    for _ in 0..2 {
        let (code, _, trouble) = told(&mut place.script(script));
        assert_eq!(code, 125);
        assert!(trouble.contains("was emptied (as `9>` does) or removed"), "{trouble}");
        assert_eq!(try_enter(&place, "a"), 0);
    }
    // As if the room were removed after its path was printed, and before it was opened.
    std::fs::write(place.rooms().join("r.room"), "").expect("it can be written");
    assert_eq!(try_enter(&place, "a"), 0);
    assert_eq!(run(&place, "exec 9>>\"$(\"$G\" path r)\"; \"$G\" enter --fd 9 r a").0, 0);
}

#[test]
fn a_room_that_is_emptied_stays_closed_while_somebody_is_inside() {
    let place = Place::new();
    let script = inside(&place, "a", "");
    std::fs::write(place.rooms().join("r.room"), "").expect("it can be written");
    let (code, _, trouble) = place.said(&["run", "-n", "r", "b", "--", "true"]);
    assert_eq!(code, 125, "{trouble}");
    assert!(trouble.contains("only 0 bytes"), "{trouble}");
    let (code, _, trouble) = run(&place, "echo opened");
    assert_ne!(code, 0, "{trouble}");
    drop(script);
    assert_eq!(try_enter(&place, "b"), 0, "it is made anew");
}

#[test]
fn a_run_that_does_not_know_that_it_is_inside_does_not_wait_for_itself() {
    let place = Place::new();
    let script = format!(
        "\"$G\" enter --fd 9 r a || exit; \"$G\" run r b -- true 9>&- & \
                  {WAITS} \
                  \"$G\" run r a -- echo shared || exit; \
                  for call in 'run r b -- true' 'run -x r a -- true' 'acquire r b'; do \
                  \"$G\" $call; echo $?; done; \"$G\" acquire r a 2>/dev/null; echo $?; \
                  \"$G\" leave --fd 9; wait $!"
    );
    let (code, text, trouble) = run(&place, &script);
    assert_eq!((code, text.as_str()), (0, "shared\n125\n125\n125\n124\n"), "{trouble}");
    let remedy = "this runs inside `r` in the session `a`, so it cannot enter `b`: it would wait for its own end. \
                  To start a job in the background that waits until then: \
                  `env -u GROUPLOCK_HELD grouplock … 9>&-`";
    assert_eq!(trouble.matches(remedy).count(), 2, "{trouble}");
}

#[test]
fn the_descriptor_of_a_run_keeps_no_holding_by_itself() {
    let place = Place::new();
    let script = "for call in 'leave --fd 100' 'held --fd 100'; do \"$G\" $call; echo $?; done; \
                  \"$G\" enter --fd 100 r a; echo $?; \"$G\" run -q -n r b -- true; echo $?";
    let mut outer = place.grouplock(&["run", "r", "a", "-c", script]);
    let (code, text, trouble) = told(outer.env("G", env!("CARGO_BIN_EXE_grouplock")));
    assert_eq!((code, text.as_str()), (0, "123\n123\n125\n124\n"), "{trouble}");
    assert!(trouble.contains("--fd 100: it keeps no holding of `grouplock enter`"), "{trouble}");
    assert_eq!(try_enter(&place, "b"), 0, "the room is as good as before");
}

#[test]
fn a_script_can_learn_that_its_room_is_gone() {
    let place = Place::new();
    let script = "\"$G\" enter --fd 9 r a; \"$G\" held --fd 9 || exit 1; rm \"$(\"$G\" path r)\"; \"$G\" held --fd 9; echo $?; \
                  \"$G\" run r b -- true; \"$G\" held --fd 9; echo $?; \"$G\" leave --fd 9; echo $?";
    let (code, text, trouble) = run(&place, script);
    assert_eq!((code, text.as_str()), (0, "123\n123\n123\n"), "{trouble}");
}

#[test]
fn status_shows_the_script_as_the_holder() {
    let place = Place::new();
    let script = inside(&place, "a", "");
    let status = place.status("r");
    let member = &status["inside"]["members"][0];
    assert_eq!(member["pid"], script.pid());
    assert!(member["command"].as_str().is_some_and(|command| command.starts_with("sh -c ")));
    let waiting = Running::start(place.grouplock(&["run", "-q", "r", "b", "--", "true"]));
    until("it waits", || place.waiters("r") == 1);
    script.send(Signal::SIGSTOP);
    let stopped = format!("process {} is stopped inside", script.pid());
    until("doctor sees it", || place.said(&["doctor"]).1.contains(&stopped));
    drop((script, waiting));
}

#[test]
fn a_script_that_has_repaired_says_so_when_it_leaves() {
    let place = Place::new();
    drop(inside(&place, "migration", ""));
    let died = || {
        let show = "echo ${GROUPLOCK_RECOVERED_SESSION-nobody}";
        place.said(&["run", "-q", "-w", "60", "r", "read", "-c", show]).1
    };
    assert_eq!(died(), "migration\n");
    let script = "all=$(\"$G\" enter -q --fd 9 --export r repair); eval \"$all\"; \
                  echo $GROUPLOCK_RECOVERED_SESSION; \"$G\" leave --fd 9";
    assert_eq!(run(&place, script).1, "migration\n");
    assert_eq!(died(), "migration\n", "nobody has said that it is repaired");
    assert_eq!(run(&place, &format!("{script} --repaired")).1, "migration\n");
    assert_eq!(died(), "nobody\n");
}
