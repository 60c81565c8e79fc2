//! Passages through a lock that no other thread uses, by each way in.

use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::RwLock;

use super::competitor::every_lock;
use super::group_lock;
use super::lock::{Kind, Lock, hold};
use super::peers::{AsyncLock, ParkingLotRwLock, StdRwLock, Tokio};
use crate::report::labels;
use crate::rounds::{Subject, critical_section, keep};

labels!(
    /// A call that enters a lock.
    WayIn {
        /// `enter`, `read`; for a mutex, `lock`.
        Shared = "shared",
        /// `exclusive`, `write`.
        Exclusive = "exclusive",
        FirstExclusive = "exclusive, never shared before",
        Try = "try",
        /// While a conflicting holder is inside.
        FailingTry = "try, fails",
        FailingTryExclusive = "try exclusive, fails",
        Async = "async",
    }
);

/// A lock and a way in.
#[derive(Debug)]
pub(super) struct Alone {
    pub(super) lock: &'static str,
    pub(super) path: WayIn,
    /// Makes the passages. Its name has both.
    pub(super) subject: Subject,
}

impl Alone {
    pub(super) fn new(lock: &'static str, path: WayIn, passage: impl FnMut() + 'static) -> Self {
        Alone { lock, path, subject: Subject::new(format!("{lock}: {}", path.text()), passage) }
    }

    /// The way in that the harness uses for `session`.
    fn pass<L: Lock<Local: 'static>>(path: WayIn, session: u64) -> Self {
        let lock = keep(L::new());
        let mut local = L::local();
        Alone::new(L::NAME, path, move || {
            black_box(lock).pass(&mut local, black_box(session), critical_section);
        })
    }

    /// A task that never waits. It is polled once, as by an executor.
    pub(super) fn task<F: Future>(
        lock: &'static str,
        mut request: impl FnMut() -> F + 'static,
    ) -> Self {
        let mut context = Context::from_waker(Waker::noop());
        Alone::new(lock, WayIn::Async, move || match pin!(request()).poll(&mut context) {
            Poll::Ready(guard) => hold(guard, critical_section),
            Poll::Pending => unreachable!("no other task uses the lock"),
        })
    }
}

/// The ways in that the harness uses.
fn ways<L: Lock<Local: 'static>>() -> Vec<Alone> {
    let mut ways = vec![Alone::pass::<L>(WayIn::Shared, 0)];
    if L::KIND == Kind::ReadWrite {
        ways.push(Alone::pass::<L>(WayIn::Exclusive, 1));
    }
    ways
}

/// The ways into peers that the harness does not use.
fn peers() -> Vec<Alone> {
    let std_rwlock = keep(RwLock::new(()));
    let parking_lot = keep(parking_lot::RwLock::new(()));
    let [read, written] = [keep(parking_lot::RwLock::new(())), keep(parking_lot::RwLock::new(()))];
    core::mem::forget((read.read(), written.write()));
    let async_lock = keep(async_lock::RwLock::new(()));
    let tokio = keep(tokio::sync::RwLock::new(()));
    let name = ParkingLotRwLock::NAME;
    vec![
        Alone::new(StdRwLock::NAME, WayIn::Try, move || {
            hold(black_box(std_rwlock).try_read(), critical_section);
        }),
        Alone::new(name, WayIn::Try, move || {
            hold(black_box(parking_lot).try_read(), critical_section);
        }),
        Alone::new(name, WayIn::FailingTry, move || {
            assert!(black_box(written).try_read().is_none());
        }),
        Alone::new(name, WayIn::FailingTryExclusive, move || {
            assert!(black_box(read).try_write().is_none());
        }),
        Alone::task(AsyncLock::NAME, move || black_box(async_lock).read()),
        Alone::task(Tokio::NAME, move || black_box(tokio).read()),
    ]
}

/// Every lock and every way into it.
pub(super) fn all() -> Vec<Alone> {
    let mut all = every_lock!(ways).into_iter().flatten().collect::<Vec<_>>();
    all.extend(group_lock::other_ways());
    all.extend(peers());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_has_a_name_of_its_own_and_is_passable() {
        let mut all = all();
        let names = crate::rounds::tests::run_all(all.iter_mut().map(|alone| &mut alone.subject));
        assert_eq!(names.len(), all.len());
    }
}
