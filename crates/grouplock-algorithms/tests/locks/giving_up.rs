//! Requests that withdraw, on real threads.

use std::cell::Cell;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use grouplock_algorithms as locks;
use grouplock_algorithms::memory::{Memory, Native, Value};
use grouplock_algorithms::monitor::{Report, Watched, Workout};
use grouplock_algorithms::raw::WithdrawGroup;
use grouplock_algorithms::{Group, Mutual};

/// Longer than any step here takes, even on a busy machine.
const LATE: Duration = Duration::from_secs(60);

/// Real memory on which a thread can be stopped at the end of a doorway.
#[derive(Clone, Copy, Debug)]
struct Stops;

thread_local! {
    /// The channel that reports the end of the calling thread's next doorway, and the channel on
    /// which the thread waits after that.
    static AFTER_DOORWAY: Cell<Option<(Sender<()>, Receiver<()>)>> = const { Cell::new(None) };
}

impl Memory for Stops {
    type Register<T: Value> = <Native as Memory>::Register<T>;
    type Flag = <Native as Memory>::Flag;

    fn await_until(condition: impl Fn() -> bool) {
        Native::await_until(condition);
    }

    fn doorway_end() {
        if let Some((ended, go_on)) = AFTER_DOORWAY.take() {
            ended.send(()).expect("the test waits for this");
            go_on.recv_timeout(LATE).expect("the test lets it go on");
        }
    }
}

/// Half of the requests withdraw if they must wait. The test checks mutual exclusion, first come
/// first served among the others, and that all passages end.
fn storm<G: WithdrawGroup<Watched> + 'static>(threads: usize, sessions: u64) -> Report {
    const REQUESTS: usize = 3_200;
    let (passages, seed) = (REQUESTS / threads, threads as u64 * 10 + sessions);
    let workout = Workout { threads, sessions, passages, seed, ..Workout::default() };
    let report = workout.withdrawing::<G>().unwrap_or_else(|violation| panic!("{violation}"));
    println!("{threads} threads, {sessions} sessions: {report}");
    assert_eq!(report.entries + report.given_up, REQUESTS);
    report
}

/// A process that would have to wait withdraws. This delays neither it nor any other process.
fn withdraws_and_comes_back<G: WithdrawGroup<Native>>() {
    let lock = Group::<G>::new(3).expect("three are always possible");
    let join = || lock.process().expect("there is room");
    let (mut a, mut b, mut c) = (join(), join(), join());
    for _ in 0..3 {
        let inside = a.enter(1).expect("nothing was leaked");
        let beside = b.enter_unless(1, || true).expect("nothing was leaked");
        drop(beside.expect("the same session has no need to wait"));
        let mut asked = 0;
        let patience = || {
            asked += 1;
            asked == 3
        };
        assert!(b.enter_unless(2, patience).expect("nothing was leaked").is_none());
        assert_eq!(asked, 3, "it was asked until it gave up");
        // The gap that the withdrawn request left is closed.
        drop(c.enter_unless(1, || true).expect("nothing was leaked").expect("nobody waits"));
        drop(inside);
        drop(b.enter_unless(2, || true).expect("nothing was leaked").expect("nobody is inside"));
    }
}

mod jayanti_jayanti {
    use super::*;
    use grouplock_algorithms::jayanti_jayanti::JayantiJayanti;

    #[test]
    fn a_waiter_withdraws_and_comes_back() {
        let lock = Mutual::<JayantiJayanti>::new(0).expect("it serves any number");
        let join = || lock.process().expect("it serves any number");
        let (mut a, mut b, mut c) = (join(), join(), join());
        for _ in 0..3 {
            let held = a.acquire().expect("nothing was leaked");
            let mut asked = 0;
            let patience = || {
                asked += 1;
                asked == 3
            };
            assert!(b.acquire_unless(patience).expect("nothing was leaked").is_none());
            assert_eq!(asked, 3, "it was asked until it gave up");
            // It is behind the position that `b` left, so it passes that position.
            assert!(c.acquire_unless(|| true).expect("nothing was leaked").is_none());
            drop(held);
            drop(c.acquire_unless(|| true).expect("nothing was leaked").expect("nobody is inside"));
            drop(b.acquire_unless(|| true).expect("nothing was leaked").expect("nobody is inside"));
        }
    }

