//! `GroupLock` and the locks people use otherwise, in the same harness: the program `compare`.
//!
//! * [`lock`]: what the harness asks of a lock; [`peers`]: the locks; [`subject`]: all of them in a list.
//! * [`workload`]: what the threads do; [`plan`]: which workloads are run, and how often.
//! * [`throughput`], [`observed`], [`starvation`], [`alone`]: the four kinds of rounds. Whatever costs time
//!   is left out of those that count entries.

pub mod lock;
pub mod peers;
