//! Rounds in which every passage is recorded: who waited how long, and who overtook whom.
//!
//! A thread reads the clock before its request, when it is inside, and before it leaves. So the
//! recorded stay lies within the real one: two conflicting stays that overlap prove that the lock
//! is wrong. And the recorded request is earlier than the real one: a thread that loses its core in
//! between is overtaken by many, whatever the lock does. With more busy threads than cores, the
//! scheduler makes the largest figures.

use std::time::Duration;

use serde::Serialize;

use super::lock::{Kind, Lock};
use super::throughput::{Round, on_threads};
use crate::statistics::{percentile, sorted};

/// One passage, in nanoseconds since the round began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passage {
    asked: u64,
    entered: u64,
    left: u64,
    session: u64,
}

/// What the passages of a round show. Waits are in nanoseconds. `overtaken` counts the conflicting
/// passages that overtook one, `switches` the changes of session per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Observed {
    pub(super) passages: usize,
    pub(super) wait_p50: u64,
    pub(super) wait_p99: u64,
    pub(super) wait_max: u64,
    pub(super) overtaken_p99: u64,
    pub(super) overtaken_max: u64,
    pub(super) inside_mean: f64,
    pub(super) inside_max: usize,
    pub(super) switches: f64,
}

impl Observed {
    /// Several rounds as one: the median of a typical value, the largest of a largest one.
    pub(super) fn together(rounds: &[Observed]) -> Observed {
        fn median<T: Copy + PartialOrd + Default>(
            rounds: &[Observed],
            of: fn(&Observed) -> T,
        ) -> T {
            percentile(&sorted(rounds.iter().map(of)), 0.5).unwrap_or_default()
        }
        fn most<T: Ord + Default>(rounds: &[Observed], of: fn(&Observed) -> T) -> T {
            rounds.iter().map(of).max().unwrap_or_default()
        }
        Observed {
            passages: rounds.iter().map(|round| round.passages).sum(),
            wait_p50: median(rounds, |round| round.wait_p50),
            wait_p99: median(rounds, |round| round.wait_p99),
            wait_max: most(rounds, |round| round.wait_max),
            overtaken_p99: median(rounds, |round| round.overtaken_p99),
            overtaken_max: most(rounds, |round| round.overtaken_max),
            inside_mean: median(rounds, |round| round.inside_mean),
            inside_max: most(rounds, |round| round.inside_max),
            switches: median(rounds, |round| round.switches),
        }
    }
}

/// Runs a round on a new lock. The error names two passages that the lock did not keep apart.
pub(super) fn run<L: Lock>(round: &Round) -> Result<Observed, String> {
    let (passages, elapsed) = record::<L>(round);
    analyse(L::NAME, L::KIND, passages, elapsed)
}

fn record<L: Lock>(round: &Round) -> (Vec<Passage>, Duration) {
    let (inside, outside) = (round.workload.inside.work(), round.workload.outside.work());
    let (passages, elapsed) = on_threads::<L, _>(round, |lock, local, agenda, gate, start| {
        let mut passages = Vec::with_capacity(1024);
        let now = || start.elapsed().as_nanos() as u64;
        while !gate.is_over() {
            let session = agenda.draw();
            let asked = now();
            let (entered, left) = lock.pass(local, session, || {
                let entered = now();
                inside.perform();
                (entered, now())
            });
            // A thread that enters after the end counts too: it waited.
            passages.push(Passage { asked, entered, left, session });
            outside.perform();
        }
        passages
    });
    (passages.concat(), elapsed)
}

fn analyse(
    lock: &'static str,
    kind: Kind,
    mut passages: Vec<Passage>,
    elapsed: Duration,
) -> Result<Observed, String> {
    passages.sort_unstable_by_key(|passage| passage.entered);
    let inside_max = most_inside(lock, kind, &passages)?;
    let overtaken = sorted(overtaken(kind, &passages));
    let waits = sorted(passages.iter().map(|passage| passage.entered - passage.asked));
    let at = |sorted: &[u64], share| percentile(sorted, share).unwrap_or(0);
    let held: u64 = passages.iter().map(|passage| passage.left - passage.entered).sum();
    // The last thread may have left after the end.
    let last = passages.iter().map(|passage| passage.left).max().unwrap_or(0);
    let elapsed = elapsed.max(Duration::from_nanos(last));
    let switches = passages.windows(2).filter(|pair| pair[0].session != pair[1].session).count();
    Ok(Observed {
        passages: passages.len(),
        wait_p50: at(&waits, 0.5),
        wait_p99: at(&waits, 0.99),
        wait_max: at(&waits, 1.0),
        overtaken_p99: at(&overtaken, 0.99),
        overtaken_max: at(&overtaken, 1.0),
        inside_mean: held as f64 / elapsed.as_nanos().max(1) as f64,
        inside_max,
        switches: switches as f64 / elapsed.as_secs_f64(),
    })
}

