//! What each policy guarantees, one test each, in real time. (`tests/reference` checks the same guarantees over random programs, without a clock.)
//!
//! Each scenario is also run with a policy that does not give the guarantee, and must show it: so it is the policy that passes the test.
#![cfg(not(any(loom, shuttle)))]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Woken, pending, poll, poll_with, ready};
use grouplock::cores::{Cancellable, Striped};
use grouplock::{GroupLock, Policy};

const PATIENCE: Duration = Duration::from_millis(30);
const PATIENT: Policy = Policy::Eventual { patience: PATIENCE };
const NEVER: Policy = Policy::Eventual { patience: Duration::MAX };

/// Two threads relay each other in session 1 so that the room is never empty, for as long as they are let in, and at most until `stop`. For each
/// of their entries, when it was asked for.
fn relay<C: Cancellable<Session = u8> + Sync>(
    lock: &GroupLock<u8, (), C>,
    stop: &AtomicBool,
) -> Vec<Instant> {
    let mut entries = Vec::new();
    let mut inside = lock.enter(1);
    while !stop.load(Ordering::SeqCst) {
        let asked = Instant::now();
        // The next is inside before the last one leaves.
        let Some(next) = lock.try_enter(1) else { break };
        entries.push(asked);
        inside = next;
        thread::yield_now();
    }
    drop(inside);
    entries
}

/// A thread waits for session 2 against the relay. When it began to wait at the latest, whether and when it entered, and the relay's entries.
fn thread_against_relay<C: Cancellable<Session = u8> + Sync>(
    lock: &GroupLock<u8, (), C>,
    longest: Duration,
) -> (Instant, Option<Instant>, Vec<Instant>) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay(lock, &stop));
        while lock.snapshot().holders == 0 {
            thread::yield_now();
        }
        let waiting = scope.spawn(|| {
            let inside = lock.try_enter_for(2, longest);
            let entered = inside.as_ref().map(|_| Instant::now());
            stop.store(true, Ordering::SeqCst);
            entered
        });
        while lock.snapshot().waiting.is_empty() && !waiting.is_finished() {
            thread::yield_now();
        }
        let began = Instant::now();
        let entered = waiting.join().expect("it does not panic");
        (began, entered, relay.join().expect("it does not panic"))
    })
}

/// The time a thread may take to wake up on a busy machine.
const SLACK: Duration = Duration::from_millis(300);

fn eventual_for_a_thread<C: Cancellable<Session = u8> + Sync>(lock: &GroupLock<u8, (), C>) {
    let (began, entered, relayed) = thread_against_relay(lock, Duration::from_secs(10));
    let entered = entered.expect("patience has an end");
    let late = relayed.iter().filter(|asked| **asked > began + PATIENCE + SLACK).count();
    assert_eq!(
        late,
        0,
        "overtaken after its patience was over; it entered after {:?}",
        entered - began
    );
    assert!(relayed.iter().any(|asked| *asked > began), "it was not overtaken at all");
}

#[test]
fn eventual_no_thread_is_overtaken_for_longer_than_its_patience() {
    eventual_for_a_thread(&GroupLock::with_policy(PATIENT, ()));
    eventual_for_a_thread(&GroupLock::over(Striped::new(PATIENT), ()));
    // Without a bound, it would have been overtaken for ever.
    let unbounded = GroupLock::with_policy(NEVER, ());
    let (began, entered, relayed) = thread_against_relay(&unbounded, 2 * (PATIENCE + SLACK));
    assert_eq!(entered, None, "the relay left the room empty");
    assert!(relayed.iter().any(|asked| *asked > began + PATIENCE + SLACK));
}

/// A task waits for session 2 while session 1 is inside without a gap. Of those who ask for session 1, whether one who asks before its patience
/// is over gets in, and whether one who asks later does.
fn task_against_relay<C: Cancellable<Session = u8>>(lock: &GroupLock<u8, (), C>) -> (bool, bool) {
    let mut inside = lock.enter(1);
    let mut waiting = lock.enter_async(2);
    pending(&mut waiting);
    let began = Instant::now();
    let mut early = false;
    let late = loop {
        let asked = Instant::now();
        let next = lock.try_enter(1);
        if asked >= began + PATIENCE {
            break next.is_some();
        }
        if let Some(next) = next {
            early = true;
            inside = next;
        }
    };
    drop(inside);
    assert!(late || poll(&mut waiting).is_ready(), "the room is empty, and its turn has come");
    (early, late)
}

