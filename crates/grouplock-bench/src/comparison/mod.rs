//! `GroupLock` and the locks that people use otherwise, in the same harness.
//!
//! * [`command`]: the command `compare`.
//! * [`lock`]: what the harness needs from a lock; [`group_lock`], [`peers`]: the locks;
//!   [`competitor`]: the list of all locks.
//! * [`work`], [`workload`]: what the threads do; [`plan`]: the workloads, and how often each is
//!   run.
//! * [`throughput`], [`observed`], [`starvation`], [`alone`]: the four kinds of rounds. Rounds that
//!   count entries do nothing else.
//! * [`long_queues`], [`expensive_changes`], [`memory`], [`remote`]: figures for goals only.
//! * [`run`]: all rounds of a plan, in turns; [`goals`]: the goals, and what was reached.
//! * [`page`], [`tables`], [`plots`], [`json`]: the page, its pictures and its raw figures.

pub(crate) mod command;
pub(crate) mod lock;
pub(crate) mod peers;

mod alone;
mod competitor;
mod expensive_changes;
mod goals;
mod group_lock;
mod json;
mod long_queues;
mod memory;
mod observed;
mod page;
mod plan;
mod plots;
mod remote;
mod run;
mod starvation;
mod tables;
#[cfg(test)]
mod tests;
mod throughput;
mod work;
mod workload;
