//! Threads that wait for each other.
//!
//! Whoever waits for a lock cannot go on before all who are inside have left: those of other sessions because they exclude it, those of its
//! own session because somebody waits before it whom they exclude. So a thread depends on the owners of all holds of the lock it waits for,
//! and a cycle is a deadlock.
//!
//! Threads come and go while we look. A cycle is believed if afterwards every thread of it is in the same wait as before: then all were waiting
//! at one moment, and a thread that waits neither enters nor leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::registry::{self, Hold, NOBODY, Waiter, Waits};

/// A thread waits, and the hold that keeps it waiting is the next thread's.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) thread: u64,
    pub(super) waiter: Arc<Waiter>,
    pub(super) hold: Arc<Hold>,
    owner: u64,
}

/// A cycle in which `thread` waits, if there is one.
pub(super) fn through(thread: u64) -> Option<Vec<Step>> {
    let waits = registry::waits();
    in_waits(thread, &waits)
}

/// All cycles, each once.
pub(super) fn all() -> Vec<Vec<Step>> {
    let waits = registry::waits();
    let mut told = BTreeSet::new();
    let mut cycles = Vec::new();
    for &thread in waits.keys() {
        if !told.contains(&thread)
            && let Some(cycle) = in_waits(thread, &waits)
        {
            told.extend(cycle.iter().map(|step| step.thread));
            cycles.push(cycle);
        }
    }
    cycles
}

fn in_waits(thread: u64, waits: &Waits) -> Option<Vec<Step>> {
    let mut path = Vec::new();
    let found = reach(thread, thread, waits, &mut BTreeSet::new(), &mut path);
    (found && path.iter().all(stands)).then_some(path)
}

/// Extends `path` from `from` to `goal`, if there is a way.
fn reach(
    from: u64,
    goal: u64,
    waits: &Waits,
    seen: &mut BTreeSet<u64>,
    path: &mut Vec<Step>,
) -> bool {
    let Some(waiter) = waits.get(&from).filter(|waiter| waiter.waits()) else { return false };
    if !seen.insert(from) {
        return false;
    }
    for hold in registry::holds_of(waiter.request.lock) {
        let owner = hold.owner();
        if owner == NOBODY {
            continue;
        }
        path.push(Step { thread: from, waiter: Arc::clone(waiter), hold, owner });
        if owner == goal || reach(owner, goal, waits, seen, path) {
            return true;
        }
        path.pop();
    }
    false
}

/// Whether a step is what it was.
fn stands(step: &Step) -> bool {
    let same_wait = registry::wait_of(step.thread)
        .is_some_and(|waiter| waiter.turn == step.waiter.turn && waiter.waits());
    let same_hold =
        registry::holds_of(step.hold.lock).iter().any(|hold| Arc::ptr_eq(hold, &step.hold));
    same_wait && same_hold && step.hold.owner() == step.owner
}
