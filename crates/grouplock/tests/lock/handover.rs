//! Faults that are more likely in a `Handover` than in other cores.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;

use crate::common::{in_time, pending, poll, poll_with, ready};
use grouplock::cores::Handover;
use grouplock::{GroupLock, OwnedSessionGuard, SessionGuard};

type Lock<T> = GroupLock<u32, T, Handover<u32>>;

fn new<T>(value: T) -> Lock<T> {
    GroupLock::over(Handover::new(), value)
}

/// A waker whose copies panic when they are dropped.
fn brittle_waker() -> Waker {
    static COPY: RawWakerVTable = RawWakerVTable::new(
        |_| RawWaker::new(std::ptr::null(), &COPY),
        |_| {},
        |_| {},
        |_| panic!("the drop of a waker panics, as planned"),
    );
    static FIRST: RawWakerVTable =
        RawWakerVTable::new(|_| RawWaker::new(std::ptr::null(), &COPY), |_| {}, |_| {}, |_| {});
    // SAFETY: the functions use no data, so any thread may call them.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &FIRST)) }
}

/// A switch that needs no waker drops its copy. If that panics, a guard that is outside must not
/// show the data.
#[test]
fn a_waker_whose_drop_panics_does_not_leave_a_switching_guard_outside_with_the_data() {
    let lock = new(());
    let mut guard = lock.enter(1);
    let mut switch = SessionGuard::switch_async(&mut guard, 2);
    let outcome = catch_unwind(AssertUnwindSafe(|| poll_with(&mut switch, &brittle_waker())));
    println!("{outcome:?}");
    drop(switch);
    let shows = catch_unwind(AssertUnwindSafe(|| *guard)).is_ok();
    let alone = lock.try_exclusive().is_some();
    assert!(!(shows && alone), "the guard shows the data, and another has it alone");
    assert!(outcome.is_ok(), "nothing of the waker's is to be seen");
}

/// Reads the lock when it is woken.
struct Curious(Arc<Lock<()>>, AtomicUsize);

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        assert_eq!(self.0.snapshot().holders, 1);
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static KEPT: RefCell<Option<OwnedSessionGuard<u32, (), Handover<u32>>>> = const { RefCell::new(None) };
}

/// A thread that leaves while its thread-local values are destroyed wakes other tasks without
/// holding a lock, too.
#[test]
fn a_waker_may_use_the_lock_when_a_thread_that_ends_leaves() {
    in_time(|| {
        let lock = Arc::new(new(()));
        let woken = Arc::new(Curious(Arc::clone(&lock), AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let (tell, told) = std::sync::mpsc::channel();
        let (say, said) = std::sync::mpsc::channel();
        let keeps = Arc::clone(&lock);
        let ending = thread::spawn(move || {
            // The thread-local values of this crate are created after that of the test, so they are
            // destroyed before it.
            KEPT.set(None);
            KEPT.set(Some(keeps.enter_arc(1)));
            tell.send(()).expect("the other thread receives");
            said.recv().expect("the other thread sends");
        });
        told.recv().expect("it enters");
        let mut future = lock.enter_async(2);
        assert!(poll_with(&mut future, &waker).is_pending());
        say.send(()).expect("it listens");
        ending.join().expect("it does not panic");
        assert_eq!(woken.1.load(Ordering::SeqCst), 1);
        drop(ready(&mut future));
    });
}

/// Other requests of its session may set the room up before it, but not forever: each time another
/// session enters in between, it must ask again.
#[test]
fn one_that_wants_the_room_set_up_is_not_overtaken_for_ever() {
    let lock = new(());
    let with = |session| Box::pin(lock.enter_with_async(session, async |(): &mut ()| ()));
    let inside = lock.enter(9);
    let (mut fellow, mut other, mut victim) = (with(1), lock.enter_async(2), with(1));
    pending(&mut fellow);
    pending(&mut other);
    pending(&mut victim);
    drop(inside);
    for round in 0.. {
        assert!(round < 5, "overtaken by {round} that came later");
        drop(ready(&mut fellow));
        let between = ready(&mut other);
        (fellow, other) = (with(1), lock.enter_async(2));
        pending(&mut fellow);
        pending(&mut other);
        drop(between);
        if poll(&mut victim).is_ready() {
            break;
        }
    }
}
