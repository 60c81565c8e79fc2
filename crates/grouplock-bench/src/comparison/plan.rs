//! Which workloads are run, and how often.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockExclusive, GroupLockFifo};
use super::lock::Lock;
use super::peers::{ParkingLotRwLock, ParkingLotRwLockFair};
use super::work::Length;
use super::workload::{Choice, Sessions, Workload};
use crate::uncontended::rounds::Plan as AlonePlan;

/// The plans there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Seconds: whether the harness works. The figures say nothing.
    Smoke,
    /// Well under a minute: the workloads that have goals.
    Quick,
    /// Some ten minutes: one thing varied at a time.
    Standard,
    /// Hours: everything with everything.
    Full,
}

/// Workloads that answer one question.
#[derive(Clone, Debug)]
pub struct Family {
    /// The question's name.
    pub title: &'static str,
    /// What to know when reading.
    pub note: &'static str,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The locks that take part. All, if none is named.
    pub locks: &'static [&'static str],
}

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which plan it is.
    pub size: Size,
    /// The contended part.
    pub families: Vec<Family>,
    /// How often every lock has its turn in each workload.
    pub rounds: u64,
    /// How long a turn is, unless the work inside is long.
    pub turn: Duration,
    /// In how many more turns every passage is written down.
    pub observed: u64,
    /// How often the lone request of the starvation probe asks.
    pub requests: usize,
    /// How long it may take.
    pub patience: Duration,
    /// The uncontended part.
    pub alone: AlonePlan,
    /// How often each queue has its turn, where joining and leaving long queues is measured.
    pub queues: usize,
    /// How often each policy has its turn, where a change of session is expensive.
    pub changes: usize,
}

const ONE: Sessions = Sessions::Shared(1);
const TWO: Sessions = Sessions::Shared(2);
const EIGHT: Sessions = Sessions::Shared(8);

/// The numbers of threads.
pub const THREADS: [usize; 4] = [1, 2, 8, 32];

impl Plan {
    /// The plan called `size`.
    pub fn new(size: Size) -> Self {
        let ms = Duration::from_millis;
        let alone = |rounds| AlonePlan { rounds, passages: 20_000 };
        let standard = Plan {
            size,
            families: standard(),
            rounds: 7,
            turn: ms(40),
            observed: 3,
            requests: 30,
            patience: ms(1500),
            alone: alone(101),
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
                alone: AlonePlan { rounds: 1, passages: 100 },
                // It would take longer to fill them than all the rest.
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
                alone: alone(41),
                queues: 5,
                changes: 1,
                ..standard
            },
            Size::Standard => standard,
            Size::Full => Plan { families: full(), rounds: 9, turn: ms(60), ..standard },
        }
    }

    /// How long a turn of `workload` is: at least thirty times the work of a passage. Where fairness is a goal, it is long enough that each thread
    /// has been given a core a few times: over less, Jain's index would be the scheduler's.
    pub fn turn(&self, workload: &Workload) -> Duration {
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
pub const fn sharing(threads: usize) -> Workload {
    bare(threads, ONE, Choice::ByThread)
}

/// A session per thread, as in a mutex. The goals are about 2, 8 and 32 threads.
pub const fn excluding(threads: usize) -> Workload {
    bare(threads, Sessions::Own, Choice::ByThread)
}

/// The same, beside a busy loop on each core.
pub const fn excluding_on_busy_cores(threads: usize) -> Workload {
    Workload { busy: true, ..excluding(threads) }
}

/// Two sessions, each with half of the threads. The goals are about 8 threads.
pub const fn halves(threads: usize) -> Workload {
    bare(threads, TWO, Choice::ByThread)
}

const SHARING: &str = "One session";
const EXCLUDING: &str = "A session per thread";
const HALVES: &str = "Two sessions";

const SHARING_NOTE: &str = "All ask for the same session: readers only, for a lock with readers and writers. \
     A mutex cannot share, and is shown as what one pays without sharing.";
const EXCLUDING_NOTE: &str =
    "Everybody excludes everybody: writers only, for a lock with readers and writers.";
const HALVES_NOTE: &str = "Half of the threads ask for one session, half for the other. Only a group lock shares both. \
     For a lock with readers and writers, one half reads and the other half writes; that is less to share, and \
     stands here because it is what people use.";

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
            note: "Each thread asks now for this session, now for that. 8 threads, nothing to do inside or outside.",
            workloads: [choose(TWO), choose(EIGHT)].concat(),
            locks: &[],
        },
        Family {
            title: "Work inside",
            note: "Two sessions with half of the threads each, which go straight back to the lock. Up to 100 µs the \
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
    fn a_turn_has_room_for_long_work() {
        let plan = Plan::new(Size::Quick);
        assert_eq!(plan.turn(&sharing(2)), Duration::from_millis(20));
        let asleep = Workload { inside: Length::Ms2, ..sharing(2) };
        assert_eq!(plan.turn(&asleep), Duration::from_millis(60));
    }
}
