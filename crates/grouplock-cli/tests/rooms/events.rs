//! `--json`: an object per line, with the fields that docs/cli.md promises.

use std::process::Stdio;

use grouplock_testing::Running;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::place::{Place, told};

fn parse(text: &str) -> Vec<Value> {
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    for event in &events {
        assert!(event["time"].as_f64().is_some_and(|time| time > 1e9), "{event}");
    }
    events
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("each has a name")).collect()
}

#[test]
fn a_run_reports_its_events() {
    let place = Place::new();
    let (code, _, text) = place.said(&["run", "--json", "r", "s", "-c", "exit 3"]);
    assert_eq!(code, 3);
    let events = parse(&text);
    assert_eq!(names(&events), ["entered", "started", "exited", "left"]);
    let entered = &events[0];
    assert_eq!((&entered["room"], &entered["session"]), (&"r".into(), &"s".into()));
    assert_eq!(entered["at"].as_str(), place.rooms().to_str());
    assert!(entered["epoch"].is_u64());
    assert!(entered["holder"].is_string() && entered["recovered"].is_null());
    assert!(events[1]["pid"].is_u64());
    assert_eq!((&events[2]["code"], &events[2]["signal"]), (&3.into(), &Value::Null));
}

#[test]
fn waiting_and_failing_are_reported() {
    let place = Place::new();
    let _holder = place.occupy("r", "a");
    let (code, _, text) = place.said(&["run", "--json", "-q", "-w", "0.5", "r", "b", "--", "true"]);
    assert_eq!(code, 124);
    let events = parse(&text);
    assert_eq!(names(&events), ["waiting", "failed"]);
    let waiting = &events[0];
    assert_eq!((&waiting["inside"], &waiting["holders"]), (&"a".into(), &1.into()));
    assert_eq!(waiting["phases_before"], 0);
    assert!(waiting["waited_seconds"].is_f64());
    assert_eq!(events[1]["exit"], 124);
    assert!(events[1]["message"].as_str().is_some_and(|text| text.contains("not admitted")));
}

#[test]
fn a_signal_is_reported_with_its_effect() {
    let place = Place::new();
    let holder = place.occupy("r", "a");
    let start = |room: &str, command: &[&str]| {
        let mut run = place.grouplock(&["run", "--json", room, "b", "--"]);
        run.args(command).stderr(Stdio::piped());
        let mut running = Running::start(run);
        let events = running.stderr();
        (running, events)
    };
    let (waiter, events) = start("r", &["true"]);
    events.until_says("\"waiting\"");
    waiter.send(Signal::SIGTERM);
    let events = parse(&events.to_end());
    let last = events.last().expect("there are some");
    assert_eq!((&last["event"], &last["signal"]), (&"signalled".into(), &"SIGTERM".into()));
    assert_eq!(last["exit"], 143);
    drop(holder);

    let (running, events) = start("r2", &["sleep", "100"]);
    events.until_says("\"started\"");
    running.send(Signal::SIGTERM);
    let events = parse(&events.to_end());
    assert_eq!(names(&events), ["entered", "started", "forwarded", "exited", "left"]);
    assert_eq!((&events[2]["signal"], &events[2]["passed"]), (&"SIGTERM".into(), &true.into()));
    assert_eq!((&events[3]["signal"], &events[3]["code"]), (&"SIGTERM".into(), &Value::Null));
}

#[test]
fn events_go_to_the_descriptor_that_was_named() {
    let place = Place::new();
    let script = format!(
        "'{}' run --json=7 r s -c 'echo out; echo err >&2' 7>'{}'",
        env!("CARGO_BIN_EXE_grouplock"),
        place.file("seven").display()
    );
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &script]).env("GROUPLOCK_AT", place.rooms());
    let (code, text, trouble) = told(shell);
    assert_eq!((code, text.as_str(), trouble.as_str()), (0, "out\n", "err\n"));
    let seven = std::fs::read_to_string(place.file("seven")).expect("it was written");
    assert_eq!(names(&parse(&seven)).len(), 4);
    for bad in ["--json=99", "--json=-1", "--json=0"] {
        let (code, _, trouble) = place.said(&["run", bad, "r", "s", "--", "true"]);
        assert_eq!(code, 125, "{bad}");
        assert!(trouble.contains(bad) && trouble.contains("open for writing"), "{trouble}");
    }
}

#[test]
fn a_death_inside_is_reported() {
    let place = Place::new();
    let holder: Running = place.occupy("r", "a");
    let pid = holder.pid();
    drop(holder);
    let (_, _, text) = place.said(&["run", "--json", "-w", "60", "r", "b", "--", "true"]);
    let events = parse(&text);
    let entered = events.iter().find(|event| event["event"] == "entered").expect("it got in");
    let recovered = &entered["recovered"];
    assert_eq!((&recovered["pid"], &recovered["session"]), (&pid.into(), &"a".into()));
    assert!(recovered["command"].is_string() && recovered["noticed"].is_f64(), "{recovered}");
}
