//! The guarantee of each policy, in real time, one test each. (`reference` checks the same
//! guarantees over random programs, without a clock.)
//!
//! Each scenario also runs with a policy that does not give the guarantee, and must show that. So
//! the policy passes the test, and not chance.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    LATE, SetWhenDropped, Woken, pending, poll, poll_with, ready, try_again, wait_until,
};
use grouplock::cores::{Core, Phases, Striped};
use grouplock::{GroupLock, Policy, SessionGuard};

const PATIENCE: Duration = Duration::from_millis(30);
const PATIENT: Policy = Policy::Eventual { patience: PATIENCE };
const NEVER: Policy = Policy::Eventual { patience: Duration::MAX };

/// The time that a thread may need to wake up.
const SLACK: Duration = Duration::from_millis(300);

/// The result for a thread that waits for session 2 while session 1 is inside without a gap.
struct Relayed {
    /// Whether requests for session 1 entered that arrived after the patience was over, plus some
    /// slack.
    for_too_long: bool,
    /// Whether requests entered that arrived while the thread waited.
    at_all: bool,
    /// How long after the arrival of the thread the first request for session 1 was refused, if one
    /// was.
    refused: Option<Duration>,
}

/// What the threads share while session 1 is inside without a gap.
#[derive(Default)]
struct Told {
    /// The arrival of the last request that entered.
    entered: Mutex<Option<Instant>>,
    /// A time at which the thread waits.
    waits: OnceLock<Instant>,
}

/// Takes one guard of session 1 after the other, each before the last is dropped, so that the room
/// is never empty. Ends when a guard is refused, or at `stop`. Returns the time of the refusal, if
/// there was one.
///
/// This function itself checks whether the thread waits: a try that meets a snapshot of another
/// thread at the internal lock is also refused.
fn relay<C: Core<Session = u8> + Sync>(
    lock: &GroupLock<u8, (), C>,
    stop: &AtomicBool,
    told: &Told,
) -> Option<Instant> {
    let mut inside = lock.enter(1);
    while !stop.load(Ordering::SeqCst) {
        let asked = Instant::now();
        let Some(next) = lock.try_enter(1) else { return Some(Instant::now()) };
        *told.entered.lock().expect("no thread panics") = Some(asked);
        inside = next;
        if told.waits.get().is_none() && !lock.snapshot().waiting.is_empty() {
            told.waits.get_or_init(Instant::now);
        }
        thread::yield_now();
    }
    drop(inside);
    None
}

fn thread_against_relay<C: Core<Session = u8> + Sync>(lock: &GroupLock<u8, (), C>) -> Relayed {
    let (stop, told) = (AtomicBool::new(false), Told::default());
    let last_entered = || *told.entered.lock().expect("no thread panics");
    thread::scope(|scope| {
        let stop_relay = SetWhenDropped(&stop);
        let relay = scope.spawn(|| relay(lock, &stop, &told));
        wait_until("session 1 is inside", || last_entered().is_some());
        let came = Instant::now();
        let waiting = scope.spawn(|| lock.try_enter_for(2, LATE).is_some());
        wait_until("the thread waits, or did", || {
            told.waits.get().is_some() || relay.is_finished()
        });
        let waits = *told.waits.get_or_init(Instant::now);
        let later_than = |time| last_entered().is_some_and(|asked| asked > time);
        wait_until("one of session 1 is refused, or should have been", || {
            relay.is_finished() || later_than(waits + PATIENCE + SLACK)
        });
        drop(stop_relay);
        let refused = relay.join().expect("it does not panic");
        assert!(waiting.join().expect("it does not panic"), "the room is empty in the end");
        Relayed {
            for_too_long: later_than(waits + PATIENCE + SLACK),
            at_all: later_than(waits),
            refused: refused.map(|refused| refused - came),
        }
    })
}

fn eventual_for_a_thread<C: Core<Session = u8> + Sync>(new: impl Fn() -> C) {
    try_again("a thread was overtaken, but not for longer than its patience", || {
        let relayed = thread_against_relay(&GroupLock::over(new(), ()));
        let refused = relayed.refused;
        assert!(refused.is_none_or(|after| after >= PATIENCE), "too early: {refused:?}");
        // The thread itself turns the lock to strict order. If it did not get to run, the attempt
        // shows nothing.
        (relayed.at_all && !relayed.for_too_long && refused.is_some()).then_some(())
    });
}

#[test]
fn eventual_no_thread_is_overtaken_for_longer_than_its_patience() {
    eventual_for_a_thread(|| Phases::with_policy(PATIENT));
    eventual_for_a_thread(|| Striped::new(PATIENT));
    // Without a bound, it is overtaken forever.
    let relayed = thread_against_relay(&GroupLock::with_policy(NEVER, ()));
    assert!(relayed.for_too_long && relayed.refused.is_none());
}

