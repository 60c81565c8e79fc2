//! Published mutual exclusion and *group* mutual exclusion algorithms, and some of ours, each
//! written once.
//!
//! In group mutual exclusion a process requests a *session*. Processes of one session share the
//! critical section; different sessions exclude each other. In a mutex every process has a session
//! of its own. In a readers-writers lock the readers share one.
//!
//! ```
//! use grouplock_algorithms::{Group, handover::Handover};
//!
//! const BACKUP: u64 = 1;
//! const MIGRATION: u64 = 2;
//!
//! let room = Group::<Handover>::new(3)?;
//! std::thread::scope(|scope| {
//!     for session in [BACKUP, BACKUP, MIGRATION] {
//!         let mut process = room.process().expect("handover serves any number of processes");
//!         scope.spawn(move || {
//!             let inside = process.enter(session).expect("not zero, and nothing was leaked");
//!             // both backups may be in here together, the migration only alone
//!             drop(inside);
//!         });
//!     }
//! });
//! # Ok::<(), grouplock_algorithms::CapacityError>(())
//! ```
//!
//! # The algorithms
//!
//! | module | from | kind |
//! |---|---|---|
//! | [`bakery`] | Lamport 1974 | mutual exclusion, first come first served, reads and writes |
//! | [`black_white_bakery`] | Taubenfeld 2004 | the same with bounded tickets |
//! | [`burns_lamport`] | Burns 1981, Lamport 1986 | mutual exclusion, one bit per process |
//! | [`anderson`] | Anderson 1990 | mutual exclusion, FIFO, an array of slots |
//! | [`clh`] | Craig 1993; Magnusson, Landin and Hagersten 1994 | mutual exclusion, FIFO, waits on the predecessor's node |
//! | [`mcs`] | Mellor-Crummey and Scott 1991 | mutual exclusion, FIFO, waits on its own node |
//! | [`dvir_taubenfeld_1`], [`dvir_taubenfeld_2`] | Dvir and Taubenfeld 2017 | mutual exclusion, wait-free exit |
//! | [`dvir_taubenfeld_1_swap`] | ours, from the first of them | the same, simpler |
//! | [`jayanti_jayanti`] | Jayanti and Jayanti 2019, restated | mutual exclusion, waiters can withdraw |
//! | [`keane_moir`] | Keane and Moir 1999 | group, over any mutex; capturing |
//! | [`petrovic`] | Petrovic 2005, reconstructed | group, first come first served |
//! | [`generalized_bakery`], [`black_white_bakery_gme`] | He, Gopalakrishnan and Gafni 2018 | group, reads and writes only |
//! | [`pairwise_bakery`] | ours, the profile of Danek and Hadzilacos 2004 but for FIFE | group, first come first served, local spinning on both machine models |
//! | [`rooms`] | Blelloch, Cheng and Gibbons 2001, restated | group, a fixed number of sessions, in rounds |
//! | [`forums`] | ours, the profile of Aravind and Hesselink 2019 | group, a fixed number of sessions, in batches; constant cost with coherent caches |
//! | [`maor_taubenfeld`] | Maor and Taubenfeld 2021, as printed | a specimen: it breaks |
//! | [`handover`] | the last one, corrected | group, constant cost: **the one to use** |
//! | [`handover_withdraw`] | ours, from `handover` | the same, and waiters can withdraw |
//! | [`recoverable`] | ours: a short form of the protocol of rooms | group, over a [latch]; processes may die |
//! | [`phases`] | ours: the protocol of `GroupLock` | group, with two of its policies, cancelled requests, exclusive ones, limits and set-up |
//!
//! [`for_each_algorithm!`] lists them for programs.
//! [`reductions`] turns any group lock into a mutex or a readers-writers lock.
//!
//! # Modules
//!
//! * [`memory`]: shared memory as the papers have it, real or simulated. The algorithms use nothing
//!   else.
//! * [`raw`]: the traits of an algorithm. [`Mutual`] and [`Group`] make it safe to use.
//! * [`claims`]: what is claimed for each algorithm, as data.
//! * [`monitor`]: properties of an execution, and a driver that checks locks on real threads.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod claims;
pub mod domain;
mod group_exclusion;
mod handles;
mod list;
pub mod memory;
pub mod monitor;
mod mutual_exclusion;
pub mod nodes;
mod prelude;
pub mod raw;
pub mod reductions;
mod session;
pub mod slots;

pub use claims::Claims;
pub use group_exclusion::*;
pub use handles::{Group, GroupProcess, Held, Inside, Mutual, MutualProcess};
pub use mutual_exclusion::*;
pub use session::{CapacityError, EnterError, Session};
