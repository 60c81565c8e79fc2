//! A mutant whose ordering is too weak holds if all processes see every write at once, and breaks
//! what it is known to break with store buffers.

use grouplock_lab::Verdict;
use grouplock_mutants::weak::all;

#[test]
fn orderings_that_are_too_weak_are_convicted_with_store_buffers_only() {
    let mut wrong = Vec::new();
    for case in all() {
        for (model, breaks) in case.breaks {
            let outcome = case.explore(model);
            let found = outcome.violation.as_ref().map(|violation| violation.property);
            let told = format!("{}, {}, {model}: {found:?}", case.of, case.what);
            println!("{told}, {} states, {:?}", outcome.states, outcome.elapsed);
            if let Some(violation) = &outcome.violation {
                println!("  {}, in {} steps", violation.because, violation.trace.len());
            }
            if found != breaks || outcome.verdict == Verdict::Limit {
                wrong.push(format!("{told}, expected {breaks:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
