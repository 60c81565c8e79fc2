//! The protocol of rooms in a directory, explored: the text of `src/file/line.rs` on a small
//! memory.
//!
//! Three participants enter, wait, withdraw, leave, become alone, let others join, and die.
//! Everything happens under the latch, so an operation is a list of writes. The exploration cuts
//! the list off before every write: that is the death of its owner. Any other participant notices a
//! death at any later time, and may die while it recovers. All states are visited, breadth first.
//!
//! Waiters also watch the slot in front of them, and sleep. The watched slot is in the line, or the
//! watcher was nudged.
//!
//! A mutant is the same text with one edit to the lists of writes. Each must be rejected.

mod acts;
mod explore;
#[allow(dead_code, reason = "what only the file needs")]
#[path = "../../src/file/line.rs"]
mod line;
mod memory;
mod mutants;
mod nonsense;
mod properties;

use acts::Play;
use explore::explore;
use line::ANY;
use mutants::Mutant;

#[test]
fn every_state_of_three_participants_is_sound() {
    let states = explore(&Play::three(Mutant::None)).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states");
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn every_state_with_limits_is_sound() {
    let requests = &[(1, false, ANY), (1, false, 2), (2, false, 1)];
    let play = Play { requests, ..Play::three(Mutant::None) };
    let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states with limits");
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn every_state_of_one_that_switches_is_sound() {
    let play = Play { owners: [0, 1, 0], ..Play::three(Mutant::None) };
    let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{states} states with a switch");
    assert!(states > 1_000, "only {states} states");
}

/// Two sessions; with limits; and with one owner of two slots that switches.
fn watching(mutant: Mutant) -> [Play; 3] {
    let two = &[(1, false, ANY), (2, false, ANY)];
    let limits = &[(1, false, ANY), (1, false, 2), (2, false, 1)];
    let three = || Play { watching: true, requests: two, ..Play::three(mutant) };
    [three(), Play { requests: limits, ..three() }, Play { owners: [0, 1, 0], ..three() }]
}

#[test]
fn no_waiter_sleeps_when_the_slot_that_it_watches_is_gone() {
    for play in watching(Mutant::None) {
        let states = explore(&play).unwrap_or_else(|wrong| panic!("{wrong}"));
        println!("{states} states with watchers");
        assert!(states > 1_000, "only {states} states");
    }
}
