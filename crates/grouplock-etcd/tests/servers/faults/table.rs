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

*For people who rely on rooms on etcd.*

What was done to a cluster of {version} and to its clients. Meanwhile six workers in three processes entered three sessions of one room
all the time, with leases of {TTL} s. This command writes the page

```
GROUPLOCK_FAULTS={} GROUPLOCK_FAULT_TABLE=$PWD/docs/etcd-faults.md \\
  cargo test -p grouplock-etcd --test servers -- --ignored --exact faults::fault_table --nocapture
```

It fails, and writes nothing, if one of these does not hold:

* **No two sessions at once** among holders that believed that they were inside. A holder believes this from the return of `enter` until it begins to leave, gets the report
  of a loss, or `valid_until` has passed. Holders of a phase have one epoch, and later phases have larger ones.
* **No stale use.** Every holder uses a resource with its epoch about once a millisecond. The resource refuses an epoch smaller
  than the largest it has seen. No holder was refused before its `valid_until`.
* **It goes on.** After each fault, before the repair, all workers enter again within {} s, and once more after the
  repair. If all servers are gone, they enter after the repair only.
* **Nothing is left.** In the end the room is empty, and can be entered at once.
* A client that was stopped inside for longer than its lease finds the holding lost when it wakes.

If somebody else revokes leases, no lock can keep its promise: only the epochs protect the resource then. For these checks, the belief of
a holder whose lease was revoked ends with the revocation. The last but one column says how often another session entered
before the holder noticed. From the first use by that session, the resource refused the holder. Two rows allow this: the last one, and the leader that is stopped.
etcd 3.4.23 has a fault: such a leader, when it wakes, revokes leases that another leader has renewed meanwhile
([12528](https://github.com/etcd-io/etcd/issues/12528), [15247](https://github.com/etcd-io/etcd/issues/15247), repaired in later versions).
The row of the leader allows it with this version only. Both rows allow it only for holders whose entries went without their marks, by the servers' own events
(a holder that leaves deletes both at once). One column counts them.

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
