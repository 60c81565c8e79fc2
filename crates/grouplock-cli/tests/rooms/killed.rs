//! `kill -9` of `grouplock run`, and the loss of a holding.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use grouplock_testing::{Running, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{Place, children, line_of, mentioning, state, told, unique};

/// A command whose shell has a child. It appends to `alive` while it lives.
fn tick(place: &Place) -> (Running, Vec<i32>) {
    // Each round has its own file: a file of the last round would show the processes of that round.
    let (pids, alive) = (place.file(&format!("pids-{}", unique())), place.file("alive"));
    let script = format!(
        "(while :; do echo >> '{alive}'; sleep 0.01; done) & echo $$ $! > '{pids}'; wait",
        alive = alive.display(),
        pids = pids.display()
    );
    let running = Running::start(place.grouplock(&["run", "r", "a", "-c", &script]));
    let pids = line_of(&pids).split(' ').map(|pid| pid.parse().expect("a number")).collect();
    (running, pids)
}

#[test]
fn if_we_are_killed_the_command_and_its_children_die_before_the_room_is_free() {
    let place = Place::new();
    for _ in 0..5 {
        let (running, family) = tick(&place);
        let after = place.file("after");
        let alive = place.file("alive");
        // When it is inside, it checks twice whether the others still write.
        let script = format!(
            "wc -l < '{0}' > '{1}'; sleep 0.2; wc -l < '{0}' >> '{1}'; echo end >> '{1}'",
            alive.display(),
            after.display()
        );
        let next = Running::start(place.grouplock(&["run", "-q", "r", "b", "-c", &script]));
        until("the next waits", || place.waiters("r") == 1);
        running.send(Signal::SIGKILL);
        assert_eq!(next.code(), Some(0));
        for pid in &family {
            assert_eq!(state(*pid), None, "process {pid} has survived");
        }
        let counts = fs::read_to_string(&after).expect("the next has written");
        let counts: Vec<&str> = counts.lines().collect();
        assert_eq!(counts[0], counts[1], "somebody wrote while the next was inside");
    }
}

#[test]
fn a_child_that_is_born_while_its_family_is_killed_dies_too() {
    let place = Place::new();
    for round in 0..6 {
        let (begun, late) = (place.file(&format!("begun-{round}")), place.file("late"));
        // A process that was not killed writes while the next one is inside.
        let script = format!(
            "while :; do (sleep 0.4; echo >> '{}') & echo > '{}'; done",
            late.display(),
            begun.display()
        );
        let running = Running::start(place.grouplock(&["run", "r", "a", "-c", &script]));
        until("it has children", || begun.exists());
        running.send(Signal::SIGKILL);
        let script = "cat late 2>/dev/null | wc -l; sleep 0.6; cat late 2>/dev/null | wc -l";
        let mut next = place.grouplock(&["run", "-q", "r", "b", "-c", script]);
        let (code, counts, trouble) = told(next.current_dir(place.path()));
        assert_eq!(code, 0, "{trouble}");
        let counts: Vec<&str> = counts.lines().collect();
        assert_eq!(counts[0], counts[1], "somebody wrote while the next was inside");
    }
}

#[test]
fn a_whole_process_group_that_is_killed_leaves_the_room_free() {
    let place = Place::new();
    let pids = place.file("pids");
    let script = format!("echo $$ > '{}'; sleep 1000", pids.display());
    let mut leader = place.grouplock(&["run", "r", "a", "-c", &script]);
    std::os::unix::process::CommandExt::process_group(&mut leader, 0);
    let running = Running::start(leader);
    let command: i32 = line_of(&pids).parse().expect("a number");
    kill(Pid::from_raw(-running.pid()), Signal::SIGKILL).expect("the group is there");
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0, 0);
    assert_eq!(state(command), None);
}