#[test]
fn eventual_no_task_is_overtaken_after_its_patience() {
    // Overtaken in the beginning, and not any more at the very moment at which patience is over: those who arrive look at the clock.
    assert_eq!(task_against_relay(&GroupLock::with_policy(PATIENT, ())), (true, false));
    assert_eq!(task_against_relay(&GroupLock::over(Striped::new(PATIENT), ())), (true, false));
    assert_eq!(task_against_relay(&GroupLock::with_policy(NEVER, ())), (true, true));
    assert_eq!(task_against_relay(&GroupLock::with_policy(Policy::Fifo, ())), (false, false));
}

/// Whoever has lost patience is not overtaken in the queue either.
#[test]
fn eventual_nobody_joins_a_phase_before_one_who_has_lost_patience() {
    let lock = GroupLock::with_policy(PATIENT, ());
    let inside = lock.exclusive();
    let (mut one, mut two) = (lock.enter_async(1), lock.enter_async(2));
    pending(&mut one);
    pending(&mut two);
    let mut early = lock.enter_async(1);
    pending(&mut early);
    thread::sleep(PATIENCE);
    let mut late = lock.enter_async(1);
    pending(&mut late);
    let order: Vec<_> = lock.snapshot().waiting.iter().map(|w| (w.session, w.waiters)).collect();
    assert_eq!(order, [(Some(1), 2), (Some(2), 1), (Some(1), 1)]);
    drop(inside);
    drop((ready(&mut one), ready(&mut early)));
    drop(ready(&mut two));
    drop(ready(&mut late));
}

/// The order in which five requests get in, whose arrival was 1, 2, 1, 2, exclusive, behind a holder of 1: as a list of those who are inside together.
fn order_of_entry(lock: &GroupLock<u8, ()>) -> Vec<Vec<usize>> {
    let inside = lock.enter(1);
    let mut requests: Vec<_> = [2, 1, 2, 1].map(|session| lock.enter_async(session)).into();
    let mut alone = lock.exclusive_async();
    let mut guards: Vec<Option<_>> = requests
        .iter_mut()
        .map(|request| match poll(request) {
            std::task::Poll::Ready(guard) => Some(guard),
            std::task::Poll::Pending => None,
        })
        .collect();
    pending(&mut alone);
    let first: Vec<usize> = (0..4).filter(|i| guards[*i].is_some()).collect();
    let mut order = vec![first];
    drop(inside);
    guards.clear();
    let mut left: Vec<usize> = (0..4).filter(|i| !order[0].contains(i)).collect();
    let mut alone_left = true;
    while !left.is_empty() || alone_left {
        let mut entered = Vec::new();
        let mut held = Vec::new();
        left.retain(|i| match poll(&mut requests[*i]) {
            std::task::Poll::Ready(guard) => {
                entered.push(*i);
                held.push(guard);
                false
            }
            std::task::Poll::Pending => true,
        });
        if alone_left && let std::task::Poll::Ready(guard) = poll(&mut alone) {
            assert!(entered.is_empty(), "alone, but with {entered:?}");
            entered.push(4);
            alone_left = false;
            drop(guard);
        }
        assert!(!entered.is_empty(), "nobody gets in: {:?}", lock.snapshot());
        order.push(entered);
    }
    order
}

#[test]
fn fifo_serves_conflicting_requests_in_the_order_of_arrival() {
    let fifo = order_of_entry(&GroupLock::with_policy(Policy::Fifo, ()));
    assert_eq!(fifo, [vec![], vec![0], vec![1], vec![2], vec![3], vec![4]]);
    let unbounded = order_of_entry(&GroupLock::with_policy(NEVER, ()));
    assert_eq!(unbounded, [vec![1, 3], vec![0, 2], vec![4]]);
}

#[test]
fn fifo_lets_those_of_a_session_in_together() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let inside = lock.enter(1);
    let (one, waker_of_one) = Woken::new();
    let (two, waker_of_two) = Woken::new();
    let mut requests = [lock.enter_async(2), lock.enter_async(2)];
    assert!(poll_with(&mut requests[0], &waker_of_one).is_pending());
    assert!(poll_with(&mut requests[1], &waker_of_two).is_pending());
    drop(inside);
    assert_eq!((one.times(), two.times()), (1, 1));
    let guards = requests.each_mut().map(ready);
    assert_eq!(lock.snapshot().holders, 2);
    drop(guards);
}

/// How many of `tries` requests for the session inside get in past one who waits.
fn overtakers<C: Cancellable<Session = u8>>(lock: &GroupLock<u8, (), C>, tries: usize) -> usize {
    let _inside = lock.enter(1);
    let mut waiting = lock.enter_async(2);
    pending(&mut waiting);
    (0..tries).filter(|_| lock.try_enter(1).is_some()).count()
}

