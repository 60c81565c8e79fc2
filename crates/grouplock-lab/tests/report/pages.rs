//! Inserts tables into pages.

use grouplock_lab::report::pages::{PageError, fill};
use grouplock_lab::report::{Dossier, Task};

fn evidence() -> Dossier {
    Dossier::collect(&[Task::new("mcs", 2, 1)], &mut |_, _| {}).expect("the task is right")
}

#[test]
fn a_table_is_replaced_and_the_rest_is_kept() {
    let page = "before\n<!-- evidence: explored mcs -->\nstale\n<!-- end of evidence -->\nafter";
    let filled = fill(page, &evidence()).expect("the page is right");
    assert!(filled.starts_with("before\n") && filled.ends_with("-->\nafter"), "{filled}");
    assert!(filled.contains("| `mcs` | 2 processes |"), "{filled}");
    assert!(!filled.contains("stale"), "{filled}");
    assert_eq!(fill(&filled, &evidence()).map(|again| again.len()), Ok(filled.len()));
}

#[test]
fn a_page_that_asks_for_what_is_not_there_is_refused() {
    let page = |asked: &str| format!("\n<!-- evidence: {asked} -->\n<!-- end of evidence -->\n");
    let asked = |asked: &str| fill(&page(asked), &evidence()).unwrap_err().to_string();
    assert!(asked("explored handover").contains("nothing for \"explored handover\""));
    assert!(asked("wishes").contains("line 2: \"wishes\" is no table"));
    let endless = fill("<!-- evidence: explored mcs -->\nstale\n", &evidence());
    assert_eq!(endless, Err(PageError::Endless(1)));
}
