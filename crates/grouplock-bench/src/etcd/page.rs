//! The report.

use core::fmt;
use std::fs;

use super::Pair;
use crate::machine;
use crate::program::table;
use crate::statistics::{Spread, percentile};

/// What was measured on one server.
#[derive(Clone, Debug)]
pub struct Section {
    /// What its data was on.
    pub file_system: String,
    /// How long writing 2 KiB to a file there and fsync took, in milliseconds.
    pub fsync: Vec<f64>,
    /// What was compared.
    pub rows: Vec<Row>,
}

/// Something that was compared.
#[derive(Clone, Debug)]
pub struct Row {
    /// What.
    pub what: &'static str,
    /// By whom: ours, and what it is compared with.
    pub by: [&'static str; 2],
    /// What it should come to.
    pub goal: Option<Goal>,
    /// What was measured.
    pub pair: Pair,
}

/// What a ratio should come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Ours takes at most so many times as long as theirs.
    AtMost(f64),
    /// Ours is at least so many times as fast as theirs.
    TimesFaster(f64),
}

/// What a run has found. Displayed, it is the complete page; every figure is taken from the run.
#[derive(Clone, Debug)]
pub struct Page {
    /// etcd's version.
    pub version: String,
    /// How busy the machine was before.
    pub load: String,
    /// A section per server.
    pub sections: Vec<Section>,
}

/// The median of each round.
fn medians(rounds: &[Vec<f64>]) -> Vec<f64> {
    rounds.iter().map(|round| Spread::of(round.iter().copied()).median).collect()
}

/// How much was measured; median, 90th and 99th percentile of it.
fn distribution(rounds: &[Vec<f64>]) -> [String; 4] {
    let mut all: Vec<f64> = rounds.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let at = |share| format!("{:.2}", percentile(&all, share).unwrap_or(f64::NAN));
    [all.len().to_string(), at(0.5), at(0.9), at(0.99)]
}

impl Row {
    /// Two rows of the table: ours, and theirs.
    fn told(&self) -> [Vec<String>; 2] {
        let by = self.by;
        let row = |what: &str, by: &str, rounds: &[Vec<f64>], ratio: String| {
            let ends = [what.to_owned(), by.to_owned()];
            ends.into_iter().chain(distribution(rounds)).chain([ratio]).collect()
        };
        let ours = row(self.what, by[0], &self.pair.ours, format!("{:.2}", self.ratio()));
        [ours, row("", by[1], &self.pair.theirs, String::new())]
    }

    /// Ours over theirs, from round to round.
    fn ratio(&self) -> Spread {
        Spread::of_ratios(&medians(&self.pair.ours), &medians(&self.pair.theirs))
    }

    /// Theirs over ours.
    fn times_faster(&self) -> Spread {
        Spread::of_ratios(&medians(&self.pair.theirs), &medians(&self.pair.ours))
    }

    /// The goal and what became of it, in words.
    fn verdict(&self) -> Option<String> {
        let what = self.what;
        let (wanted, found, met) = match self.goal? {
            Goal::AtMost(bound) => {
                let ratio = self.ratio();
                (
                    format!("at most {bound} times theirs"),
                    format!("{ratio:.2}"),
                    ratio.median <= bound,
                )
            }
            Goal::TimesFaster(bound) => {
                let faster = self.times_faster();
                let wanted = format!("at least {bound} times as fast as theirs");
                (wanted, format!("{faster:.1}"), faster.median >= bound)
            }
        };
        let verdict = if met { "reached" } else { "not reached in this run" };
        Some(format!("Goal, {what}: {wanted}. It is {found} times: {verdict}."))
    }
}

/// The load averages of the system, if it tells them.
pub fn load() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("unknown").to_owned()
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\
# Rooms on etcd against etcd's own lock

*For whoever has rooms on etcd, or thinks of it.*

The same etcd, one run, in turns. Milliseconds; a ratio is taken within each round first, and shown as the median over the rounds with the
quartiles in parentheses.

* On {}; etcd {}, one member on this machine's loopback. The load average was {} when it
  began.
* **enter and leave, alone**: nobody else is there. *A room*: `Room::enter` and `Guard::leave` through the public interface. *RPC*: `Lock` and
  `Unlock` of etcd's lock service over a connection that stays open, with a lease that lasts and needs no care, by a runtime on the
  calling thread. Each party is a process of its own.
* **hand-over**: one process is inside, one of another session waits: from the moment the first begins to leave until the other is inside.
  How long the other has waited by then makes no difference to a room, but to etcd's lock: it watches the key before its own from a
  revision that is already past, and etcd 3.4 looks after such watches only every 100 ms.
* **300 of the session are inside**: all of them of one other process. Compared with a room of ours where nobody is.
* **four who compete**: four processes with a session each enter and leave for a second as fast as they can: the time per entry.
* **programs**: `grouplock run --at etcd://… ROOM SESSION -- COMMAND` and `etcdctl lock NAME COMMAND`. Alone: from the start of the program to its end,
  with `true` inside. Hand-over: from the moment the first one's command is told to end until the other's command looks at the clock; the other
  program was started so long before.

Why a room takes longer than the RPC when it is alone: entering and leaving are one request each for both, but a room writes two keys where the
lock writes one (the place in the queue, and a mark by which others learn of a death), looks for others and for the dead
in the same transaction, and makes its requests on a thread of its own, so that any number of threads and tasks share a connection, a
lease and a watch. The slower the disk, the less of that is seen.

To repeat it: `cargo build --release -p grouplock-cli --features etcd && cargo run --release -p grouplock-bench --bin etcd -- --out docs/benchmarks/etcd.md`",
            machine::told(),
            self.version,
            self.load,
        )?;
        for section in &self.sections {
            let fsync = Spread::of(section.fsync.iter().copied());
            writeln!(
                f,
                "\n## etcd's data on {}\n\nA write of 2 KiB with fsync takes {fsync:.3} ms there.\n",
                section.file_system
            )?;
            let heads = ["what", "by", "samples", "median", "p90", "p99", "ours / theirs"];
            write!(f, "{}", table(&heads, section.rows.iter().flat_map(Row::told)))?;
            writeln!(f)?;
            for verdict in section.rows.iter().filter_map(Row::verdict) {
                writeln!(f, "* {verdict}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ours: f64, theirs: f64) -> String {
        let pair = Pair { ours: vec![vec![ours; 3]; 2], theirs: vec![vec![theirs; 3]; 2] };
        let row = |what, goal| Row { what, by: ["a", "b"], goal: Some(goal), pair: pair.clone() };
        let rows = vec![row("alone", Goal::AtMost(1.1)), row("together", Goal::TimesFaster(10.0))];
        let section = Section { file_system: "ext9".to_owned(), fsync: vec![0.5], rows };
        let (version, load) = ("3".to_owned(), "0.1".to_owned());
        Page { version, load, sections: vec![section] }.to_string()
    }

    #[test]
    fn goals_are_judged_by_the_figures() {
        let good = page(1.0, 10.0);
        assert!(good.contains("It is 0.10 (0.10 – 0.10) times: reached."), "{good}");
        assert!(good.contains("It is 10.0 (10.0 – 10.0) times: reached."), "{good}");
        let bad = page(6.0, 5.0);
        assert!(bad.contains("It is 1.20 (1.20 – 1.20) times: not reached"), "{bad}");
        assert!(bad.contains("It is 0.8 (0.8 – 0.8) times: not reached"), "{bad}");
    }
}
