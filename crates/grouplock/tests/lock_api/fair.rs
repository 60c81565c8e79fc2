//! `unlock_fair` hands the lock over in order.

use std::sync::Arc;
use std::thread;

use grouplock::raw::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::common::wait_until;
use crate::so_many_wait;

// If a waiter must be next, the following steps must come soon: after the patience of the waiter
// the lock is strict anyway, and the round shows nothing. That is rare, and there are many rounds.

/// A thread waits. Another thread unlocks fairly and locks again at once. It gets the lock after
/// the waiter, every time. (Without fairness, it nearly never would.)
#[test]
fn a_waiter_gets_the_mutex_before_the_thread_that_unlocked_fairly() {
    for _ in 0..200 {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.lock();
        let theirs = Arc::clone(&mutex);
        let waiter = thread::spawn(move || *theirs.lock() += 1);
        // SAFETY: the lock is only read.
        so_many_wait(unsafe { mutex.raw() }, 1);
        MutexGuard::unlock_fair(guard);
        assert_eq!(*mutex.lock(), 1, "the lock was taken before the waiter had it");
        waiter.join().unwrap();
    }
}

#[test]
fn bump_lets_a_waiter_in() {
    for _ in 0..200 {
        let mutex = Arc::new(Mutex::new(0));
        let mut guard = mutex.lock();
        MutexGuard::bump(&mut guard);
        let theirs = Arc::clone(&mutex);
        let waiter = thread::spawn(move || *theirs.lock() += 1);
        // SAFETY: the lock is only read.
        so_many_wait(unsafe { mutex.raw() }, 1);
        MutexGuard::bump(&mut guard);
        assert_eq!(*guard, 1);
        waiter.join().unwrap();
    }
}

#[test]
fn a_writer_unlocks_fairly_to_all_waiting_readers() {
    let lock = Arc::new(RwLock::new(0));
    let mut guard = lock.write();
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || *lock.read())
        })
        .collect();
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { lock.raw() }, 4);
    *guard = 1;
    RwLockWriteGuard::unlock_fair(guard);
    *lock.write() = 2;
    for reader in readers {
        assert_eq!(
            reader.join().unwrap(),
            1,
            "the second writing came before a reader that waited"
        );
    }
}

#[test]
fn a_reader_unlocks_fairly_to_a_writer() {
    for _ in 0..200 {
        let lock = Arc::new(RwLock::new(0));
        let guard = lock.read();
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write() = 1);
        // SAFETY: the lock is only read.
        so_many_wait(unsafe { lock.raw() }, 1);
        RwLockReadGuard::unlock_fair(guard);
        assert_eq!(*lock.read(), 1, "a reader came before the writer that was promised the lock");
        writer.join().unwrap();
    }
}

/// The promise holds while other readers are still inside: later requests queue behind the writer.
#[test]
fn the_promise_outlasts_other_readers() {
    let lock = Arc::new(RwLock::new(0));
    let one = lock.read();
    let two = lock.read();
    let theirs = Arc::clone(&lock);
    let writer = thread::spawn(move || *theirs.write() = 1);
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { lock.raw() }, 1);
    RwLockReadGuard::unlock_fair(one);
    assert!(lock.try_read().is_none());
    drop(two);
    wait_until("the writer has written", || writer.is_finished());
    assert_eq!(*lock.read(), 1);
}

#[test]
fn fair_unlocking_with_nobody_waiting_is_unlocking() {
    let mutex = Mutex::new(());
    MutexGuard::unlock_fair(mutex.lock());
    assert!(mutex.try_lock().is_some());
    let lock = RwLock::new(());
    RwLockReadGuard::unlock_fair(lock.read());
    RwLockWriteGuard::unlock_fair(lock.write());
    let mut reading = lock.read();
    RwLockReadGuard::bump(&mut reading);
    assert!(lock.try_write().is_none());
    drop(reading);
    assert!(lock.try_write().is_some());
}

/// Two threads that bump alternate.
#[test]
fn bumping_threads_take_turns() {
    const ROUNDS: usize = 500;

    let mutex = Arc::new(Mutex::new(Vec::new()));
    let guard = mutex.lock();
    let threads: Vec<_> = (0..2)
        .map(|me| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || {
                let mut guard = mutex.lock();
                for _ in 0..ROUNDS {
                    guard.push(me);
                    MutexGuard::bump(&mut guard);
                }
            })
        })
        .collect();
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { mutex.raw() }, 2);
    drop(guard);
    for thread in threads {
        thread.join().unwrap();
    }
    let turns = mutex.lock();
    let repeats = turns.windows(2).filter(|pair| pair[0] == pair[1]).count();
    // At the beginning and at the end, one thread may be without the other.
    assert!(repeats <= 2, "{repeats} times the same thread came twice in a row");
}
