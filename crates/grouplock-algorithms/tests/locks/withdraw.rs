//! Requests that are given up, on real threads.

use grouplock_algorithms as locks;
use grouplock_algorithms::Group;
use grouplock_algorithms::memory::Native;
use grouplock_algorithms::monitor::{Report, Watched, Workout};
use grouplock_algorithms::raw::WithdrawGroup;

/// Half of the requests are given up if they have to wait. Mutual exclusion, first come first served among the others, nobody left behind.
fn storm<G: WithdrawGroup<Watched> + 'static>(threads: usize, sessions: u64) -> Report {
    const REQUESTS: usize = 3_200;
    let (passages, seed) = (REQUESTS / threads, threads as u64 * 10 + sessions);
    let workout = Workout { threads, sessions, passages, seed, ..Workout::default() };
    let report = workout.withdrawing::<G>().unwrap_or_else(|violation| panic!("{violation}"));
    println!("{threads} threads, {sessions} sessions: {report}");
    assert_eq!(report.entries + report.given_up, REQUESTS);
    report
}

/// A process that would have to wait gives up, and neither it nor anybody else is held up by that.
fn gives_up_and_comes_back<G: WithdrawGroup<Native>>() {
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
        // The gap that it left behind is closed.
        drop(c.enter_unless(1, || true).expect("nothing was leaked").expect("nobody waits"));
        drop(inside);
        drop(b.enter_unless(2, || true).expect("nothing was leaked").expect("nobody is inside"));
    }
}

mod handover_withdraw {
    use super::*;
    use grouplock_algorithms::handover_withdraw::HandoverWithdraw;

    #[test]
    fn a_waiter_gives_up_and_comes_back() {
        gives_up_and_comes_back::<HandoverWithdraw>();
        gives_up_and_comes_back::<
            HandoverWithdraw<Native, locks::dvir_taubenfeld_2::DvirTaubenfeld2>,
        >();
    }

    /// The monitors are no part of what the sanitizer and miri look at.
    #[test]
    #[cfg(not(any(miri, tsan)))]
    fn storms() {
        for (threads, sessions) in [(2, 2), (8, 1), (8, 2), (8, 7), (32, 2), (32, 7)] {
            let report = storm::<HandoverWithdraw<Watched>>(threads, sessions);
            assert!(sessions == 1 || report.given_up > 0, "nobody gave up: {report}");
        }
    }

    /// Nodes that late processes hold come back: there are never more than two for each process and N(N-1)/2 beside.
    #[test]
    fn nodes_do_not_leak() {
        const THREADS: usize = if cfg!(miri) { 3 } else { 4 };
        const REQUESTS: usize = if cfg!(miri) { 20 } else { 5_000 };
        let lock = Group::<HandoverWithdraw>::new(THREADS).expect("a few are always possible");
        std::thread::scope(|scope| {
            for t in 0..THREADS {
                let mut process = lock.process().expect("there is room for all");
                scope.spawn(move || {
                    for request in 0..REQUESTS {
                        let session = ((t + request) % 3 + 1) as u64;
                        let waits = request % 2 == 0;
                        drop(process.enter_unless(session, || !waits).expect("nothing was leaked"));
                    }
                });
            }
        });
        let nodes = lock.raw().nodes();
        println!("{nodes} nodes");
        assert!(nodes >= 2 * THREADS);
        assert!(nodes <= 2 * THREADS + THREADS * (THREADS - 1) / 2, "{nodes} nodes");
    }
}
