//! The report.

use core::fmt;

use super::peers::{FLOCK, OFD, ROBUST_MUTEX, ROOM, ROOM_JOIN, ROOM_JOIN_MANY, RWLOCK};
use crate::machine;
use crate::program::table;
use crate::statistics::Spread;
use crate::uncontended::rounds::Times;
use crate::uncontended::subjects::Subject;

/// What a run has found. Displayed, it is the complete page; every figure is taken from the run.
#[derive(Clone, Copy, Debug)]
pub struct Page<'r> {
    /// What was measured.
    pub peers: &'r [Subject],
    /// What it took.
    pub times: &'r Times,
    /// In how many rounds.
    pub rounds: u32,
}

/// What a room should be at least, measured in passages of flock(2).
const GOAL: f64 = 10.0;

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
# Rooms against the locks of the system

*For whoever has rooms between processes, or thinks of it.*

One process takes a lock that other processes could take and gives it back, and nobody else is there.

* On {}. The figures are those of a single run.
* {} rounds. In each, every lock has one turn, and each round begins with another lock. A figure is the
  median over the rounds, with the quartiles in parentheses; a ratio is taken within each round first.
* `{ROOM}`: `Room::enter` and dropping the guard, in an empty room, through the public interface.
* `{ROOM_JOIN}`, `{ROOM_JOIN_MANY}`: the same while one holder of the same session is inside, or a thousand.
* `{OFD}`: `F_OFD_SETLKW` and `F_OFD_SETLK` on one byte.
* `{ROBUST_MUTEX}`: process-shared, in a mapped file. There is no robust readers-writers lock in pthreads, so this mutex is the
  peer that also survives the death of a holder; it has no sessions, no queue and no sharing.
* `{RWLOCK}`: process-shared, taken for reading. A holder that dies leaves it locked for ever.

To repeat it: `cargo run --release -p grouplock-bench --bin rooms -- --out docs/benchmarks/rooms.md`
",
            machine::told(),
            self.rounds
        )?;
        let rows = self.peers.iter().enumerate().map(|(row, Subject { name, .. })| {
            let faster =
                self.faster(name).map_or_else(String::new, |faster| format!("{faster:.1}"));
            [name.clone(), format!("{:.1}", self.times.nanoseconds(row)), faster]
        });
        let faster = format!("`{ROOM}` is … times as fast");
        write!(f, "{}", table(&["lock", "ns per passage", &faster], rows))?;
        let faster = self.faster(FLOCK);
        let verdict = match faster {
            Some(Spread { median, .. }) if median >= GOAL => "reached",
            Some(_) => "not reached in this run",
            None => "not measured",
        };
        let faster = faster.map_or_else(|| "?".to_owned(), |faster| format!("{faster:.1}"));
        writeln!(
            f,
            "\nGoal: at least {GOAL:.0} times as fast as flock(2) when uncontended. It is {faster} times: {verdict}."
        )
    }
}

impl Page<'_> {
    /// How many times as fast as `other` our room is.
    fn faster(&self, other: &str) -> Option<Spread> {
        let row = |name| self.peers.iter().position(|peer| peer.name == name);
        Some(self.times.ratio(row(other)?, row(ROOM)?))
    }
}
