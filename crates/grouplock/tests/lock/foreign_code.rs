//! The lock runs foreign code: comparisons, clones and destructors of sessions, and wakers.
//! Whatever that code does, the lock stays usable, and no request stays counted or queued.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    FAVOURED, SetWhenDropped, Woken, pending, poll, poll_with, ready, wait_until, waiters,
};
use grouplock::cores::{Core, Striped};
use grouplock::{GroupLock, Policy, SessionGuard};

thread_local! {
    /// After how many steps of foreign code this thread panics. Negative: never.
    static FUSE: Cell<i32> = const { Cell::new(-1) };
}

/// Counts a step, and panics at the last one.
fn burn() {
    let left = FUSE.get();
    FUSE.set(left - i32::from(left >= 0));
    assert!(left != 0, "foreign code panics, as planned");
}

/// A session whose comparison and clone panic when the fuse says so.
#[derive(Debug)]
struct Brittle(u8);

impl PartialEq for Brittle {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.0 == other.0
    }
}
impl Eq for Brittle {}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        burn();
        Brittle(self.0)
    }
}

/// Sets the fuse to `steps`, runs `deed`, and returns whether it panicked.
fn with_fuse(steps: i32, deed: impl FnOnce()) -> bool {
    FUSE.set(steps);
    let outcome = catch_unwind(AssertUnwindSafe(deed));
    let burnt = FUSE.get() < 0;
    FUSE.set(-1);
    assert!(outcome.is_ok() || burnt, "a panic that was not planned");
    burnt
}

/// All kinds of requests, from one thread.
fn deeds<C: Core<Session = Brittle>>(lock: &GroupLock<Brittle, (), C>) {
    drop(lock.enter(Brittle(1)));
    drop(lock.enter(Brittle(2)));
    drop(lock.exclusive());
    drop(grouplock::ExclusiveGuard::downgrade(lock.exclusive(), Brittle(3)));
    let mut inside = lock.enter(Brittle(1));
    drop(lock.try_enter(Brittle(1)));
    drop(lock.try_enter(Brittle(2)));
    drop(lock.try_enter_for(Brittle(2), Duration::from_nanos(1)));
    let mut two = lock.enter_async(Brittle(2));
    let mut again = lock.enter_async(Brittle(2));
    let mut one = lock.enter_async(Brittle(1));
    let mut alone = lock.exclusive_async();
    let given_up = poll(&mut two).is_pending();
    _ = poll(&mut again);
    _ = poll(&mut one);
    _ = poll(&mut alone);
    if given_up {
        drop(two);
    }
    drop((one, alone, again));
    SessionGuard::switch(&mut inside, Brittle(1));
    SessionGuard::switch(&mut inside, Brittle(2));
    drop(inside);
    // Enough entries for a striped lock to favour the session, and another session that ends the
    // favour.
    for _ in 0..70 {
        drop(lock.enter(Brittle(1)));
    }
    let mut favoured = lock.enter(Brittle(1));
    SessionGuard::switch(&mut favoured, Brittle(2));
}

#[track_caller]
fn assert_free<S: Eq + Clone + std::fmt::Debug, C: Core<Session = S>>(lock: &GroupLock<S, (), C>) {
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0), "{seen:?}");
    drop(lock.try_exclusive().expect("the room is empty"));
}

/// Interrupts the deeds at each step of foreign code in turn.
fn cut_short<C: Core<Session = Brittle>>(new: impl Fn() -> GroupLock<Brittle, (), C>) -> i32 {
    for steps in 0..100_000 {
        let lock = new();
        let cut = with_fuse(steps, || deeds(&lock));
        assert_free(&lock);
        drop(lock.enter(Brittle(9)));
        if !cut {
            return steps;
        }
    }
    panic!("the deeds do not end")
}

#[test]
fn a_comparison_or_clone_that_panics_leaves_no_trace() {
    let policies = [
        Policy::EVENTUAL,
        Policy::Fifo,
        Policy::Eventual { patience: Duration::ZERO },
        Policy::Eventual { patience: Duration::MAX },
        Policy::Batch { passes: 1 },
        Policy::BatchFor { wait: Duration::from_secs(1) },
    ];
    for policy in policies {
        let steps = cut_short(|| GroupLock::with_policy(policy, ()));
        let striped = cut_short(|| GroupLock::over(Striped::new(policy), ()));
        assert!(steps > 50 && striped > 50, "{policy:?}: only {steps} and {striped} steps");
    }
    let priority = |_: Option<&Brittle>| {
        burn();
        0
    };
    let steps = cut_short(|| GroupLock::with_priorities(Duration::from_secs(1), priority, ()));
    assert!(steps > 50, "only {steps} steps");
}

