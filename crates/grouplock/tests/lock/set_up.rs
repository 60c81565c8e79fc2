//! `enter_with`: a request that finds the room not set up for its session sets it up, alone. Then
//! others of the session join.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::common::{FAVOURED, POLICIES, pending, ready, wait_until, waiters};
#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Core, Striped};
use grouplock::{ExclusiveGuard, GroupLock, SessionGuard};

/// The session that the data is set up for, and the number of set-ups.
#[derive(Debug, Default)]
struct Model {
    session: u8,
    set_ups: u32,
}

type Lock<C> = GroupLock<u8, Model, C>;

/// A set-up for `session`.
fn load(session: u8) -> impl FnOnce(&mut Model) {
    move |model| {
        model.session = session;
        model.set_ups += 1;
    }
}

/// A set-up that must not be called.
fn is_set_up(_: &mut Model) {
    panic!("the room is set up");
}

/// Calls `$check` with a lock of every kind. A striped lock has a favoured session then, which is
/// not set up.
macro_rules! on_every_lock {
    ($check:ident) => {
        on_every_lock_with_phases!($check);
        #[cfg(feature = "handover")]
        $check(&GroupLock::over(Handover::new(), Model::default()));
    };
}

/// The same, for cores that serve the waiters of a session together. A `Handover` serves them in
/// order: a request without set-up that arrived before the first one with set-up goes first.
macro_rules! on_every_lock_with_phases {
    ($check:ident) => {
        for &policy in POLICIES {
            $check(&GroupLock::with_policy(policy, Model::default()));
            let striped = GroupLock::over(Striped::new(policy), Model::default());
            (0..FAVOURED).for_each(|_| drop(striped.enter(1)));
            $check(&striped);
        }
    };
}

#[track_caller]
fn assert_free<C: Core<Session = u8>>(lock: &Lock<C>) {
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0), "{seen:?}");
    drop(lock.try_exclusive().expect("the room is empty"));
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_change_of_session_is_one_set_up() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        let one = lock.enter_with(1, load(1));
        let two = lock.enter_with(1, is_set_up);
        assert_eq!((one.session, two.set_ups, *SessionGuard::session(&two)), (1, 1, 1));
        drop((one, two));
        (0..FAVOURED).for_each(|_| drop(lock.enter_with(1, is_set_up)));
        assert_eq!(lock.enter_with(2, load(2)).set_ups, 2);
        assert_eq!(lock.enter_with(1, load(1)).set_ups, 3);
        assert_free(lock);
    }
    on_every_lock!(check);
}

#[test]
fn a_set_up_that_fails_has_set_up_for_nobody() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        drop(lock.enter_with(1, load(1)));
        let failed = lock.enter_with_result(2, |model| {
            model.session = 99;
            Err("no such model")
        });
        assert_eq!(failed.map(drop), Err("no such model"));
        assert_free(lock);
        // The room is set up neither for the session of the set-up nor for the session before.
        assert_eq!(lock.enter_with(1, load(1)).session, 1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            drop(lock.enter_with(2, |_| panic!("as planned")));
        }));
        assert!(panicked.is_err());
        assert_free(lock);
        let again = lock.enter_with_result(2, |model| {
            load(2)(model);
            Ok::<(), ()>(())
        });
        assert_eq!(again.expect("it does not fail").session, 2);
        drop(lock.enter_with(2, is_set_up));
        assert_free(lock);
    }
    on_every_lock!(check);
}

#[test]
fn entering_without_set_up_does_none_and_changes_nothing_about_it() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        // A room that was entered without set-up is not set up. A request with set-up waits to be
        // alone.
        let plain = lock.enter(1);
        assert_eq!(plain.set_ups, 0);
        let mut with = pin!(lock.enter_with_async(1, async |model: &mut Model| load(1)(model)));
        assert!(poll(with.as_mut()).is_pending());
        drop(plain);
        let Poll::Ready(with) = poll(with.as_mut()) else { panic!("the room is free") };
        assert_eq!(with.set_ups, 1);
        // A room that is set up can be shared with requests without set-up.
        let plain = lock.try_enter(1).expect("the same session");
        drop((plain, with));
        drop(lock.enter(1));
        drop(lock.enter_with(1, is_set_up));
        // Another session, set up or not, ends that.
        drop(lock.enter(2));
        assert_eq!(lock.enter_with(1, load(1)).set_ups, 2);
        assert_free(lock);
    }
    on_every_lock!(check);
}

