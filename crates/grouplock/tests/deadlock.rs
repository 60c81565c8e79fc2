//! Feature `deadlock_detection`: which waits it reports, and which not.
#![cfg(feature = "deadlock_detection")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use common::{LATE, wait_until};
use grouplock::deadlock::{Action, Deadlock, check_deadlock, set_action, set_grace};
use grouplock::{ExclusiveGuard, GroupLock, OwnedSessionGuard, SessionGuard};

const GRACE: Duration = Duration::from_millis(100);

/// What [`Action::Call`] has reported since the test began.
static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn reports() -> MutexGuard<'static, Vec<String>> {
    REPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The settings are those of the process, so one test runs at a time.
fn alone(action: Action) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_grace(GRACE);
    set_action(action);
    reports().clear();
    turn
}

fn record(deadlock: &Deadlock) {
    reports().push(deadlock.to_string());
}

/// The message of the panic of `what`. Fails if there is none in time.
fn panic_of(what: impl FnOnce() + Send + 'static) -> String {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(what));
        let message = result.map_err(|panic| match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "a panic with no text".to_owned(),
        });
        _ = tell.send(message);
    });
    told.recv_timeout(LATE).expect("a deadlock was not noticed").expect_err("no deadlock")
}

/// A thread that requests another session of a lock that it holds.
#[test]
fn another_session_of_the_same_lock() {
    let _turn = alone(Action::Panic);
    let lock = Arc::new(GroupLock::new(()));
    let theirs = Arc::clone(&lock);
    let line = line!() + 2;
    let message = panic_of(move || {
        let _one = theirs.enter("one");
        let _two = theirs.enter("two");
    });
    assert!(message.starts_with("grouplock: deadlock\n"), "{message}");
    assert!(message.contains(&format!("waits at {}:{}:", file!(), line + 1)), "{message}");
    assert!(message.contains("for a session of the lock"), "{message}");
    assert!(message.contains(&format!("{:#x} (sessions: &str)", lock.address())), "{message}");
    assert!(message.contains(&format!("inside a session since {}:{line}:", file!())), "{message}");
    // The request was withdrawn, and the panic dropped the guard.
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    assert!(lock.try_exclusive().is_some());
}

/// A thread that requests to be alone in a lock that it holds.
#[test]
fn to_be_alone_beside_oneself() {
    let _turn = alone(Action::Panic);
    for striped in [false, true] {
        let message = panic_of(move || {
            if striped {
                let lock = GroupLock::striped(());
                // Enough entries for the session to be favoured.
                (0..200).for_each(|_| drop(lock.enter(1)));
                let _one = lock.enter(1);
                let _two = lock.exclusive();
            } else {
                let lock = Arc::new(GroupLock::new(()));
                let _one = lock.enter_arc(1);
                let _two = lock.exclusive();
            }
        });
        assert!(message.contains("to be alone in the lock"), "{message}");
        assert!(message.contains("is inside a session since"), "{message}");
    }
    let message = panic_of(|| {
        let lock = GroupLock::new(());
        let _one = lock.exclusive();
        let _two = lock.enter(1);
    });
    assert!(message.contains("is alone since"), "{message}");
}

/// A thread requests its session again, with another request in between.
#[test]
fn the_same_session_again() {
    let _turn = alone(Action::Panic);
    let lock = Arc::new(GroupLock::with_policy(grouplock::Policy::Fifo, ()));
    let theirs = Arc::clone(&lock);
    let message = panic_of(move || {
        thread::scope(|scope| {
            let one = theirs.enter(1);
            scope.spawn(|| drop(theirs.enter(2)));
            wait_until("it waits", || !theirs.snapshot().waiting.is_empty());
            let panic = catch_unwind(AssertUnwindSafe(|| drop(theirs.enter(1)))).unwrap_err();
            drop(one);
            std::panic::resume_unwind(panic);
        });
    });
    assert!(message.contains("for a session of the lock"), "{message}");
}

