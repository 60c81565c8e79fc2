//! The page.

use core::fmt::Write as _;
use std::fs;

use super::{Pair, designs};
use crate::machine;
use crate::report::{row, table};
use crate::statistics::{Bound, Spread, percentile, sorted};

/// The results on one server.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) file_system: String,
    /// How long a write of 2 KiB with fsync took, in milliseconds.
    pub(super) fsync: Vec<f64>,
    pub(super) rows: Vec<Row>,
    /// The times of each [design](designs::ALL).
    pub(super) designs: Vec<Vec<Vec<f64>>>,
}

/// A comparison of two subjects.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: &'static str,
    /// Ours, and theirs.
    pub(super) by: [&'static str; 2],
    /// [`Bound::Most`] limits the time, in times theirs. [`Bound::Least`] asks for speed.
    pub(super) goal: Option<Bound>,
    pub(super) pair: Pair,
}

/// Ratios of the medians of each round.
fn ratio(ours: &[Vec<f64>], theirs: &[Vec<f64>]) -> Spread {
    let medians = |rounds: &[Vec<f64>]| -> Vec<f64> {
        rounds.iter().map(|round| Spread::of(round).median).collect()
    };
    Spread::of_ratios(&medians(ours), &medians(theirs))
}

/// The table of the designs.
fn of_designs(designs: &[Vec<Vec<f64>>]) -> String {
    let rows = designs::ALL.iter().zip(designs).map(|((_, what), rounds)| {
        let all = sorted(rounds.iter().flatten().copied());
        let median = percentile(&all, 0.5).unwrap_or(f64::NAN);
        let ratio = ratio(rounds, &designs[designs.len() - 1]);
        row![what, all.len(), format_args!("{median:.2}"), format_args!("{ratio:.2}")]
    });
    table(&["enter; leave", "samples", "median", "times the RPC"], rows)
}

impl Row {
    /// Two rows of the table: ours, and theirs.
    fn cells(&self) -> [Vec<String>; 2] {
        let row = |what: &str, by: &str, rounds: &[Vec<f64>], ratio: String| {
            let all = sorted(rounds.iter().flatten().copied());
            let at = |share| format!("{:.2}", percentile(&all, share).unwrap_or(f64::NAN));
            row![what, by, all.len(), at(0.5), at(0.9), at(0.99), ratio]
        };
        let Pair { ours, theirs } = &self.pair;
        let ratio = format!("{:.2}", ratio(ours, theirs));
        [row(self.what, self.by[0], ours, ratio), row("", self.by[1], theirs, String::new())]
    }

    fn verdict(&self) -> Option<String> {
        let (bound, Pair { ours, theirs }) = (self.goal?, &self.pair);
        let (goal, found, median) = match bound {
            Bound::Most(most) => {
                let slower = ratio(ours, theirs);
                (format!("at most {most} times theirs"), format!("{slower:.2}"), slower.median)
            }
            Bound::Least(least) => {
                let faster = ratio(theirs, ours);
                let goal = format!("at least {least} times as fast as theirs");
                (goal, format!("{faster:.1}"), faster.median)
            }
        };
        let verdict = if bound.holds(median) { "reached" } else { "not reached in this run" };
        Some(format!("Goal, {}: {goal}. It is {found} times: {verdict}.", self.what))
    }
}

/// The load average of the system, if it is known.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("unknown").to_owned()
}

/// The page. Every figure comes from the run.
pub(super) fn text(version: &str, load: &str, sections: &[Section]) -> String {
    let mut page = format!(
        "\
# Rooms on etcd against etcd's own lock

*For people who use rooms on etcd, or consider it.*

The same etcd, one run, in turns. Milliseconds; a ratio is taken within each round first, and shown as the median over the rounds with the
quartiles in parentheses.

* On {}; etcd {version}, one member on this machine's loopback. The load average was {load} when it
  began.
* **enter and leave, alone**: no other process uses the lock. *A room*: `Room::enter` and `Guard::leave` through the public interface. *RPC*: `Lock` and
  `Unlock` of etcd's lock service over a connection that stays open, with a lease that lasts and needs no renewal, by a runtime on the
  calling thread. Each party is a process of its own.
* **hand-over**: one process is inside, one of another session waits: from the moment the first begins to leave until the other is inside.
  With etcd's lock a waiter that has just come waits longer: it watches the key before its own from a revision that is already past, and etcd
  3.4 serves such watches only every 100 ms.
* **300 of the session are inside**: all of them of one other process. Compared with an empty room.
* **four compete**: four processes with a session each enter and leave for a second as fast as they can: the time per entry.
* **designs**: what each part of a room costs. All enter and leave in turns, each in a process of its own, with keys of its own. A transaction that
  enters checks that nobody is present. All but *a room* make their requests by a runtime on the calling thread.
* **programs**: `grouplock run --at etcd://… ROOM SESSION -- COMMAND` and `etcdctl lock NAME COMMAND`. Alone: from the start of the program to its end,
  with `true` inside. Hand-over: from the moment the first one's command gets the signal to end until the other's command reads the clock. The
  row says how long before that the other program was started.

Why a room takes longer than the RPC when it is alone: entering and leaving are one request each for both. But a room writes two keys where the
lock writes one (the position in the queue, and a mark by which others learn of a death). It looks for others and for the dead
in the same transaction. The designs below show what each of these costs. A thread that enters less than 20 ms after it left makes the requests
itself, without a change of thread.

To repeat it: `cargo build --release -p grouplock-cli --features etcd && cargo run --release -p grouplock-bench -- etcd --out docs/benchmarks/etcd.md`
",
        machine::description(),
    );
    for Section { file_system, fsync, rows, designs } in sections {
        let fsync = Spread::of(fsync);
        let heads = ["what", "by", "samples", "median", "p90", "p99", "ours / theirs"];
        let table = table(&heads, rows.iter().flat_map(Row::cells));
        // Writing to a string cannot fail.
        _ = writeln!(
            page,
            "\n## etcd's data on {file_system}\n\nA write of 2 KiB with fsync takes {fsync:.3} ms there.\n\n{table}"
        );
        for verdict in rows.iter().filter_map(Row::verdict) {
            _ = writeln!(page, "* {verdict}");
        }
        _ = write!(page, "\nThe designs, all in one run of their own:\n\n{}", of_designs(designs));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ours: f64, theirs: f64) -> String {
        let pair = Pair { ours: vec![vec![ours; 3]; 2], theirs: vec![vec![theirs; 3]; 2] };
        let row = |what, goal| Row { what, by: ["a", "b"], goal: Some(goal), pair: pair.clone() };
        let rows = vec![row("alone", Bound::Most(1.1)), row("together", Bound::Least(10.0))];
        let designs = vec![vec![vec![ours]]; designs::ALL.len()];
        let section = Section { file_system: "ext9".to_owned(), fsync: vec![0.5], rows, designs };
        text("3", "0.1", &[section])
    }

    #[test]
    fn the_figures_decide_about_goals() {
        let good = page(1.0, 10.0);
        assert!(good.contains("It is 0.10 (0.10 – 0.10) times: reached."), "{good}");
        assert!(good.contains("It is 10.0 (10.0 – 10.0) times: reached."), "{good}");
        let bad = page(6.0, 5.0);
        assert!(bad.contains("It is 1.20 (1.20 – 1.20) times: not reached"), "{bad}");
        assert!(bad.contains("It is 0.8 (0.8 – 0.8) times: not reached"), "{bad}");
    }
}
