use std::fmt::Debug;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use grouplock::raw::{ArcMutexGuard, Mutex, MutexGuard};

use crate::common::{in_time, wait_until};
use crate::{SOON, so_many_wait};

/// Locking and unlocking.
#[test]
fn smoke() {
    let mutex = Mutex::new(());
    drop(mutex.lock());
    drop(mutex.lock());
    assert!(!mutex.is_locked());
}

#[test]
fn counts_every_increment() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 20_000;

    static COUNT: Mutex<u32> = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut count = COUNT.lock();
                    // Two steps: a concurrent change would be lost.
                    let seen = *count;
                    std::hint::black_box(&count);
                    *count = seen + 1;
                }
            });
        }
    });
    assert_eq!(*COUNT.lock(), THREADS * ROUNDS);
}

#[test]
fn try_lock_fails_only_while_locked() {
    let mutex = Mutex::new(5);
    {
        let _guard = mutex.lock();
        assert!(mutex.is_locked());
        assert!(mutex.try_lock().is_none());
        thread::scope(|scope| scope.spawn(|| assert!(mutex.try_lock().is_none())).join().unwrap());
    }
    assert_eq!(*mutex.try_lock().unwrap(), 5);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn timed_locking_ends() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(mutex.try_lock_for(SOON).is_none());
            assert!(start.elapsed() >= SOON, "{:?} is too early", start.elapsed());
            assert!(mutex.try_lock_for(Duration::ZERO).is_none());
            assert!(mutex.try_lock_until(start).is_none(), "a deadline in the past");
        });
    });
    drop(guard);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    assert!(mutex.try_lock_until(Instant::now()).is_some());
    assert!(mutex.try_lock_for(Duration::MAX).is_some(), "beyond the end of time");

    let guard = mutex.lock();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| mutex.try_lock_for(Duration::MAX).is_some());
        // SAFETY: the lock is only read.
        so_many_wait(unsafe { mutex.raw() }, 1);
        drop(guard);
        assert!(waiting.join().unwrap());
    });
}

/// A panic with a guard unlocks, and does not poison.
#[test]
fn no_poison() {
    let mutex = Mutex::new(1);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.lock();
        *guard = 2;
        panic!("on purpose");
    }));
    assert!(result.is_err());
    assert!(!mutex.is_locked());
    assert_eq!(*mutex.lock(), 2);
}

#[test]
fn unlocks_while_unwinding() {
    struct OnDrop(Arc<Mutex<i32>>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            *self.0.lock() += 1;
        }
    }

    let mutex = Arc::new(Mutex::new(1));
    let theirs = OnDrop(Arc::clone(&mutex));
    let thread = thread::spawn(move || {
        let _theirs = theirs;
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    assert_eq!(*mutex.lock(), 2);
}

#[test]
fn gives_the_data_back() {
    struct NotCopy(u8);

    let mut mutex = Mutex::new(NotCopy(1));
    mutex.get_mut().0 = 7;
    assert_eq!(mutex.into_inner().0, 7);

    let dropped = Arc::new(());
    let mutex = Mutex::new(Arc::clone(&dropped));
    drop(mutex);
    assert_eq!(Arc::strong_count(&dropped), 1, "the data is dropped with the mutex");
}

/// A mutex of an array is a mutex of a slice, and a mutex of a string is one of a trait object.
#[test]
fn unsized_data() {
    let mutex: &Mutex<[i32]> = &Mutex::new([1, 2, 3]);
    mutex.lock()[1] = 5;
    assert_eq!(*mutex.lock(), [1, 5, 3]);
    let shown: &Mutex<dyn Debug> = &Mutex::new("text");
    assert_eq!(format!("{:?}", &*shown.lock()), "\"text\"");
}

/// A mapped guard shows a part of the data and holds the mutex.
#[test]
fn mapped_guards() {
    let mutex = Mutex::new((1, "two"));
    let mut first = MutexGuard::map(mutex.lock(), |pair| &mut pair.0);
    *first = 11;
    assert!(mutex.try_lock().is_none(), "a part of the data is locked as the whole");
    drop(first);
    let refused = MutexGuard::try_map(mutex.lock(), |_| None::<&mut i32>);
    assert_eq!(refused.map(|_| ()).unwrap_err().0, 11, "what is refused is still the guard");
    assert_eq!(*mutex.lock(), (11, "two"));
}

#[test]
fn arc_guards_keep_the_mutex() {
    let mutex = Arc::new(Mutex::new(3));
    let guard: ArcMutexGuard<i32> = mutex.lock_arc();
    let weak = Arc::downgrade(&mutex);
    assert!(mutex.try_lock_arc().is_none());
    drop(mutex);
    assert_eq!(*guard, 3);
    drop(guard);
    assert!(weak.upgrade().is_none(), "the last guard drops the mutex");
}

#[test]
fn debug_never_waits() {
    let mutex = Mutex::new(vec![7]);
    assert!(format!("{mutex:?}").contains('7'));
    let guard = mutex.lock();
    assert!(format!("{mutex:?}").contains("locked"));
    // SAFETY: the lock is only read.
    let raw = unsafe { mutex.raw() };
    assert_eq!(format!("{raw:?}"), "RawMutex { locked: true, waiting: 0, .. }");
    drop(guard);
}

#[test]
fn a_forgotten_guard_locks_for_good() {
    let mutex = Arc::new(Mutex::new(0));
    mem::forget(mutex.lock());
    assert!(mutex.is_locked());
    let theirs = Arc::clone(&mutex);
    assert!(in_time(move || theirs.try_lock_for(SOON).is_none()));
    // Dropping it does no harm. A new lock is unlocked, at whatever address.
    drop(mutex);
    for _ in 0..100 {
        let new = Box::new(Mutex::new(0));
        assert!(new.try_lock().is_some());
        mem::forget(new.lock());
    }
}

/// The size that the documentation promises.
#[test]
fn small() {
    assert_eq!(size_of::<Mutex<()>>(), 16);
    assert_eq!(size_of::<Option<Mutex<u64>>>(), 24 + 8);
}

#[test]
fn many_waiters_all_get_it() {
    let mutex = Arc::new(Mutex::new(Vec::new()));
    let guard = mutex.lock();
    let threads: Vec<_> = (0..32)
        .map(|number| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || mutex.lock().push(number))
        })
        .collect();
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { mutex.raw() }, 32);
    drop(guard);
    wait_until("all had it", || threads.iter().all(thread::JoinHandle::is_finished));
    let mut numbers = mutex.lock().clone();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..32));
}