/// The largest number of threads inside together. `passages` are in the order of entry.
fn most_inside(lock: &str, kind: Kind, passages: &[Passage]) -> Result<usize, String> {
    let mut inside: Vec<Passage> = Vec::new();
    let mut most = 0;
    for &later in passages {
        // One that left in the same nanosecond may have left earlier.
        inside.retain(|earlier| earlier.left > later.entered);
        let conflicting =
            inside.iter().find(|earlier| kind.conflict(earlier.session, later.session));
        if let Some(&earlier) = conflicting {
            let [one, other] = [earlier, later].map(|passage| (passage.entered, passage.left));
            let (later, earlier) = (later.session, earlier.session);
            return Err(format!(
                "{lock} admitted session {later} while session {earlier} was inside: \
                 [{}, {}] and [{}, {}] ns overlap",
                one.0, one.1, other.0, other.1
            ));
        }
        inside.push(later);
        most = most.max(inside.len());
    }
    Ok(most)
}

/// For each passage, how many conflicting ones asked after it and entered before it. `passages` and
/// the result are in the order of entry.
fn overtaken(kind: Kind, passages: &[Passage]) -> Vec<u64> {
    let mut overtaken = asked_later_entered_before(passages.iter());
    let sessions: std::collections::BTreeSet<u64> =
        passages.iter().map(|passage| passage.session).collect();
    for session in sessions.into_iter().filter(|&session| kind.shares(session)) {
        // Passages of the same session do not conflict, and must not count.
        let same = passages.iter().filter(|passage| passage.session == session);
        let mut friends = asked_later_entered_before(same).into_iter();
        for (count, passage) in overtaken.iter_mut().zip(passages) {
            if passage.session == session {
                *count -= friends.next().unwrap_or(0);
            }
        }
    }
    overtaken
}

/// For each of `passages`, in the order of entry, how many before it asked after it.
fn asked_later_entered_before<'p>(passages: impl Iterator<Item = &'p Passage> + Clone) -> Vec<u64> {
    let times = sorted(passages.clone().map(|passage| passage.asked));
    // A Fenwick tree: for each rank by time of request, how many such passages have entered.
    let mut tree = vec![0_u64; times.len() + 1];
    passages
        .enumerate()
        .map(|(before, passage)| {
            let rank = times.partition_point(|&time| time <= passage.asked);
            let mut no_later = 0;
            let mut node = rank;
            while node > 0 {
                no_later += tree[node];
                node &= node - 1;
            }
            let mut node = rank;
            while node < tree.len() {
                tree[node] += 1;
                node += node & node.wrapping_neg();
            }
            before as u64 - no_later
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(asked: u64, entered: u64, left: u64, session: u64) -> Passage {
        Passage { asked, entered, left, session }
    }

    #[test]
    fn overtaking_is_asking_later_and_entering_earlier_in_conflict() {
        // Session 1 asks first and enters last; two of session 0 and one of session 1 pass it.
        let passages =
            [passage(1, 2, 3, 0), passage(2, 4, 5, 0), passage(3, 6, 9, 1), passage(0, 7, 8, 1)];
        assert_eq!(overtaken(Kind::Group, &passages), [0, 0, 0, 2]);
        assert_eq!(overtaken(Kind::Mutual, &passages), [0, 0, 0, 3]);
    }

    #[test]
    fn counting_agrees_with_looking_at_every_pair() {
        let mut random = grouplock_testing::Random::new(5);
        let mut draw = |limit| random.below(limit);
        let mut passages: Vec<Passage> = (0..300)
            .map(|_| {
                let (asked, wait) = (draw(1000), draw(300));
                passage(asked, asked + wait, asked + wait, draw(3))
            })
            .collect();
        passages.sort_by_key(|passage| passage.entered);
        for kind in [Kind::Group, Kind::ReadWrite, Kind::Mutual] {
            let pairs: Vec<u64> = passages
                .iter()
                .enumerate()
                .map(|(mine, me)| {
                    let before = passages[..mine].iter();
                    let overtook = before.filter(|other| {
                        other.asked > me.asked && kind.conflict(other.session, me.session)
                    });
                    overtook.count() as u64
                })
                .collect();
            assert_eq!(overtaken(kind, &passages), pairs, "{kind:?}");
        }
    }

    #[test]
    fn two_sessions_inside_together_are_an_error() {
        let together = vec![passage(0, 1, 5, 0), passage(0, 4, 6, 1)];
        let second = Duration::from_secs(1);
        let error = analyse("x", Kind::Group, together.clone(), second).unwrap_err();
        assert_eq!(
            error,
            "x admitted session 1 while session 0 was inside: [1, 5] and [4, 6] ns overlap"
        );
        let shared = vec![passage(0, 1, 5, 1), passage(0, 4, 6, 1)];
        assert_eq!(analyse("x", Kind::Group, shared.clone(), second).unwrap().inside_max, 2);
        assert!(analyse("x", Kind::ReadWrite, shared, second).is_err());
    }

    #[test]
    fn a_round_is_summed_up() {
        let passages = vec![passage(0, 10, 20, 0), passage(5, 10, 30, 0), passage(7, 40, 60, 1)];
        let seen = analyse("x", Kind::Group, passages, Duration::from_nanos(100)).unwrap();
        assert_eq!((seen.wait_p50, seen.wait_max, seen.inside_max), (10, 33, 2));
        assert!((seen.inside_mean - 0.5).abs() < 1e-9);
        assert!((seen.switches - 1e7).abs() < 1.0);
    }
}
