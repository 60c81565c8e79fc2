//! `GroupLock`, as the harness sees it.

/// With the default policy.
pub const DEFAULT: &str = "GroupLock";
/// In strict order.
pub const FIFO: &str = "GroupLock, Fifo";
/// With capturing.
pub const BATCH: &str = "GroupLock, Batch";
/// With a counter per stripe.
pub const STRIPED: &str = "GroupLock, striped";
/// With the default policy, as a lock with readers and writers: session 0 is entered, others are exclusive.
pub const EXCLUSIVE: &str = "GroupLock, exclusive";
