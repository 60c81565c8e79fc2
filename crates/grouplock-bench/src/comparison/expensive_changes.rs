//! Two sessions where a change of session costs as much as fifty holds, as when a model or a database is loaded.
//!
//! The first holder of a phase pays for the change; those of its session wait for it. Holders sleep, so no core is missing.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockFifo, PASSES};
use super::lock::Lock;
use super::plan::halves;
use super::throughput::{Round, on_threads};
use crate::statistics::{Spread, percentile};

/// How many holds a change costs.
pub const COST: u32 = 50;
/// How many threads there are, half of them for each session.
pub const THREADS: usize = 8;
/// How long a hold is meant to be.
const HOLD: Duration = Duration::from_micros(100);
/// How long a turn is.
const TURN: Duration = Duration::from_millis(600);

/// The longest wait that [`Policy::Batch`](grouplock::Policy::Batch) allows here, in holds: those inside leave, then as many as may
/// overtake a waiter hold one after the other, and the session changes to theirs and to the waiter's.
pub const LONGEST: u32 = PASSES + THREADS as u32 + 2 * COST;

/// What happened under one policy, by round.
#[derive(Clone, Debug, Serialize)]
pub struct Changes {
    /// The lock.
    pub lock: &'static str,
    /// Changes of session in a thousand holds.
    pub per_thousand: Vec<f64>,
    /// Holds per second.
    pub rates: Vec<f64>,
    /// The longest wait, in holds as long as they really were.
    pub longest: Vec<f64>,
}

impl Changes {
    /// How many times as many changes as `peer`.
    pub fn ratio(&self, peer: &Changes) -> Spread {
        Spread::of_ratios(&self.per_thousand, &peer.per_thousand)
    }

    /// The longest wait of all.
    pub fn longest(&self) -> f64 {
        self.longest.iter().copied().fold(0.0, f64::max)
    }
}

/// Lets every policy have its turn in each of `rounds` rounds.
pub fn run(rounds: usize, tell: &mut impl FnMut(&str)) -> Vec<Changes> {
    type Turn = fn(u64) -> [f64; 3];
    let turns: [(&'static str, Turn); 3] = [
        (GroupLockDefault::NAME, turn::<GroupLockDefault>),
        (GroupLockFifo::NAME, turn::<GroupLockFifo>),
        (GroupLockBatch::NAME, turn::<GroupLockBatch>),
    ];
    let empty = |(lock, _)| Changes {
        lock,
        per_thousand: Vec::new(),
        rates: Vec::new(),
        longest: Vec::new(),
    };
    let mut all = turns.map(empty);
    for round in 0..rounds {
        for offset in 0..turns.len() {
            let at = (round + offset) % turns.len();
            tell(&format!("{}: expensive changes", turns[at].0));
            let [per_thousand, rate, longest] = (turns[at].1)(round as u64);
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
    // Which session the room is set up for, and how often that has changed.
    let set_up = Mutex::new((u64::MAX, 0_u32));
    let (passages, elapsed) = on_threads::<L, _>(&round, |lock, local, agenda, gate, _| {
        let mut passages = Vec::new();
        while !gate.is_over() {
            let session = agenda.draw();
            let asked = Instant::now();
            passages.push(lock.pass(local, session, || {
                let waited = asked.elapsed();
                let mut of = set_up.lock().unwrap_or_else(PoisonError::into_inner);
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
    let (waits, mut holds): (Vec<Duration>, Vec<Duration>) = passages.concat().into_iter().unzip();
    holds.sort_unstable();
    let hold = percentile(&holds, 0.5).unwrap_or(HOLD).as_secs_f64();
    let longest = waits.into_iter().max().unwrap_or_default().as_secs_f64();
    let changes = set_up.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    let count = holds.len() as f64;
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
