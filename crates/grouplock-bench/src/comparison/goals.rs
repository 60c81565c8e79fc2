//! What was to be reached, and what was.

use core::fmt;

use grouplock_algorithms::claims::Growth;
use serde::Serialize;

use super::alone::Path;
use super::group_lock::{GroupLockDefault, GroupLockFifo, GroupLockStriped};
use super::lock::Lock;
use super::peers::{
    AsyncLock, ByHand, FairByHand, ParkingLotRwLock, ParkingLotRwLockFair, StdRwLock, Tokio,
};
use super::plan::{excluding, halves, sharing};
use super::remote::{self, ALGORITHM, Remote};
use super::run::{Match, Results, Score};
use super::starvation::{Waited, Way};
use crate::statistics::Spread;

const DEFAULT: &str = GroupLockDefault::NAME;

/// One goal and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What it is about.
    pub about: String,
    /// What was to be reached.
    pub wanted: String,
    /// What was reached.
    pub reached: String,
    /// Whether that is enough.
    pub verdict: Verdict,
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is.
    Met,
    /// It is, but the other way in a quarter of the rounds or more.
    Narrowly,
    /// It is not, but is in a quarter of the rounds or more.
    Nearly,
    /// It is not.
    NotMet,
    /// Nobody knows.
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Met => "met",
            Verdict::Narrowly => "met, within the spread",
            Verdict::Nearly => "not met, within the spread",
            Verdict::NotMet => "**not met**",
            Verdict::NotMeasured => "not measured",
        })
    }
}

/// Which side of a bound is good.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Least(f64),
    Most(f64),
}

impl Bound {
    fn verdict(self, Spread { median, low, high }: Spread) -> Verdict {
        let holds = |value| match self {
            Bound::Least(least) => value >= least,
            Bound::Most(most) => value <= most,
        };
        match (holds(median), holds(low) && holds(high), holds(low) || holds(high)) {
            (true, true, _) => Verdict::Met,
            (true, false, _) => Verdict::Narrowly,
            (false, _, true) => Verdict::Nearly,
            (false, _, false) => Verdict::NotMet,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Least(least) => write!(f, "≥ {least}"),
            Bound::Most(most) => write!(f, "≤ {most}"),
        }
    }
}

impl Goal {
    fn new(about: impl Into<String>, wanted: impl Into<String>) -> Self {
        let (about, wanted) = (about.into(), wanted.into());
        Goal { about, wanted, reached: "–".to_owned(), verdict: Verdict::NotMeasured }
    }

    fn settle(mut self, reached: String, met: bool) -> Self {
        self.reached = reached;
        self.verdict = if met { Verdict::Met } else { Verdict::NotMet };
        self
    }

    /// A ratio to `peer`.
    fn ratio(about: impl Into<String>, bound: Bound, peer: &str, found: Option<Spread>) -> Self {
        let mut goal = Goal::new(about, format!("{bound} × {peer}"));
        if let Some(found) = found {
            goal.reached = format!("{found:.2} ×");
            goal.verdict = bound.verdict(found);
        }
        goal
    }
}

/// All goals, as far as `results` can answer them.
pub fn all(results: &Results) -> Vec<Goal> {
    let mut goals = alone(results);
    goals.extend(throughput(results));
    goals.extend(starvation(results));
    goals.push(size(results));
    goals.push(remote_references(results.remote.as_deref()));
    goals
}

fn alone(results: &Results) -> Vec<Goal> {
    let ratio =
        |one, path, other, other_path| results.alone_ratio((one, path), (other, other_path));
    let (parking_lot, by_hand) = (ParkingLotRwLock::NAME, ByHand::<false>::NAME);
    let about = "uncontended enter + leave";
    vec![
        Goal::ratio(
            format!("{about}: time"),
            Bound::Most(1.0),
            &format!("{parking_lot} read"),
            ratio(DEFAULT, Path::Shared, parking_lot, Path::Shared),
        ),
        Goal::ratio(
            format!("{about}: speed"),
            Bound::Least(40.0),
            by_hand,
            ratio(by_hand, Path::Shared, DEFAULT, Path::Shared),
        ),
        Goal::ratio(
            "async, uncontended: time",
            Bound::Most(1.0),
            &format!("{} read", AsyncLock::NAME),
            ratio(DEFAULT, Path::Async, AsyncLock::NAME, Path::Async),
        ),
    ]
}

/// How many times as many entries as `peer`.
fn ratio(game: Option<&Match>, lock: &str, peer: &str) -> Option<Spread> {
    let game = game?;
    Some(game.score(lock)?.ratio(game.score(peer)?))
}

/// How many times as many entries as the better of two, round by round.
fn ratio_to_better(game: Option<&Match>, lock: &str, peers: [&str; 2]) -> Option<Spread> {
    let game = game?;
    let [one, other] = peers.map(|peer| game.score(peer));
    let pairs = one?.rates.iter().zip(&other?.rates);
    let better: Vec<f64> = pairs.map(|(one, other)| one.max(*other)).collect();
    Some(Spread::of_ratios(&game.score(lock)?.rates, &better))
}