#[test]
fn being_alone_leaves_the_room_set_up_and_so_does_opening_it_to_the_same_session() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        drop(lock.exclusive());
        drop(lock.enter_with(1, load(1)));
        lock.exclusive().session = 7;
        assert_eq!(lock.enter_with(1, is_set_up).session, 7);
        drop(ExclusiveGuard::downgrade(lock.exclusive(), 1));
        drop(lock.enter_with(1, is_set_up));
        drop(ExclusiveGuard::downgrade(lock.exclusive(), 2));
        drop(lock.enter_with(1, load(1)));
        let mut guard = lock.enter_with(1, is_set_up);
        SessionGuard::switch(&mut guard, 2);
        drop(guard);
        assert_eq!(lock.enter_with(2, load(2)).set_ups, 3);
        assert_free(lock);
    }
    on_every_lock!(check);
}

/// Requests that wait during the set-up share the room afterwards, with or without set-up.
#[test]
fn the_others_of_the_session_wait_for_the_set_up_and_then_share() {
    fn check<C: Core<Session = u8> + Sync>(lock: &Lock<C>) {
        let all_inside = Barrier::new(5);
        thread::scope(|scope| {
            let first = lock.enter_with(3, |model| {
                load(3)(model);
                for _ in 0..2 {
                    scope.spawn(|| {
                        let _guard = lock.enter_with(3, is_set_up);
                        all_inside.wait();
                    });
                    scope.spawn(|| {
                        let guard = lock.enter(3);
                        assert_eq!(guard.session, 3);
                        all_inside.wait();
                    });
                }
                wait_until("four wait", || waiters(&lock.snapshot()) == 4);
                assert!(lock.snapshot().exclusive);
                assert!(lock.try_enter(3).is_none());
            });
            all_inside.wait();
            drop(first);
        });
        assert_free(lock);
    }
    on_every_lock!(check);
}

/// Several requests wait for a session that is not set up. One of them sets it up, and the others
/// join.
#[test]
fn one_of_the_waiters_of_a_session_sets_up() {
    fn check<C: Core<Session = u8> + Sync>(lock: &Lock<C>) {
        let (inside, all_inside) = (lock.enter(1), Barrier::new(4));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let guard = lock.enter_with(2, load(2));
                    assert_eq!((guard.session, guard.set_ups), (2, 1));
                    all_inside.wait();
                });
            }
            scope.spawn(|| {
                let guard = lock.enter(2);
                assert_eq!((guard.session, guard.set_ups), (2, 1));
                all_inside.wait();
            });
            wait_until("four wait", || waiters(&lock.snapshot()) == 4);
            drop(inside);
        });
        assert_free(lock);
    }
    on_every_lock_with_phases!(check);
}

#[test]
fn the_next_sets_up_if_the_first_of_a_phase_fails() {
    fn check<C: Core<Session = u8> + Sync>(lock: &Lock<C>) {
        let (inside, attempts) = (lock.enter(1), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let entered = lock.enter_with_result(2, |model| {
                        load(2)(model);
                        // The third request sets it up.
                        if attempts.fetch_add(1, SeqCst) == 2 { Ok(()) } else { Err(()) }
                    });
                    if let Ok(guard) = entered {
                        assert_eq!(guard.set_ups, 3);
                    }
                });
            }
            wait_until("four wait", || waiters(&lock.snapshot()) == 4);
            drop(inside);
        });
        assert_eq!(attempts.load(SeqCst), 3);
        assert_free(lock);
    }
    on_every_lock!(check);
}

/// Yields once.
fn step() -> impl Future<Output = ()> {
    let mut first = true;
    std::future::poll_fn(
        move |_| {
            if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
        },
    )
}