#[test]
fn a_thread_that_panics_when_it_accepts_an_invitation_leaves_the_queue() {
    let lock = GroupLock::with_policy(Policy::Eventual { patience: Duration::MAX }, ());
    // The step of foreign code that the invitation runs depends on the policy: the test tries all.
    for steps in 0..12 {
        let inside = lock.enter(Brittle(1));
        thread::scope(|scope| {
            let threads = [
                scope.spawn(|| with_fuse(steps, || drop(lock.enter(Brittle(2))))),
                scope.spawn(|| with_fuse(steps, || drop(lock.exclusive()))),
            ];
            wait_until("each of the two waits or has panicked", || {
                let panicked = threads.iter().filter(|thread| thread.is_finished()).count();
                panicked + waiters(&lock.snapshot()) == 2
            });
            drop(inside);
        });
        assert_free(&lock);
    }
}

/// A waker that panics.
struct Alarm;

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics, as planned");
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_asleep() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let inside = lock.enter(1);
    let (woken, waker) = Woken::new();
    let alarm = Waker::from(Arc::new(Alarm));
    let mut requests: Vec<_> = (0..4).map(|_| lock.enter_async(2)).collect();
    for (number, request) in requests.iter_mut().enumerate() {
        let waker = if number % 2 == 0 { &alarm } else { &waker };
        assert!(poll_with(request, waker).is_pending());
    }
    // The thread that leaves does not get the panic, because it did not cause it.
    drop(inside);
    assert_eq!(woken.times(), 2);
    for request in &mut requests {
        drop(ready(request));
    }
    assert_free(&lock);
}

#[test]
fn switching_survives_a_waker_that_panics() {
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let alarm = Waker::from(Arc::new(Alarm));
    let mut guard = lock.enter(1);
    let mut waiting = lock.enter_async(2);
    assert!(poll_with(&mut waiting, &alarm).is_pending());
    thread::scope(|scope| {
        // Hands the room to the request for 2, whose waker panics, and waits behind it.
        scope.spawn(move || {
            SessionGuard::switch(&mut guard, 1);
            SessionGuard::switch(&mut guard, 3);
            assert_eq!(*SessionGuard::session(&guard), 3);
        });
        wait_until("the request for 2 has the room", || lock.snapshot().session == Some(2));
        drop(ready(&mut waiting));
    });
    assert_free(&lock);
}

/// A waker whose first clone panics.
fn unclonable() -> Waker {
    use std::task::{RawWaker, RawWakerVTable};
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            assert!(
                CLONES.fetch_add(1, Ordering::SeqCst) != 0,
                "cloning a waker panics, as planned"
            );
            RawWaker::new(data, &TABLE)
        },
        |_| (),
        |_| (),
        |_| (),
    );
    CLONES.store(0, Ordering::SeqCst);
    // SAFETY: the functions obey their contract.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}

#[test]
fn a_waker_that_cannot_be_cloned_leaves_no_trace() {
    let lock = Arc::new(GroupLock::with_policy(Policy::Fifo, ()));
    let inside = lock.enter(1);
    let polled = |deed: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(deed)).is_err());
    let mut borrowing = lock.enter_async(2);
    let mut owning = lock.enter_arc_async(2);
    // At the first poll, when they join the queue …
    polled(&mut || drop(poll_with(&mut borrowing, &unclonable())));
    polled(&mut || drop(poll_with(&mut owning, &unclonable())));
    drop((borrowing, owning));
    assert!(lock.snapshot().waiting.is_empty());
    // … and later, when another task polls.
    let mut borrowing = lock.enter_async(2);
    let mut owning = lock.enter_arc_async(2);
    pending(&mut borrowing);
    pending(&mut owning);
    polled(&mut || drop(poll_with(&mut borrowing, &unclonable())));
    polled(&mut || drop(poll_with(&mut owning, &unclonable())));
    drop((borrowing, owning));
    drop(inside);
    assert_free(&lock);
}

/// A waker whose clones panic when they are dropped.
fn undroppable() -> Waker {
    use std::task::{RawWaker, RawWakerVTable};
    static ORIGINAL: RawWakerVTable =
        RawWakerVTable::new(|data| RawWaker::new(data, &CLONE), |_| (), |_| (), |_| ());
    static CLONE: RawWakerVTable = RawWakerVTable::new(
        |data| RawWaker::new(data, &CLONE),
        |_| (),
        |_| (),
        |_| panic!("dropping a waker panics, as planned"),
    );
    // SAFETY: the functions obey their contract.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &ORIGINAL)) }
}

