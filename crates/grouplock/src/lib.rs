//! A lock with *sessions*: any number of holders share a session, different sessions exclude each other.

pub mod cores;
pub mod future;
mod guards;
mod lock;
mod policy;
mod snapshot;
mod sync;

pub use guards::{ExclusiveGuard, OwnedSessionGuard, SessionGuard};
pub use lock::GroupLock;
pub use policy::Policy;
pub use snapshot::{Snapshot, WaitingPhase};
