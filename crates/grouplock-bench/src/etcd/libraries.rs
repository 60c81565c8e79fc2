//! The two locks called from programs of our own.

use std::thread;
use std::time::Duration;

use super::party::{Kind, Party};
use super::server::Server;
use super::{EtcdError, Pair};

const MILLION: f64 = 1e6;

/// Enters and leaves while nobody else is there: `passages` per turn, every lock a turn per round, each round beginning with the other one.
///
/// # Errors
/// If a lock fails.
pub fn alone(server: &Server, rounds: usize, passages: usize) -> Result<Pair, EtcdError> {
    let mut ours = Party::start(Kind::Room, &server.endpoint, "alone", "session")?;
    let mut theirs = Party::start(Kind::Rpc, &server.endpoint, "alone", "session")?;
    in_turns(rounds, |ourselves| {
        let party = if ourselves { &mut ours } else { &mut theirs };
        party.tell(&format!("pass {passages}"))?;
        Ok(party.answer()?.into_iter().map(|nanos| nanos as f64 / MILLION).collect())
    })
}

/// One party is inside, another one waits: from the moment the first begins to leave to the moment the other is inside. Then the other way
/// round.
///
/// # Errors
/// If a lock fails.
pub fn hand_over(server: &Server, rounds: usize, mut waits: Waits) -> Result<Pair, EtcdError> {
    let name = format!("hand-over {}", waits.least.as_millis());
    let couple = |kind| -> Result<[Party; 2], EtcdError> {
        let start = |session| Party::start(kind, &server.endpoint, &name, session);
        Ok([start("one")?, start("two")?])
    };
    let mut ours = couple(Kind::Room)?;
    let mut theirs = couple(Kind::Rpc)?;
    in_turns(rounds, |ourselves| {
        exchange(if ourselves { &mut ours } else { &mut theirs }, waits.next())
    })
}

/// Enters and leaves a session of which 300 others are inside, and in turns a room where nobody is.
///
/// # Errors
/// If a lock fails.
pub fn crowded(server: &Server, rounds: usize, passages: usize) -> Result<Pair, EtcdError> {
    let start = |name| Party::start(Kind::Room, &server.endpoint, name, "session");
    let mut others = start("crowded")?;
    others.ask("crowd 300")?;
    let (mut beside, mut alone) = (start("crowded")?, start("lonely")?);
    in_turns(rounds, |ourselves| {
        let party = if ourselves { &mut beside } else { &mut alone };
        party.tell(&format!("pass {passages}"))?;
        Ok(party.answer()?.into_iter().map(|nanos| nanos as f64 / MILLION).collect())
    })
}

/// Four parties, each of a session of its own, enter and leave for a while as fast as they can: the time per entry.
///
/// # Errors
/// If a lock fails.
pub fn contended(server: &Server, rounds: usize) -> Result<Pair, EtcdError> {
    const PARTIES: [&str; 4] = ["one", "two", "three", "four"];
    const MILLISECONDS: u32 = 1_000;
    let start = |kind| -> Result<Vec<Party>, EtcdError> {
        let start = |session| Party::start(kind, &server.endpoint, "contended", session);
        PARTIES.into_iter().map(start).collect()
    };
    let mut ours = start(Kind::Room)?;
    let mut theirs = start(Kind::Rpc)?;
    in_turns(rounds, |ourselves| {
        let parties = if ourselves { &mut ours } else { &mut theirs };
        for party in parties.iter_mut() {
            party.tell(&format!("storm {MILLISECONDS}"))?;
        }
        let mut entries = 0;
        for party in parties {
            entries += party.answer()?[0];
        }
        Ok(vec![f64::from(MILLISECONDS) / entries as f64])
    })
}

/// Lets ours and theirs have a turn each per round, each round beginning with the other one. The first round makes connections and fills
/// caches, and does not count.
pub(super) fn in_turns(
    rounds: usize,
    mut turn: impl FnMut(bool) -> Result<Vec<f64>, EtcdError>,
) -> Result<Pair, EtcdError> {
    let mut pair = Pair::default();
    for round in 0..=rounds {
        for ourselves in [round % 2 == 0, round % 2 == 1] {
            let times = turn(ourselves)?;
            if round > 0 {
                if ourselves { &mut pair.ours } else { &mut pair.theirs }.push(times);
            }
        }
    }
    Ok(pair)
}

/// Two hand-overs, there and back.
fn exchange(couple: &mut [Party; 2], pause: Duration) -> Result<Vec<f64>, EtcdError> {
    let [first, second] = couple;
    first.ask("enter")?;
    let there = pass(first, second, pause)?;
    let back = pass(second, first, pause)?;
    first.ask("leave")?;
    Ok(vec![there, back])
}

fn pass(holder: &mut Party, waiter: &mut Party, pause: Duration) -> Result<f64, EtcdError> {
    waiter.tell("enter")?;
    thread::sleep(pause);
    let left = holder.ask("leave")?;
    let inside = waiter.answer()?[0];
    if inside < left {
        return Err(EtcdError::program("lock", "the waiter was inside before the holder left"));
    }
    Ok((inside - left) as f64 / MILLION)
}

/// How long someone waits before the lock is given up. All times in a range come alike often, as what happens every 100 ms in a
/// server must not fall on the same moment each time.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// The shortest.
    pub least: Duration,
    /// How many milliseconds more the longest one is.
    pub range: u64,
    step: u64,
}

impl Waits {
    /// From `least` to `least + range` milliseconds.
    pub fn new(least: u64, range: u64) -> Self {
        Waits { least: Duration::from_millis(least), range, step: 0 }
    }

    pub(super) fn next(&mut self) -> Duration {
        // Visits all of them if the number of steps has no divisor in common with 11.
        self.step = (self.step + 11) % (self.range + 1);
        self.least + Duration::from_millis(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_has_its_turn() {
        for range in [20, 100] {
            let mut waits = Waits::new(5, range);
            let mut seen: Vec<_> = (0..=range).map(|_| waits.next().as_millis()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (5..=5 + u128::from(range)).collect::<Vec<_>>());
        }
    }
}
