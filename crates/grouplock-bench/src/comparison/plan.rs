//! The workloads, and how often each is run.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockExclusive, GroupLockFifo};
use super::lock::Lock;
use super::peers::{ParkingLotRwLock, ParkingLotRwLockFair};
use super::work::Length;
use super::workload::{Choice, Sessions, Workload};

/// The plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Size {
    /// Seconds: whether the harness works. The figures say nothing.
    Smoke,
    /// Well under a minute: the workloads that have goals.
    Quick,
    /// Some ten minutes: one thing varies at a time.
    Standard,
    /// Hours: everything with everything.
    Full,
}

/// Workloads that answer one question.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) title: &'static str,
    /// What readers should know.
    pub(super) note: &'static str,
    pub(super) workloads: Vec<Workload>,
    /// The locks that take part. All, if the list is empty.
    pub(super) locks: &'static [&'static str],
}

/// How much is measured.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) size: Size,
    pub(super) families: Vec<Family>,
    /// How many turns every lock has in each workload.
    pub(super) rounds: u64,
    /// How long a turn is, unless the work inside is long.
    turn: Duration,
    /// How many more turns record every passage.
    pub(super) observed: u64,
    /// How many requests the starvation probe makes, and how long each may wait.
    pub(super) requests: usize,
    pub(super) patience: Duration,
    /// Rounds and passages of the uncontended part.
    pub(super) alone: (u32, u64),
    /// How many turns each long queue has, and each policy with expensive changes.
    pub(super) queues: usize,
    pub(super) changes: usize,
}

const ONE: Sessions = Sessions::Shared(1);
const TWO: Sessions = Sessions::Shared(2);
const EIGHT: Sessions = Sessions::Shared(8);

/// The numbers of threads.
const THREADS: [usize; 4] = [1, 2, 8, 32];

impl Plan {
    pub(super) fn new(size: Size) -> Self {
        let ms = Duration::from_millis;
        let standard = Plan {
            size,
            families: standard(),
            rounds: 7,
            turn: ms(40),
            observed: 3,
            requests: 30,
            patience: ms(1500),
            alone: (101, 20_000),
            queues: 15,
            changes: 5,
        };
        match size {
            Size::Smoke => Plan {
                families: few(&[2], &[2], &[4]),
                rounds: 1,
                turn: ms(2),
                observed: 1,
                requests: 1,
                patience: ms(100),
                alone: (1, 100),
                // To fill them would take longer than all the rest.
                queues: 0,
                changes: 1,
                ..standard
            },
            Size::Quick => Plan {
                families: few(&[2, 8], &THREADS[1..], &[8]),
                rounds: 5,
                turn: ms(20),
                observed: 1,
                requests: 10,
                patience: ms(400),
                alone: (41, 20_000),
                queues: 5,
                changes: 1,
                ..standard
            },
            Size::Standard => standard,
            Size::Full => Plan { families: full(), rounds: 9, turn: ms(60), ..standard },
        }
    }

    /// How long a turn of `workload` is: at least thirty times the work of a passage. Where
    /// fairness is a goal, each thread gets a core a few times: in less time, the scheduler would
    /// make Jain's index.
    pub(super) fn turn(&self, workload: &Workload) -> Duration {
        let passage = workload.inside.duration() + workload.outside.duration();
        let longest = if self.size == Size::Smoke { 2 } else { 30 };
        let fair = if *workload == halves(8) { self.turn * 8 } else { Duration::ZERO };
        self.turn.max(passage * longest).max(fair)
    }
}

/// Nothing inside, nothing outside.
const fn bare(threads: usize, sessions: Sessions, choice: Choice) -> Workload {
    let (inside, outside) = (Length::Nothing, Length::Nothing);
    Workload { threads, sessions, choice, inside, outside, busy: false }
}

/// One session, shared by all. The goals are about 2 and 8 threads.
pub(super) const fn sharing(threads: usize) -> Workload {
    bare(threads, ONE, Choice::ByThread)
}

/// A session per thread, as in a mutex. The goals are about 2, 8 and 32 threads.
pub(super) const fn excluding(threads: usize) -> Workload {
    bare(threads, Sessions::Own, Choice::ByThread)
}

/// The same, beside a busy loop on each core.
pub(super) const fn excluding_on_busy_cores(threads: usize) -> Workload {
    Workload { busy: true, ..excluding(threads) }
}

/// Two sessions, each with half of the threads. The goals are about 8 threads.
pub(super) const fn halves(threads: usize) -> Workload {
    bare(threads, TWO, Choice::ByThread)
}

const SHARING: &str = "One session";
const EXCLUDING: &str = "A session per thread";
const HALVES: &str = "Two sessions";

const SHARING_NOTE: &str = "All requests are for the same session: readers only, for a lock with readers and writers. \
     A mutex cannot share: it shows what one pays without sharing.";
