//! A lock with *sessions*: any number of holders share a session, different sessions exclude each other.

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