#[test]
fn the_next_holder_learns_of_a_death_inside() {
    let place = Place::new();
    let running = place.occupy("r", "a");
    let pid = running.pid();
    let epoch = &place.status("r")["epoch"];
    running.send(Signal::SIGKILL);
    let script = "echo ${GROUPLOCK_RECOVERED-no}";
    let (code, text, trouble) = place.said(&["run", "-w", "60", "r", "b", "-c", script]);
    assert_eq!((code, text), (0, format!("{epoch}\n")));
    assert_eq!(
        trouble,
        format!(
            "grouplock: process {pid} died inside `r` in the session `a`; \
             its work may be half done\n"
        )
    );
    let (_, text, _) = place.said(&["run", "r", "c", "-c", script]);
    assert_eq!(text, format!("{epoch}\n"), "nobody has said that it is repaired");
}

#[test]
fn a_waiter_that_is_killed_does_not_hold_up_the_queue() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let waiter = Running::start(place.grouplock(&["run", "r", "b", "--", "true"]));
    until("b waits", || place.waiters("r") == 1);
    let next = Running::start(place.grouplock(&["run", "r", "c", "--", "true"]));
    until("c waits", || place.waiters("r") == 2);
    waiter.send(Signal::SIGKILL);
    holder.send(Signal::SIGTERM);
    assert_eq!(next.code(), Some(0));
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    let place = Place::new();
    let (running, family) = tick(&place);
    let guardian = || children(running.pid()).into_iter().find(|pid| !family.contains(pid));
    let first = guardian_of(&running, &family);
    kill(Pid::from_raw(first), Signal::SIGKILL).expect("it is there");
    until("there is another", || guardian().is_some_and(|pid| pid != first));
    running.send(Signal::SIGKILL);
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0, 0);
    for pid in family {
        assert_eq!(state(pid), None, "process {pid} has survived");
    }
}

/// The guardian of a run: the child that is neither the command nor one of its descendants.
fn guardian_of(running: &Running, family: &[i32]) -> i32 {
    let guardian = children(running.pid()).into_iter().find(|pid| !family.contains(pid));
    guardian.expect("there is one")
}

#[test]
fn if_we_and_the_guardian_are_killed_at_once_the_command_keeps_its_holding() {
    let place = Place::new();
    let (running, family) = tick(&place);
    let guardian = Pid::from_raw(guardian_of(&running, &family));
    // A stopped guardian cannot act before it is killed too.
    kill(guardian, Signal::SIGSTOP).expect("it is there");
    until("it is stopped", || state(guardian.as_raw()) == Some('T'));
    running.send(Signal::SIGKILL);
    kill(guardian, Signal::SIGKILL).expect("it is there");
    drop(running);
    until("both are dead", || state(guardian.as_raw()).is_none());
    assert!(state(family[0]).is_some(), "the command goes on");
    assert_eq!(place.said(&["run", "-q", "-n", "r", "b", "--", "true"]).0, 124);
    assert_eq!(place.said(&["run", "-q", "-w", "0.3", "r", "b", "--", "true"]).0, 124);
    for pid in family {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
    }
    let (code, _, trouble) = place.said(&["run", "-w", "60", "r", "b", "--", "true"]);
    assert_eq!(code, 0);
    assert!(trouble.contains("died inside `r` in the session `a`"), "{trouble}");
}

#[test]
fn killing_all_processes_of_our_name_kills_the_commands_too() {
    let place = Place::new();
    let (running, family) = tick(&place);
    let ours = children(running.pid()).into_iter().chain([running.pid()]);
    let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let ours: Vec<i32> = ours.filter(|pid| name(pid).contains("grouplock")).collect();
    assert!(ours.contains(&running.pid()));
    // All are stopped first, so that none can act between two kills.
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in &ours {
            kill(Pid::from_raw(*pid), signal).expect("it is there");
        }
    }
    assert_eq!(place.said(&["run", "-q", "-w", "60", "r", "b", "--", "true"]).0, 0);
    for pid in family {
        assert_eq!(state(pid), None, "process {pid} has survived");
    }
}

