//! Notices a death without polling.
//!
//! A waiter that waits long has one thread for each slot that it waits for. The thread is blocked
//! in a request for the lock on the slot's byte. The kernel grants the lock when the owner of the
//! slot releases it or dies. Then the thread wakes the waiter, which checks the line.
//!
//! A slot can have a new owner before the thread requests the lock. So the participant that removes
//! a slot from the line also [nudges](super::line::Words::nudge) the waiter that watches it.
//!
//! A blocked request cannot be cancelled. So a thread outlives the wait that started it. It serves
//! later waits for the same slot until the slot's owner releases it: the owner may have left and
//! entered again meanwhile, or the slot may have another owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::futex;
use super::life;
use super::room::FileRoom;
use crate::thread;

/// How often a waiter is woken until it has noticed.
const AGAIN: Duration = Duration::from_millis(2);

/// A waiter to be woken.
pub(super) struct Nudge {
    /// The slot it sleeps on.
    pub(super) slot: u16,
    /// Whether an owner that it waits for is gone. The waiter clears it.
    pub(super) gone: AtomicBool,
}

/// The waiters that watch one slot; `None` after its owner has released it.
type Post = Arc<Mutex<Option<Vec<Weak<Nudge>>>>>;

/// The threads of a handle, by the slot that they watch.
#[derive(Default)]
pub(super) struct Watchmen(Mutex<HashMap<u16, Post>>);

impl FileRoom {
    /// Wakes a waiter when the owner of a slot is gone. Returns `false` if no thread can start.
    pub(super) fn watch(self: &Arc<Self>, target: u16, nudge: &Arc<Nudge>) -> bool {
        let mut posts = self.watchmen.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(post) = posts.get(&target) {
            match &mut *post.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(waiters) => {
                    waiters.retain(|other| other.strong_count() > 0);
                    if !waiters.iter().any(|other| other.as_ptr() == Arc::as_ptr(nudge)) {
                        waiters.push(Arc::downgrade(nudge));
                    }
                }
                None => nudge.gone.store(true, Ordering::SeqCst),
            }
            return true;
        }
        let post: Post = Arc::new(Mutex::new(Some(vec![Arc::downgrade(nudge)])));
        // The thread must not keep the handle open: that would keep our own slots.
        let (file, room) = (Arc::clone(&self.life.watch), Arc::downgrade(self));
        let theirs = Arc::clone(&post);
        let watch = move || {
            // If this fails, the waiter checks the line now and finds the reason.
            _ = life::await_end(&file, target);
            let waiters = theirs.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(room) = room.upgrade() {
                room.watchmen.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&target);
            }
            wake(&room, &waiters.unwrap_or_default());
        };
        let started = thread::spawn("grouplock-watch", watch).is_ok();
        if started {
            posts.insert(target, post);
        }
        started
    }
}

/// Wakes the waiters until they have noticed. A waiter that is about to sleep misses the first
/// wake-up.
fn wake(room: &Weak<FileRoom>, waiters: &[Weak<Nudge>]) {
    let mut waiters: Vec<_> = waiters.iter().filter_map(Weak::upgrade).collect();
    for nudge in &waiters {
        nudge.gone.store(true, Ordering::SeqCst);
    }
    loop {
        // A nudge without another owner has no waiter any more.
        waiters.retain(|nudge| nudge.gone.load(Ordering::SeqCst) && Arc::strong_count(nudge) > 1);
        let Some(room) = room.upgrade() else { return };
        for nudge in &waiters {
            futex::wake(room.slot(nudge.slot).state().0, i32::MAX);
        }
        drop(room);
        if waiters.is_empty() {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}
