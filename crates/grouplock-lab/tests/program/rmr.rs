//! `grouplock-lab rmr`.

use std::process::Output;

fn rmr(arguments: &[&str]) -> Output {
    crate::lab(&[&["rmr"], arguments].concat())
}

/// Asserts that the question is refused. Returns the reason.
fn refused(arguments: &[&str]) -> String {
    let output = rmr(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("it is text")
}

#[test]
fn json_is_a_list_with_an_object_for_each_size() {
    let output = rmr(&["mcs", "--processes", "4,2", "--model", "dsm", "--passages", "3", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let list = list.as_array().expect("it is a list");
    let sizes: Vec<_> = list.iter().map(|object| object["processes"].as_u64()).collect();
    assert_eq!(sizes, [Some(2), Some(4)]);
    for object in list {
        assert_eq!((&object["algorithm"], &object["model"]), (&"mcs".into(), &"dsm".into()));
        assert_eq!(object["max"].as_u64(), Some(4));
        assert!(object["mean"].as_f64().is_some_and(|mean| mean > 0.0 && mean < 4.0));
        assert_eq!(object["bound"].as_u64(), Some(4));
    }
    let output = rmr(&["burns-lamport", "--processes", "2", "--passages", "2", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(list[0]["bound"].is_null() && list[0]["max"].is_u64(), "{list}");
}

#[test]
fn costs_by_contention_are_printed_if_requested() {
    let arguments = ["mcs", "--processes", "4", "--passages", "3"];
    let json = |more: &[&str]| -> serde_json::Value {
        let output = rmr(&[&arguments, more].concat());
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    };
    let list = json(&["--json", "--contention"]);
    for by in ["by_point_contention", "by_interval_contention"] {
        let found = list[0][by].as_array().expect("it is a list");
        let largest = found.iter().map(|one| one["max"].as_u64()).max().flatten();
        assert_eq!(largest, list[0]["max"].as_u64(), "{list}");
        assert!(found.iter().all(|one| one["contention"].as_u64() <= Some(4)), "{list}");
        assert!(json(&["--json"])[0].get(by).is_none());
    }
    let output = rmr(&[&arguments[..], &["--contention"]].concat());
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("mcs, 4 processes: largest found by contention k"), "{text}");
}

#[test]
fn the_table_compares_with_the_claim() {
    let output = rmr(&["dvir-taubenfeld-1", "--processes", "2,8", "--passages", "3"]);
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("proven: at most 12 for any N; claimed O(1)"), "{text}");
    let found = text.lines().filter(|line| line.starts_with("dvir-taubenfeld-1"));
    let found: Vec<_> = found.filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(found.last(), Some(&"10"), "{text}");
    // A measured maximum is not reported as a bound.
    let output = rmr(&["burns-lamport", "--processes", "4,8,16", "--passages", "2"]);
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("what was found grows as O(N²), claimed O(N²): within"), "{text}");
    assert!(!text.contains("at most"), "{text}");
}

#[test]
fn a_wrong_question_is_refused_with_what_was_expected() {
    assert!(refused(&["handovr"]).contains("did you mean \"handover\"?"));
    assert!(refused(&["mcs", "--processes", "2,257"]).contains("257 processes were asked for"));
    assert!(refused(&["mcs", "--processes", "0"]).contains("1 to 256"));
    let many = refused(&["mcs", "--processes", "2,many"]);
    assert!(many.contains("'many'") && many.contains("a whole number was expected"), "{many}");
    assert!(refused(&["mcs", "--passages", "-1"]).contains("-1"));
    assert!(refused(&["mcs", "--passages", "0"]).contains("at least 1"));
    assert!(refused(&["mcs", "--model", "numa"]).contains("cc-write-back"));
}

#[test]
fn a_lock_that_breaks_is_reported_and_the_others_are_measured() {
    let output = rmr(&["maor-taubenfeld", "--processes", "2,8"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).expect("it is text");
    assert!(told.contains("maor-taubenfeld with 8 processes"), "{told}");
    let table = String::from_utf8(output.stdout).expect("it is text");
    let of_8 = table.lines().find(|line| line.contains("8 processes")).expect("it has a line");
    assert!(of_8.contains("standstill") || of_8.contains("breaks"), "{table}");
    assert!(table.contains("it breaks with 8 processes: figures of other sizes show nothing"));
    assert!(!table.contains("claim"), "{table}");
}