const EXCLUDING_NOTE: &str =
    "Each thread excludes all others: writers only, for a lock with readers and writers.";
const HALVES_NOTE: &str = "Half of the threads use one session, half use the other. Only a group lock shares both. \
     For a lock with readers and writers, one half reads and the other half writes; that is less to share. \
     The page shows it because people use it.";

fn over(threads: &[usize], workload: fn(usize) -> Workload) -> Vec<Workload> {
    threads.iter().map(|&threads| workload(threads)).collect()
}

/// The workloads that have goals, for these numbers of threads.
fn few(sharers: &[usize], excluders: &[usize], in_halves: &[usize]) -> Vec<Family> {
    let family = |title, note, workloads| Family { title, note, workloads, locks: &[] };
    vec![
        family(SHARING, SHARING_NOTE, over(sharers, sharing)),
        family(EXCLUDING, EXCLUDING_NOTE, over(excluders, excluding)),
        Family {
            title: "Busy cores",
            note: "A session per thread, beside a busy loop on each core. The locks with goals, and their peers.",
            workloads: over(excluders, excluding_on_busy_cores),
            locks: &[
                GroupLockDefault::NAME,
                GroupLockExclusive::NAME,
                GroupLockFifo::NAME,
                GroupLockBatch::NAME,
                ParkingLotRwLock::NAME,
                ParkingLotRwLockFair::NAME,
            ],
        },
        family(HALVES, HALVES_NOTE, over(in_halves, halves)),
    ]
}

fn standard() -> Vec<Family> {
    let choices = [Choice::Uniform, Choice::Zipf, Choice::Bursts, Choice::Alternating];
    let choose = |sessions| choices.map(|choice| bare(8, sessions, choice));
    let work = |inside, outside| Workload { inside, outside, ..halves(8) };
    let lengths = &Length::ALL[1..];
    let mut families = few(&THREADS, &THREADS[1..], &THREADS[1..]);
    families.extend([
        Family {
            title: "Choice of session",
            note: "Each thread changes between sessions. 8 threads, nothing to do inside or outside.",
            workloads: [choose(TWO), choose(EIGHT)].concat(),
            locks: &[],
        },
        Family {
            title: "Work inside",
            note: "Two sessions with half of the threads each, which make the next request at once. Up to 100 µs the \
                   work is busy; 2 ms are spent asleep, so that more can be inside than there are cores.",
            workloads: lengths.iter().map(|&length| work(length, Length::Nothing)).collect(),
            locks: &[],
        },
        Family {
            title: "Work inside and outside",
            note: "As before, with as long a pause between leaving and asking again.",
            workloads: lengths.iter().map(|&length| work(length, length)).collect(),
            locks: &[],
        },
    ]);
    families
}

fn full() -> Vec<Family> {
    let all =
        [Choice::ByThread, Choice::Uniform, Choice::Zipf, Choice::Bursts, Choice::Alternating];
    let family = |title, note, sessions, choices: &[Choice]| {
        let mut workloads = Vec::new();
        for threads in THREADS {
            for &choice in choices {
                for inside in Length::ALL {
                    for outside in Length::ALL {
                        let bare = bare(threads, sessions, choice);
                        workloads.push(Workload { inside, outside, ..bare });
                    }
                }
            }
        }
        Family { title, note, workloads, locks: &[] }
    };
    let mut families = few(&[], &THREADS[1..], &[]);
    families.retain(|family| !family.locks.is_empty());
    families.extend([
        family(SHARING, SHARING_NOTE, ONE, &all[..1]),
        family(EXCLUDING, EXCLUDING_NOTE, Sessions::Own, &all[..1]),
        family(HALVES, HALVES_NOTE, TWO, &all),
        family("Eight sessions", "As with two sessions, but for eight.", EIGHT, &all),
    ]);
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_real_plan_has_the_workloads_with_goals() {
        let [sharing, excluding, busy] = [
            over(&[2, 8], sharing),
            over(&[2, 8, 32], excluding),
            over(&[2, 8, 32], excluding_on_busy_cores),
        ];
        let goals = [sharing, excluding, busy, vec![halves(8)]].concat();
        for size in [Size::Quick, Size::Standard, Size::Full] {
            let plan = Plan::new(size);
            let all: Vec<&Workload> =
                plan.families.iter().flat_map(|family| &family.workloads).collect();
            assert!(goals.iter().all(|goal| all.contains(&goal)), "{size:?}");
            for (position, workload) in all.iter().enumerate() {
                assert!(!all[..position].contains(workload), "{workload} twice in {size:?}");
            }
        }
    }

    #[test]
    fn a_turn_is_longer_than_long_work() {
        let plan = Plan::new(Size::Quick);
        assert_eq!(plan.turn(&sharing(2)), Duration::from_millis(20));
        let asleep = Workload { inside: Length::Ms2, ..sharing(2) };
        assert_eq!(plan.turn(&asleep), Duration::from_millis(60));
    }
}