/// Each thread holds a lock and waits for the lock of the next.
#[test]
fn a_circle_of_threads() {
    let _turn = alone(Action::Panic);
    let locks = Arc::new([GroupLock::new(()), GroupLock::new(()), GroupLock::new(())]);
    let barrier = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..3)
        .map(|me| {
            let (locks, barrier) = (Arc::clone(&locks), Arc::clone(&barrier));
            let name = format!("number {me}");
            let work = move || {
                let _mine = locks[me].enter(me);
                barrier.wait();
                let _next = locks[(me + 1) % 3].exclusive();
            };
            thread::Builder::new().name(name).spawn(work).unwrap()
        })
        .collect();
    wait_until("all have ended", || threads.iter().all(thread::JoinHandle::is_finished));
    let panics: Vec<String> = threads
        .into_iter()
        .filter_map(|thread| thread.join().err())
        .map(|panic| *panic.downcast::<String>().unwrap())
        .collect();
    // One thread panics, and the others continue.
    let [message] = &panics[..] else { panic!("{} threads panicked", panics.len()) };
    for me in 0..3 {
        let next = (me + 1) % 3;
        assert!(message.contains(&format!("thread `number {me}` waits at")), "{message}");
        assert!(message.contains(&format!("where thread `number {next}` is")), "{message}");
        assert!(message.contains(&format!("{:#x}", locks[me].address())), "{message}");
    }
}

/// By default a thread continues to wait. Here the deadlock ends because another thread drops the
/// guard.
#[test]
fn a_report_changes_nothing() {
    let _turn = alone(Action::Call(record));
    let lock = Arc::new(GroupLock::new(()));
    let theirs = Arc::clone(&lock);
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        send.send(theirs.enter_arc(1)).unwrap();
        drop(theirs.enter(2));
    });
    // The guard is not used, so it still counts for the other thread. The documentation describes
    // this false alarm.
    let guard = receive.recv().unwrap();
    wait_until("there is a report", || !reports().is_empty());
    let [deadlock] = &check_deadlock()[..] else { panic!("there is one") };
    let [blocked] = deadlock.threads() else { panic!("it is of one thread") };
    assert_eq!(blocked.lock, lock.address());
    assert!(!blocked.wants_to_be_alone && !blocked.is_alone);
    assert_eq!(blocked.thread.id(), thread.thread().id());
    assert_eq!(blocked.waits_at.file(), file!());
    drop(guard);
    thread.join().unwrap();
    let told = reports().clone();
    assert_eq!(told.len(), 1, "it is told once: {told:?}");
    assert!(check_deadlock().is_empty());
}

#[test]
fn a_reporter_that_panics_does_no_harm() {
    let _turn = alone(Action::Call(|_| {
        reports().push(String::new());
        panic!("on purpose");
    }));
    let lock = Arc::new(GroupLock::new(()));
    let (send, receive) = mpsc::channel();
    let theirs = Arc::clone(&lock);
    let thread = thread::spawn(move || {
        send.send(theirs.enter_arc(1)).unwrap();
        drop(theirs.enter(2));
    });
    let guard = receive.recv().unwrap();
    wait_until("there is a report", || !reports().is_empty());
    drop(guard);
    thread.join().unwrap();
}

/// A guard that was sent to another thread, and is used there, belongs to that thread.
#[test]
fn a_guard_that_was_sent_is_no_false_alarm() {
    let _turn = alone(Action::Panic);
    let lock = GroupLock::new(7);
    let used = AtomicBool::new(false);
    thread::scope(|scope| {
        let guard = lock.enter(1);
        scope.spawn(|| {
            let guard = guard;
            assert_eq!(*guard, 7);
            used.store(true, SeqCst);
            wait_until("the other waits", || !lock.snapshot().waiting.is_empty());
            thread::sleep(3 * GRACE);
            drop(guard);
        });
        wait_until("the guard is used there", || used.load(SeqCst));
        // Panics if the guard counts for this thread.
        drop(lock.enter(2));
        let guard = lock.exclusive();
        // Dropped there without use, before the grace is over.
        set_grace(LATE);
        scope.spawn(|| {
            let guard = guard;
            wait_until("the other waits", || !lock.snapshot().waiting.is_empty());
            drop(guard);
        });
        drop(lock.enter(3));
    });
}

/// If that thread waits for the lock, it is a deadlock of that thread, in whatever way it has used
/// the guard.
#[test]
fn a_guard_that_was_sent_is_found_where_it_is() {
    let _turn = alone(Action::Panic);
    is_found(|lock| lock.enter_arc(1), |guard| assert_eq!(**guard, 7));
    is_found(|lock| lock.enter_arc(1), |guard| assert_eq!(*OwnedSessionGuard::session(guard), 1));
    is_found(|lock| lock.exclusive_arc(), |guard| **guard = 8);
}