#[test]
fn a_set_up_whose_future_is_dropped_has_set_up_for_nobody() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        let begun = Cell::new(0);
        let slow = async |model: &mut Model| {
            begun.set(begun.get() + 1);
            model.session = 99;
            step().await;
            load(1)(model);
        };
        let mut one = Box::pin(lock.enter_with_async(1, slow));
        // The favour of a striped lock must end first.
        wait_until("it is in the middle of its set-up", || {
            assert!(poll(one.as_mut()).is_pending());
            begun.get() == 1
        });
        let mut two = Box::pin(lock.enter_with_async(1, slow));
        let mut plain = lock.enter_async(1);
        assert!(poll(two.as_mut()).is_pending());
        pending(&mut plain);
        drop(one);
        // The next request begins, and the plain request of the same phase waits for it.
        assert!(poll(two.as_mut()).is_pending());
        assert_eq!(begun.get(), 2);
        pending(&mut plain);
        let Poll::Ready(two) = poll(two.as_mut()) else { panic!("the set-up is over") };
        let plain = ready(&mut plain);
        assert_eq!((plain.session, two.set_ups), (1, 1));
        drop((two, plain));
        assert_free(lock);
    }
    on_every_lock_with_phases!(check);
}

/// On a `Handover`, other requests of a session queue behind the request that sets up.
#[cfg(feature = "handover")]
#[test]
fn in_order_one_sets_up_for_those_behind_it() {
    let lock = GroupLock::over(Handover::new(), Model::default());
    // An earlier request without set-up finds the room as it is.
    let inside = lock.enter(1);
    let mut plain = lock.enter_async(2);
    pending(&mut plain);
    let set_up = async |model: &mut Model| load(2)(model);
    let mut first = Box::pin(lock.enter_with_async(2, set_up));
    let mut second = Box::pin(lock.enter_with_async(2, async |_| panic!("it is set up")));
    let mut last = lock.enter_async(2);
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    pending(&mut last);
    drop(inside);
    let plain = ready(&mut plain);
    assert_eq!(plain.set_ups, 0);
    assert!(poll(first.as_mut()).is_pending());
    drop(plain);
    let Poll::Ready(first) = poll(first.as_mut()) else { panic!("it is alone") };
    let Poll::Ready(second) = poll(second.as_mut()) else { panic!("the room is set up") };
    assert_eq!((first.set_ups, second.set_ups, ready(&mut last).set_ups), (1, 1, 1));
    drop((first, second));

    // If the first future is dropped during its set-up, the second request does the set-up.
    let slow = async |_: &mut Model| step().await;
    let mut first = Box::pin(lock.enter_with_async(3, slow));
    assert!(poll(first.as_mut()).is_pending());
    assert!(lock.snapshot().exclusive);
    let mut second = Box::pin(lock.enter_with_async(3, async |model: &mut Model| load(3)(model)));
    assert!(poll(second.as_mut()).is_pending());
    drop(first);
    let Poll::Ready(second) = poll(second.as_mut()) else { panic!("no other holder is inside") };
    assert_eq!((second.session, second.set_ups), (3, 2));
    drop(second);
    assert_free(&lock);
}

/// A set-up that was announced, and that does not happen, is not announced any more: the next
/// request asks to be alone, and does not queue behind another.
#[cfg(feature = "handover")]
#[test]
fn in_order_a_set_up_that_does_not_happen_is_not_waited_for() {
    let lock = GroupLock::over(Handover::new(), Model::default());
    let asks_to_be_alone = || {
        let _inside = lock.enter(1);
        let mut request = Box::pin(lock.enter_with_async(2, async |_: &mut Model| ()));
        assert!(poll(request.as_mut()).is_pending());
        lock.snapshot().waiting[0].session.is_none()
    };
    assert!(asks_to_be_alone(), "the first");
    assert!(asks_to_be_alone(), "the first has withdrawn");
    assert!(lock.enter_with_result(2, |_| Err(())).is_err());
    assert!(asks_to_be_alone(), "the set-up has failed");
    assert_free(&lock);
}

/// One request with set-up is dropped in the queue, and one after it was admitted and before it was
/// polled.
#[test]
fn a_request_that_is_dropped_leaves_no_trace() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        for granted in [false, true] {
            let inside = lock.enter(1);
            let set_up = async |_: &mut Model| unreachable!("it is dropped before");
            let mut waiting = Box::pin(lock.enter_with_async(2, set_up));
            assert!(poll(waiting.as_mut()).is_pending());
            let mut behind = lock.enter_async(3);
            pending(&mut behind);
            if granted {
                drop(inside);
                pending(&mut behind);
                drop(waiting);
            } else {
                drop(waiting);
                drop(inside);
            }
            drop(ready(&mut behind));
            assert_free(lock);
        }
    }
    on_every_lock!(check);
}

