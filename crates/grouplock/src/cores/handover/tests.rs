//! What cannot be seen from outside: how many nodes and seats there are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::{Core, Handover, Pass};

const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };

/// At most two for each seat, those that late requests may hold, and one for each that they may hold because the session was changed before them.
#[track_caller]
fn assert_bounded(core: &Handover<u32>, most_seats: usize) {
    let (nodes, seats) = (core.algorithm.nodes(), core.seats.count());
    assert!(seats <= most_seats, "{seats} seats, for {most_seats} requests at once");
    let most = 2 * seats + seats * seats.saturating_sub(1) / 2 + seats + 1;
    assert!(nodes <= most, "{nodes} nodes, for {seats} seats");
}

fn ask(core: &Handover<u32>, session: Option<u32>) -> Result<Pass<u32>, super::Waiting<u32>> {
    let mut waiting = None;
    let mut cx = Context::from_waker(Waker::noop());
    match core.poll_enter(session.as_ref(), &mut waiting, &mut cx) {
        Poll::Ready(pass) => Ok(pass),
        Poll::Pending => Err(waiting.expect("it waits")),
    }
}

/// One thread: no request is ever late, so nodes are used again and again.
#[test]
fn what_is_given_up_or_changed_leaves_nothing_behind() {
    let core = Handover::<u32>::new();
    for round in 0..ROUNDS {
        let mut alone = core.enter(None);
        let first = ask(&core, Some(1)).expect_err("another is inside");
        let between = ask(&core, Some(2)).expect_err("another is inside");
        let second = ask(&core, Some(1)).expect_err("another is inside");
        core.cancel(between, false);
        // SAFETY: the pass is alone.
        unsafe { core.downgrade(&mut alone, 1) };
        core.cancel(first, false);
        core.cancel(second, false);
        // SAFETY: the pass is inside a session.
        assert!(unsafe { core.try_switch(&mut alone, round) });
        // SAFETY: as above.
        let mut again = unsafe { core.again(&alone) };
        // SAFETY: the pass is inside, and is not used any more.
        unsafe { core.leave(&mut alone) };
        // SAFETY: as above.
        unsafe { core.leave(&mut again) };
    }
    assert_eq!(core.seats.count(), 4, "one inside and three who wait");
    // Two for each seat, and one that the change of session takes.
    assert_eq!(core.algorithm.nodes(), 9);
}

/// Half of the requests are given up, by threads and as tasks would; then there are no more nodes and seats than the requests need.
#[test]
fn a_storm_of_requests_that_are_given_up_needs_a_bounded_number_of_nodes() {
    const THREADS: u64 = 6;
    let core = Arc::new(Handover::<u32>::new());
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let core = Arc::clone(&core);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..ROUNDS {
                    let session = (random.u8(..4) > 0).then(|| random.u32(..3));
                    let pass = match random.u8(..4) {
                        0 => Some(core.enter(session)),
                        1 => core.try_enter(session),
                        2 => {
                            let time = Duration::from_micros(random.u64(..50));
                            core.enter_until(session, Instant::now() + time)
                        }
                        _ => ask(&core, session)
                            .map_err(|waiting| core.cancel(waiting, session.is_none()))
                            .ok(),
                    };
                    let Some(mut pass) = pass else { continue };
                    if session.is_none() && random.bool() {
                        // SAFETY: the pass is alone.
                        unsafe { core.downgrade(&mut pass, random.u32(..3)) };
                    }
                    // SAFETY: the pass is inside, and is not used any more.
                    unsafe { core.leave(&mut pass) };
                }
            });
        }
    });
    assert_bounded(&core, THREADS as usize);
    let seen = core.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
}

/// Each attempt fails, and counts nothing: else the count would come round some day, and the stay end under its guards.
#[test]
fn a_stay_has_too_many_guards_for_good() {
    const MOST: u32 = u32::MAX / 2;
    let core = Handover::<u32>::new();
    let pass = core.enter(Some(1));
    let seat = pass.seat.expect("it is inside");
    seat.has_guards(MOST);
    for _ in 0..2 {
        // SAFETY: the pass is inside a session.
        let again = catch_unwind(AssertUnwindSafe(|| unsafe { core.again(&pass) }));
        assert!(again.is_err());
        assert_eq!(core.snapshot().holders, MOST as usize);
    }
}