fn a_waker_is_dropped<C: Core<Session = u32>>(lock: &GroupLock<u32, (), C>) {
    let inside = lock.enter(1);
    // When another waker replaces it, and when the request is withdrawn.
    let (mut replaced, mut withdrawn) = (lock.enter_async(2), lock.enter_async(2));
    assert!(poll_with(&mut replaced, &undroppable()).is_pending());
    assert!(poll_with(&mut withdrawn, &undroppable()).is_pending());
    pending(&mut replaced);
    drop(withdrawn);
    drop(inside);
    drop(ready(&mut replaced));
    assert_free(lock);
}

#[test]
fn a_panic_while_a_waker_is_dropped_goes_no_further() {
    a_waker_is_dropped(&GroupLock::new(()));
    a_waker_is_dropped(&GroupLock::striped(()));
    #[cfg(feature = "handover")]
    a_waker_is_dropped(&GroupLock::over(grouplock::cores::Handover::new(), ()));
}

/// A session whose comparison uses another lock, and waits there.
#[derive(Clone)]
struct Roundabout<'a> {
    number: u8,
    other: &'a GroupLock<u8, ()>,
    armed: &'a AtomicBool,
}

impl PartialEq for Roundabout<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.armed.load(Ordering::SeqCst) {
            drop(self.other.enter(self.number));
        }
        self.number == other.number
    }
}
impl Eq for Roundabout<'_> {}

#[test]
fn comparing_sessions_may_wait_for_another_lock() {
    for policy in [Policy::Fifo, Policy::EVENTUAL, Policy::Batch { passes: 5 }] {
        let other = GroupLock::with_policy(Policy::Fifo, ());
        let armed = AtomicBool::new(false);
        let name = |number| Roundabout { number, other: &other, armed: &armed };
        let lock = GroupLock::with_policy(policy, AtomicUsize::new(0));
        let inside = lock.enter(name(1));
        let in_the_way = other.enter(100);
        let mut queued = lock.enter_async(name(3));
        assert!(poll(&mut queued).is_pending());
        armed.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            scope.spawn(|| {
                // When it joins the queue, it compares sessions, and waits for `other`. That
                // `other` admits it says nothing about this lock.
                let guard = lock.enter(name(2));
                assert_eq!(guard.fetch_add(1, Ordering::SeqCst), 1, "entered past the holder");
            });
            wait_until("a comparison waits", || !other.snapshot().waiting.is_empty());
            // `other` becomes free, and the comparisons continue.
            drop(in_the_way);
            wait_until("it is in the queue", || {
                let seen = lock.snapshot();
                seen.waiting.iter().flat_map(|phase| &phase.session).any(|s| s.number == 2)
            });
            armed.store(false, Ordering::SeqCst);
            assert_eq!(
                inside.fetch_add(1, Ordering::SeqCst),
                0,
                "a conflicting request entered beside the holder"
            );
            drop(queued);
            drop(inside);
        });
    }
}

/// A session that counts itself.
struct Counted<'a>(u8, &'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(number: u8, alive: &'a AtomicUsize) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(number, alive)
    }
}

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Counted<'_> {}

impl Clone for Counted<'_> {
    fn clone(&self) -> Self {
        Counted::new(self.0, self.1)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn every_session_name_is_dropped_once() {
    let alive = AtomicUsize::new(0);
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 2 }] {
        let lock = GroupLock::with_policy(policy, ());
        let inside = lock.enter(Counted::new(1, &alive));
        let mut waiting: Vec<_> =
            (0..9).map(|number| lock.enter_async(Counted::new(number % 3, &alive))).collect();
        let mut entered = Vec::new();
        waiting.retain_mut(|request| match poll(request) {
            Poll::Ready(guard) => {
                entered.push(guard);
                false
            }
            Poll::Pending => true,
        });
        drop(waiting.remove(4));
        drop(inside);
        drop(entered);
        // The first phase is inside now. Dropping its futures admits the next one, and so on.
        drop(waiting);
        // The lock keeps only the last session.
        assert_eq!(alive.load(Ordering::SeqCst), 1, "{policy:?}");
        drop(lock);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{policy:?}");
    }
}

/// A session whose destructor panics when it is armed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Explosive(u8);

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Explosive {
    fn drop(&mut self) {
        // Once, because a panic during another panic would abort the program.
        assert!(!ARMED.replace(false), "dropping a name panics, as planned");
    }
}

/// Runs `deed` and makes the next destructor of a session panic. Returns whether one ran.
fn armed<R>(deed: impl FnOnce() -> R) -> (bool, R) {
    ARMED.set(true);
    let result = deed();
    (!ARMED.replace(false), result)
}

