//! Measures the two locks, called from [parties](super::party).

use std::thread;
use std::time::Duration;

use super::party::{Party, Peer};
use super::server::Server;
use super::{Pair, Waits, in_turns};
use crate::report::Outcome;

/// Enters and leaves, `passages` per turn. No other process uses the lock.
pub(super) fn alone(server: &Server, rounds: usize, passages: usize) -> Outcome<Pair> {
    let ours = Party::start(Peer::Room, &server.endpoint, "alone", "session")?;
    let theirs = Party::start(Peer::Rpc, &server.endpoint, "alone", "session")?;
    passages_of(ours, theirs, rounds, passages)
}

/// Enters and leaves a session with 300 other holders, and in turns an empty room.
pub(super) fn crowded(server: &Server, rounds: usize, passages: usize) -> Outcome<Pair> {
    let start = |name| Party::start(Peer::Room, &server.endpoint, name, "session");
    let mut others = start("crowded")?;
    others.ask("crowd 300")?;
    passages_of(start("crowded")?, start("lonely")?, rounds, passages)
}

fn passages_of(
    mut ours: Party,
    mut theirs: Party,
    rounds: usize,
    passages: usize,
) -> Outcome<Pair> {
    in_turns(rounds, |of_ours| if of_ours { &mut ours } else { &mut theirs }.pass(passages))
}

/// One party is inside and another one waits: the time from the moment the holder begins to leave
/// until the waiter is inside. Then the same in the other direction.
pub(super) fn hand_over(server: &Server, rounds: usize, mut waits: Waits) -> Outcome<Pair> {
    let name = format!("hand-over {}", waits.least.as_millis());
    let couple = |peer| -> Outcome<[Party; 2]> {
        let start = |session| Party::start(peer, &server.endpoint, &name, session);
        Ok([start("one")?, start("two")?])
    };
    let (mut ours, mut theirs) = (couple(Peer::Room)?, couple(Peer::Rpc)?);
    in_turns(rounds, |of_ours| {
        let [first, second] = if of_ours { &mut ours } else { &mut theirs };
        let pause = waits.next();
        first.ask("enter")?;
        let times = vec![pass(first, second, pause)?, pass(second, first, pause)?];
        first.ask("leave")?;
        Ok(times)
    })
}

fn pass(holder: &mut Party, waiter: &mut Party, pause: Duration) -> Outcome<f64> {
    waiter.tell("enter")?;
    thread::sleep(pause);
    let left = holder.ask("leave")?;
    let inside = waiter.answer()?[0];
    let time = inside.checked_sub(left).ok_or("the waiter was inside before the holder left")?;
    Ok(time as f64 / 1e6)
}

/// Four parties, each of a session of its own, enter and leave for a while as fast as they can: the
/// time per entry.
pub(super) fn contended(server: &Server, rounds: usize) -> Outcome<Pair> {
    const MILLISECONDS: u32 = 1_000;
    let start = |peer| -> Outcome<Vec<Party>> {
        let start = |session| Party::start(peer, &server.endpoint, "contended", session);
        ["one", "two", "three", "four"].into_iter().map(start).collect()
    };
    let (mut ours, mut theirs) = (start(Peer::Room)?, start(Peer::Rpc)?);
    in_turns(rounds, |of_ours| {
        let parties = if of_ours { &mut ours } else { &mut theirs };
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
