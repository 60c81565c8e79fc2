use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use grouplock::raw::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::common::{LATE, SetWhenDropped, in_time, try_again, wait_until};
use crate::{Random, SOON, so_many_wait};

/// Readers and writers lock and unlock.
#[test]
fn smoke() {
    let lock = RwLock::new(());
    drop(lock.read());
    drop(lock.write());
    drop((lock.read(), lock.read()));
    drop(lock.write());
    assert!(!lock.is_locked());
}

/// What readers and writers see of each other.
#[derive(Default)]
struct Inside {
    readers: AtomicUsize,
    writers: AtomicUsize,
    wrote: AtomicUsize,
}

impl Inside {
    fn write<'a>(&self, mut guard: RwLockWriteGuard<'a, u64>) -> RwLockWriteGuard<'a, u64> {
        assert_eq!(self.writers.fetch_add(1, SeqCst), 0, "two writers");
        assert_eq!(self.readers.load(SeqCst), 0, "a reader beside a writer");
        // Two steps: a concurrent write would be lost.
        let seen = *guard;
        std::hint::black_box(&guard);
        *guard = seen + 1;
        self.wrote.fetch_add(1, SeqCst);
        self.writers.fetch_sub(1, SeqCst);
        guard
    }

    fn read<'a>(&self, guard: RwLockReadGuard<'a, u64>) -> RwLockReadGuard<'a, u64> {
        self.readers.fetch_add(1, SeqCst);
        assert_eq!(self.writers.load(SeqCst), 0, "a writer beside a reader");
        std::hint::black_box(*guard);
        self.readers.fetch_sub(1, SeqCst);
        guard
    }

    fn frob(&self, lock: &RwLock<u64>, kind: u64) {
        let moment = Duration::from_micros(30);
        match kind {
            0 => drop(self.write(lock.write())),
            1 => drop(lock.try_write().map(|guard| self.write(guard))),
            2 => drop(lock.try_write_for(moment).map(|guard| self.write(guard))),
            3 => drop(self.read(RwLockWriteGuard::downgrade(self.write(lock.write())))),
            4 => RwLockWriteGuard::unlock_fair(self.write(lock.write())),
            5 => RwLockReadGuard::unlock_fair(self.read(lock.read())),
            6 => {
                let mut guard = lock.read();
                RwLockReadGuard::bump(&mut guard);
                drop(self.read(guard));
            }
            7 => {
                let mut guard = lock.write();
                RwLockWriteGuard::bump(&mut guard);
                drop(self.write(guard));
            }
            8 => drop(lock.try_read().map(|guard| self.read(guard))),
            9 => drop(lock.try_read_for(moment).map(|guard| self.read(guard))),
            _ => drop(self.read(lock.read())),
        }
    }
}

/// Random readers and writers from many threads. Each checks that it is alone when it should be.
#[test]
fn frob() {
    let lock = RwLock::new(0);
    let inside = Inside::default();
    thread::scope(|scope| {
        for thread in 0..8 {
            let (lock, inside) = (&lock, &inside);
            scope.spawn(move || {
                let mut random = Random(thread * 77 + 5);
                for _ in 0..5_000 {
                    inside.frob(lock, random.below(20));
                }
            });
        }
    });
    assert!(!lock.is_locked());
    assert_eq!(lock.into_inner(), inside.wrote.load(SeqCst) as u64);
}

/// As the test of this name in std: readers never see the unfinished data of a writer.
#[test]
fn rw_arc() {
    let lock = Arc::new(RwLock::new(0));
    let writer = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            for _ in 0..10 {
                let mut data = lock.write();
                let seen = *data;
                *data = -1;
                thread::yield_now();
                *data = seen + 1;
            }
        })
    };
    let readers: Vec<_> = (0..5)
        .map(|_| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || assert!(*lock.read() >= 0))
        })
        .collect();
    for reader in readers {
        reader.join().unwrap();
    }
    writer.join().unwrap();
    assert_eq!(*lock.read(), 10);
}

#[test]
fn readers_are_inside_together() {
    let lock = RwLock::new(());
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _guard = lock.read();
                // No thread would continue if one had to wait for another.
                barrier.wait();
            });
        }
    });
}

/// A panic with a guard unlocks, and does not poison.
#[test]
fn no_poison() {
    let lock = RwLock::new(1);
    for write in [false, true] {
        let result = catch_unwind(AssertUnwindSafe(|| {
            if write {
                let mut guard = lock.write();
                *guard += 1;
                panic!("on purpose, writing");
            }
            let _guard = lock.read();
            panic!("on purpose, reading");
        }));
        assert!(result.is_err());
        assert!(!lock.is_locked());
        assert!(lock.try_write().is_some());
    }
    assert_eq!(*lock.read(), 2);
}