#[test]
fn a_panic_while_a_name_is_dropped_goes_no_further() {
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 2 }] {
        let lock = GroupLock::with_policy(policy, ());
        drop(lock.enter(Explosive(1)));
        // The lock replaces the last session …
        let (dropped, inside) = armed(|| lock.enter(Explosive(2)));
        assert!(dropped);
        assert_eq!(lock.snapshot().holders, 1);
        // … the lock has an equal session already …
        let (dropped, fellow) = armed(|| lock.enter(Explosive(2)));
        assert!(dropped);
        let (dropped, another) = armed(|| lock.try_enter(Explosive(2)));
        assert!(dropped && another.is_some());
        assert_eq!(lock.snapshot().holders, 3);
        drop((inside, fellow, another));
        // … a request is refused …
        let alone = lock.exclusive();
        let (dropped, refused) = armed(|| lock.try_enter(Explosive(3)));
        assert!(dropped && refused.is_none());
        // … and a phase is admitted.
        let mut waiting = lock.enter_async(Explosive(4));
        pending(&mut waiting);
        let (dropped, ()) = armed(|| drop(alone));
        assert!(dropped);
        drop(ready(&mut waiting));
        drop(waiting);
        // It also does no harm if the room is set up, or if it is too late.
        drop(lock.enter_with(Explosive(5), |()| ()));
        let (dropped, inside) = armed(|| lock.enter_with(Explosive(5), |()| unreachable!()));
        assert!(dropped);
        let (dropped, fellow) = armed(|| {
            let set_up = async |(): &mut ()| unreachable!();
            ready(&mut Box::pin(lock.enter_with_async(Explosive(5), set_up)))
        });
        assert!(dropped);
        drop(fellow);
        let soon = Duration::from_micros(1);
        let (dropped, late) = armed(|| lock.try_enter_for(Explosive(6), soon));
        assert!(dropped && late.is_none());
        drop(inside);
        assert_free(&lock);
    }
    let lock = GroupLock::striped(());
    let mut inside = lock.enter(Explosive(1));
    let (dropped, switched) = armed(|| SessionGuard::try_switch(&mut inside, Explosive(1)));
    assert!(dropped && switched);
    drop(inside);
    (0..FAVOURED).for_each(|_| drop(lock.enter(Explosive(1))));
    let (dropped, favoured) = armed(|| lock.enter(Explosive(1)));
    assert!(dropped);
    let (dropped, tried) = armed(|| lock.try_enter(Explosive(1)));
    assert!(dropped && tried.is_some());
    drop((favoured, tried));
    assert_free(&lock);
}

/// A session whose comparison lasts until the test ends it.
#[derive(Clone, Debug)]
struct Slow<'a> {
    number: u8,
    stuck: &'a AtomicBool,
    go_on: &'a AtomicBool,
}

thread_local! {
    /// Whether this thread's comparisons take long.
    static SLOW: Cell<bool> = const { Cell::new(false) };
}

impl PartialEq for Slow<'_> {
    fn eq(&self, other: &Self) -> bool {
        if SLOW.get() {
            self.stuck.store(true, Ordering::SeqCst);
            wait_until("the comparison may end", || self.go_on.load(Ordering::SeqCst));
        }
        self.number == other.number
    }
}
impl Eq for Slow<'_> {}

#[test]
fn a_try_does_not_wait_for_another_threads_comparison() {
    let (stuck, go_on) = (AtomicBool::new(false), AtomicBool::new(false));
    let name = |number| Slow { number, stuck: &stuck, go_on: &go_on };
    let lock = GroupLock::with_policy(Policy::Fifo, ());
    let inside = lock.enter(name(1));
    let mut queued = lock.enter_async(name(2));
    pending(&mut queued);
    thread::scope(|scope| {
        let end = SetWhenDropped(&go_on);
        let slow = scope.spawn(|| {
            SLOW.set(true);
            // When it joins the queue, it compares its session with those there, under the internal
            // lock.
            lock.try_enter_for(name(3), Duration::from_millis(1)).is_some()
        });
        wait_until("a comparison is under way", || stuck.load(Ordering::SeqCst));
        assert!(lock.try_enter(name(1)).is_none(), "a request waits");
        assert!(lock.try_enter(name(3)).is_none());
        assert!(lock.try_exclusive().is_none());
        // A request with a deadline in the past does not wait either: it is a try.
        assert!(lock.try_enter_until(name(3), Instant::now()).is_none());
        assert!(lock.try_exclusive_until(Instant::now()).is_none());
        // A holder that leaves does not wait either: the other thread will hand the room over.
        drop(inside);
        assert!(lock.try_enter(name(1)).is_none());
        assert!(!slow.is_finished() && !go_on.load(Ordering::SeqCst), "the comparison goes on");
        drop(end);
        wait_until("the room has been handed over", || poll(&mut queued).is_ready());
        assert!(slow.join().expect("it does not panic") || lock.snapshot().waiting.is_empty());
    });
    drop(queued);
    assert_free(&lock);
}
