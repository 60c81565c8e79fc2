//! A mutant whose ordering is too weak holds if all processes see every write at once, and breaks
//! what it is known to break with store buffers.

use grouplock_lab::{Property, Verdict, Violation};
use grouplock_mutants::weak::all;

#[test]
fn orderings_that_are_too_weak_are_convicted_with_store_buffers_only() {
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for case in all() {
        let mut row = Vec::new();
        for (model, breaks) in case.breaks {
            let outcome = case.explore(model);
            let found = outcome.violation.as_ref().map(|violation| violation.property);
            row.push(outcome.violation.as_ref().map_or("holds", in_one_word));
            let told = format!("{}, {}, {model}: {found:?}", case.of, case.what);
            println!("{told}, {} states, {:?}", outcome.states, outcome.elapsed);
            if let Some(violation) = &outcome.violation {
                println!("  {}, in {} steps", violation.because, violation.trace.len());
            }
            if found != breaks || outcome.verdict == Verdict::Limit {
                wrong.push(format!("{told}, expected {breaks:?}"));
            }
        }
        let passages = case.passages.map_or("", |_| " (two passages each)");
        let lock = if case.of == "phases" { "phases-fifo" } else { case.of };
        rows.push(format!("| `{lock}` | {}{passages} | {} |", case.what, row.join(" | ")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(PAGE.contains(&rows.join("\n")), "the page has another table:\n{}", rows.join("\n"));
}

const PAGE: &str = include_str!("../../../docs/verification.md");

fn in_one_word(violation: &Violation) -> &'static str {
    match violation.property {
        Property::DeadlockFreedom => "**deadlock**",
        _ if violation.because.contains("has not reached memory") => "**data unseen**",
        _ => "**two inside**",
    }
}
