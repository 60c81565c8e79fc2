//! Locks for tasks, here through their calls for threads: both crates have such calls.

use crate::comparison::lock::{Kind, Lock};

/// [`async_lock::RwLock`], by `read_blocking` and `write_blocking`.
#[derive(Debug)]
pub struct AsyncLock(async_lock::RwLock<()>);

impl Lock for AsyncLock {
    const NAME: &'static str = "async-lock RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        AsyncLock(async_lock::RwLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let _held = self.0.read_blocking();
            inside()
        } else {
            let _held = self.0.write_blocking();
            inside()
        }
    }
}

/// [`tokio::sync::RwLock`], by `blocking_read` and `blocking_write`.
#[derive(Debug)]
pub struct Tokio(tokio::sync::RwLock<()>);

impl Lock for Tokio {
    const NAME: &'static str = "tokio RwLock";
    const KIND: Kind = Kind::ReadWrite;
    type Local = ();

    fn new() -> Self {
        Tokio(tokio::sync::RwLock::new(()))
    }

    fn local() {}

    #[inline(always)]
    fn pass<R>(&self, (): &mut (), session: u64, inside: impl FnOnce() -> R) -> R {
        if session == 0 {
            let _held = self.0.blocking_read();
            inside()
        } else {
            let _held = self.0.blocking_write();
            inside()
        }
    }
}
