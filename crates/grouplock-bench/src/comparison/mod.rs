//! `GroupLock` and the locks people use otherwise, in the same harness: the program `compare`.
//!
//! * [`lock`]: what the harness asks of a lock; [`group_lock`], [`peers`]: the locks; [`subject`]: all of them in a list.
//! * [`work`], [`workload`]: what the threads do; [`plan`]: which workloads are run, and how often.
//! * [`throughput`], [`observed`], [`starvation`], [`alone`]: the four kinds of rounds. Whatever costs time
//!   is left out of those that count entries.
//! * [`long_queues`], [`expensive_changes`], [`memory`], [`remote`]: what only the goals ask for.
//! * [`run`]: all rounds of a plan, interleaved; [`goals`]: what was to be reached, and what was.
//! * [`page`], [`tables`], [`plots`], [`json`]: the report.

pub mod alone;
pub mod expensive_changes;
pub mod goals;
pub mod group_lock;
pub mod json;
pub mod lock;
pub mod long_queues;
pub mod memory;
pub mod observed;
pub mod page;
pub mod peers;
pub mod plan;
pub mod plots;
pub mod remote;
pub mod run;
pub mod starvation;
pub mod subject;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod throughput;
pub mod work;
pub mod workload;
