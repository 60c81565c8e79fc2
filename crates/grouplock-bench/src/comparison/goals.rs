//! The goals, and what was reached.

use serde::Serialize;

use super::alone::WayIn;
use super::expensive_changes::{COST, LONGEST};
use super::group_lock::{
    GroupLockBatch, GroupLockDefault, GroupLockExclusive, GroupLockFifo, GroupLockStriped,
};
use super::lock::Lock;
use super::long_queues::{FEW, MANY, Operation, SEMAPHORE};
use super::memory::Memory;
use super::peers::{
    AsyncLock, ByHand, CountingByHand, FairByHand, ParkingLotRwLock, ParkingLotRwLockFair,
    StdRwLock,
};
use super::plan::{excluding, excluding_on_busy_cores, halves, sharing};
use super::remote::{ALGORITHM, Remote};
use super::run::Results;
use super::starvation::{Roles, Waited};
use super::workload::Workload;
use crate::report::{NONE, labels};
use crate::statistics::{Bound, Spread};

const DEFAULT: &str = GroupLockDefault::NAME;
const PARKING_LOT: &str = ParkingLotRwLock::NAME;
const UNLOCK_FAIR: &str = ParkingLotRwLockFair::NAME;

/// The longest waits with the earlier queue, in milliseconds: `Fifo` and `Batch`, each with idle
/// and with busy cores, for 2, 8 and 32 threads with a session each. This program measured them on
/// two cores. Other programs used the machine during the runs with busy cores.
const LONGEST_BEFORE: [[f64; 3]; 4] =
    [[0.09, 0.32, 0.62], [77.0, 49.2, 88.1], [0.10, 0.49, 1.00], [28.1, 64.5, 93.6]];

/// One goal, and what was reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Goal {
    pub(super) about: String,
    pub(super) wanted: String,
    pub(super) reached: String,
    pub(super) verdict: Verdict,
}

labels!(
    /// Whether a goal is met.
    Verdict {
        Met = "met",
        /// It is, but it is not in a quarter of the rounds or more.
        Narrowly = "met, within the spread",
        /// It is not, but it is in a quarter of the rounds or more.
        Nearly = "not met, within the spread",
        NotMet = "**not met**",
        NotMeasured = "not measured",
    }
);

impl Verdict {
    fn met(met: bool) -> Self {
        if met { Verdict::Met } else { Verdict::NotMet }
    }

    fn of(bound: Bound, Spread { median, low, high }: Spread) -> Self {
        let [low, high] = [low, high].map(|value| bound.holds(value));
        match (bound.holds(median), low && high, low || high) {
            (true, true, _) => Verdict::Met,
            (true, false, _) => Verdict::Narrowly,
            (false, _, true) => Verdict::Nearly,
            (false, _, false) => Verdict::NotMet,
        }
    }
}

impl Goal {
    /// A goal, and what was found if it was measured.
    fn new(
        about: impl Into<String>,
        wanted: impl Into<String>,
        found: Option<(String, Verdict)>,
    ) -> Self {
        let (reached, verdict) = found.unwrap_or((NONE.to_owned(), Verdict::NotMeasured));
        Goal { about: about.into(), wanted: wanted.into(), reached, verdict }
    }

    /// A ratio to `peer`.
    fn ratio(about: impl Into<String>, bound: Bound, peer: &str, found: Option<Spread>) -> Self {
        let found = found.map(|found| (format!("{found:.2} ×"), Verdict::of(bound, found)));
        Goal::new(about, format!("{bound} × {peer}"), found)
    }
}

/// All goals. Those that were not measured say so.
pub(super) fn all(results: &Results) -> Vec<Goal> {
    let mut goals = alone(results);
    goals.extend(throughput(results));
    goals.extend(strict_order(results));
    goals
        .extend([Roles::OneAmongZeros, Roles::ZeroAmongOnes].map(|way| lone_request(results, way)));
    goals.extend(queues(results));
    goals.extend(memory(&results.memory));
    goals.extend(changes(results));
    goals.push(size(results));
    goals.push(remote_references(&results.remote));
    goals
}

