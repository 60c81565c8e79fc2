use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use grouplock::raw::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};

use crate::common::{in_time, wait_until};
use crate::{Random, SOON, so_many_wait};

#[test]
fn shares_with_readers_and_excludes_its_like() {
    let lock = RwLock::new(1);
    let upgradable = lock.upgradable_read();
    assert!(lock.try_read().is_some());
    assert!(lock.try_upgradable_read().is_none());
    assert!(lock.try_write().is_none());
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_upgradable_read_for(SOON).is_none()));
    });
    drop(upgradable);
    assert!(lock.try_write().is_some());
    let reading = lock.read();
    assert!(lock.try_upgradable_read().is_some());
    drop(reading);
    let _writing = lock.write();
    assert!(lock.try_upgradable_read().is_none());
}

#[test]
fn upgrades_when_the_readers_have_left() {
    let lock = Arc::new(RwLock::new(0));
    let reading = lock.read();
    let theirs = Arc::clone(&lock);
    let thread = thread::spawn(move || {
        let upgradable = theirs.upgradable_read();
        *RwLockUpgradableReadGuard::upgrade(upgradable) += 1;
    });
    // A thread that upgrades keeps new readers out.
    wait_until("new readers are kept out", || lock.try_read().is_none());
    assert_eq!(*reading, 0);
    drop(reading);
    wait_until("it has upgraded", || thread.is_finished());
    assert_eq!(*lock.read(), 1);
}

/// `try_upgrade` succeeds only without other readers.
#[test]
fn try_upgrade() {
    let lock = RwLock::new(0);
    let reading = lock.read();
    let upgradable = lock.upgradable_read();
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        panic!("upgraded beside a reader")
    };
    drop(reading);
    let Ok(mut writing) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
        panic!("not upgraded although alone")
    };
    *writing = 1;
    drop(writing);
    assert!(lock.try_upgradable_read().is_some(), "the upgrade has given the token back");
}

/// An upgrade that is too late is still a reader.
#[test]
fn timed_upgrade() {
    let lock = Arc::new(RwLock::new(0));
    let reading = lock.read();
    let theirs = Arc::clone(&lock);
    in_time(move || {
        let upgradable = theirs.upgradable_read();
        let start = Instant::now();
        let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SOON) else {
            panic!("upgraded beside a reader")
        };
        assert!(start.elapsed() >= SOON);
        assert!(theirs.try_upgradable_read().is_none(), "it is an upgradable reader still");
        assert!(theirs.try_write().is_none());
        assert!(theirs.try_read().is_some(), "it blocks no reader");
        let Err(_upgradable) = RwLockUpgradableReadGuard::try_upgrade_until(upgradable, start)
        else {
            panic!("a deadline in the past")
        };
    });
    drop(reading);
    assert!(lock.try_write().is_some());
}

/// No other writer enters between the read and the write of a thread that upgrades: if a writer
/// waits already or arrives later, and if the upgrade times out and is tried again.
#[test]
fn upgrade_is_one_step() {
    const THREADS: u64 = 6;
    const ROUNDS: u32 = 3_000;

    let lock = RwLock::new(0u64);
    let wrote = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, wrote) = (&lock, &wrote);
            scope.spawn(move || {
                let mut random = Random(thread * 31 + 7);
                for _ in 0..ROUNDS {
                    match random.below(6) {
                        0 => {
                            *lock.write() += 1;
                            wrote.fetch_add(1, SeqCst);
                        }
                        1 => {
                            let upgradable = lock.upgradable_read();
                            let seen = *upgradable;
                            let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
                            assert_eq!(*writing, seen, "another writer wrote in between");
                            *writing = seen + 1;
                            wrote.fetch_add(1, SeqCst);
                            let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writing);
                            assert_eq!(*upgradable, seen + 1, "another writer wrote in between");
                        }
                        2 => {
                            let upgradable = lock.upgradable_read();
                            let seen = *upgradable;
                            let time = Duration::from_micros(random.below(40));
                            match RwLockUpgradableReadGuard::try_upgrade_for(upgradable, time) {
                                Ok(mut writing) => {
                                    assert_eq!(*writing, seen, "another writer wrote in between");
                                    *writing = seen + 1;
                                    wrote.fetch_add(1, SeqCst);
                                }
                                Err(upgradable) => {
                                    assert_eq!(*upgradable, seen, "another writer wrote meanwhile");
                                    let reading = RwLockUpgradableReadGuard::downgrade(upgradable);
                                    assert_eq!(*reading, seen, "another writer wrote meanwhile");
                                }
                            }
                        }
                        3 => {
                            let writing = lock.write();
                            let seen = *writing;
                            let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writing);
                            thread::yield_now();
                            let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
                            assert_eq!(*writing, seen, "another writer wrote in between");
                            *writing += 1;
                            wrote.fetch_add(1, SeqCst);
                        }
                        _ => {
                            let reading = lock.read();
                            let seen = *reading;
                            thread::yield_now();
                            assert_eq!(*reading, seen);
                        }
                    }
                }
            });
        }
    });
    assert!(!lock.is_locked());
    assert_eq!(lock.into_inner(), wrote.load(SeqCst) as u64);
}