/// A task waits for session 2 while session 1 is inside without a gap. Returns whether a request
/// for session 1 enters before the patience of the task is over, and whether a later one does.
/// Returns nothing if no request arrived early enough.
fn task_against_relay<C: Core<Session = u8>>(lock: &GroupLock<u8, (), C>) -> Option<(bool, bool)> {
    let mut inside = lock.enter(1);
    let mut waiting = lock.enter_async(2);
    let came = Instant::now();
    pending(&mut waiting);
    let waits = Instant::now();
    let mut early = None;
    let late = loop {
        let asked = Instant::now();
        let next = lock.try_enter(1);
        if asked >= waits + PATIENCE {
            break next.is_some();
        }
        if came.elapsed() < PATIENCE {
            early = early.or(Some(next.is_some()));
        }
        inside = next.unwrap_or(inside);
    };
    drop(inside);
    assert!(late || poll(&mut waiting).is_ready(), "the room is empty, and its turn has come");
    early.map(|early| (early, late))
}

#[test]
fn eventual_no_task_is_overtaken_after_its_patience() {
    fn check<C: Core<Session = u8>>(new: impl Fn() -> C, outcome: (bool, bool)) {
        let seen =
            try_again("one asked early enough", || task_against_relay(&GroupLock::over(new(), ())));
        assert_eq!(seen, outcome);
    }
    // The task is overtaken at first, and no longer when its patience is over: requests that arrive
    // read the clock.
    check(|| Phases::with_policy(PATIENT), (true, false));
    check(|| Striped::new(PATIENT), (true, false));
    check(|| Phases::with_policy(NEVER), (true, true));
    check(|| Phases::with_policy(Policy::Fifo), (false, false));
}

/// A request whose patience is over is not overtaken in the queue either.
#[test]
fn eventual_no_request_joins_a_phase_before_one_without_patience() {
    let lock = GroupLock::with_policy(PATIENT, ());
    try_again("the second of session 1 came early enough", || {
        let inside = lock.exclusive();
        let (mut one, mut two) = (lock.enter_async(1), lock.enter_async(2));
        pending(&mut one);
        let came = Instant::now();
        pending(&mut two);
        let mut early = lock.enter_async(1);
        pending(&mut early);
        if came.elapsed() >= PATIENCE {
            return None;
        }
        thread::sleep(PATIENCE);
        let mut late = lock.enter_async(1);
        pending(&mut late);
        let seen = lock.snapshot().waiting;
        let order: Vec<_> = seen.iter().map(|w| (w.session, w.waiters)).collect();
        assert_eq!(order, [(Some(1), 2), (Some(2), 1), (Some(1), 1)]);
        drop(inside);
        drop((ready(&mut one), ready(&mut early)));
        drop(ready(&mut two));
        drop(ready(&mut late));
        Some(())
    });
}

/// The order of five requests behind a holder of 1, which arrive as 1, 2, 1, 2, exclusive: a list
/// of those that are inside together.
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
        assert!(!entered.is_empty(), "no request enters: {:?}", lock.snapshot());
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

/// How many of `tries` requests for the session inside overtake a waiting request.
fn overtakers<C: Core<Session = u8>>(lock: &GroupLock<u8, (), C>, tries: usize) -> usize {
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
fn batch_waiters_for_a_session_enter_together_within_the_bound() {
    // With a bound of one, the second request for session 1 may overtake session 2, and a third may
    // not.
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
    // With a larger bound, all of them enter.
    let batch = order_of_entry(&GroupLock::with_policy(Policy::Batch { passes: 10 }, ()));
    assert_eq!(batch, [vec![1, 3], vec![0, 2], vec![4]]);
}

/// A thread waits for session 2. The calling thread enters and leaves session 1, so that the room
/// is often empty, until it is behind the other thread. Returns how often it entered `session`
/// before the other thread.
fn entries_past_a_thread(lock: &GroupLock<u8, ()>, session: u8, limit: usize) -> usize {
    let inside = lock.enter(1);
    let entered = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = lock.enter(2);
            entered.store(true, Ordering::SeqCst);
            drop(guard);
        });
        wait_until("the thread waits", || !lock.snapshot().waiting.is_empty());
        drop(inside);
        let mut entries = 0;
        while entries < limit && !entered.load(Ordering::SeqCst) {
            let Some(guard) = lock.try_enter(session) else { break };
            // If the other thread has already left, this was no overtaking.
            if lock.snapshot().waiting.is_empty() {
                break;
            }
            entries += 1;
            drop(guard);
        }
        entries
    })
}

#[test]
fn batch_the_last_session_is_preferred_in_an_empty_room_within_the_bound() {
    let batch = |passes| GroupLock::with_policy(Policy::Batch { passes }, ());
    let most = |passes, session| {
        (0..50).map(|_| entries_past_a_thread(&batch(passes), session, 1000)).max()
    };
    // The thread is woken when the room becomes empty. Until it arrives, session 1 may enter as
    // often as the bound says …
    try_again("session 1 entered as often as the bound says", || {
        let seen = most(3, 1);
        assert!(seen <= Some(3), "{seen:?}");
        (seen == Some(3)).then_some(())
    });
    assert_eq!(most(0, 1), Some(0));
    // … and no other session may, because that would be one more change of session.
    assert_eq!(most(1000, 3), Some(0));
    // Without a bound, session 1 enters more often.
    try_again("session 1 entered more often without a bound", || {
        let lock = GroupLock::with_policy(NEVER, ());
        (entries_past_a_thread(&lock, 1, 1000) > 3).then_some(())
    });
}