#[test]
fn what_a_command_leaves_in_the_background_keeps_neither_the_room_nor_a_slot() {
    let place = Place::new();
    let pids = place.file("pids");
    // Longer than a run that starts no thread to watch its holding.
    let script = format!(
        "sleep 1000 >/dev/null 2>&1 & echo $! >> '{}'; sleep 0.1; echo $GROUPLOCK_HOLDER",
        pids.display()
    );
    let slots = ["a", "b", "c"].map(|session| {
        let (code, holder, trouble) = place.said(&["run", "r", session, "-c", &script]);
        assert_eq!(code, 0, "{trouble}");
        holder.trim().rsplit('.').next().unwrap_or_default().to_owned()
    });
    for pid in fs::read_to_string(&pids).expect("they have written").lines() {
        kill(Pid::from_raw(pid.parse().expect("a number")), Signal::SIGKILL).expect("it is there");
    }
    assert!(slots.iter().all(|slot| *slot == slots[0]), "{slots:?}");
}

#[test]
fn nothing_of_ours_is_left_after_the_end() {
    let place = Place::new();
    let session = format!("session of {}", place.path().display());
    assert_eq!(place.said(&["run", "r", &session, "--", "sleep", "0.1"]).0, 0);
    assert_eq!(mentioning(&session), [0; 0]);
}

/// Removes the file of the room, like a person who does not know its purpose.
fn take_away(place: &Place) {
    for entry in fs::read_dir(place.rooms()).expect("the directory is there").flatten() {
        fs::remove_file(entry.path()).expect("it can be removed");
    }
}

#[test]
fn a_lost_holding_ends_the_command_with_123() {
    let place = Place::new();
    for (action, ends) in [("term", Some("TERM")), ("kill", None)] {
        let (ready, got) =
            (place.file(&format!("ready-{action}")), place.file(&format!("got-{action}")));
        let script = format!(
            "trap 'echo TERM > \"{}\"; exit 0' TERM; echo > '{}'; while :; do sleep 0.05; done",
            got.display(),
            ready.display()
        );
        let option = format!("--on-loss={action}");
        let mut command = place.grouplock(&["run", &option, "r", "a", "-c", &script]);
        command.stderr(Stdio::piped());
        let mut running = Running::start(command);
        let trouble = running.stderr();
        until("it is inside", || ready.exists());
        take_away(&place);
        let trouble = trouble.to_end();
        assert_eq!(running.code(), Some(123), "{trouble}");
        assert!(trouble.contains("the holding in `r` was lost: the room was removed"), "{trouble}");
        assert_eq!(got.exists(), ends.is_some());
    }
}

#[test]
fn a_lost_holding_can_be_only_warned_of() {
    let place = Place::new();
    let mut command = place.grouplock(&["run", "--on-loss=warn", "r", "a"]);
    command.args(["-c", "echo inside; read line; echo $line"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command);
    let (text, trouble) = (running.stdout(), running.stderr());
    text.until_says("inside\n");
    take_away(&place);
    trouble.until_says("the holding in `r` was lost: the room was removed");
    let mut stdin = running.0.stdin.take().expect("it is piped");
    stdin.write_all(b"still here\n").expect("the command reads");
    assert_eq!(text.to_end(), "inside\nstill here\n");
    assert_eq!(running.code(), Some(123));
}

#[test]
fn a_room_that_is_cut_off_ends_nobody_by_a_signal() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let waiter = Running::start(place.grouplock(&["run", "-q", "r", "b", "--", "true"]));
    until("it waits", || place.waiters("r") == 1);
    for entry in fs::read_dir(place.rooms()).expect("the directory is there").flatten() {
        let file = fs::File::options().write(true).open(entry.path()).expect("it is ours");
        file.set_len(4096).expect("it can be cut");
    }
    holder.send(Signal::SIGTERM);
    assert_eq!(holder.code(), Some(123), "the holding was lost");
    assert_eq!(waiter.code(), Some(125), "the room is corrupt");
}