#[test]
fn the_epoch_shows_changes_of_session_and_set_ups() {
    fn check<C: Core<Session = u8>>(lock: &Lock<C>) {
        let epoch = |session| SessionGuard::epoch(&lock.enter(session));
        let one = epoch(1);
        assert_eq!(epoch(1), one);
        drop(lock.exclusive());
        drop(ExclusiveGuard::downgrade(lock.exclusive(), 1));
        assert_eq!(epoch(1), one, "no other session was inside");
        // The room is handed to the session that was inside last.
        let alone = lock.exclusive();
        let mut same = lock.enter_async(1);
        pending(&mut same);
        drop(alone);
        drop(ready(&mut same));
        assert_eq!(epoch(1), one, "no other session was inside");
        drop(lock.enter(2));
        let two = epoch(1);
        assert_ne!(two, one);
        assert!(lock.enter_with_result(1, |_| Err(())).is_err());
        let three = epoch(1);
        assert_ne!(three, two, "a set-up that failed may have changed the data");
        drop(lock.enter_with(1, load(1)));
        drop(lock.enter_with(1, is_set_up));
        let four = epoch(1);
        assert_ne!(four, three);
        assert_eq!(epoch(1), four);
    }
    on_every_lock!(check);
}

/// Threads and tasks use sessions with and without set-up, with failures, panics and dropped
/// futures. A holder with set-up finds the data of its session. A request that sets up is alone.
#[cfg(not(miri))]
#[test]
fn a_holder_with_set_up_finds_its_own_model() {
    for &policy in POLICIES {
        storm(&GroupLock::with_policy(policy, Watched::default()));
        storm(&GroupLock::over(Striped::new(policy), Watched::default()));
    }
    #[cfg(feature = "handover")]
    storm(&GroupLock::over(Handover::new(), Watched::default()));
}

#[derive(Default)]
struct Watched {
    session: AtomicU32,
    inside: AtomicUsize,
}

impl Watched {
    /// Called by a holder. Returns what it found.
    fn visit(&self) -> u32 {
        self.inside.fetch_add(1, SeqCst);
        let found = self.session.load(SeqCst);
        thread::yield_now();
        assert_eq!(self.session.load(SeqCst), found, "set up while another holder is inside");
        self.inside.fetch_sub(1, SeqCst);
        found
    }

    /// Sets the room up for `session`, in two steps.
    fn begin(&self) {
        assert_eq!(self.inside.load(SeqCst), 0, "set up while another holder is inside");
        self.session.store(u32::MAX, SeqCst);
    }
}

#[cfg(not(miri))]
fn storm<C: Core<Session = u32> + Sync>(lock: &GroupLock<u32, Watched, C>) {
    let (with, set_ups) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for seed in 0..6 {
            let (with, set_ups) = (&with, &set_ups);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..300 {
                    let session = random.u32(..3);
                    let fails = random.u8(..8) == 0;
                    let load = |data: &mut Watched| {
                        data.begin();
                        set_ups.fetch_add(1, SeqCst);
                        thread::yield_now();
                        if fails {
                            return Err(());
                        }
                        data.session.store(session, SeqCst);
                        Ok(())
                    };
                    match random.u8(..8) {
                        0..4 => {
                            if let Ok(guard) = lock.enter_with_result(session, load) {
                                assert_eq!(guard.visit(), session);
                                with.fetch_add(1, SeqCst);
                            }
                        }
                        4..6 => {
                            let set_up = async |data: &mut Watched| {
                                data.begin();
                                step().await;
                                load(data)
                            };
                            let mut future =
                                Box::pin(lock.enter_with_result_async(session, set_up));
                            // Sometimes the set-up is dropped half-way.
                            for _ in 0..random.usize(1..200) {
                                if let Poll::Ready(entered) = poll(future.as_mut()) {
                                    if let Ok(guard) = entered {
                                        assert_eq!(guard.visit(), session);
                                        with.fetch_add(1, SeqCst);
                                    }
                                    break;
                                }
                                thread::yield_now();
                            }
                        }
                        6 => drop(lock.enter(session).visit()),
                        _ => drop(lock.exclusive()),
                    }
                }
            });
        }
    });
    let (with, set_ups) = (with.into_inner(), set_ups.into_inner());
    println!("{with} entered with set-up, {set_ups} set-ups");
    assert!(with > 100 && set_ups > 10);
    assert!(lock.snapshot().waiting.is_empty());
    drop(lock.try_exclusive().expect("the room is empty"));
}
