//! Those of the standard library.

use std::sync::{Mutex, PoisonError, RwLock};

use crate::comparison::lock::{Kind, Lock};

/// [`std::sync::Mutex`].
#[derive(Debug)]
pub struct StdMutex(Mutex<()>);

impl Lock for StdMutex {
    const NAME: &'static str = "std Mutex";
    const KIND: Kind = Kind::Mutual;
    type Local = ();

    fn new() -> Self {
        StdMutex(Mutex::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), _: u64, inside: impl FnOnce() -> R) -> R {
        let _held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside()
    }
}

/// [`std::sync::RwLock`].
#[derive(Debug)]
pub struct StdRwLock(RwLock<()>);

impl Lock for StdRwLock {
    const NAME: &'static str = "std RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        StdRwLock(RwLock::new(()))
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