/// A holder that switches asks for a session that is not inside, even if the holder is the only one.
#[test]
fn batch_a_switch_to_another_session_overtakes_nobody() {
    for policy in [Policy::Batch { passes: 100 }, Policy::BatchFor { wait: Duration::MAX }] {
        let lock = GroupLock::with_policy(policy, ());
        let mut guard = lock.enter(1);
        let mut waiting = lock.enter_async(2);
        pending(&mut waiting);
        assert!(!SessionGuard::try_switch(&mut guard, 3), "{policy:?}");
        drop(guard);
        drop(ready(&mut waiting));
    }
}

#[test]
fn batch_for_only_the_session_inside_overtakes_and_only_for_so_long() {
    let wait = Policy::BatchFor { wait: PATIENCE };
    // A task is overtaken at first, and no longer when its time is over.
    let against = |policy| {
        try_again("one asked early enough", || {
            task_against_relay(&GroupLock::<u8, (), _>::over(Phases::with_policy(policy), ()))
        })
    };
    assert_eq!(against(wait), (true, false));
    assert_eq!(against(Policy::BatchFor { wait: Duration::MAX }), (true, true));
    assert_eq!(against(Policy::BatchFor { wait: Duration::ZERO }), (false, false));
    // A thread is overtaken at first, too.
    eventual_for_a_thread(|| Phases::with_policy(wait));
    // Another session does not overtake at all, unlike under `Eventual`.
    let others = |policy| {
        (0..50)
            .map(|_| entries_past_a_thread(&GroupLock::with_policy(policy, ()), 3, 9))
            .sum::<usize>()
    };
    let forever = Policy::BatchFor { wait: Duration::MAX };
    assert_eq!(others(forever), 0);
    try_again("another session overtook", || (others(NEVER) > 0).then_some(()));
}

const AGING: Duration = Duration::from_millis(40);

/// Session 0 has waited for `age`, or somewhat longer, when a request for session 2 arrives, which
/// has a priority higher by two. Returns whether that one enters first, and an upper bound of the
/// age.
fn is_overtaken_at(age: Duration, aging: Duration) -> (bool, Duration) {
    let lock =
        GroupLock::with_priorities(aging, |s: Option<&u8>| s.map_or(0, |s| u32::from(*s)), ());
    let inside = lock.exclusive();
    let came = Instant::now();
    let mut low = lock.enter_async(0);
    pending(&mut low);
    thread::sleep(age);
    let mut high = lock.enter_async(2);
    pending(&mut high);
    let at_most = came.elapsed();
    drop(inside);
    match (poll(&mut low).is_ready(), poll(&mut high).is_ready()) {
        (true, false) => (false, at_most),
        (false, true) => (true, at_most),
        both => panic!("conflicting requests, and those inside are {both:?}"),
    }
}

#[test]
fn priority_is_made_up_for_by_age() {
    // Two steps of priority are worth 80 ms.
    let overtaken = try_again("the higher priority came within 80 ms", || {
        let (overtaken, age) = is_overtaken_at(Duration::ZERO, AGING);
        (age < 2 * AGING).then_some(overtaken)
    });
    assert!(overtaken, "a higher priority that comes soon goes first");
    assert!(!is_overtaken_at(2 * AGING, AGING).0, "age has made up for the difference");
    // With absolute priorities it is overtaken at any age. Without priorities it is never
    // overtaken.
    assert!(is_overtaken_at(2 * AGING, Duration::MAX).0);
    assert!(!is_overtaken_at(Duration::from_millis(1), Duration::ZERO).0);
}

#[test]
fn priority_between_equals_is_first_come_first_served() {
    let fifo = order_of_entry(&GroupLock::with_priorities(AGING, |_| 7, ()));
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

/// A holder that switches enters after requests that wait already, and before later requests.
#[test]
fn switching_takes_the_last_place_and_keeps_it() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let mut guard = lock.enter(1);
    let mut before = lock.enter_async(2);
    pending(&mut before);
    thread::scope(|scope| {
        let switched = scope.spawn(|| {
            SessionGuard::switch(&mut guard, 3);
            let seen = lock.snapshot();
            drop(guard);
            seen
        });
        wait_until("the one before has the room", || lock.snapshot().session == Some(2));
        let mut after = lock.enter_async(4);
        pending(&mut after);
        drop(ready(&mut before));
        let seen = switched.join().expect("it does not panic");
        assert_eq!((seen.session, seen.waiting.len()), (Some(3), 1));
        drop(ready(&mut after));
    });
}
