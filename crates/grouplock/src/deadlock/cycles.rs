//! Threads that wait for each other.
//!
//! A waiter cannot enter before all holders have left. Holders of other sessions exclude it.
//! Holders of its own session exclude a request that waits in front of it. So a thread depends on
//! the owners of all holdings of the lock that it waits for, and a cycle is a deadlock.
//!
//! Threads enter and leave during the search. A cycle is reported only if each thread of it is
//! still in the same wait afterwards. Then all were waiting at one moment. A waiting thread does
//! not leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::registry::{self, Holding, NO_THREAD, Waiter, Waits};

/// A waiting thread, and a holding of the next thread that it waits for.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) thread: u64,
    pub(super) waiter: Arc<Waiter>,
    pub(super) holding: Arc<Holding>,
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
    let mut reported = BTreeSet::new();
    let mut cycles = Vec::new();
    for &thread in waits.keys() {
        if !reported.contains(&thread)
            && let Some(cycle) = in_waits(thread, &waits)
        {
            reported.extend(cycle.iter().map(|step| step.thread));
            cycles.push(cycle);
        }
    }
    cycles
}

fn in_waits(thread: u64, waits: &Waits) -> Option<Vec<Step>> {
    let mut path = Vec::new();
    let found = reach(thread, thread, waits, &mut BTreeSet::new(), &mut path);
    (found && path.iter().all(is_unchanged)).then_some(path)
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
    for holding in registry::holdings_of(waiter.request.lock) {
        let owner = holding.owner();
        if owner == NO_THREAD {
            continue;
        }
        path.push(Step { thread: from, waiter: Arc::clone(waiter), holding, owner });
        if owner == goal || reach(owner, goal, waits, seen, path) {
            return true;
        }
        path.pop();
    }
    false
}

/// Returns whether a step has not changed.
fn is_unchanged(step: &Step) -> bool {
    let same_wait = registry::wait_of(step.thread)
        .is_some_and(|waiter| waiter.number == step.waiter.number && waiter.waits());
    let same_holding = registry::holdings_of(step.holding.lock)
        .iter()
        .any(|holding| Arc::ptr_eq(holding, &step.holding));
    same_wait && same_holding && step.holding.owner() == step.owner
}