fn alone(results: &Results) -> Vec<Goal> {
    let goal = |about: &str, most, path, peer: &str, peer_path, call: &str| {
        let ratio = results.alone_ratio((DEFAULT, path), (peer, peer_path));
        Goal::ratio(format!("{about}: time"), Bound::Most(most), &format!("{peer} {call}"), ratio)
    };
    let write = |about, path| goal(about, 1.0, path, PARKING_LOT, WayIn::Exclusive, "write");
    let failing = |about, path| {
        goal(about, 2.0, path, PARKING_LOT, WayIn::FailingTryExclusive, "`try_write` that fails")
    };
    vec![
        goal("uncontended enter + leave", 0.9, WayIn::Shared, PARKING_LOT, WayIn::Shared, "read"),
        write("uncontended `exclusive`", WayIn::Exclusive),
        write("uncontended `exclusive`, no session ever inside", WayIn::FirstExclusive),
        failing("a `try_enter` that fails", WayIn::FailingTry),
        failing("a `try_exclusive` that fails", WayIn::FailingTryExclusive),
        goal("async, uncontended", 0.5, WayIn::Async, AsyncLock::NAME, WayIn::Async, "read"),
    ]
}

/// How many times as many entries as the best of `peers`, round by round.
fn ratio(results: &Results, workload: Workload, lock: &str, peers: &[&str]) -> Option<Spread> {
    let game = results.of(workload)?;
    let peers: Vec<_> = peers.iter().map(|peer| game.score(peer)).collect::<Option<_>>()?;
    let rates = &game.score(lock)?.rates;
    let best = |round| peers.iter().map(|peer| peer.rates[round]).fold(0.0, f64::max);
    Some(Spread::of_ratios(rates, &(0..rates.len()).map(best).collect::<Vec<_>>()))
}

fn throughput(results: &Results) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut goal = |about: &str, least, name: &str, workload: Workload, lock, peers: &[&str]| {
        let about = format!("{about}, {} threads: entries", workload.threads);
        let ratio = ratio(results, workload, lock, peers);
        goals.push(Goal::ratio(about, Bound::Least(least), name, ratio));
    };
    let readers = [StdRwLock::NAME, PARKING_LOT];
    let better = "the better of std and parking_lot RwLock read";
    for (about, lock, least) in
        [("one session", DEFAULT, 1.1), ("one session, striped", GroupLockStriped::NAME, 6.0)]
    {
        for threads in [2, 8] {
            goal(about, least, better, sharing(threads), lock, &readers);
        }
    }
    for (about, lock) in
        [("a session per thread", DEFAULT), ("all `exclusive`", GroupLockExclusive::NAME)]
    {
        for threads in [2, 8, 32] {
            let write = format!("{PARKING_LOT} write");
            goal(about, 1.0, &write, excluding(threads), lock, &[PARKING_LOT]);
        }
    }
    let (fair, unfair) = (FairByHand::NAME, [ByHand::NAME, CountingByHand::NAME]);
    let better = "the better of the two unfair ones by hand";
    goal("two sessions", 10.0, fair, halves(8), DEFAULT, &[fair]);
    goal("two sessions", 2.0, better, halves(8), DEFAULT, &unfair);
    let bound = Bound::Least(0.9);
    let score = results.of(halves(8)).and_then(|game| game.score(DEFAULT));
    let jain = score.map(|score| {
        let found = Spread::of(&score.jain);
        (format!("{found:.2}"), Verdict::of(bound, found))
    });
    goals.push(Goal::new("two sessions, 8 threads: Jain's index", bound.to_string(), jain));
    goals
}

