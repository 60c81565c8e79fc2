//! The invariant of `docs/proofs/handover.md`: every step keeps it, from every state that satisfies it, reachable or not.

mod enumeration;
mod invariant;
mod search;
mod shipped;
mod state;
mod text;

use std::time::Instant;

use invariant::{Conjunct, GOALS, INVARIANT};
use search::{Found, Search, judge};
use state::{Pc, Size, State};
use text::Mutation;

fn invariant() -> Vec<&'static Conjunct> {
    INVARIANT.iter().collect()
}

fn goals() -> Vec<&'static Conjunct> {
    GOALS.iter().collect()
}

/// Checks the induction, and tells how much that was.
fn induct(processes: usize, sessions: u8) -> Found {
    let (invariant, goals, began) = (invariant(), goals(), Instant::now());
    let search = Search::new(Size { processes, sessions }, &invariant, &goals);
    let typed = search.typed_states();
    let found = search.run();
    let Found { cases, states, steps, .. } = found;
    println!(
        "{processes} × {sessions}: of {typed:.2e} states {states:.2e} satisfy the invariant, \
         in {cases} cases up to names; {steps} steps, {:.1} s",
        began.elapsed().as_secs_f64()
    );
    if let Some(failure) = &found.failure {
        panic!("the step at {:?}: {}", failure.pc, failure.story);
    }
    found
}

#[test]
fn the_first_state_satisfies_the_invariant() {
    for processes in 1..=4 {
        let size = Size { processes, sessions: 2 };
        for conjunct in INVARIANT {
            assert_eq!(judge(conjunct, &State::first(size), size), Ok(true), "{}", conjunct.name);
        }
    }
}

#[test]
fn every_step_keeps_the_invariant() {
    for processes in 1..=3 {
        let found = induct(processes, 2);
        // Not for want of states.
        assert!(found.steps > found.cases, "{found:?}");
    }
}

#[test]
#[ignore = "takes a minute; `cargo xtask soak induction`"]
fn every_step_keeps_the_invariant_with_three_sessions() {
    induct(3, 3);
}

#[test]
#[ignore = "takes minutes; `cargo xtask soak induction`"]
fn every_step_keeps_the_invariant_with_four_processes() {
    induct(4, 2);
}

/// Without one of its conjuncts, some step does not keep the invariant, or it does not imply what it is for.
#[test]
fn every_conjunct_is_needed() {
    let goals = goals();
    for left_out in INVARIANT {
        let rest: Vec<_> = INVARIANT.iter().filter(|c| c.name != left_out.name).collect();
        let failure = [1, 2].into_iter().find_map(|processes| {
            Search::new(Size { processes, sessions: 2 }, &rest, &goals).run().failure
        });
        let Some(failure) = failure else { panic!("{} is not needed", left_out.name) };
        println!("without {}: {:?}, {}", left_out.name, failure.pc, failure.what);
    }
}

/// With a line that is wrong, that line does not keep the invariant.
#[test]
fn a_wrong_line_does_not_keep_the_invariant() {
    let (invariant, goals) = (invariant(), goals());
    for (mutation, line) in Mutation::ALL {
        let failure = [1, 2].into_iter().find_map(|processes| {
            let mut search = Search::new(Size { processes, sessions: 2 }, &invariant, &goals);
            search.text = Some(mutation);
            search.run().failure
        });
        let Some(failure) = failure else { panic!("{mutation:?} keeps the invariant") };
        println!("{mutation:?}: {:?}, {}", failure.pc, failure.what);
        assert_eq!(failure.pc.map(Pc::line), Some(line), "{mutation:?}: {}", failure.story);
    }
}
