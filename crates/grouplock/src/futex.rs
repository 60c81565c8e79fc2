//! Sleeping on a word: by a call of the system, or by a mutex and a condition variable.

#[cfg(any(
    windows,
    target_os = "macos",
    target_os = "ios",
    target_os = "watchos",
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd"
))]
pub(crate) use atomic_wait::{wait, wake_all};

// An explicit import, as above, takes precedence over this glob import.
#[allow(unused_imports, reason = "where the system has such a call")]
pub(crate) use self::parked::*;

/// For systems without such a call. A program with one thread never calls it.
#[allow(dead_code, reason = "where the system has such a call")]
mod parked {
    use std::ptr;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

    struct Bucket {
        /// Held from the look at the word until the sleep, so that no wake-up is lost.
        looking: Mutex<()>,
        woken: Condvar,
    }

    /// Enough buckets that words rarely share one. Otherwise they wake each other's threads.
    static BUCKETS: [Bucket; 32] =
        [const { Bucket { looking: Mutex::new(()), woken: Condvar::new() } }; 32];

    fn bucket(word: *const AtomicU32) -> (&'static Bucket, MutexGuard<'static, ()>) {
        let bucket = &BUCKETS[word.addr() / 8 % BUCKETS.len()];
        (bucket, bucket.looking.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sleeps while `word` has `value`. May return early.
    pub(crate) fn wait(word: &AtomicU32, value: u32) {
        let (bucket, looking) = bucket(ptr::from_ref(word));
        // Relaxed: waking locks `looking` too. So this thread sees what was written before.
        if word.load(Relaxed) == value {
            drop(bucket.woken.wait(looking));
        }
    }

    /// Wakes all threads that sleep on `word`.
    pub(crate) fn wake_all(word: *const AtomicU32) {
        let (bucket, looking) = bucket(word);
        bucket.woken.notify_all();
        drop(looking);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::thread;

    use super::parked::{wait, wake_all};

    /// Two threads count in turn. If a wake-up is lost, the test does not end.
    #[test]
    fn no_wake_up_is_lost() {
        const LAST: u32 = if cfg!(miri) { 50 } else { 2_000 };
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            for turn in 0..2 {
                let word = &word;
                scope.spawn(move || {
                    for next in (turn..LAST).step_by(2) {
                        loop {
                            let now = word.load(Acquire);
                            if now == next {
                                break;
                            }
                            wait(word, now);
                        }
                        word.store(next + 1, Release);
                        wake_all(word);
                    }
                });
            }
        });
        assert_eq!(word.into_inner(), LAST);
    }
}