#[test]
fn batch_a_waiter_is_overtaken_by_as_many_as_the_bound_says() {
    for passes in [0, 1, 7, 100] {
        let policy = Policy::Batch { passes };
        assert_eq!(overtakers(&GroupLock::with_policy(policy, ()), 200), passes as usize);
        assert_eq!(overtakers(&GroupLock::over(Striped::new(policy), ()), 200), passes as usize);
    }
    assert_eq!(overtakers(&GroupLock::with_policy(NEVER, ()), 200), 200);
    assert_eq!(overtakers(&GroupLock::with_policy(Policy::Fifo, ()), 200), 0);
}

#[test]
fn batch_those_who_wait_for_a_session_enter_together_within_the_bound() {
    // One behind a bound of one: the second fellow of session 1 may pass session 2, a third may not.
    let lock = GroupLock::with_policy(Policy::Batch { passes: 1 }, ());
    let inside = lock.exclusive();
    let mut requests: Vec<_> = [1, 2, 1, 1].map(|session| lock.enter_async(session)).into();
    requests.iter_mut().for_each(pending);
    let order: Vec<_> = lock.snapshot().waiting.iter().map(|w| (w.session, w.waiters)).collect();
    assert_eq!(order, [(Some(1), 2), (Some(2), 1), (Some(1), 1)]);
    drop(inside);
    // The session that has waited longest is inside.
    assert_eq!(lock.snapshot().session, Some(1));
    drop(requests);
    // With a larger bound, all of them.
    let batch = order_of_entry(&GroupLock::with_policy(Policy::Batch { passes: 10 }, ()));
    assert_eq!(batch, [vec![1, 3], vec![0, 2], vec![4]]);
}

const AGING: Duration = Duration::from_millis(40);

/// Session 0 has waited for `age` when session 2, two priorities higher, asks. Whether that goes first.
fn is_overtaken_at(age: Duration, aging: Duration) -> bool {
    let lock =
        GroupLock::with_priorities(aging, |s: Option<&u8>| s.map_or(0, |s| u32::from(*s)), ());
    let inside = lock.exclusive();
    let mut low = lock.enter_async(0);
    pending(&mut low);
    thread::sleep(age);
    let mut high = lock.enter_async(2);
    pending(&mut high);
    drop(inside);
    match (poll(&mut low).is_ready(), poll(&mut high).is_ready()) {
        (true, false) => false,
        (false, true) => true,
        both => panic!("conflicting requests, and those inside are {both:?}"),
    }
}

#[test]
fn priority_is_made_up_for_by_age() {
    // Two priorities are worth 80 ms. (If the machine is so slow that the first took 80 ms, the test says nothing; so several times.)
    let overtaken = (0..5).any(|_| is_overtaken_at(Duration::from_millis(1), AGING));
    assert!(overtaken, "a higher priority that comes soon goes first");
    assert!(!is_overtaken_at(2 * AGING, AGING), "age has made up for the difference");
    // With priorities that age never makes up for, it is overtaken at any age; without priorities, at none.
    assert!(is_overtaken_at(2 * AGING, Duration::MAX));
    assert!(!is_overtaken_at(Duration::from_millis(1), Duration::ZERO));
}

#[test]
fn priority_between_equals_is_first_come_first_served() {
    let fifo = order_of_entry(&GroupLock::with_policy(Policy::Priority { aging: AGING }, ()));
    assert_eq!(fifo, [vec![], vec![0], vec![1], vec![2], vec![3], vec![4]]);
}

#[test]
fn priority_higher_newcomers_join_the_session_inside_and_lower_ones_do_not() {
    let enters = |inside: u8, waiting: u8| {
        let lock = GroupLock::with_priorities(
            Duration::MAX,
            |s: Option<&u8>| s.map_or(0, |s| u32::from(*s)),
            (),
        );
        let _guard = lock.enter(inside);
        let mut request = lock.enter_async(waiting);
        pending(&mut request);
        lock.try_enter(inside).is_some()
    };
    assert!(enters(2, 1));
    assert!(!enters(1, 2));
    assert!(!enters(1, 0) || enters(2, 0));
}

/// Somebody who switches does not go before those who wait already, and goes before those who come later.
#[test]
fn switching_takes_the_last_place_and_keeps_it() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let mut guard = lock.enter(1);
    let mut before = lock.enter_async(2);
    pending(&mut before);
    thread::scope(|scope| {
        let switched = scope.spawn(|| {
            guard.switch(3);
            let seen = lock.snapshot();
            drop(guard);
            seen
        });
        while lock.snapshot().session != Some(2) {
            thread::yield_now();
        }
        let mut after = lock.enter_async(4);
        pending(&mut after);
        drop(ready(&mut before));
        let seen = switched.join().expect("it does not panic");
        assert_eq!((seen.session, seen.waiting.len()), (Some(3), 1));
        drop(ready(&mut after));
    });
}
