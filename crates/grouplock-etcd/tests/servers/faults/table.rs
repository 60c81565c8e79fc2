//! The page that shows the injected faults and their results.

use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use super::stage::{BOUND, Outcome, Recovery, TTL};

/// The outcomes of a run. Displayed, it is the complete page.
pub(crate) struct Table {
    times: usize,
    rows: Vec<(Fault, Option<Outcome>)>,
}

impl Table {
    pub(crate) fn new(times: usize) -> Self {
        Table { times, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, fault: Fault, outcome: Option<Outcome>) {
        self.rows.push((fault, outcome));
    }
}

/// The median and the maximum of some times, in seconds.
fn spread(recoveries: &[Recovery], time: impl Fn(&Recovery) -> Duration) -> String {
    let mut times: Vec<f64> = recoveries.iter().map(|one| time(one).as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    match &times[..] {
        [] => "–".to_owned(),
        times => format!("{:.2} / {:.2}", times[times.len() / 2], times[times.len() - 1]),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = crate::cluster::version().unwrap_or_default();
        writeln!(
            f,
            "\
# Rooms on etcd: the faults

*For whoever relies on rooms on etcd.*

What was done to a cluster of {version} and to its clients while six workers in three processes entered three sessions of one room
all the time, with leases of {TTL} s. This page is written by the command

```
GROUPLOCK_FAULTS={} GROUPLOCK_FAULT_TABLE=$PWD/docs/etcd-faults.md \\
  cargo test -p grouplock-etcd --test servers -- --ignored --exact faults::fault_table --nocapture
```

and fails, instead of being written, if one of these does not hold:

* **No two sessions at once** among holders that believed to hold: from the return of `enter` until they began to leave, were told of a
  loss, or `valid_until` had passed. Members of a phase have one epoch, and later phases larger ones.
* **No stale use.** Every holder uses a resource with its epoch about once a millisecond; the resource refuses an epoch smaller
  than the largest it has seen. No holder was refused before its `valid_until`.
* **It goes on.** After each fault, while what failed is still missing, everybody is inside again within {} s (also again after it
  is back; with all servers gone: after they are back).
* **Nothing is left.** In the end the room is empty, and can be entered at once.
* A client that was stopped inside for longer than its lease finds the holding lost when it wakes.

When leases are revoked by somebody else, no lock can keep its promise: from that moment on only the epochs protect the resource. The beliefs of
those who lost their place that way end, for these checks, with the revocation. The last but one column tells how often another session came
in before they noticed; from its first use on the resource refused them. Besides the last row this concerns, in some runs, the leader that is stopped: etcd 3.4.23 has
a bug by which such a leader, when it wakes, revokes leases that have been renewed with another leader meanwhile
([12528](https://github.com/etcd-io/etcd/issues/12528), [15247](https://github.com/etcd-io/etcd/issues/15247), repaired in later versions).
In these two rows, and with this version only in the second, the allowance is made for those holders whose entries the servers' own events show to have gone without their
marks (who leaves deletes both at once); it is made for nobody else who was inside at that time. One column counts them.

| fault | times | entries | phases | uses of the resource | refused, rightly | holdings lost | of them taken away by the servers | next phase, s (median / worst) | everybody in again, s (median / worst) | other sessions inside after a revocation | all held |
|---|---|---|---|---|---|---|---|---|---|---|---|",
            self.times,
            BOUND.as_secs()
        )?;
        for (fault, outcome) in &self.rows {
            let Some(it) = outcome else {
                writeln!(
                    f,
                    "| {} | not possible on this machine | | | | | | | | | | |",
                    fault.text()
                )?;
                continue;
            };
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | yes |",
                fault.text(),
                it.recoveries.len(),
                it.entries,
                it.phases,
                it.uses,
                it.refused,
                it.lost,
                it.taken,
                spread(&it.recoveries, |one| one.phase),
                spread(&it.recoveries, |one| one.everybody),
                it.overlaps,
            )?;
        }
        Ok(())
    }
}
