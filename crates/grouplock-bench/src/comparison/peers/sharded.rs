//! crossbeam's lock for many readers.

use std::sync::PoisonError;

use crossbeam_utils::sync::ShardedLock;

use crate::comparison::lock::{Kind, Lock};

/// [`crossbeam_utils::sync::ShardedLock`]: readers count on a stripe of their own, a writer takes all stripes.
#[derive(Debug)]
pub struct Sharded(ShardedLock<()>);

impl Lock for Sharded {
    const NAME: &'static str = "crossbeam ShardedLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        Sharded(ShardedLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let _held = self.0.read().unwrap_or_else(PoisonError::into_inner);
            inside()
        } else {
            let _held = self.0.write().unwrap_or_else(PoisonError::into_inner);
            inside()
        }
    }
}
