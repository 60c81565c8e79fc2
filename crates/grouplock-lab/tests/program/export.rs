//! `grouplock-lab export`. The tests with Spin are in `grouplock-mutants`, `tests/spin`.

use grouplock_testing::Scratch;

use crate::lab;

fn exported(arguments: &[&str]) -> String {
    let output = lab(&[&["export", "--promela"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn a_model_holds_what_is_claimed_and_says_how_to_check_it() {
    let model = exported(&["mcs", "--processes", "3"]);
    assert!(model.contains("mcs, 3 processes"), "{model}");
    for part in [
        "spin -a model.pml",
        "What has to be trusted",
        "active [3] proctype process()",
        "assert(mutual_exclusion)",
        "assert(first_come_first_served)",
        "assert(this_edge_was_met)",
        "ltl deadlock_freedom",
        "ltl starvation_freedom_2",
        "end_stopped",
    ] {
        assert!(model.contains(part), "{part} is not in\n{model}");
    }
}

#[test]
fn one_property_is_exported_alone_and_twice_the_same() {
    let question = ["burns-lamport", "--property", "mutual-exclusion"];
    let model = exported(&question);
    assert!(model.contains("assert(mutual_exclusion)"), "{model}");
    for part in ["first_come_first_served = ", "ltl ", "end_stopped", "before["] {
        assert!(!model.contains(part), "{part} is in\n{model}");
    }
    assert_eq!(model, exported(&question));
}

/// If passages are bounded, a claim that no process starves means nothing.
#[test]
fn passages_are_counted_where_they_are_bounded() {
    let model = exported(&["bakery", "--passages", "1"]);
    assert!(model.contains("passages[me] < 1") && !model.contains("ltl starvation"), "{model}");
}

#[test]
fn a_model_is_written_to_a_file() {
    let scratch = Scratch::new();
    let file = scratch.join("clh.pml");
    let named = file.to_str().expect("a plain path");
    assert_eq!(exported(&["clh", "--out", named]), "");
    assert_eq!(std::fs::read_to_string(file).expect("it was written"), exported(&["clh"]));
}

#[test]
fn a_wrong_question_ends_with_2() {
    for (question, why) in [
        (&["clhh", "--promela"][..], "did you mean \"clh\"?"),
        (&["clh"], "--promela"),
        (&["clh", "--promela", "--processes", "0"], "0 processes"),
        (&["handover", "--promela", "--sessions", "0"], "0 sessions"),
        (&["clh", "--promela", "--passages", "0"], "--passages"),
        (&["clh", "--promela", "--memory-limit", "0"], "--memory-limit"),
        (&["clh", "--promela", "--property", "fcsf"], "did you mean \"fcfs\"?"),
        (&["clh", "--promela", "--property", "strong-fifo"], "strong-fifo cannot be exported"),
        (
            &["clh", "--promela", "--property", "starvation-freedom", "--passages", "1"],
            "passages are bounded",
        ),
        (&["clh", "--promela", "--out", "/nonexistent/clh.pml"], "cannot write"),
    ] {
        let output = lab(&[&["export"], question].concat());
        assert_eq!(output.status.code(), Some(2), "{question:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why) && output.stdout.is_empty(), "{said}");
    }
}

#[test]
fn a_limit_ends_with_3() {
    let output = lab(&["export", "bakery", "--promela", "--memory-limit", "0.001"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty(), "a model with half of its edges is none");
}
