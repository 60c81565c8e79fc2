//! `grouplock-lab check` and `grouplock-lab list`.

use std::path::Path;

use serde_json::Value;

use crate::lab;

/// The exit code, and the printed object.
fn checked(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = lab(&[&["check", "--json"], arguments].concat());
    let object = serde_json::from_slice(&output.stdout).expect("it is JSON");
    (output.status.code(), object)
}

#[test]
fn what_holds_ends_with_0() {
    let (code, object) = checked(&["handover", "--processes", "2", "--sessions", "2"]);
    assert_eq!(code, Some(0));
    assert_eq!((&object["algorithm"], &object["verdict"]), (&"handover".into(), &"holds".into()));
    assert_eq!((&object["processes"], &object["sessions"]), (&2.into(), &2.into()));
    assert!(object["states"].as_u64().is_some_and(|states| states > 100));
    assert!(object["property"].is_null() && object["trace"].is_null());
}

#[test]
fn what_is_violated_ends_with_1_and_a_file_repeats_it() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("maor-taubenfeld.trace.json");
    let file = file.to_str().expect("a plain path");
    let size = ["maor-taubenfeld", "--processes", "3", "--passages", "5"];
    let drawn = ["--sample", "random", "--trace", file];
    let (code, object) = checked(&[&size[..], &drawn].concat());
    assert_eq!((code, &object["verdict"]), (Some(1), &"violated".into()));
    assert!(object["trace"].as_array().is_some_and(|trace| trace.len() > 20));
    assert!(object["depth"].is_null(), "a sample has no furthest state");
    let (code, again) = checked(&["--replay", file]);
    assert_eq!(code, Some(1));
    assert_eq!(again["property"], object["property"]);
}

/// In one passage no process starves, whatever the lock.
#[test]
fn an_unchecked_question_ends_with_3() {
    let question = ["burns-lamport", "--passages", "1", "--property", "starvation-freedom"];
    let (code, object) = checked(&question);
    assert_eq!((code, &object["verdict"]), (Some(3), &"limit".into()));
    let missing = object["not_looked_at"].as_array().expect("it is a list");
    assert!(missing.contains(&"starvation-freedom".into()), "{missing:?}");
    let text = String::from_utf8(lab(&[&["check"], &question[..]].concat()).stdout).expect("text");
    assert!(text.contains("holds: nothing; not checked: "), "{text}");
}

#[test]
fn an_execution_that_would_have_to_go_on_for_ever_is_not_said_to_repeat_itself() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("burns-lamport.trace.json");
    let file = file.to_str().expect("a plain path");
    let question = ["check", "burns-lamport", "--trace", file, "--property"];
    for (property, repeats) in [("starvation-freedom", false), ("bounded-entry", true)] {
        let said = lab(&[&question[..], &[property]].concat()).stderr;
        assert_eq!(String::from_utf8_lossy(&said).contains("repeats it"), repeats, "{property}");
        let (code, _) = checked(&["--replay", file]);
        assert_eq!(code, Some(if repeats { 1 } else { 3 }));
    }
}

#[test]
fn a_limit_ends_with_3() {
    let (code, object) = checked(&["handover", "--processes", "3", "--memory-limit", "0.0001"]);
    assert_eq!((code, &object["verdict"]), (Some(3), &"limit".into()));
}

#[test]
fn a_wrong_question_ends_with_2() {
    for (question, why) in [
        (&["handovr"][..], "did you mean \"handover\"?"),
        (&["handover", "--processes", "0"], "0 processes"),
        (&["handover", "--memory-limit", "0"], "--memory-limit"),
        (&["handover", "--passages", "0"], "--passages"),
        (&["handover", "--property", "strong-fifo"], "does not apply to handover"),
        (&["--replay", "/nonexistent"], "cannot read"),
    ] {
        let output = lab(&[&["check"], question].concat());
        assert_eq!(output.status.code(), Some(2), "{question:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_list_names_each_algorithm_with_its_claims() {
    let list: Value = serde_json::from_slice(&lab(&["list", "--json"]).stdout).expect("it is JSON");
    let list = list.as_array().expect("it is a list");
    let handover = list.iter().find(|object| object["algorithm"] == "handover");
    assert_eq!(handover.expect("it is there")["claims"]["fcfs"], "yes");
    let text = String::from_utf8(lab(&["list"]).stdout).expect("it is text");
    assert_eq!(text.matches("claims").count(), list.len());
}

#[test]
fn one_property_is_checked_alone_and_the_others_are_named() {
    let (code, object) = checked(&["burns-lamport", "--property", "fcfs"]);
    assert_eq!(
        (code, &object["property"]),
        (Some(1), &"fcfs".into()),
        "it is not claimed, and not so"
    );
    let (code, object) = checked(&["handover", "--property", "fcfs"]);
    assert_eq!(code, Some(0));
    let names = |list: &Value| -> Vec<String> {
        serde_json::from_value(list.clone()).expect("it is a list of names")
    };
    assert!(names(&object["looked_at"]).contains(&"fcfs".to_owned()));
    assert!(names(&object["not_looked_at"]).contains(&"mutual-exclusion".to_owned()));
    assert!(object["missed"].as_f64().is_some_and(|missed| missed > 0.0 && missed < 1e-9));
    let text = String::from_utf8(lab(&["check", "handover", "--property", "fcfs"]).stdout);
    let text = text.expect("it is text");
    assert!(text.contains("holds: fcfs; not checked: mutual-exclusion, "), "{text}");
    assert!(!text.contains("all claims hold"), "{text}");
}
