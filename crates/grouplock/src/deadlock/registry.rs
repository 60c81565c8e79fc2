//! Who holds what, and who waits for what: for all locks of the process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::cores::Signal;
use crate::watch::Request;

/// Threads are numbered from 1.
pub(super) const NOBODY: u64 = 0;

/// A guard that is alive.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) lock: usize,
    pub(super) exclusive: bool,
    /// The call that let it in.
    pub(super) at: &'static Location<'static>,
    /// The thread that used the guard last, or `NOBODY` if it cannot be told who has it.
    owner: AtomicU64,
}

impl Hold {
    pub(super) fn new(request: Request, at: &'static Location<'static>, owner: u64) -> Self {
        let Request { lock, exclusive, .. } = request;
        Hold { lock, exclusive, at, owner: AtomicU64::new(owner) }
    }

    pub(super) fn owner(&self) -> u64 {
        // Relaxed: it is a guess, unless the owner is found to wait; then it wrote this before it began, which the registry of waits orders.
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
    pub(super) request: Request,
    /// The call that waits.
    pub(super) at: &'static Location<'static>,
    pub(super) thread: Thread,
    /// Grows with each wait: says who was the last to come.
    pub(super) turn: u64,
    signal: Arc<Signal>,
}

impl Waiter {
    pub(super) fn new(
        request: Request,
        at: &'static Location<'static>,
        signal: Arc<Signal>,
    ) -> Self {
        static TURN: AtomicU64 = AtomicU64::new(0);
        // Relaxed: the numbers need only differ and grow.
        let turn = TURN.fetch_add(1, Relaxed);
        Waiter { request, at, thread: std::thread::current(), turn, signal }
    }

    /// Whether it is in the queue still. A thread that was let in may not have woken up yet.
    pub(super) fn waits(&self) -> bool {
        !self.signal.is_granted()
    }
}

/// So many parts that locks rarely share one.
const PARTS: usize = 64;

type Holds = BTreeMap<usize, Vec<Arc<Hold>>>;
pub(super) type Waits = BTreeMap<u64, Arc<Waiter>>;

static HOLDS: [Mutex<Holds>; PARTS] = [const { Mutex::new(BTreeMap::new()) }; PARTS];
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

/// Whether or not somebody panicked: no step below leaves a map half changed.
fn open<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(lock: usize) -> MutexGuard<'static, Holds> {
    // Locks lie 8 bytes apart at least.
    open(&HOLDS[lock / 8 % PARTS])
}

pub(super) fn add_hold(hold: &Arc<Hold>) {
    part(hold.lock).entry(hold.lock).or_default().push(Arc::clone(hold));
}

pub(super) fn remove_hold(hold: &Arc<Hold>) {
    let mut holds = part(hold.lock);
    if let Some(of_lock) = holds.get_mut(&hold.lock) {
        of_lock.retain(|other| !Arc::ptr_eq(other, hold));
        if of_lock.is_empty() {
            holds.remove(&hold.lock);
        }
    }
}

/// Forgets all holds of a lock that is gone. There are some if guards were leaked.
pub(super) fn remove_lock(lock: usize) {
    part(lock).remove(&lock);
}

pub(super) fn holds_of(lock: usize) -> Vec<Arc<Hold>> {
    part(lock).get(&lock).cloned().unwrap_or_default()
}

pub(super) fn waits() -> Waits {
    open(&WAITS).clone()
}

pub(super) fn wait_of(thread: u64) -> Option<Arc<Waiter>> {
    open(&WAITS).get(&thread).cloned()
}

/// The thread waits from now on. Gives back what it waited for until now: there is something if a comparison of sessions uses another lock.
pub(super) fn add_wait(thread: u64, waiter: Arc<Waiter>) -> Option<Arc<Waiter>> {
    open(&WAITS).insert(thread, waiter)
}

/// The thread's wait is over, and the one before it goes on.
pub(super) fn end_wait(thread: u64, before: Option<Arc<Waiter>>) {
    let mut waits = open(&WAITS);
    match before {
        Some(before) => waits.insert(thread, before),
        None => waits.remove(&thread),
    };
}

/// The number of the thread that runs this.
pub(super) fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(NOBODY + 1);
    thread_local! {
        // Relaxed: the numbers need only differ.
        static MINE: u64 = NEXT.fetch_add(1, Relaxed);
    }
    // Late in the life of a thread its locals are gone.
    MINE.try_with(|mine| *mine).unwrap_or(NOBODY)
}

thread_local! {
    static ASKED: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Where the thread that runs this is about to wait.
pub(super) fn set_asked(at: &'static Location<'static>) {
    // Late in the life of a thread nobody remembers.
    let _ = ASKED.try_with(|asked| asked.set(Some(at)));
}

pub(super) fn asked() -> Option<&'static Location<'static>> {
    ASKED.try_with(Cell::get).ok().flatten()
}
