//! A lock with *sessions*: any number of holders share a session, different sessions exclude each other.
//!
//! # Features
//!
//! None is on by default, and what is off costs nothing.
//!
//! * `lock_api`: `Mutex` and `RwLock` with the calls of `parking_lot`, through `lock_api` 0.5; needs Rust 1.95. See module `raw`.
//!   With `send_guard`, their guards may be sent to other threads.
//! * `deadlock_detection`: reports threads that wait for themselves or for each other. See module `deadlock`.
//! * `tracing`: events and spans for long waits. See module `long_waits`.
//!
//! There is no `no_std`: a lock that waits needs threads that sleep, a clock for its policies and memory for its queue. What is left without
//! those, the policy as data and the snapshot, is of no use alone.

pub mod cores;
#[cfg(all(feature = "deadlock_detection", not(any(loom, shuttle))))]
pub mod deadlock;
pub mod future;
mod guards;
mod lock;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
pub mod long_waits;
mod policy;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
pub mod raw;
mod snapshot;
mod sync;
mod watch;

pub use guards::{ExclusiveGuard, OwnedSessionGuard, SessionGuard};
pub use lock::GroupLock;
pub use policy::Policy;
#[cfg(all(feature = "lock_api", not(any(loom, shuttle))))]
pub use raw::*;
pub use snapshot::{Snapshot, WaitingPhase};
