//! Who is admitted, as a function of who is inside and who waits. Knows nothing of files.

use std::time::Duration;

use crate::policy::Policy;

/// Someone in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) slot: u16,
    /// The order of arrival.
    pub(super) ticket: u64,
    /// The time of arrival in nanoseconds.
    pub(super) arrival: u64,
    pub(super) priority: i32,
    /// How often it was passed.
    pub(super) passed: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This one has been passed once more. Comes before the admission that passes it, so that dying in between counts one too
    /// many, never one too few.
    Pass(usize),
    /// This one enters.
    Admit(usize),
}

/// Sorts the queue by the policy: the next first.
pub(super) fn sort(policy: Policy, queue: &mut [Waiter]) {
    match policy {
        Policy::Fifo | Policy::Batch { .. } => queue.sort_unstable_by_key(|waiter| waiter.ticket),
        Policy::Priority { aging } => {
            queue.sort_unstable_by_key(|waiter| (rank(aging, waiter), waiter.ticket));
        }
    }
}

fn rank(aging: Duration, waiter: &Waiter) -> i128 {
    let head_start = (aging.as_nanos().cast_signed()).saturating_mul(waiter.priority.into());
    i128::from(waiter.arrival).saturating_sub(head_start)
}

/// Who of a sorted queue enters beside those inside; if nobody is inside, the head has been admitted already and is not in
/// `queue`. `joins` tells whether a waiter has the session inside.
pub(super) fn plan<E>(
    policy: Policy,
    queue: &[Waiter],
    mut joins: impl FnMut(&Waiter) -> Result<bool, E>,
) -> Result<Vec<Step>, E> {
    let mut steps = Vec::new();
    match policy {
        Policy::Fifo | Policy::Priority { .. } => {
            for (at, waiter) in queue.iter().enumerate() {
                if !joins(waiter)? {
                    break;
                }
                steps.push(Step::Admit(at));
            }
        }
        Policy::Batch { passes } => {
            // Those of other sessions further in front, and the passes that the most tired of them can still bear.
            let (mut others, mut left) = (Vec::new(), u32::MAX);
            for (at, waiter) in queue.iter().enumerate() {
                if !joins(waiter)? {
                    left = left.min(passes.saturating_sub(waiter.passed));
                    others.push(at);
                } else if others.is_empty() || left > 0 {
                    steps.extend(others.iter().map(|other| Step::Pass(*other)));
                    steps.push(Step::Admit(at));
                    left = if others.is_empty() { left } else { left - 1 };
                }
                if left == 0 {
                    break;
                }
            }
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn queue(sessions: &[u8]) -> Vec<Waiter> {
        let waiter = |(at, session): (usize, &u8)| Waiter {
            slot: u16::from(*session),
            ticket: at as u64,
            arrival: at as u64,
            priority: 0,
            passed: 0,
        };
        sessions.iter().enumerate().map(waiter).collect()
    }

    /// In tests the slot stands for the session.
    fn admitted(policy: Policy, queue: &[Waiter], inside: u8) -> Vec<usize> {
        let joins = |waiter: &Waiter| Ok::<_, Infallible>(waiter.slot == u16::from(inside));
        let Ok(steps) = plan(policy, queue, joins);
        steps
            .into_iter()
            .filter_map(|step| match step {
                Step::Admit(at) => Some(at),
                Step::Pass(_) => None,
            })
            .collect()
    }

    #[test]
    fn fifo_admits_up_to_the_first_conflict() {
        assert_eq!(admitted(Policy::Fifo, &queue(b"aabaa"), b'a'), [0, 1]);
        assert_eq!(admitted(Policy::Fifo, &queue(b"ba"), b'a'), [0; 0]);
        assert_eq!(admitted(Policy::Fifo, &[], b'a'), [0; 0]);
    }

    #[test]
    fn batch_passes_as_often_as_it_may() {
        assert_eq!(admitted(Policy::Batch { passes: 0 }, &queue(b"aabaa"), b'a'), [0, 1]);
        assert_eq!(admitted(Policy::Batch { passes: 1 }, &queue(b"aabaa"), b'a'), [0, 1, 3]);
        assert_eq!(admitted(Policy::Batch { passes: 9 }, &queue(b"abaca"), b'a'), [0, 2, 4]);
        let mut tired = queue(b"baca");
        tired[0].passed = 2;
        assert_eq!(admitted(Policy::Batch { passes: 3 }, &tired, b'a'), [1]);
        tired[0].passed = 3;
        assert_eq!(admitted(Policy::Batch { passes: 3 }, &tired, b'a'), [0; 0]);
    }

    #[test]
    fn batch_counts_every_pass() {
        use Step::{Admit, Pass};
        let joins = |waiter: &Waiter| Ok::<_, Infallible>(waiter.slot == u16::from(b'a'));
        let Ok(steps) = plan(Policy::Batch { passes: 5 }, &queue(b"baca"), joins);
        assert_eq!(steps, [Pass(0), Admit(1), Pass(0), Pass(2), Admit(3)]);
    }

    #[test]
    fn priority_is_a_head_start() {
        let aging = Duration::from_nanos(10);
        let mut queue = queue(b"abcd");
        (queue[1].arrival, queue[1].priority) = (25, 2);
        (queue[2].arrival, queue[2].priority) = (25, 3);
        (queue[3].arrival, queue[3].priority) = (2, -1);
        sort(Policy::Priority { aging }, &mut queue);
        let order: Vec<_> = queue.iter().map(|waiter| waiter.slot as u8).collect();
        assert_eq!(order, b"cabd");
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut queue = queue(b"ab");
        (queue[0].arrival, queue[0].priority) = (u64::MAX, i32::MIN);
        queue[1].priority = i32::MAX;
        sort(Policy::Priority { aging: Duration::MAX }, &mut queue);
        assert_eq!(queue[0].slot, u16::from(b'b'));
    }
}