/// `Fifo` and `Batch` next to `unlock_fair`, with idle and with busy cores.
fn strict_order(results: &Results) -> Vec<Goal> {
    type OfThreads = fn(usize) -> Workload;
    let threads = [2, 8, 32];
    let mut goals = Vec::new();
    let loads: [(&str, OfThreads); 2] =
        [("", excluding), (", busy cores", excluding_on_busy_cores)];
    let policies = [("Fifo", GroupLockFifo::NAME), ("Batch", GroupLockBatch::NAME)];
    let cases = policies.iter().flat_map(|policy| loads.iter().map(move |load| (policy, load)));
    for (((policy, lock), (load, workload)), before) in cases.zip(LONGEST_BEFORE) {
        let about = format!("`{policy}`, a session per thread{load}");
        for threads in threads {
            goals.push(Goal::ratio(
                format!("{about}, {threads} threads: entries"),
                Bound::Least(1.0),
                &format!("{UNLOCK_FAIR} write"),
                ratio(results, workload(threads), lock, &[UNLOCK_FAIR]),
            ));
        }
        let longest = |lock| {
            let milliseconds = |threads| {
                let score = results.of(workload(threads))?.score(lock)?;
                Some(score.observed.wait_max as f64 / 1e6)
            };
            threads.into_iter().map(milliseconds).collect::<Option<Vec<f64>>>()
        };
        let text = |waits: &[f64]| {
            let waits: Vec<_> = waits.iter().map(|wait| format!("{wait:.2}")).collect();
            waits.join(" / ")
        };
        let found = longest(lock).zip(longest(UNLOCK_FAIR)).map(|(ours, theirs)| {
            let met = ours.iter().zip(before).all(|(ours, before)| *ours <= 2.0 * before);
            let reached = format!("{} ms; unlock_fair {} ms", text(&ours), text(&theirs));
            (reached, Verdict::met(met))
        });
        let about = format!("{about}, 2 / 8 / 32 threads: longest wait");
        goals.push(Goal::new(about, format!("≤ 2 × before, {} ms", text(&before)), found));
    }
    goals
}

fn lone_request(results: &Results, way: Roles) -> Goal {
    let found = results.probed(DEFAULT, way).map(|waited| match *waited {
        Waited { median: Some(median), max: Some(max), gave_up_after: None, .. } => {
            (format!("{median:.2}, {max:.2}"), Verdict::met(median <= 2.0 && max <= 5.0))
        }
        Waited { gave_up_after, .. } => {
            (format!("starved, > {} s", gave_up_after.unwrap_or_default()), Verdict::NotMet)
        }
    });
    Goal::new(format!("a lone request: {}", way.text()), "median ≤ 2 holds, max ≤ 5", found)
}

fn queues(results: &Results) -> Vec<Goal> {
    let of = |operation, lock| {
        results.queues.iter().find(|queue| queue.operation == operation && queue.lock == lock)
    };
    let mut goals = Vec::new();
    for operation in Operation::ALL {
        for lock in [DEFAULT, GroupLockFifo::NAME, GroupLockBatch::NAME] {
            // The waiters lie all over the memory: the peer shows what that costs.
            let anywhere = operation == Operation::WithdrawAnywhere;
            let found = of(operation, lock).zip(of(operation, SEMAPHORE)).map(|(queue, peer)| {
                let bound = if anywhere { 2.0 * peer.ratio.median.max(1.0) } else { 2.0 };
                let reached = format!("{:.2} ×; {SEMAPHORE} {:.2} ×", queue.ratio, peer.ratio);
                (reached, Verdict::of(Bound::Most(bound), queue.ratio))
            });
            let about = format!("{MANY} waiters next to {FEW}, {}, {lock}: time", operation.text());
            let wanted = if anywhere { "≤ 2 × the peer's ratio" } else { "≤ 2 ×" };
            goals.push(Goal::new(about, wanted, found));
        }
    }
    goals
}

fn memory(memory: &[Memory]) -> Vec<Goal> {
    let goal = |about: &str, most: f64, of: fn(&Memory) -> f64| {
        let found = (!memory.is_empty()).then(|| {
            let text = |memory: &Memory| format!("{} {:.2}", memory.policy, of(memory));
            let reached: Vec<_> = memory.iter().map(text).collect();
            let met = memory.iter().all(|memory| of(memory) <= most);
            (reached.join(", "), Verdict::met(met))
        });
        Goal::new(format!("allocations {about}"), format!("≤ {most}"), found)
    };
    vec![
        goal("per wait of a thread", 0.0, |memory| memory.thread),
        goal("per wait of a task", 1.0, |memory| memory.task),
        goal("per entry under another name", 0.0, |memory| memory.name),
    ]
}

