//! Two sessions where a change of session costs as much as fifty holds, as if it loaded a model or
//! a database.
//!
//! The first holder of a phase pays for the change. The other holders of its session wait for it.
//! Holders sleep, so they need no core.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockFifo, PASSES};
use super::lock::{Lock, held};
use super::plan::halves;
use super::throughput::{Round, on_threads};
use crate::rounds::turns;
use crate::statistics::{Spread, percentile, sorted};

/// How many holds a change costs.
pub(super) const COST: u32 = 50;
/// Half of the threads use each session.
pub(super) const THREADS: usize = 8;
/// How long a hold should be.
const HOLD: Duration = Duration::from_micros(100);
const TURN: Duration = Duration::from_millis(600);

/// The longest wait that [`Policy::Batch`](grouplock::Policy::Batch) allows here, in holds. The
/// holders leave. Then as many requests as may overtake a waiter hold one after the other. The
/// session changes to theirs and to the waiter's.
pub(super) const LONGEST: u32 = PASSES + THREADS as u32 + 2 * COST;

/// The results of one policy, by round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Changes {
    pub(super) lock: &'static str,
    /// Changes of session in a thousand holds.
    pub(super) per_thousand: Vec<f64>,
    /// Holds per second.
    pub(super) rates: Vec<f64>,
    /// The longest wait, in real holds.
    pub(super) longest: Vec<f64>,
}

impl Changes {
    /// How many times as many changes as `peer`.
    pub(super) fn ratio(&self, peer: &Changes) -> Spread {
        Spread::of_ratios(&self.per_thousand, &peer.per_thousand)
    }

    pub(super) fn longest(&self) -> f64 {
        self.longest.iter().copied().fold(0.0, f64::max)
    }
}

/// Gives every policy a turn in each round.
pub(super) fn run(rounds: usize, progress: &mut impl FnMut(&str)) -> Vec<Changes> {
    type Turn = fn(u64) -> [f64; 3];
    let policies: [(&'static str, Turn); 3] = [
        (GroupLockDefault::NAME, turn::<GroupLockDefault>),
        (GroupLockFifo::NAME, turn::<GroupLockFifo>),
        (GroupLockBatch::NAME, turn::<GroupLockBatch>),
    ];
    let empty = |(lock, _)| {
        let [per_thousand, rates, longest] = [const { Vec::new() }; 3];
        Changes { lock, per_thousand, rates, longest }
    };
    let mut all = policies.map(empty);
    for round in 0..rounds {
        for at in turns(round, policies.len()) {
            let (lock, turn) = policies[at];
            progress(&format!("{lock}: expensive changes"));
            let [per_thousand, rate, longest] = turn(round as u64);
            all[at].per_thousand.push(per_thousand);
            all[at].rates.push(rate);
            all[at].longest.push(longest);
        }
    }
    all.to_vec()
}

/// Changes in a thousand holds, holds per second, and the longest wait in holds.
fn turn<L: Lock>(number: u64) -> [f64; 3] {
    let round = Round { workload: halves(THREADS), duration: TURN, number };
    // The session that the room is set up for, and how often it has changed.
    let set_up = Mutex::new((u64::MAX, 0_u32));
    let (passages, elapsed) = on_threads::<L, _>(&round, |lock, local, agenda, gate, _| {
        let mut passages = Vec::new();
        while !gate.is_over() {
            let session = agenda.draw();
            let asked = Instant::now();
            passages.push(lock.pass(local, session, || {
                let waited = asked.elapsed();
                let mut of = held(set_up.lock());
                if of.0 != session {
                    thread::sleep(HOLD * COST);
                    *of = (session, of.1 + 1);
                }
                drop(of);
                let entered = Instant::now();
                thread::sleep(HOLD);
                (waited, entered.elapsed())
            }));
        }
        passages
    });
    let (waits, holds): (Vec<Duration>, Vec<Duration>) = passages.concat().into_iter().unzip();
    let count = holds.len() as f64;
    let hold = percentile(&sorted(holds), 0.5).unwrap_or(HOLD).as_secs_f64();
    let longest = waits.into_iter().max().unwrap_or_default().as_secs_f64();
    let changes = held(set_up.into_inner()).1;
    [f64::from(changes) / count * 1e3, count / elapsed.as_secs_f64(), longest / hold]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_changes_and_holds() {
        for changes in run(1, &mut |_| ()) {
            assert!(changes.per_thousand[0] > 0.0 && changes.per_thousand[0] <= 1e3, "{changes:?}");
            assert!(changes.rates[0] > 0.0 && changes.longest() > 0.0, "{changes:?}");
        }
    }
}