/// Tries fail only while a conflicting guard exists.
#[test]
fn trying() {
    let lock = RwLock::new(5);
    {
        let _reading = lock.read();
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        assert!(lock.try_read().is_some(), "readers share");
        assert!(lock.try_write().is_none(), "a writer excludes readers");
    }
    {
        let _writing = lock.write();
        assert!(lock.is_locked() && lock.is_locked_exclusive());
        assert!(lock.try_read().is_none());
        assert!(lock.try_write().is_none());
    }
    assert!(lock.try_read().is_some());
    assert!(lock.try_write().is_some());
    assert!(!lock.is_locked());
}

/// Timed calls end at their deadline, and leave nothing behind.
#[test]
fn timed() {
    let lock = RwLock::new(());
    let past = Instant::now();
    let reading = lock.read();
    assert!(lock.try_read_for(Duration::ZERO).is_some());
    assert!(lock.try_read_for(Duration::MAX).is_some());
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(lock.try_write_for(SOON).is_none());
            assert!(start.elapsed() >= SOON);
            assert!(lock.try_write_until(past).is_none());
        });
    });
    // The writer that withdrew blocks no request.
    assert!(lock.try_read().is_some());
    drop(reading);
    let writing = lock.write();
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(lock.try_read_until(start + SOON).is_none());
            assert!(start.elapsed() >= SOON);
            assert!(lock.try_read_until(past).is_none());
        });
    });
    drop(writing);
    assert!(lock.try_write_until(past).is_some(), "no waiting, no deadline");
}

#[test]
fn gives_the_data_back() {
    let mut lock = RwLock::new(vec![1]);
    lock.get_mut().push(2);
    assert_eq!(lock.into_inner(), [1, 2]);
    let dropped = Arc::new(());
    drop(RwLock::new(Arc::clone(&dropped)));
    assert_eq!(Arc::strong_count(&dropped), 1);
}

/// A lock of an array is a lock of a slice.
#[test]
fn unsized_data() {
    let lock: &RwLock<[i32]> = &RwLock::new([1, 2, 3]);
    lock.write()[0] = 4;
    assert_eq!(*lock.read(), [4, 2, 3]);
}

/// `new` is `const`.
#[test]
fn in_a_static() {
    static WORDS: RwLock<Vec<&str>> = RwLock::new(Vec::new());
    WORDS.write().push("one");
    assert_eq!(*WORDS.read(), ["one"]);
}

/// The size that the documentation promises.
#[test]
fn small() {
    assert_eq!(size_of::<RwLock<()>>(), 24);
}

/// No other writer enters between the write and the read of a thread that downgrades.
#[test]
fn downgrade_is_one_step() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 5_000;

    let lock = RwLock::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let lock = &lock;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mine = thread * ROUNDS + round;
                    let mut writing = lock.write();
                    *writing = mine;
                    let reading = RwLockWriteGuard::downgrade(writing);
                    assert_eq!(*reading, mine, "another writer wrote in between");
                    if round % 16 == 0 {
                        thread::yield_now();
                        assert_eq!(*reading, mine, "a writer wrote beside a reader");
                    }
                }
            });
        }
    });
}

#[test]
fn downgrade_lets_readers_in() {
    let lock = Arc::new(RwLock::new(0));
    let mut writing = lock.write();
    let theirs = Arc::clone(&lock);
    let reader = thread::spawn(move || *theirs.read());
    // SAFETY: the lock is only read.
    so_many_wait(unsafe { lock.raw() }, 1);
    *writing = 1;
    let reading = RwLockWriteGuard::downgrade(writing);
    wait_until("the reader has read", || reader.is_finished());
    assert_eq!(reader.join().unwrap(), 1);
    assert!(lock.try_write().is_none());
    drop(reading);
    assert!(lock.try_write().is_some());
}

/// A mapped guard shows a part of the data and holds the lock.
#[test]
fn mapped_guards() {
    let lock = RwLock::new((1, "two"));
    {
        let first = RwLockReadGuard::map(lock.read(), |pair| &pair.0);
        assert_eq!(*first, 1);
        assert!(lock.try_write().is_none());
    }
    {
        let mut first = RwLockWriteGuard::map(lock.write(), |pair| &mut pair.0);
        *first = 11;
        assert!(lock.try_read().is_none());
    }
    assert_eq!(*lock.read(), (11, "two"));
}

#[test]
fn arc_guards_keep_the_lock() {
    let lock = Arc::new(RwLock::new(3));
    let weak = Arc::downgrade(&lock);
    let reading = lock.read_arc();
    assert!(lock.try_write_arc().is_none());
    drop(lock);
    assert_eq!(*reading, 3);
    let again = weak.upgrade().unwrap();
    drop(reading);
    let mut writing = again.write_arc();
    drop(again);
    *writing = 4;
    drop(writing);
    assert!(weak.upgrade().is_none(), "the last guard drops the lock");
}