fn throughput(results: &Results) -> Vec<Goal> {
    let mut goals = Vec::new();
    let (standard, parking_lot) = (StdRwLock::NAME, ParkingLotRwLock::NAME);
    for (lock, mode, least) in [(DEFAULT, "", 1.0), (GroupLockStriped::NAME, ", striped", 4.0)] {
        for threads in [2, 8] {
            goals.push(Goal::ratio(
                format!("one session, {threads} threads{mode}: entries"),
                Bound::Least(least),
                "the better of std and parking_lot RwLock read",
                ratio_to_better(results.of(sharing(threads)), lock, [standard, parking_lot]),
            ));
        }
    }
    for (peer, stretch) in [(standard, ""), (parking_lot, " (stretch)")] {
        for threads in [2, 8] {
            goals.push(Goal::ratio(
                format!("a session per thread, {threads} threads: entries{stretch}"),
                Bound::Least(1.0),
                &format!("{peer} write"),
                ratio(results.of(excluding(threads)), DEFAULT, peer),
            ));
        }
    }
    let game = results.of(halves(8));
    let about = "two sessions, 8 threads";
    for (peer, least) in [(FairByHand::NAME, 10.0), (ByHand::<false>::NAME, 1.0)] {
        let found = ratio(game, DEFAULT, peer);
        goals.push(Goal::ratio(format!("{about}: entries"), Bound::Least(least), peer, found));
    }
    let mut fairness = Goal::new(format!("{about}: Jain's index"), "≥ 0.9");
    if let Some(found) = game.and_then(|game| game.score(DEFAULT)).map(Score::fairness) {
        fairness.reached = format!("{found:.2}");
        fairness.verdict = Bound::Least(0.9).verdict(found);
    }
    goals.push(fairness);
    for peer in [ParkingLotRwLockFair::NAME, Tokio::NAME] {
        for threads in [2, 8] {
            goals.push(Goal::ratio(
                format!("`Fifo`, a session per thread, {threads} threads: entries"),
                Bound::Least(1.0),
                &format!("{peer} write"),
                ratio(results.of(excluding(threads)), GroupLockFifo::NAME, peer),
            ));
        }
    }
    goals
}

fn starvation(results: &Results) -> Vec<Goal> {
    let goal = |way: Way| {
        let about = format!("a lone request: {}", way.told());
        let goal = Goal::new(about, "median ≤ 2 holds, max ≤ 5");
        match results.probed(DEFAULT, way) {
            Some(&Waited { median: Some(median), max: Some(max), gave_up_after: None, .. }) => {
                goal.settle(format!("{median:.2}, {max:.2}"), median <= 2.0 && max <= 5.0)
            }
            Some(Waited { gave_up_after, .. }) => {
                let after = gave_up_after.unwrap_or_default();
                goal.settle(format!("starved, > {after} s"), false)
            }
            None => goal,
        }
    };
    vec![goal(Way::OneAmongZeros), goal(Way::ZeroAmongOnes)]
}

fn size(results: &Results) -> Goal {
    let goal = Goal::new("size of an unlocked `GroupLock<u64, ()>`", "≤ 24 bytes");
    match results.sizes.iter().find(|(lock, _)| *lock == DEFAULT) {
        Some((_, bytes)) => goal.settle(format!("{bytes} bytes"), *bytes <= 24),
        None => goal,
    }
}

fn remote_references(remote: Option<&[Remote]>) -> Goal {
    let about = format!("remote references per passage of `{ALGORITHM}`, the most found");
    let goal = Goal::new(about, "a constant for 2 to 256 processes, on CC and DSM");
    let Some(counts) = remote else { return goal };
    let told = |of: fn(&Remote) -> u64| {
        let all = counts.iter().map(|count| of(count).to_string());
        all.collect::<Vec<_>>().join(" / ")
    };
    let sizes = told(|count| count.processes as u64);
    let (cc, dsm) = (told(|count| count.cc), told(|count| count.dsm));
    let reached = format!("CC {cc}, DSM {dsm} for {sizes}");
    let constant = remote::growth(counts).iter().all(|growth| *growth == Growth::Constant);
    goal.settle(reached, constant && !counts.iter().any(|count| count.remote_spinning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_when_the_spread_reaches_over_the_bound() {
        let spread = |low, median, high| Spread { median, low, high };
        let least = |spread| Bound::Least(1.0).verdict(spread);
        assert_eq!(least(spread(1.0, 1.1, 1.2)), Verdict::Met);
        assert_eq!(least(spread(0.9, 1.1, 1.2)), Verdict::Narrowly);
        assert_eq!(least(spread(0.7, 0.9, 1.2)), Verdict::Nearly);
        assert_eq!(least(spread(0.7, 0.8, 0.9)), Verdict::NotMet);
        assert_eq!(Bound::Most(1.0).verdict(spread(0.7, 0.8, 0.9)), Verdict::Met);
        assert_eq!(Bound::Most(1.0).verdict(spread(0.9, 1.2, 1.3)), Verdict::Nearly);
        assert_eq!(least(Spread::of([])), Verdict::NotMet);
    }

    #[test]
    fn remote_references_must_not_grow() {
        let count = |processes, cc| Remote { processes, cc, dsm: 5, remote_spinning: false };
        let verdict = |counts: &[Remote]| remote_references(Some(counts)).verdict;
        assert_eq!(remote_references(None).verdict, Verdict::NotMeasured);
        assert_eq!(verdict(&[count(2, 7), count(8, 9), count(256, 9)]), Verdict::Met);
        let grown = remote_references(Some(&[count(2, 7), count(8, 9), count(256, 90)]));
        assert_eq!(grown.verdict, Verdict::NotMet);
        assert_eq!(grown.reached, "CC 7 / 9 / 90, DSM 5 / 5 / 5 for 2 / 8 / 256");
        let spinning = Remote { remote_spinning: true, ..count(256, 7) };
        assert_eq!(verdict(&[count(2, 7), spinning]), Verdict::NotMet);
    }
}
