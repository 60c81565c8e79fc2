//! Sleeping on a word: by the operating system's call where it has one, else by a mutex and a condition variable.

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

// A name that is imported by itself, as above, goes before the same name here.
#[allow(unused_imports, reason = "where the system has such a call")]
pub(crate) use self::parked::*;

/// Where the system has no such call. A program with one thread, on a platform without any, never comes here.
#[allow(dead_code, reason = "where the system has such a call")]
mod parked {
    use std::ptr;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

    struct Place {
        /// Held from the look at the word until the thread sleeps, so that nobody wakes it in between.
        looking: Mutex<()>,
        woken: Condvar,
    }

    /// So many that words rarely share one. Those that do wake each other's threads for nothing.
    static PLACES: [Place; 32] =
        [const { Place { looking: Mutex::new(()), woken: Condvar::new() } }; 32];

    fn place(word: *const AtomicU32) -> (&'static Place, MutexGuard<'static, ()>) {
        let place = &PLACES[word.addr() / 8 % PLACES.len()];
        (place, place.looking.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sleeps while `word` holds `value`, or less.
    pub(crate) fn wait(word: &AtomicU32, value: u32) {
        let (place, looking) = place(ptr::from_ref(word));
        // Relaxed: whatever was written before a thread was woken is seen, as waking locks `looking` too.
        if word.load(Relaxed) == value {
            drop(place.woken.wait(looking));
        }
    }

    /// Wakes all that sleep on `word`.
    pub(crate) fn wake_all(word: *const AtomicU32) {
        let (place, looking) = place(word);
        place.woken.notify_all();
        drop(looking);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::thread;

    use super::parked::{wait, wake_all};

    /// Two threads count in turn. A wake-up that is lost ends this for good.
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
