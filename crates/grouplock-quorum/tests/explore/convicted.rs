//! The defects of the paper's machine as printed, shown by exploration.

use crate::printed::{Action, LeftIn, Plan, Printed, Repaired, explore_for};

/// Three groups with these priorities and one process each, and more processes as given.
fn machine(repaired: Repaired, priorities: [u32; 3], more: &[Plan]) -> Printed {
    let one_each = (0..3).map(|group| Plan { group, long: false });
    Printed {
        repaired,
        ordered: true,
        left_in: None,
        quorums: vec![vec![0, 1], vec![1, 2], vec![2, 0]],
        priorities: priorities.into(),
        sessions: vec![0, 1, 2],
        shared_votes: false,
        processes: one_each.chain(more.iter().copied()).collect(),
    }
}

/// Three groups ask one arbiter, which never asks for itself. One of them also waits for the vote
/// of another.
fn star(repaired: Repaired) -> Printed {
    let quorums = vec![vec![0, 3, 4], vec![1, 3], vec![2, 3], vec![1, 3], vec![0, 3, 4]];
    Printed { quorums, ..machine(repaired, [0, 1, 2], &[]) }
}

/// Explores everything. Returns the number of states and the violations.
fn explore(printed: Printed) -> (usize, Vec<(&'static str, Vec<Action>)>) {
    explore_for(printed, "no property")
}

fn convict(what: &str, printed: Printed, property: &'static str) {
    let (states, found) = explore_for(printed, property);
    let Some((_, way)) = found.iter().find(|(name, _)| *name == property) else {
        panic!("{what}: `{property}` holds in {states} states");
    };
    println!("| {what} | {property} | {} steps | {way:?}", way.len());
}

const EXCLUSION: &str = "mutual exclusion";
const BEHIND: &str = "nobody is left behind";
const SECOND: Plan = Plan { group: 0, long: false };
const LONG: Plan = Plan { group: 0, long: true };

#[test]
fn defect_1_the_own_vote() {
    convict("1, own vote counted", machine(Repaired::NothingSelfCounted, [0, 1, 2], &[]), BEHIND);
    let uncounted = machine(Repaired::NothingSelfNotCounted, [0, 1, 2], &[]);
    convict("1, own vote not counted", uncounted, EXCLUSION);
}

#[test]
fn defect_2_the_wrong_group_is_recalled() {
    convict("2", star(Repaired::OwnVote), EXCLUSION);
}

#[test]
fn defect_3_a_recall_crosses_the_release() {
    convict("3", machine(Repaired::Holder, [0, 1, 2], &[SECOND]), EXCLUSION);
}

#[test]
fn defect_4_several_recalls_for_one_grant() {
    convict("4", star(Repaired::Recall), EXCLUSION);
    assert!(explore(star(Repaired::OneRecall)).1.is_empty());
}

#[test]
fn defect_5_a_recall_overtakes_the_grant() {
    let reordering = Printed { ordered: false, ..machine(Repaired::OneRecall, [0, 1, 2], &[]) };
    convict("5", reordering, EXCLUSION);
}

#[test]
fn defect_6_equal_priorities() {
    convict("6", machine(Repaired::Grants, [0, 0, 0], &[]), BEHIND);
}

/// All repairs between groups, and one defect left in.
fn with(left_in: LeftIn, more: &[Plan]) -> Printed {
    Printed { left_in: Some(left_in), ..machine(Repaired::Ties, [0, 1, 2], more) }
}

#[test]
fn defect_7_the_next_stage_is_started_for_the_wrong_reason() {
    convict("7", with(LeftIn::NextStage, &[]), BEHIND);
}

#[test]
fn defect_8_holders_are_mixed_with_waiters() {
    convict("8", with(LeftIn::Inside, &[LONG]), BEHIND);
}

#[test]
fn defect_9_a_lone_request_is_kept_waiting() {
    let processes = || vec![SECOND, LONG];
    let alone = Printed { processes: processes(), ..with(LeftIn::Alone, &[]) };
    convict("9", alone, "who is alone lets everyone in");
    let repaired = Printed { processes: processes(), ..machine(Repaired::Ties, [0, 1, 2], &[]) };
    assert!(explore(repaired).1.is_empty());
}

#[test]
fn with_all_repairs_it_holds() {
    for ordered in [true, false] {
        for priorities in [[0, 1, 2], [2, 1, 0], [0, 0, 0]] {
            for more in [&[SECOND][..], &[LONG], &[SECOND, Plan { group: 1, long: true }]] {
                let printed = Printed { ordered, ..machine(Repaired::Ties, priorities, more) };
                let (states, found) = explore(printed);
                assert!(found.is_empty(), "{priorities:?} {found:?}");
                println!("| all repairs, ordered: {ordered}, {priorities:?} | {states} states |");
            }
        }
    }
}

/// Why a session has one home. Suppose that each member had a group of its own for it, and that
/// arbiters voted for all groups of a session at once. Then the groups would be inside together,
/// but would not agree on the epoch.
#[test]
fn votes_shared_by_a_session_do_not_share_an_epoch() {
    let printed = Printed {
        shared_votes: true,
        ordered: false,
        sessions: vec![0, 0, 1],
        ..machine(Repaired::Ties, [0, 0, 0], &[SECOND])
    };
    convict("shared votes", printed, "those inside have one epoch");
}
