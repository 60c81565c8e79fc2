//! Every lock on real threads, under the monitors: no two sessions are inside together, first come
//! is first served where that is claimed, and every passage ends.

use grouplock_algorithms as locks;
use grouplock_algorithms::monitor::{Report, Violation, Watched, Workout};

/// Entries per test, divided among the threads. Waiting threads of the fixed-size locks nap, so
/// their tests take longest. `GROUPLOCK_ENTRIES` sets another number; `cargo xtask soak threads`
/// uses a larger one.
fn entries() -> usize {
    const BY_DEFAULT: usize = 8_000;
    std::env::var("GROUPLOCK_ENTRIES").map_or(BY_DEFAULT, |entries| {
        let entries: usize = entries.parse().expect("GROUPLOCK_ENTRIES is a number");
        // So that the threads can share it evenly.
        entries.next_multiple_of(32)
    })
}

fn workout(threads: usize, sessions: u64) -> Workout {
    let seed = threads as u64 * 100 + sessions;
    Workout { threads, sessions, passages: entries() / threads, seed, ..Workout::default() }
}

/// Prints what a test measured (`cargo test -- --nocapture` shows it), or fails with the report.
#[track_caller]
fn expect(outcome: Result<Report, Violation>) -> Report {
    match outcome {
        Ok(report) => {
            let name = std::thread::current().name().unwrap_or("a test").to_owned();
            println!("{name}: {report}");
            assert_eq!(report.entries, entries());
            report
        }
        Err(violation) => panic!("{violation}"),
    }
}

macro_rules! mutex_tests {
    ($lock:ty) => {
        #[test]
        fn threads_2() {
            assert_eq!(expect(workout(2, 1).mutex::<$lock>()).most_inside, 1);
        }
        #[test]
        fn threads_8() {
            assert_eq!(expect(workout(8, 1).mutex::<$lock>()).most_inside, 1);
        }
        #[test]
        fn threads_32() {
            assert_eq!(expect(workout(32, 1).mutex::<$lock>()).most_inside, 1);
        }
    };
}

macro_rules! policy_tests {
    ($lock:ty) => {
        #[test]
        fn threads_2_sessions_2() {
            expect(workout(2, 2).group::<$lock>());
        }
        #[test]
        fn threads_8_sessions_1() {
            // With one session no thread waits: threads that stay inside meet there.
            let report = expect(workout(8, 1).group::<$lock>());
            assert!(report.most_inside >= 2, "{report}");
            assert_eq!(report.switches, 1);
        }
        #[test]
        fn threads_8_sessions_7() {
            expect(workout(8, 7).group::<$lock>());
        }
        #[test]
        fn threads_32_sessions_2() {
            expect(workout(32, 2).group::<$lock>());
        }
    };
}

macro_rules! group_tests {
    ($lock:ty) => {
        policy_tests!($lock);

        #[test]
        fn threads_2_sessions_1() {
            expect(workout(2, 1).group::<$lock>());
        }
        #[test]
        fn threads_2_sessions_7() {
            expect(workout(2, 7).group::<$lock>());
        }
        #[test]
        fn threads_8_sessions_2() {
            expect(workout(8, 2).group::<$lock>());
        }
        #[test]
        fn threads_32_sessions_1() {
            let report = expect(workout(32, 1).group::<$lock>());
            assert!(report.most_inside >= 2, "{report}");
        }
        #[test]
        fn threads_32_sessions_7() {
            expect(workout(32, 7).group::<$lock>());
        }
    };
}

every_policy!(Watched, policy_tests);
every_mutex!(Watched, mutex_tests);
every_withdrawing_mutex!(Watched, mutex_tests);
every_group!(Watched, group_tests);
every_round!(Watched, group_tests);

/// The specimen holds with two processes only (`schedules` shows three).
mod maor_taubenfeld {
    use super::*;
    use locks::maor_taubenfeld::MaorTaubenfeld;

    #[test]
    fn threads_2_sessions_1() {
        expect(workout(2, 1).group::<MaorTaubenfeld<Watched>>());
    }

    #[test]
    fn threads_2_sessions_7() {
        expect(workout(2, 7).group::<MaorTaubenfeld<Watched>>());
    }
}