/// Another thread uses the guard and waits for the lock. That deadlock is found.
fn is_found<G: Send + 'static>(
    enter: impl FnOnce(&Arc<GroupLock<u8, u8>>) -> G,
    use_it: impl FnOnce(&mut G) + Send + 'static,
) {
    let lock = Arc::new(GroupLock::new(7));
    let mut guard = enter(&lock);
    let message = panic_of(move || {
        use_it(&mut guard);
        let _two = lock.enter(2);
        drop(guard);
    });
    assert!(message.contains("waits at"), "{message}");
}

/// Two threads that wait for each other are one deadlock, and one of them reports it.
#[test]
fn a_deadlock_of_two_threads_is_reported_once() {
    let _turn = alone(Action::Call(record));
    let locks = [(); 2].map(|()| Arc::new(GroupLock::new(())));
    let barrier = Arc::new(Barrier::new(2));
    let (send, receive) = mpsc::channel();
    let threads = [0, 1].map(|me| {
        let (mine, other) = (Arc::clone(&locks[me]), Arc::clone(&locks[1 - me]));
        let (barrier, send) = (Arc::clone(&barrier), send.clone());
        thread::spawn(move || {
            // It is not used where it is sent to, so it counts for this thread.
            send.send(mine.enter_arc(1)).unwrap();
            barrier.wait();
            drop(other.exclusive());
        })
    });
    let guards = [(); 2].map(|()| receive.recv().unwrap());
    wait_until("there is a report", || !reports().is_empty());
    let [deadlock] = &check_deadlock()[..] else { panic!("there is one") };
    assert_eq!(deadlock.threads().len(), 2);
    // Both have looked again.
    thread::sleep(3 * GRACE);
    let told = reports().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    drop(guards);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn long_waits_are_no_false_alarm() {
    let _turn = alone(Action::Panic);
    let (one, two) = (GroupLock::new(()), GroupLock::new(()));
    thread::scope(|scope| {
        let guard = one.enter(1);
        // Waits for this thread, and holds another lock. This thread does not wait.
        scope.spawn(|| {
            let _two = two.enter(1);
            let _one = one.enter(2);
        });
        wait_until("it waits", || !one.snapshot().waiting.is_empty());
        // Waits for the other thread.
        scope.spawn(|| drop(two.exclusive()));
        wait_until("both wait", || !two.snapshot().waiting.is_empty());
        thread::sleep(3 * GRACE);
        assert!(check_deadlock().is_empty());
        drop(guard);
    });
}

#[test]
fn waits_with_a_deadline_end_by_themselves() {
    let _turn = alone(Action::Panic);
    let lock = GroupLock::new(());
    let _one = lock.enter(1);
    assert!(lock.try_enter_for(2, 3 * GRACE).is_none());
    assert!(lock.try_exclusive_for(3 * GRACE).is_none());
}

#[test]
fn leaving_switching_and_downgrading_are_noticed() {
    let _turn = alone(Action::Panic);
    let lock = Arc::new(GroupLock::new(()));
    let theirs = Arc::clone(&lock);
    let line = line!() + 3;
    let message = panic_of(move || {
        let guard = theirs.exclusive();
        let mut guard = ExclusiveGuard::downgrade(guard, 1);
        SessionGuard::switch(&mut guard, 2);
        drop(guard);
        let guard = theirs.exclusive();
        let _guard = ExclusiveGuard::downgrade(guard, 3);
        let _other = theirs.enter(4);
    });
    let since = format!("inside a session since {}:{}:", file!(), line + 4);
    assert!(message.contains(&since), "{message}");
}

/// A thread that switches cannot withdraw: its deadlock is printed, and it continues to wait.
#[test]
fn switching_with_another_guard() {
    let _turn = alone(Action::Panic);
    let lock = Arc::new(GroupLock::new(()));
    let (send, receive) = mpsc::channel();
    let theirs = Arc::clone(&lock);
    let thread = thread::spawn(move || {
        let mut one = theirs.enter(1);
        send.send(theirs.enter_arc(1)).unwrap();
        SessionGuard::switch(&mut one, 2);
        *SessionGuard::session(&one)
    });
    let other = receive.recv().unwrap();
    wait_until("there is a deadlock", || !check_deadlock().is_empty());
    thread::sleep(3 * GRACE);
    assert!(!thread.is_finished());
    drop(other);
    assert_eq!(thread.join().unwrap(), 2);
}

/// A leaked guard is still inside. Its registration ends with the lock, and the next lock at that
/// address is another one.
#[test]
fn leaked_guards_go_with_their_lock() {
    let _turn = alone(Action::Panic);
    let message = panic_of(|| {
        let lock = GroupLock::new(());
        std::mem::forget(lock.enter(1));
        drop(lock.enter(2));
    });
    assert!(message.contains("inside a session since"), "{message}");
    let mut place = None;
    for round in 0..2 {
        let lock = place.insert(GroupLock::new(()));
        thread::scope(|scope| {
            let guard = (round == 1).then(|| scope.spawn(|| lock.enter(1)).join().unwrap());
            scope.spawn(|| {
                let guard = guard;
                if round == 1 {
                    wait_until("the other waits", || !lock.snapshot().waiting.is_empty());
                    thread::sleep(3 * GRACE);
                }
                drop(guard);
            });
            if round == 0 {
                std::mem::forget(lock.enter(1));
            } else {
                drop(lock.enter(2));
            }
        });
    }
}

/// Guards of tasks belong to no thread, so nothing is reported about them.
#[test]
fn tasks_are_not_watched() {
    use std::task::{Context, Poll, Waker};

    let _turn = alone(Action::Panic);
    let lock = GroupLock::new(());
    let mut future = std::pin::pin!(lock.enter_async(1));
    let Poll::Ready(mut guard) = future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("the room is free")
    };
    {
        let mut switch = std::pin::pin!(SessionGuard::switch_async(&mut guard, 3));
        assert!(switch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    // A task uses it on this thread.
    let () = *guard;
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = guard;
            wait_until("the other waits", || !lock.snapshot().waiting.is_empty());
            thread::sleep(3 * GRACE);
            drop(guard);
        });
        drop(lock.enter(2));
    });
}

