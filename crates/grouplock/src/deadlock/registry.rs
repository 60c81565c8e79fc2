//! All holdings and all waits, for all locks of the process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::cores::Signal;
use crate::sync;
use crate::watch::RequestInfo;

/// Threads have numbers from 1 on.
pub(super) const NO_THREAD: u64 = 0;

/// A live guard.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) lock: usize,
    pub(super) exclusive: bool,
    /// The call that entered.
    pub(super) at: &'static Location<'static>,
    /// The thread that used the guard last, or `NO_THREAD` if that is unknown.
    owner: AtomicU64,
}

impl Holding {
    pub(super) fn owner(&self) -> u64 {
        // Relaxed: the owner is a guess, unless the owner is found to wait. Then it wrote this
        // before it began to wait, and the registry of waits orders that.
        self.owner.load(Relaxed)
    }

    pub(super) fn set_owner(&self, owner: u64) {
        // Relaxed: as above.
        self.owner.store(owner, Relaxed);
    }
}

/// A thread that waits without a deadline.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: RequestInfo,
    /// The call that waits.
    pub(super) at: &'static Location<'static>,
    pub(super) thread: Thread,
    /// Grows with each wait: shows which thread began to wait last.
    pub(super) number: u64,
    signal: Arc<Signal>,
}

impl Waiter {
    pub(super) fn new(
        request: RequestInfo,
        at: &'static Location<'static>,
        signal: Arc<Signal>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: the numbers need only differ and grow.
        let number = NEXT.fetch_add(1, Relaxed);
        Waiter { request, at, thread: std::thread::current(), number, signal }
    }

    /// Returns whether it is still in the queue. An admitted thread may not have woken up yet.
    pub(super) fn waits(&self) -> bool {
        !self.signal.is_granted()
    }
}

/// Enough parts that locks rarely share one.
const PARTS: usize = 64;

type Holdings = BTreeMap<usize, Vec<Arc<Holding>>>;
pub(super) type Waits = BTreeMap<u64, Arc<Waiter>>;

static HOLDINGS: [Mutex<Holdings>; PARTS] = [const { Mutex::new(BTreeMap::new()) }; PARTS];
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

/// Locks a map, even if a thread panicked with it: no step below leaves a map half changed.
fn lock_map<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(lock: usize) -> MutexGuard<'static, Holdings> {
    // Locks are at least 8 bytes apart.
    lock_map(&HOLDINGS[lock / 8 % PARTS])
}

pub(super) fn add_holding(
    lock: usize,
    exclusive: bool,
    at: &'static Location<'static>,
    owner: u64,
) -> Arc<Holding> {
    let holding = Arc::new(Holding { lock, exclusive, at, owner: AtomicU64::new(owner) });
    part(lock).entry(lock).or_default().push(Arc::clone(&holding));
    holding
}

pub(super) fn remove_holding(holding: &Arc<Holding>) {
    let mut holdings = part(holding.lock);
    if let Some(of_lock) = holdings.get_mut(&holding.lock) {
        of_lock.retain(|other| !Arc::ptr_eq(other, holding));
        if of_lock.is_empty() {
            holdings.remove(&holding.lock);
        }
    }
}

/// Removes all holdings of a lock that was dropped. There are some if guards were leaked.
pub(super) fn remove_lock(lock: usize) {
    part(lock).remove(&lock);
}

pub(super) fn holdings_of(lock: usize) -> Vec<Arc<Holding>> {
    part(lock).get(&lock).cloned().unwrap_or_default()
}

pub(super) fn waits() -> Waits {
    lock_map(&WAITS).clone()
}

pub(super) fn wait_of(thread: u64) -> Option<Arc<Waiter>> {
    lock_map(&WAITS).get(&thread).cloned()
}

/// The thread begins to wait. Returns its wait before: a comparison of sessions may use a lock.
pub(super) fn add_wait(thread: u64, waiter: Arc<Waiter>) -> Option<Arc<Waiter>> {
    lock_map(&WAITS).insert(thread, waiter)
}

/// The wait of the thread is over, and the wait before it continues.
pub(super) fn end_wait(thread: u64, before: Option<Arc<Waiter>>) {
    let mut waits = lock_map(&WAITS);
    match before {
        Some(before) => waits.insert(thread, before),
        None => waits.remove(&thread),
    };
}

/// The number of the calling thread.
pub(super) fn this_thread() -> u64 {
    sync::number_of_this_thread().map_or(NO_THREAD, |number| number as u64 + 1)
}

thread_local! {
    static ASKED: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Records where the calling thread is about to wait.
pub(super) fn set_asked(at: &'static Location<'static>) {
    // Late in the life of a thread the place is not recorded.
    _ = ASKED.try_with(|asked| asked.set(Some(at)));
}

pub(super) fn asked() -> Option<&'static Location<'static>> {
    ASKED.try_with(Cell::get).ok().flatten()
}