    /// Its node is still in the queue. The next process that joins gets it.
    #[test]
    fn a_process_that_withdrew_may_leave_for_good() {
        let lock = Mutual::<JayantiJayanti>::new(0).expect("it serves any number");
        let join = || lock.process().expect("it serves any number");
        let (mut a, mut b) = (join(), join());
        let held = a.acquire().expect("nothing was leaked");
        assert!(b.acquire_unless(|| true).expect("nothing was leaked").is_none());
        drop(b);
        let (mut c, mut d) = (join(), join());
        drop(held);
        for _ in 0..3 {
            drop(d.acquire_unless(|| true).expect("nothing was leaked").expect("nobody is inside"));
            drop(c.acquire_unless(|| true).expect("nothing was leaked").expect("nobody is inside"));
        }
    }

    /// Without monitors: the sanitizer and miri must not check them.
    #[test]
    #[cfg(not(any(miri, tsan)))]
    fn storms() {
        const REQUESTS: usize = 3_200;
        for threads in [2, 8, 32] {
            let (passages, seed) = (REQUESTS / threads, threads as u64);
            let workout = Workout { threads, sessions: 1, passages, seed, ..Workout::default() };
            let report = workout.withdrawing_mutex::<JayantiJayanti<Watched>>();
            let report = report.unwrap_or_else(|violation| panic!("{violation}"));
            println!("{threads} threads: {report}");
            assert_eq!(report.entries + report.given_up, REQUESTS);
            assert_eq!(report.most_inside, 1);
            assert!(report.given_up > 0, "nobody gave up: {report}");
        }
    }
}

mod handover_withdraw {
    use super::*;
    use grouplock_algorithms::handover_withdraw::HandoverWithdraw;

    #[test]
    fn a_waiter_withdraws_and_comes_back() {
        withdraws_and_comes_back::<HandoverWithdraw>();
        withdraws_and_comes_back::<
            HandoverWithdraw<Native, locks::dvir_taubenfeld_2::DvirTaubenfeld2>,
        >();
    }

    /// Without monitors: the sanitizer and miri must not check them.
    #[test]
    #[cfg(not(any(miri, tsan)))]
    fn storms() {
        for (threads, sessions) in [(2, 2), (8, 1), (8, 2), (8, 7), (32, 2), (32, 7)] {
            let report = storm::<HandoverWithdraw<Watched>>(threads, sessions);
            assert!(sessions == 1 || report.given_up > 0, "nobody gave up: {report}");
        }
    }

    /// A late process has swapped itself into `Tail` (line 2). It stops there until all processes
    /// before it except the first have withdrawn. It passes their nodes, enters, and returns the
    /// nodes. So there is one more node for each node that it passes, and no more in later rounds.
    #[test]
    fn a_late_process_brings_back_the_nodes_that_it_passed() {
        const PROCESSES: usize = 4;
        let lock = Group::<HandoverWithdraw<Stops>, Stops>::new(PROCESSES);
        let lock = lock.expect("a few are always possible");
        let join = || lock.process().expect("there is room");
        let (mut a, mut b, mut c, mut late) = (join(), join(), join(), join());
        assert_eq!(lock.raw().nodes(), 2 * PROCESSES);
        for (both, passed) in [(false, 1), (true, 2), (false, 2), (true, 2), (true, 2)] {
            std::thread::scope(|scope| {
                let (stops, stopped) = mpsc::channel();
                let (go_on, may_go_on) = mpsc::channel();
                let (enters, entered) = mpsc::channel();
                let late = &mut late;
                let inside = a.enter(1).expect("nothing was leaked");
                let come_late = || {
                    scope.spawn(move || {
                        AFTER_DOORWAY.set(Some((stops, may_go_on)));
                        let inside = late.enter(3).expect("nothing was leaked");
                        enters.send(()).expect("the test waits for this");
                        drop(inside);
                    });
                    stopped.recv_timeout(LATE).expect("it ends its doorway");
                };
                // `b` waits behind `a`, and `c` behind `b`. `c` sees the late process arrive and
                // withdraws. Then `b` withdraws.
                let mut come_late = Some(come_late);
                let given_up = b.enter_unless(2, || {
                    let mut come_late = || come_late.take().expect("asked once")();
                    if both {
                        let given_up = c.enter_unless(4, || {
                            come_late();
                            true
                        });
                        assert!(given_up.expect("nothing was leaked").is_none());
                    } else {
                        come_late();
                    }
                    true
                });
                assert!(given_up.expect("nothing was leaked").is_none());
                assert_eq!(lock.raw().nodes(), 2 * PROCESSES + passed, "FORWARD was not used");
                go_on.send(()).expect("it waits for this");
                drop(inside);
                entered.recv_timeout(LATE).expect("it gets in");
            });
        }
    }
}