#[cfg(all(feature = "lock_api", not(feature = "send_guard")))]
mod views {
    use grouplock::raw::{RwLockUpgradableReadGuard, RwLockWriteGuard};
    use grouplock::{Mutex, RwLock};

    use super::{Action, Arc, Barrier, alone, panic_of, thread, wait_until};

    #[test]
    fn locking_a_mutex_twice() {
        let _turn = alone(Action::Panic);
        let line = line!() + 3;
        let message = panic_of(|| {
            let mutex = Mutex::new(());
            let _one = mutex.lock();
            let _two = mutex.lock();
        });
        assert!(message.contains(&format!("waits at {}:{}:", file!(), line + 1)), "{message}");
        assert!(message.contains(&format!("is alone since {}:{line}:", file!())), "{message}");
    }

    #[test]
    fn writing_while_reading() {
        let _turn = alone(Action::Panic);
        let lock = Arc::new(RwLock::new(()));
        let theirs = Arc::clone(&lock);
        let message = panic_of(move || {
            let _reading = RwLockWriteGuard::downgrade(theirs.write());
            let _writing = theirs.write();
        });
        assert!(message.contains("inside a session since"), "{message}");
        assert!(lock.try_write().is_some(), "nothing is left of it");
    }

    #[test]
    fn upgradable_twice() {
        let _turn = alone(Action::Panic);
        let lock = Arc::new(RwLock::new(()));
        let theirs = Arc::clone(&lock);
        let message = panic_of(move || {
            let _one = theirs.upgradable_read();
            let _two = theirs.upgradable_read();
        });
        assert!(message.contains("waits at"), "{message}");
        let again = lock.upgradable_read();
        drop(RwLockUpgradableReadGuard::upgrade(again));
    }

    #[test]
    fn two_mutexes_in_two_orders() {
        let _turn = alone(Action::Panic);
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let barrier = Arc::new(Barrier::new(2));
        let threads: Vec<_> = (0..2)
            .map(|me| {
                let (locks, barrier) = (Arc::clone(&locks), Arc::clone(&barrier));
                thread::spawn(move || {
                    let _mine = locks[me].lock();
                    barrier.wait();
                    let _other = locks[1 - me].lock();
                })
            })
            .collect();
        wait_until("all have ended", || threads.iter().all(thread::JoinHandle::is_finished));
        let gave_up = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert_eq!(gave_up, 1);
    }
}
