//! The invariant of `docs/proofs/handover.md`. Every step keeps it, from every state that satisfies
//! it, reachable or not.

mod code;
mod enumeration;
mod invariant;
mod search;
mod shipped;
mod state;
mod text;

use std::path::Path;
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

/// The page with the proof.
fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/proofs/handover.md");
    std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// A number of states, in the format of the page.
fn power(states: f64) -> String {
    let told = format!("{states:.2e}");
    let (digits, exponent) = told.split_once('e').expect("it has an exponent");
    let raised = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c.to_digit(10).expect("a digit") as usize);
    format!("{digits} × 10{}", exponent.chars().filter_map(raised).collect::<String>())
}

/// A number with separated thousands.
fn apart(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", apart(number / 1000), number % 1000),
    }
}

/// Checks the induction. Returns its size, also as a row of the page.
fn induct(processes: usize, sessions: u8) -> (Found, String) {
    let (invariant, goals, began) = (invariant(), goals(), Instant::now());
    let search = Search::new(Size { processes, sessions }, &invariant, &goals);
    let typed = search.typed_states();
    let found = search.run();
    let Found { cases, states, steps, .. } = found;
    let row = format!(
        "| {processes} × {sessions} | {} | {} | {} | {} |",
        power(typed),
        power(states),
        apart(cases),
        apart(steps)
    );
    println!("{row} states, satisfy, cases, steps: {:.1} s", began.elapsed().as_secs_f64());
    if let Some(failure) = &found.failure {
        panic!("the step at {:?}: {}", failure.pc, failure.story);
    }
    (found, row)
}

/// Checks the induction, and that the page states its size.
fn induct_as_told(processes: usize, sessions: u8) -> Found {
    let (found, row) = induct(processes, sessions);
    assert!(page().contains(&row), "the page does not have {row}");
    found
}

#[test]
fn the_page_has_every_conjunct() {
    let page = page();
    // The table of the conjuncts has three columns, and the table of the lines has two.
    let rows = page.lines().filter(|line| line.matches('|').count() > 3);
    let stated = rows.filter_map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let number: usize = cells.next()?.parse().ok()?;
        Some(format!("{number} {}", cells.next()?))
    });
    let stated: Vec<_> = stated.collect();
    let checked: Vec<_> = INVARIANT.iter().map(|conjunct| conjunct.name.to_owned()).collect();
    assert_eq!(stated, checked);
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
        let found = induct_as_told(processes, 2);
        // There were enough states.
        assert!(found.steps > found.cases, "{found:?}");
    }
}

#[test]
fn every_step_keeps_the_invariant_with_three_sessions() {
    induct_as_told(3, 3);
}

#[test]
#[ignore = "takes ten seconds; `cargo xtask soak induction` runs it"]
fn every_step_keeps_the_invariant_with_four_processes() {
    induct_as_told(4, 2);
}

#[test]
#[ignore = "takes minutes; `cargo xtask soak induction` runs it"]
fn every_step_keeps_the_invariant_with_five_processes() {
    induct(5, 2);
}

/// If one of its conjuncts is removed, some step does not keep the invariant, or the invariant does
/// not imply its goals.
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

/// If one line is wrong, that line does not keep the invariant.
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
