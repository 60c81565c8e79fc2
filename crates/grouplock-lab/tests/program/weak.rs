//! `grouplock-lab check --memory`.

use std::path::Path;

use serde_json::Value;

use crate::lab;

/// The exit code, and the printed object.
fn checked(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = lab(&[&["check", "--json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let object = serde_json::from_slice(&output.stdout);
    (output.status.code(), object.unwrap_or_else(|why| panic!("{arguments:?}: {why}: {said}")))
}

#[test]
fn the_memory_model_and_unchecked_properties_are_named() {
    let (code, object) = checked(&["dvir-taubenfeld-1-swap", "--memory", "tso"]);
    assert_eq!((code, &object["memory"]), (Some(0), &"tso".into()));
    let of = |list: &str, name: &str| {
        object[list].as_array().is_some_and(|names| names.contains(&name.into()))
    };
    assert!(of("looked_at", "mutual-exclusion") && of("in_part", "deadlock-freedom"), "{object}");
    assert!(of("not_looked_at", "starvation-freedom"), "{object}");
    let (_, object) = checked(&["dvir-taubenfeld-1-swap"]);
    assert_eq!(object["memory"], "sc");
    let output = lab(&["check", "dvir-taubenfeld-1-swap", "--memory", "tso"]);
    let text = String::from_utf8(output.stdout).expect("it is text");
    let told = [
        "2 processes, memory tso: holds: mutual-exclusion, ",
        "; infinite executions not checked: deadlock-freedom; not checked: starvation",
    ];
    assert!(told.iter().all(|told| text.contains(told)), "{text}");
}

#[test]
fn what_does_not_go_with_store_buffers_is_refused() {
    for (question, why) in [
        (&["mcs", "--memory", "arm"][..], "there is no memory model \"arm\""),
        (
            &["mcs", "--memory", "tso", "--property", "starvation-freedom"],
            "starvation-freedom is checked with --memory sc only, not with tso",
        ),
        (
            &["mcs", "--memory", "pso", "--property", "bounded-exit"],
            "bounded-exit is checked with --memory sc only, not with pso",
        ),
        (&["--memory", "tso", "--replay", "some.json"], "cannot be used with"),
    ] {
        let output = lab(&[&["check"], question].concat());
        assert_eq!(output.status.code(), Some(2), "{question:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn an_execution_is_repeated_on_the_memory_that_its_file_names() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("late.trace.json");
    let repeat = |memory: &str| {
        let late = format!(
            r#"{{"algorithm": "mcs", "processes": 2, "sessions": 2, "passages": null, "property": null{memory},
                "schedule": [{{"process": 0, "session": 1}}, {{"process": 0, "session": 128}}]}}"#
        );
        std::fs::write(&file, late).expect("the folder can be written");
        lab(&["check", "--json", "--replay", file.to_str().expect("a plain path")])
    };
    let output = repeat(r#", "memory_model": "tso""#);
    assert_eq!(output.status.code(), Some(3), "it violates nothing");
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#""memory": "tso""#));
    let output = repeat("");
    assert_eq!(output.status.code(), Some(2), "no write is on its way");
    assert!(String::from_utf8_lossy(&output.stderr).contains("process 0 cannot make move 2"));
}

/// Rows with at most so many states are explored again.
const FEW: u64 = 30_000;

/// The table of `docs/verification.md`: command, states, verdict.
#[test]
fn the_page_says_what_store_buffers_show() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verification.md");
    let page = std::fs::read_to_string(page).expect("the page is part of the repository");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `check ")).filter_map(|row| {
        let (arguments, row) = row.split_once("` | ")?;
        let mut cells = row.split(" | ");
        let states = cells.next()?.replace(',', "").parse::<u64>().ok()?;
        Some((arguments, states, cells.next()?.starts_with("holds")))
    });
    let mut again = 0;
    for (arguments, states, holds) in rows.filter(|&(_, states, _)| states <= FEW) {
        let (code, object) = checked(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!((code == Some(0), object["verdict"] == "holds"), (holds, holds), "{arguments}");
        assert_eq!(object["states"], states, "{arguments}");
        again += 1;
    }
    assert!(again >= 8, "{again} rows were explored again");
}
