//! The report.

use core::fmt;

use super::peers::{FLOCK, OFD, ROBUST_MUTEX, ROOM, ROOM_JOIN, RWLOCK};
use super::{Figures, Sample};
use crate::machine;

/// What a run has found. Displayed, it is the complete page; every figure is taken from the run.
#[derive(Clone, Copy, Debug)]
pub struct Page<'r> {
    /// What was measured.
    pub figures: &'r Figures,
    /// In how many rounds.
    pub rounds: usize,
}

/// What a room should be at least, measured in passages of flock(2).
const GOAL: f64 = 20.0;

struct Shown(Sample);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample { median, low, high } = self.0;
        write!(f, "{median:.1} ({low:.1} – {high:.1})")
    }
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = machine::cores().map_or_else(|| "?".to_owned(), |cores| cores.to_string());
        writeln!(
            f,
            "\
# Rooms against the locks of the system

One process takes a lock that other processes could take and gives it back, and nobody else is there.

* On {}, {cores} cores, with {}, release profile. The figures are those of a single run.
* {} rounds. In each, every lock has one turn, and each round begins with another lock. A figure is the
  median over the rounds, with the 10th and the 90th percentile in parentheses; a ratio is taken within each round first.
* `{ROOM}`: `Room::enter` and dropping the guard, in an empty room, through the public interface.
* `{ROOM_JOIN}`: the same while a holder of the same session is inside: not the fast path, but the latch and a look at the slots.
* `{OFD}`: `F_OFD_SETLKW` and `F_OFD_SETLK` on one byte.
* `{ROBUST_MUTEX}`: process-shared, in a mapped file. There is no robust readers-writers lock in pthreads, so this mutex is the
  peer that also survives the death of a holder; it has no sessions, no queue and no sharing.
* `{RWLOCK}`: process-shared, taken for reading. A holder that dies leaves it locked for ever.

To repeat it: `cargo run --release -p grouplock-bench --bin rooms -- --out docs/benchmarks/rooms.md`
",
            machine::processor(),
            machine::RUSTC,
            self.rounds
        )?;
        self.table(f)?;
        let faster = self.faster(ROOM, FLOCK);
        let verdict = match faster {
            Some(Sample { median, .. }) if median >= GOAL => "reached",
            Some(_) => "not reached in this run",
            None => "not measured",
        };
        let faster = faster.map_or_else(|| "?".to_owned(), |sample| Shown(sample).to_string());
        writeln!(
            f,
            "\nGoal: at least {GOAL:.0} times as fast as flock(2) when uncontended. It is {faster} times: {verdict}."
        )
    }
}

impl Page<'_> {
    fn faster(&self, peer: &str, other: &str) -> Option<Sample> {
        let (peer, other) = self.figures.row(peer).zip(self.figures.row(other))?;
        Some(self.figures.times_faster(peer, other))
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| lock | ns per passage | `{ROOM}` is … times as fast |\n|---|---|---|")?;
        for (row, name) in self.figures.names.iter().enumerate() {
            let time = Shown(self.figures.nanoseconds(row));
            let faster = self.faster(ROOM, name).map_or_else(String::new, |s| Shown(s).to_string());
            writeln!(f, "| {name} | {time} | {faster} |")?;
        }
        Ok(())
    }
}