#[test]
fn debug_never_waits() {
    let lock = RwLock::new(7);
    assert!(format!("{lock:?}").contains('7'));
    let guard = lock.write();
    assert!(format!("{lock:?}").contains("locked"));
    // SAFETY: the lock is only read.
    let raw = unsafe { lock.raw() };
    assert_eq!(format!("{raw:?}"), "RawRwLock { locked: true, exclusive: true, waiting: 0, .. }");
    drop(guard);
    let _reading = lock.read();
    assert!(format!("{lock:?}").contains('7'), "a reader does not prevent `Debug` from reading");
}

#[test]
fn a_forgotten_reader_keeps_writers_out() {
    let lock = Arc::new(RwLock::new(0));
    mem::forget(lock.read());
    assert!(lock.try_read().is_some());
    let theirs = Arc::clone(&lock);
    assert!(in_time(move || theirs.try_write_for(SOON).is_none()));
    drop(lock);
}

/// A reader can read again as long as no writer has arrived in between.
#[test]
fn recursion_without_a_writer() {
    let lock = RwLock::new(1);
    let one = lock.read();
    let two = lock.read();
    assert_eq!(*one + *two, 2);
}

/// With a writer in between, a reader may not read again. It can try, and the writer does not
/// starve.
#[test]
fn recursion_with_a_writer_in_between() {
    let lock = Arc::new(RwLock::new(1));
    let one = lock.read();
    let theirs = Arc::clone(&lock);
    let writer = thread::spawn(move || *theirs.write() = 2);
    // Longer than the patience of the writer: from then on no request enters before it.
    wait_until("the writer lost its patience", || lock.try_read().is_none());
    assert!(lock.try_read_for(SOON).is_none());
    assert_eq!(*one, 1);
    drop(one);
    wait_until("the writer has written", || writer.is_finished());
    assert_eq!(*lock.read(), 2);
}

/// One reader or another is always inside. A writer enters nevertheless.
#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    let lock = Arc::new(RwLock::new(()));
    let theirs = Arc::clone(&lock);
    beside_a_stream(
        4,
        // Hand over hand: the next lock is taken before the last one is released, if that needs no
        // wait.
        |goes_on| {
            let mut last = Some(lock.read());
            while goes_on() {
                thread::sleep(Duration::from_micros(200));
                let next = lock.try_read();
                last = if next.is_some() {
                    next
                } else {
                    drop(last);
                    Some(lock.read())
                };
            }
            drop(last);
        },
        move || drop(theirs.write()),
    );
}

#[test]
fn a_stream_of_writers_does_not_starve_a_reader() {
    let lock = Arc::new(RwLock::new(0u64));
    let theirs = Arc::clone(&lock);
    beside_a_stream(
        3,
        |goes_on| {
            while goes_on() {
                let mut guard = lock.write();
                *guard += 1;
                thread::sleep(Duration::from_micros(200));
            }
        },
        move || (0..10).for_each(|_| drop(theirs.read())),
    );
}

/// Runs `single` beside threads that run `stream` without end, after each of them has run for a
/// while. Fails if `single` does not end in time.
fn beside_a_stream(
    threads: usize,
    stream: impl Fn(&dyn Fn() -> bool) + Sync,
    single: impl FnOnce() + Send + 'static,
) {
    let stop = AtomicBool::new(false);
    let rounds: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        let _stop = SetWhenDropped(&stop);
        for mine in &rounds {
            let (stop, stream) = (&stop, &stream);
            scope.spawn(move || {
                stream(&|| {
                    mine.fetch_add(1, SeqCst);
                    !stop.load(SeqCst)
                });
            });
        }
        wait_until("the stream flows", || rounds.iter().all(|rounds| rounds.load(SeqCst) > 10));
        in_time(single);
    });
}

#[test]
fn readers_behind_a_writer_that_withdraws_enter() {
    let mut time = 5 * SOON;
    try_again("a reader came behind the writer", || {
        time *= 2;
        let lock = Arc::new(RwLock::new(()));
        let reading = lock.read();
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || theirs.try_write_for(time).is_none());
        wait_until("the writer lost its patience, or its time was over", || {
            lock.try_read().is_none() || writer.is_finished()
        });
        let (tell, told) = mpsc::channel();
        let theirs = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let _guard = theirs.read();
            _ = tell.send(());
        });
        let mut behind = false;
        wait_until("the reader waits behind the writer, or the writer withdrew", || {
            // SAFETY: the lock is only read.
            behind = format!("{:?}", unsafe { lock.raw() }).contains("waiting: 2, ");
            behind || writer.is_finished()
        });
        assert!(writer.join().unwrap());
        // The first reader is still inside.
        let told = told.recv_timeout(LATE);
        assert!(told.is_ok(), "a reader waits although only readers are inside");
        drop(reading);
        reader.join().unwrap();
        behind.then_some(())
    });
}