/// A waiting writer does not enter before a reader that upgrades, although the writer arrived
/// first.
#[test]
fn an_upgrade_goes_before_a_waiting_writer() {
    let lock = Arc::new(RwLock::new(Vec::new()));
    let upgradable = lock.upgradable_read();
    let theirs = Arc::clone(&lock);
    let writer = thread::spawn(move || theirs.write().push("writer"));
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { lock.raw() }, 1);
    let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
    writing.push("upgrade");
    drop(writing);
    writer.join().unwrap();
    assert_eq!(*lock.read(), ["upgrade", "writer"]);
}

/// A writer becomes an upgradable reader although another thread has passed the gate and waits to
/// read.
#[test]
fn downgrading_to_upgradable_does_not_wait_for_those_outside() {
    let lock = Arc::new(RwLock::new(0));
    let writing = lock.write();
    let theirs = Arc::clone(&lock);
    let other =
        thread::spawn(move || *RwLockUpgradableReadGuard::upgrade(theirs.upgradable_read()));
    // SAFETY: the lock is only read.
    let raw = unsafe { lock.raw() };
    so_many_wait(raw, 1);
    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writing);
    // It enters, and finds the token taken.
    so_many_wait(raw, 0);
    *RwLockUpgradableReadGuard::upgrade(upgradable) = 1;
    wait_until("the other has upgraded", || other.is_finished());
    assert_eq!(other.join().unwrap(), 1);
}

#[test]
fn with_upgraded_runs_alone() {
    let lock = RwLock::new(1);
    let mut upgradable = lock.upgradable_read();
    upgradable.with_upgraded(|value| *value = 2);
    assert_eq!(*upgradable, 2);
    assert!(lock.try_read().is_some());
}

#[test]
fn bump_lets_a_writer_in() {
    let lock = Arc::new(RwLock::new(0));
    let mut upgradable = lock.upgradable_read();
    let theirs = Arc::clone(&lock);
    let writer = thread::spawn(move || *theirs.write() = 1);
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { lock.raw() }, 1);
    RwLockUpgradableReadGuard::bump(&mut upgradable);
    assert_eq!(*upgradable, 1);
    writer.join().unwrap();
    RwLockUpgradableReadGuard::unlock_fair(upgradable);
    assert!(lock.try_write().is_some());
}

/// Eight threads take the upgradable lock and upgrade, again and again. All of them finish.
#[test]
fn all_get_their_turn() {
    let lock = Arc::new(RwLock::new(0));
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (lock, barrier) = (Arc::clone(&lock), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                for _ in 0..200 {
                    *RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) += 1;
                }
            })
        })
        .collect();
    wait_until("all have upgraded", || threads.iter().all(thread::JoinHandle::is_finished));
    assert_eq!(*lock.read(), 1_600);
}

/// Once a reader waits to be upgraded, no request enters before it, however short it has waited.
#[test]
fn nobody_goes_before_an_upgrade() {
    for _ in 0..100 {
        let lock = Arc::new(RwLock::new(0));
        let reading = lock.read();
        let theirs = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            *RwLockUpgradableReadGuard::upgrade(theirs.upgradable_read()) += 1;
        });
        // SAFETY: the lock is only read.
        so_many_wait(unsafe { lock.raw() }, 1);
        assert!(lock.try_read().is_none(), "a reader entered before the upgrade");
        drop(reading);
        assert_eq!(*lock.read(), 1, "a reader came before the upgrade");
        thread.join().unwrap();
    }
}
