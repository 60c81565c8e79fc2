//! Passages through a lock that nobody else wants, by each of its ways in.

use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::RwLock;

use serde::Serialize;

use super::group_lock;
use super::lock::{Kind, Lock, hold};
use super::peers::{AsyncLock, ParkingLotRwLock, StdRwLock, Tokio};
use super::subject::every_lock;
use crate::uncontended::subjects::{Subject, critical_section, keep};

/// A way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// In company: `enter`, `read`; for a mutex, `lock`.
    Shared,
    /// Alone: `exclusive`, `write`.
    Exclusive,
    /// The same, on a lock that nobody has ever shared.
    FirstExclusive,
    /// In company, without waiting.
    Try,
    /// In company, without waiting, while a conflicting holder is inside.
    FailingTry,
    /// Alone, without waiting, while a holder is inside.
    FailingTryExclusive,
    /// In company, as a task.
    Async,
}

impl Path {
    /// As it stands in names and tables.
    pub fn told(self) -> &'static str {
        match self {
            Path::Shared => "shared",
            Path::Exclusive => "exclusive",
            Path::FirstExclusive => "exclusive, never shared before",
            Path::Try => "try",
            Path::FailingTry => "try, fails",
            Path::FailingTryExclusive => "try exclusive, fails",
            Path::Async => "async",
        }
    }
}

/// A lock and a way into it.
#[derive(Debug)]
pub struct Alone {
    /// The lock's name.
    pub lock: &'static str,
    /// The way in.
    pub path: Path,
    /// What makes the passages, named after both.
    pub subject: Subject,
}

impl Alone {
    /// A way into `lock` of which `passage` is one passage.
    pub(super) fn new(lock: &'static str, path: Path, passage: impl FnMut() + 'static) -> Self {
        let name = format!("{lock}: {}", path.told());
        Alone { lock, path, subject: Subject::new(name, path.told(), None, passage) }
    }

    /// The way in that the harness uses for `session`.
    pub(super) fn pass<L: Lock<Local: 'static>>(path: Path, session: u64) -> Self {
        let lock = keep(L::new());
        let mut local = L::local();
        Alone::new(L::NAME, path, move || {
            black_box(lock).pass(&mut local, black_box(session), critical_section);
        })
    }

    /// A task that never has to wait. It is polled as an executor would, once.
    pub(super) fn task<F: Future>(
        lock: &'static str,
        mut request: impl FnMut() -> F + 'static,
    ) -> Self {
        let mut context = Context::from_waker(Waker::noop());
        Alone::new(lock, Path::Async, move || match pin!(request()).poll(&mut context) {
            Poll::Ready(held) => {
                critical_section();
                drop(held);
            }
            Poll::Pending => unreachable!("nobody else is there"),
        })
    }
}

/// The ways into `L` that the harness uses.
fn ways<L: Lock<Local: 'static>>() -> Vec<Alone> {
    let mut ways = vec![Alone::pass::<L>(Path::Shared, 0)];
    if L::KIND == Kind::ReadWrite {
        ways.push(Alone::pass::<L>(Path::Exclusive, 1));
    }
    ways
}

/// The peers' ways in that are not the harness's own.
fn peers() -> Vec<Alone> {
    let std_rwlock = keep(RwLock::new(()));
    let parking_lot = keep(parking_lot::RwLock::new(()));
    let [read, written] = [keep(parking_lot::RwLock::new(())), keep(parking_lot::RwLock::new(()))];
    core::mem::forget((read.read(), written.write()));
    let async_lock = keep(async_lock::RwLock::new(()));
    let tokio = keep(tokio::sync::RwLock::new(()));
    let name = ParkingLotRwLock::NAME;
    vec![
        Alone::new(StdRwLock::NAME, Path::Try, move || {
            hold(black_box(std_rwlock).try_read(), critical_section);
        }),
        Alone::new(name, Path::Try, move || {
            hold(black_box(parking_lot).try_read(), critical_section);
        }),
        Alone::new(name, Path::FailingTry, move || {
            assert!(black_box(written).try_read().is_none());
        }),
        Alone::new(name, Path::FailingTryExclusive, move || {
            assert!(black_box(read).try_write().is_none());
        }),
        Alone::task(AsyncLock::NAME, move || black_box(async_lock).read()),
        Alone::task(Tokio::NAME, move || black_box(tokio).read()),
    ]
}

/// Every lock and every way into it.
pub fn all() -> Vec<Alone> {
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
        let mut names = Vec::new();
        for mut alone in all() {
            alone.subject.run(3);
            assert!(!names.contains(&alone.subject.name), "{} twice", alone.subject.name);
            names.push(alone.subject.name);
        }
    }
}