fn changes(results: &Results) -> [Goal; 2] {
    let of = |lock| results.changes.iter().find(|changes| changes.lock == lock);
    let pair = of(GroupLockBatch::NAME).zip(of(GroupLockFifo::NAME));
    let about = format!("`Batch`, two sessions, a change costs {COST} holds");
    let ratio = pair.map(|(batch, fifo)| batch.ratio(fifo));
    let longest = pair.map(|(batch, fifo)| {
        let (batch, fifo) = (batch.longest(), fifo.longest());
        let met = batch <= f64::from(LONGEST);
        (format!("{batch:.0} holds; `Fifo` {fifo:.0}"), Verdict::met(met))
    });
    [
        Goal::ratio(format!("{about}: changes per hold"), Bound::Most(0.2), "`Fifo`", ratio),
        Goal::new(format!("{about}: longest wait"), format!("≤ {LONGEST} holds"), longest),
    ]
}

fn size(results: &Results) -> Goal {
    let size = results.sizes.iter().find(|(lock, _)| *lock == DEFAULT);
    let found = size.map(|(_, bytes)| (format!("{bytes} bytes"), Verdict::met(*bytes <= 24)));
    Goal::new("size of an unlocked `GroupLock<u64, ()>`", "≤ 24 bytes", found)
}

fn remote_references(remote: &[Remote]) -> Goal {
    let text = |remote: &Remote| {
        let bound = remote.bound.map_or_else(|| "none".to_owned(), |bound| bound.to_string());
        format!("{}: {} found, {bound} proven", remote.model, remote.max)
    };
    let close = |remote: &Remote| {
        remote.bound.is_some_and(|bound| (remote.max..=remote.max + 3).contains(&bound))
    };
    let reached: Vec<String> = remote.iter().map(text).collect();
    let met = Verdict::met(remote.iter().all(close));
    Goal::new(
        format!("remote references per passage of `{ALGORITHM}`, from the lab"),
        "a constant proven for any number of processes, ≤ 3 above the largest found",
        (!remote.is_empty()).then(|| (reached.join("; "), met)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_when_the_bound_is_within_the_spread() {
        let spread = |low, median, high| Spread { median, low, high };
        let least = |spread| Verdict::of(Bound::Least(1.0), spread);
        let most = |spread| Verdict::of(Bound::Most(1.0), spread);
        assert_eq!(least(spread(1.0, 1.1, 1.2)), Verdict::Met);
        assert_eq!(least(spread(0.9, 1.1, 1.2)), Verdict::Narrowly);
        assert_eq!(least(spread(0.7, 0.9, 1.2)), Verdict::Nearly);
        assert_eq!(least(spread(0.7, 0.8, 0.9)), Verdict::NotMet);
        assert_eq!(most(spread(0.7, 0.8, 0.9)), Verdict::Met);
        assert_eq!(most(spread(0.9, 1.2, 1.3)), Verdict::Nearly);
        assert_eq!(least(Spread::of(&[])), Verdict::NotMet);
    }

    #[test]
    fn a_bound_must_be_proven_and_close() {
        let evidence = crate::comparison::remote::largest().unwrap();
        let verdict = |change: fn(&mut Remote)| {
            let mut evidence = evidence.clone();
            evidence.iter_mut().for_each(change);
            remote_references(&evidence).verdict
        };
        assert_eq!(remote_references(&[]).verdict, Verdict::NotMeasured);
        assert_eq!(verdict(|remote| remote.bound = Some(remote.max + 3)), Verdict::Met);
        assert_eq!(verdict(|remote| remote.bound = Some(remote.max + 4)), Verdict::NotMet);
        assert_eq!(verdict(|remote| remote.bound = None), Verdict::NotMet);
    }

    #[test]
    fn one_policy_that_allocates_is_enough_to_miss() {
        let none = Memory { policy: "x", thread: 0.0, task: 1.0, name: 0.0 };
        let verdicts =
            |all: &[Memory]| memory(all)[..2].iter().map(|goal| goal.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&[none, none]), [Verdict::Met, Verdict::Met]);
        let some = Memory { thread: 0.5, task: 1.5, ..none };
        assert_eq!(verdicts(&[none, some]), [Verdict::NotMet, Verdict::NotMet]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured, Verdict::NotMeasured]);
    }
}
