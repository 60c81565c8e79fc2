//! [`handover_withdraw`](grouplock_algorithms::handover_withdraw) in steps, as `GroupLock` uses it,
//! under the explorer: trying, changing the session, and waiters that sleep. The lab explores the
//! lock as it ships, and with one fault.
//!
//! It checks mutual exclusion, deadlock, and what every exploration checks. It does not check
//! infinite executions: a passage that tries without success enters nothing, and may do so forever.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one promise covers a whole passage")]
#![allow(clippy::items_after_statements, reason = "each mutant stands beside its conviction")]

mod memory;
mod passages;

use grouplock_lab::{Options, Outcome, Properties, Property, Subject, Verdict, check};
use grouplock_mutants::{
    steps_change_in_company, steps_change_without_forward, steps_enable_forgets_line_12,
    steps_gives_up_while_another_stands_in, steps_try_enters_behind_another_session,
};

use grouplock_algorithms::handover_withdraw::HandoverWithdraw;

use memory::{Away, Ideal};
use passages::Way::{GivesUp, Moved, Moves, Opened, Opens, Tries, Waits};
use passages::{Passages, Steps, Way, Ways, steps};

steps!(
    grouplock_algorithms::handover_withdraw,
    steps_change_in_company::handover_withdraw,
    steps_change_without_forward::handover_withdraw,
    steps_enable_forgets_line_12::handover_withdraw,
    steps_gives_up_while_another_stands_in::handover_withdraw,
    steps_try_enters_behind_another_session::handover_withdraw,
);

type Ships = HandoverWithdraw<Away, Ideal>;
/// Over a published lock.
type Published = HandoverWithdraw<Away>;

macro_rules! ways {
    ($($name:ident: $($way:expr),*;)*) => {$(
        #[derive(Debug)]
        struct $name;

        impl Ways for $name {
            const ALL: &'static [Way] = &[$($way),*];
        }
    )*};
}

ways! {
    Sleeping: Waits(1), Waits(2);
    GivingUp: Waits(1), Waits(2), GivesUp(1), GivesUp(2);
    Trying: Waits(1), Waits(2), Tries(1), Tries(2);
    Opening: Waits(1), Waits(2), Opens(1), Opened(1);
    Moving: Waits(1), Waits(2), Moves(1), Moved(1);
    TryingBesideOne: Waits(1), Waits(2), Tries(1);
}

/// A request that tries reads contents that may be dead. So there, and in a mutant, the statements
/// of the text about dead contents are not used.
fn explore<A: Steps, W: Ways>(processes: usize, passages: Option<u8>, believed: bool) -> Outcome {
    let subject = Subject::withdrawing::<Passages<A, W>>("handover-steps");
    let mut options = Options::new(&subject, processes, W::ALL.len() as u64);
    options.properties = Properties::basic();
    options.passages = passages;
    options.reductions.forget = believed;
    options.graph_limit = 0;
    let outcome = check(&subject, &options).expect("the sizes are right");
    let (states, elapsed) = (outcome.states, outcome.elapsed);
    println!("{:?}, {processes} processes, {passages:?}: {states} states, {elapsed:?}", W::ALL);
    outcome
}

fn holds<W: Ways>(processes: usize, passages: Option<u8>, believed: bool) {
    holds_over::<Ships, W>(processes, passages, believed);
}

fn holds_over<A: Steps, W: Ways>(processes: usize, passages: Option<u8>, believed: bool) {
    let outcome = explore::<A, W>(processes, passages, believed);
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
}

fn breaks<A: Steps, W: Ways>(processes: usize, believed: bool, property: Property) {
    breaks_in::<A, W>(processes, 1, believed, property);
}

fn breaks_in<A: Steps, W: Ways>(
    processes: usize,
    passages: u8,
    believed: bool,
    property: Property,
) {
    let outcome = explore::<A, W>(processes, Some(passages), believed);
    assert_eq!(outcome.violation.map(|violation| violation.property), Some(property));
}

#[test]
fn two_processes_hold() {
    holds::<Sleeping>(2, None, true);
    holds::<GivingUp>(2, None, true);
    holds::<Moving>(2, None, true);
    holds::<Opening>(2, None, true);
    holds::<Trying>(2, Some(2), false);
}

/// In its third passage a process uses its first node again. So a request that tries may follow a
/// node that it read when that node was enabled, and is of another session now. It is withdrawn.
#[test]
#[ignore = "17 s"]
fn a_request_that_tried_by_an_old_node_is_withdrawn() {
    holds::<TryingBesideOne>(2, Some(3), false);
}

/// So the exploration above has such requests.
#[test]
fn a_request_that_tried_by_an_old_node_must_be_withdrawn() {
    type Enters =
        steps_try_enters_behind_another_session::handover_withdraw::HandoverWithdraw<Away, Ideal>;
    breaks_in::<Enters, TryingBesideOne>(2, 3, false, Property::MutualExclusion);
}

#[test]
fn two_processes_hold_over_a_published_lock() {
    holds_over::<Published, Sleeping>(2, None, true);
    holds_over::<Published, GivingUp>(2, None, true);
    holds_over::<Published, Trying>(2, Some(1), false);
}

#[test]
fn three_processes_hold_in_one_passage_each() {
    holds::<Sleeping>(3, Some(1), true);
    holds::<GivingUp>(3, Some(1), true);
    holds::<Trying>(3, Some(1), false);
}

#[test]
fn steps_with_one_thing_wrong_are_convicted() {
    use Property::{DeadRead, DeadlockFreedom, MutualExclusion};

    type Forward = steps_change_without_forward::handover_withdraw::HandoverWithdraw<Away, Ideal>;
    breaks::<Forward, Opening>(2, false, DeadlockFreedom);
    type Company = steps_change_in_company::handover_withdraw::HandoverWithdraw<Away, Ideal>;
    breaks::<Company, Moving>(2, false, MutualExclusion);
    type Forgets = steps_enable_forgets_line_12::handover_withdraw::HandoverWithdraw<Away, Ideal>;
    breaks::<Forgets, Sleeping>(3, false, DeadlockFreedom);
    type Stays =
        steps_gives_up_while_another_stands_in::handover_withdraw::HandoverWithdraw<Away, Ideal>;
    breaks::<Stays, GivingUp>(3, true, DeadRead);
}
