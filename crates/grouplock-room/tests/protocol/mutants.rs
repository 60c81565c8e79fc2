//! The same protocol with one edit to the lists of writes. The exploration must reject each mutant.

use crate::acts::{Act, Play};
use crate::explore::explore;
use crate::line::{At, Field, IN, WAIT};
use crate::watching;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    None,
    SettleForgetsOne,
    ArmedTooLate,
    DisarmedTooEarly,
    RecoveryDoesNotRedo,
    StateBeforeTheRest,
    DeathMarkDropped,
    EpochStays,
    NobodyIsNudged,
    RecoveryNudgesNobody,
}

/// Edits the writes of an operation.
pub(crate) fn edit(mutant: Mutant, act: Act, writes: &mut Vec<(At, u64)>) {
    let is_state =
        |write: &(At, u64), state| matches!(write.0, At::Of(_, Field::State)) && write.1 == state;
    match mutant {
        // `explore` has the other mutants.
        Mutant::None
        | Mutant::RecoveryDoesNotRedo
        | Mutant::NobodyIsNudged
        | Mutant::RecoveryNudgesNobody => {}
        Mutant::SettleForgetsOne => {
            // The last one that is admitted, with all its writes.
            if let Some(at) = writes.iter().rposition(|write| is_state(write, IN)) {
                let slot = writes[at].0;
                let At::Of(slot, _) = slot else { return };
                writes[at].1 = WAIT;
                writes.retain(|write| *write != (At::Head, 0));
                let head = u64::from(slot) + 1;
                let end = writes.len() - 1;
                writes.insert(end, (At::Head, head));
            }
        }
        Mutant::ArmedTooLate => {
            if let Some(at) = writes.iter().position(|write| *write == (At::Armed, 1)) {
                let later = (at + 5).min(writes.len() - 1);
                let write = writes.remove(at);
                writes.insert(later, write);
            }
        }
        Mutant::DisarmedTooEarly => {
            let armed = writes.iter().rposition(|write| *write == (At::Armed, 1));
            if let (Some(from), Some((At::Armed, 0))) = (armed, writes.last()) {
                let earlier = (from + 1).max(writes.len().saturating_sub(4));
                writes[earlier..].rotate_right(1);
            }
        }
        Mutant::StateBeforeTheRest => {
            for at in 3..writes.len() {
                if is_state(&writes[at], IN) {
                    writes[at - 2..=at].rotate_right(1);
                }
            }
        }
        Mutant::DeathMarkDropped => {
            if matches!(act, Act::Bury(_)) {
                writes.retain(|(at, _)| *at != At::Deaths);
            }
        }
        Mutant::EpochStays => {
            let begins = writes.iter().any(|(at, _)| *at == At::Epoch);
            writes.retain(|(at, _)| *at != At::Epoch);
            for (at, value) in writes {
                if begins && matches!(at, At::Of(_, Field::Epoch)) {
                    *value -= 1;
                }
            }
        }
    }
}

fn convicted(mutant: Mutant, of: &[&str]) {
    match explore(&Play::three(mutant)) {
        Ok(states) => panic!("{mutant:?} gets away with {states} states"),
        Err(wrong) => {
            println!("{wrong}");
            assert!(of.iter().any(|what| wrong.contains(what)), "{mutant:?}: {wrong}");
        }
    }
}

#[test]
fn a_settle_that_forgets_one_is_convicted() {
    convicted(Mutant::SettleForgetsOne, &["in the line, is 1"]);
}

#[test]
fn arming_too_late_is_convicted() {
    convicted(Mutant::ArmedTooLate, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn disarming_too_early_is_convicted() {
    convicted(Mutant::DisarmedTooEarly, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn a_recovery_that_does_not_redo_is_convicted() {
    convicted(Mutant::RecoveryDoesNotRedo, &["links", "in the line", "exclusion", "contradiction"]);
}

#[test]
fn a_state_before_the_rest_is_convicted() {
    convicted(Mutant::StateBeforeTheRest, &["wrong epoch", "not told"]);
}

#[test]
fn a_dropped_death_mark_is_convicted() {
    convicted(Mutant::DeathMarkDropped, &["is forgotten"]);
}

#[test]
fn an_epoch_that_stays_is_convicted() {
    convicted(Mutant::EpochStays, &["one epoch"]);
}

#[test]
fn a_watcher_that_is_not_nudged_is_convicted() {
    for mutant in [Mutant::NobodyIsNudged, Mutant::RecoveryNudgesNobody] {
        let [play, ..] = watching(mutant);
        let wrong = explore(&play).expect_err("nobody tells the watcher");
        println!("{mutant:?}: {wrong}");
        assert!(wrong.contains("sleeps, and whom it watches is gone"), "{mutant:?}: {wrong}");
    }
}
