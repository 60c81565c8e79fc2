//! The lock under shuttle: six participants, threads and tasks, in schedules drawn at random and by
//! changing priorities (PCT).
//!
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test --release -p grouplock --test shuttle`, or
//! `cargo xtask test shuttle`. Shuttle reports when all threads sleep. It prints the schedule of a
//! failure, which `shuttle::replay` repeats.
//!
//! The times that participants spend inside and outside are random, with a few very long ones. If
//! all participants did the same, most mistakes would be missed.
#![cfg(shuttle)]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Core, Phases, Striped};
use grouplock::{ExclusiveGuard, GroupLock, Policy, SessionGuard};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Barrier;
use shuttle::{Runner, future, thread};

const SESSIONS: u32 = 3;
/// The session number of an exclusive holder.
const ALONE: u32 = 99;
const IMPATIENT: Policy = Policy::Eventual { patience: Duration::ZERO };
const PATIENT: Policy = Policy::Eventual { patience: Duration::MAX };
const SOME_TIME: Duration = Duration::from_secs(3600);

/// The holders. Shuttle runs one thread at a time, so this is exact.
#[derive(Default)]
struct Room {
    session: AtomicU32,
    holders: AtomicUsize,
    /// The number of passages.
    passages: AtomicUsize,
    /// The session that the room was set up for last, if no other session has entered since.
    ready: AtomicU32,
    /// The largest number of holders of a session, if there is a limit.
    most: Option<usize>,
}

/// No session.
const NONE: u32 = 98;

impl Room {
    fn come(&self, session: u32) {
        let others = self.holders.fetch_add(1, SeqCst);
        let before = self.session.swap(session, SeqCst);
        assert!(
            others == 0 || before == session && session != ALONE,
            "session {session} entered while {others} of session {before} were inside"
        );
        assert!(self.most.is_none_or(|most| others < most), "{others} were inside already");
        self.passages.fetch_add(1, SeqCst);
        if session != ALONE && self.ready.load(SeqCst) != session {
            self.ready.store(NONE, SeqCst);
        }
    }

    /// A holder has entered with set-up.
    fn come_ready(&self, session: u32) {
        assert_eq!(self.ready.load(SeqCst), session, "not set up");
        self.come(session);
    }

    /// A holder sets the room up for `session`, alone. The room is not set up meanwhile.
    fn begin(&self) {
        self.ready.store(NONE, SeqCst);
        self.come(ALONE);
    }

    fn end(&self, session: u32) {
        self.go(ALONE);
        self.ready.store(session, SeqCst);
    }

    fn go(&self, session: u32) {
        assert_eq!(self.session.load(SeqCst), session);
        self.holders.fetch_sub(1, SeqCst);
    }
}

fn draw(below: u32) -> u32 {
    thread_rng().gen_range(0..below)
}

/// How long to stay inside: mostly not at all, rarely very long.
fn dwell() -> u32 {
    match draw(16) {
        0..=8 => 0,
        9..=13 => draw(4),
        14 => draw(20),
        _ => draw(100),
    }
}

fn stay() {
    (0..dwell()).for_each(|_| thread::yield_now());
}

async fn stay_async() {
    for _ in 0..dwell() {
        future::yield_now().await;
    }
}

/// What a holder of `session` does.
fn inside(room: &Room, session: u32) {
    room.come(session);
    stay();
    room.go(session);
}

fn as_thread<C: Core<Session = u32>>(lock: &GroupLock<u32, Room, C>) {
    stay();
    let session = draw(SESSIONS);
    match draw(13) {
        9 => {
            let mut guard = lock.enter(session);
            inside(&guard, session);
            let next = draw(SESSIONS);
            let switched = SessionGuard::try_switch(&mut guard, next);
            inside(&guard, if switched { next } else { session });
        }
        10 => {
            let next = draw(SESSIONS);
            let guard = lock.enter(session);
            if let Some(guard) = SessionGuard::try_switch_for(guard, next, SOME_TIME) {
                inside(&guard, next);
            }
        }
        11 => {
            let guard = lock.enter(session);
            let epoch = SessionGuard::epoch(&guard);
            // A second guard may exceed the limit.
            let again = guard.most.is_none().then(|| SessionGuard::again(&guard));
            inside(&guard, session);
            assert_eq!(SessionGuard::epoch(&guard), epoch);
            drop(guard);
            if let Some(again) = again {
                inside(&again, session);
                assert_eq!(SessionGuard::epoch(&again), epoch);
            }
        }
        12 => {
            if let Some(guard) = lock.try_exclusive() {
                inside(&guard, ALONE);
            }
        }
        7 => {
            let guard = lock.enter_with(session, |room| {
                room.begin();
                stay();
                room.end(session);
            });
            guard.come_ready(session);
            stay();
            guard.go(session);
        }
        8 => {
            let failed = lock.enter_with_result(session, |room| {
                room.begin();
                room.go(ALONE);
                Err(())
            });
            if let Ok(guard) = failed {
                guard.come_ready(session);
                guard.go(session);
            }
        }
        0 => {
            let guard = lock.enter(session);
            inside(&guard, session);
        }
        1 => {
            let guard = lock.exclusive();
            inside(&guard, ALONE);
        }
        2 => {
            if let Some(guard) = lock.try_enter(session) {
                inside(&guard, session);
            }
        }
        3 => {
            if let Some(guard) = lock.try_enter_for(session, SOME_TIME) {
                inside(&guard, session);
            }
        }
        4 => {
            if let Some(guard) = lock.try_exclusive_for(SOME_TIME) {
                inside(&guard, ALONE);
            }
        }
        5 => {
            let mut guard = lock.enter(session);
            inside(&guard, session);
            let next = draw(SESSIONS);
            SessionGuard::switch(&mut guard, next);
            assert_eq!(*SessionGuard::session(&guard), next);
            inside(&guard, next);
        }
        _ => {
            let guard = lock.exclusive();
            inside(&guard, ALONE);
            let guard = ExclusiveGuard::downgrade(guard, session);
            inside(&guard, session);
        }
    }
}

/// Returns the output of `future`. If it is not ready after so many more polls, it is dropped.
async fn within<F: Future>(mut polls: u32, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if polls == 0 => Poll::Ready(None),
        Poll::Pending => {
            polls -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

async fn as_task<C: Core<Session = u32>>(lock: &GroupLock<u32, Room, C>) {
    stay_async().await;
    let session = draw(SESSIONS);
    match draw(9) {
        7 => {
            // Drops its switch after a while, admitted or not.
            let mut guard = lock.enter_async(session).await;
            let next = draw(SESSIONS);
            if within(draw(4), SessionGuard::switch_async(&mut guard, next)).await.is_some() {
                guard.come(next);
                stay_async().await;
                guard.go(next);
            }
        }
        8 => {
            if let Some(guard) = within(draw(4), lock.exclusive_async()).await {
                guard.come(ALONE);
                stay_async().await;
                guard.go(ALONE);
            }
        }
        4 => {
            let mut guard = lock.enter_async(session).await;
            let next = draw(SESSIONS);
            SessionGuard::switch_async(&mut guard, next).await;
            guard.come(next);
            stay_async().await;
            guard.go(next);
        }
        5..=6 => {
            // Withdraws after a while, perhaps in the middle of its set-up.
            let set_up = async |room: &mut Room| {
                room.ready.store(NONE, SeqCst);
                assert_eq!(room.holders.load(SeqCst), 0);
                stay_async().await;
                assert_eq!(room.holders.load(SeqCst), 0);
                room.ready.store(session, SeqCst);
            };
            let outcome = within(draw(20), lock.enter_with_async(session, set_up)).await;
            if let Some(guard) = outcome {
                guard.come_ready(session);
                stay_async().await;
                guard.go(session);
            }
        }
        0 => {
            let guard = lock.exclusive_async().await;
            guard.come(ALONE);
            stay_async().await;
            guard.go(ALONE);
        }
        1..=2 => {
            let guard = lock.enter_async(session).await;
            guard.come(session);
            stay_async().await;
            guard.go(session);
        }
        _ => {
            // Withdraws after a while, admitted or not.
            let outcome = within(draw(4), lock.enter_async(session)).await;
            if let Some(guard) = outcome {
                guard.come(session);
                stay_async().await;
                guard.go(session);
            }
        }
    }
}

/// One execution: three threads and three tasks, each with three requests.
fn storm<C: Core<Session = u32> + Send + Sync + 'static>(core: C, most: Option<usize>)
where
    C::Pass: Send,
    C::Waiting: Send,
{
    let lock = Arc::new(GroupLock::over(core, Room { most, ..Room::default() }));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || (0..3).for_each(|_| as_thread(&lock)))
        })
        .collect();
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let lock = Arc::clone(&lock);
            future::spawn(async move {
                for _ in 0..3 {
                    as_task(&lock).await;
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    for task in tasks {
        future::block_on(task).expect("it is not cancelled");
    }
    let seen = lock.snapshot();
    assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    assert!(lock.try_exclusive().is_some());
}

type Part = fn(&GroupLock<u32, Barrier>);

/// Few threads, each with its own part. Executions are short, so there are more of them.
fn few(policy: Policy, parts: &'static [Part]) {
    let play = move || {
        let lock = Arc::new(GroupLock::with_policy(policy, Barrier::new(2)));
        let threads: Vec<_> = parts
            .iter()
            .map(|part| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || part(&lock))
            })
            .collect();
        for thread in threads {
            thread.join().expect("it does not panic");
        }
        let seen = lock.snapshot();
        assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
    };
    run(RandomScheduler::new, 40 * EXECUTIONS, FEW, play);
    run(by_priorities, 10 * EXECUTIONS, FEW, play);
}

/// Long enough for other threads to do anything.
fn linger() {
    (0..draw(40)).for_each(|_| thread::yield_now());
}

fn meet(lock: &GroupLock<u32, Barrier>) {
    linger();
    lock.enter(2).wait();
}

/// Two holders of a session wait for each other inside. A thread that gives an empty room its
/// session admits the other if that waits. (Some policies make the second request wait behind
/// another session. Under them the two would wait forever.)
#[test]
fn waiters_of_the_session_inside_join_it() {
    for policy in [PATIENT, Policy::Batch { passes: 2 }] {
        few(
            policy,
            &[
                |lock| {
                    let inside = lock.enter(1);
                    linger();
                    drop(inside);
                },
                |lock| meet(lock),
                |lock| meet(lock),
            ],
        );
    }
}

/// The same after a holder that was alone, in a room whose name is their session: one may enter by
/// the fast path while the other waits.
#[test]
fn waiters_of_a_session_meet_after_a_holder_that_was_alone() {
    for policy in [PATIENT, Policy::Batch { passes: 2 }] {
        few(
            policy,
            &[
                |lock| {
                    drop(lock.enter(2));
                    let alone = lock.exclusive();
                    linger();
                    drop(alone);
                },
                |lock| meet(lock),
                |lock| meet(lock),
            ],
        );
    }
}

/// The number of executions of a storm.
const EXECUTIONS: usize = 500;

/// How often a test of few threads calls [`run`]: with two policies, and two schedulers.
const FEW: u64 = 4;

fn by_priorities(executions: usize) -> PctScheduler {
    PctScheduler::new(4, executions)
}

/// Runs a model so many times. With `GROUPLOCK_SHUTTLE_SECONDS`, the `runs` of a test share that
/// time instead.
fn run<S: Scheduler + 'static>(
    scheduler: impl Fn(usize) -> S,
    executions: usize,
    runs: u64,
    model: impl Fn() + Send + Sync + 'static,
) {
    let time = std::env::var("GROUPLOCK_SHUTTLE_SECONDS").ok().map(|seconds| {
        let number: u64 = seconds.parse().unwrap_or_else(|_| {
            panic!("GROUPLOCK_SHUTTLE_SECONDS={seconds} is not a number of seconds")
        });
        Duration::from_millis(number.saturating_mul(1_000) / runs)
    });
    let mut config = shuttle::Config::default();
    // Enough for the longest stays inside.
    config.max_steps = shuttle::MaxSteps::FailAfter(1_000_000);
    // When the time is over, shuttle prints a "failing seed", although nothing failed.
    config.max_time = time;
    let executions = if time.is_some() { usize::MAX } else { executions };
    println!("{} executions", Runner::new(scheduler(executions), config).run(model));
}

macro_rules! storms {
    ($($name:ident: $core:expr, $most:expr;)*) => {
        $(
            mod $name {
                use super::*;

                /// The scheduler chooses each step at random.
                #[test]
                fn at_random() {
                    run(RandomScheduler::new, EXECUTIONS, 1, || storm($core, $most));
                }

                /// Threads have random priorities, which change a few times in an execution.
                #[test]
                fn by_priorities() {
                    run(super::by_priorities, EXECUTIONS, 1, || storm($core, $most));
                }
            }
        )*
    };
}

const LASTING: Policy = Policy::BatchFor { wait: Duration::MAX };

/// At most two holders of a session.
fn limited(policy: Policy) -> Phases<u32> {
    Phases::with_policy(policy).at_most(|_| 2)
}

storms! {
    fifo: Phases::with_policy(Policy::Fifo), None;
    batch: Phases::with_policy(Policy::Batch { passes: 2 }), None;
    batch_for: Phases::with_policy(LASTING), None;
    impatient: Phases::with_policy(IMPATIENT), None;
    patient: Phases::with_policy(PATIENT), None;
    limited_fifo: limited(Policy::Fifo), Some(2);
    limited_batch: limited(Policy::Batch { passes: 2 }), Some(2);
    limited_patient: limited(PATIENT), Some(2);
    striped_fifo: Striped::new(Policy::Fifo), None;
    striped_batch: Striped::new(Policy::Batch { passes: 2 }), None;
    striped_patient: Striped::new(PATIENT), None;
}

#[cfg(feature = "handover")]
storms! {
    handover: Handover::new(), None;
}

/// Two holders of a session wait for each other inside, a thread and a task. Either may admit the
/// other, and a task that a thread admits is woken before that thread leaves.
#[cfg(feature = "handover")]
#[test]
fn a_thread_that_enters_wakes_the_task_that_it_admits() {
    let play = || {
        let lock = Arc::new(GroupLock::<u32, _, _>::over(Handover::new(), Barrier::new(2)));
        let inside = lock.enter_arc(1);
        let (one, other) = (Arc::clone(&lock), Arc::clone(&lock));
        let thread = thread::spawn(move || {
            linger();
            one.enter(2).wait();
        });
        let task = future::spawn(async move {
            stay_async().await;
            other.enter_async(2).await.wait();
        });
        linger();
        drop(inside);
        thread.join().expect("it does not panic");
        future::block_on(task).expect("it is not cancelled");
    };
    run(RandomScheduler::new, 20 * EXECUTIONS, 2, play);
    run(by_priorities, 5 * EXECUTIONS, 2, play);
}
