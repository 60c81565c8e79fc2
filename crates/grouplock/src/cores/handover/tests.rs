//! What a user of the lock cannot see: the number of nodes and records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::{Core, Handover, Pass};

const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };

/// At most two nodes for each record, those that late requests may hold, and one for each that they
/// may hold because the session was changed before them.
#[track_caller]
fn assert_bounded(core: &Handover<u32>, most_records: usize) {
    let (nodes, records) = (core.algorithm.nodes(), core.pool.count());
    assert!(records <= most_records, "{records} records, for {most_records} concurrent requests");
    let most = 2 * records + records * records.saturating_sub(1) / 2 + records + 1;
    assert!(nodes <= most, "{nodes} nodes, for {records} records");
}

fn ask(core: &Handover<u32>, session: Option<u32>) -> Result<Pass<u32>, super::Waiting<u32>> {
    let mut waiting = None;
    let mut cx = Context::from_waker(Waker::noop());
    match core.poll_enter(session.as_ref(), &mut waiting, &mut cx) {
        Poll::Ready(pass) => Ok(pass),
        Poll::Pending => Err(waiting.expect("it waits")),
    }
}

/// With one thread no request is late, so nodes are used again and again.
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
    assert_eq!(core.pool.count(), 4, "one inside and three waiters");
    // Two for each record, and one that the change of session needs.
    assert_eq!(core.algorithm.nodes(), 9);
}

/// Threads withdraw half of the requests, some in the way of tasks. Afterwards there are no more
/// nodes and records than the requests need.
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

/// Each attempt fails and counts nothing. Otherwise the count would overflow after many attempts,
/// and the holding would end while its guards exist.
#[test]
fn a_stay_has_too_many_guards_for_good() {
    const MOST: u32 = u32::MAX / 2;
    let core = Handover::<u32>::new();
    let pass = core.enter(Some(1));
    let record = pass.record.expect("it is inside");
    record.set_guards(MOST);
    for _ in 0..2 {
        // SAFETY: the pass is inside a session.
        let again = catch_unwind(AssertUnwindSafe(|| unsafe { core.again(&pass) }));
        assert!(again.is_err());
        assert_eq!(core.snapshot().holders, MOST as usize);
    }
}
