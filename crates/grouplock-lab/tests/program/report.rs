//! `grouplock-lab table` and `grouplock-lab report`.

use std::path::Path;

use crate::lab;

/// The exit code and the text on standard error.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = lab(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_explored() {
    let (code, said) = refused(&["report", "--out", "/nonexistent/report.html", "--plan", "full"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot write /nonexistent/report.html"), "{said}");
}

#[test]
fn a_trace_that_cannot_be_read_is_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (page, broken) = (folder.join("page.html"), folder.join("broken.json"));
    std::fs::write(&broken, "{\"algorithm\": 3}").expect("the folder for tests is writable");
    for (trace, why) in [(broken.as_path(), "lab check --json"), (folder, "cannot read")] {
        let (code, said) = refused(&[
            "report",
            "--out",
            page.to_str().expect("a plain path"),
            "--trace",
            trace.to_str().expect("a plain path"),
        ]);
        assert_eq!(code, Some(2));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn an_unknown_paper_or_plan_is_refused() {
    let (code, said) = refused(&["table", "--paper", "lamport"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("maor-taubenfeld"), "{said}");
    let (code, said) = refused(&["table", "--plan", "endless"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("quick"), "{said}");
}
