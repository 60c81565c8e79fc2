//! The lock under loom: all executions that loom's memory model has, of two or three participants
//! with one or two requests each. (The language allows more: loom's reads return no value that is
//! written later.)
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p grouplock --test loom`, or
//! `cargo xtask test loom`. Each model has a bound on involuntary switches, or is small enough
//! without one. It must end within [`LIMIT`]. `cargo xtask soak` runs all models without a bound,
//! each for a limited time.
//!
//! The data is a cell of loom, which reports unordered accesses. In a model, the queue and the name
//! inside the lock are such cells, too. There is no clock: `patience` is zero or infinite, and a
//! wait with an end may end at any time. Loom reports when all threads sleep.
#![cfg(loom)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

#[cfg(feature = "handover")]
use grouplock::cores::Handover;
use grouplock::cores::{Core, Phases, Striped};
use grouplock::{ExclusiveGuard, GroupLock, Policy, SessionGuard};
use loom::cell::UnsafeCell;
use loom::thread::{self, Thread};

/// Holders of this session read.
const READ: u8 = 0;
/// Holders of this session write. One participant of a model uses it.
const WRITE: u8 = 1;
/// The same, for another participant.
const WRITE_TOO: u8 = 2;

const IMPATIENT: Policy = Policy::Eventual { patience: Duration::ZERO };
const PATIENT: Policy = Policy::Eventual { patience: Duration::MAX };
const BATCH: Policy = Policy::Batch { passes: 1 };

/// The time limit for a model, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Long enough to join the queue. The model decides when it is over.
const SOME_TIME: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Data(UnsafeCell<usize>);

// SAFETY: loom checks the accesses.
unsafe impl Sync for Data {}
// SAFETY: as above.
unsafe impl Send for Data {}

impl Data {
    fn read(&self) {
        // SAFETY: loom reports a concurrent write.
        self.0.with(|data| unsafe { *data });
    }

    fn write(&self) {
        // SAFETY: loom reports a concurrent access.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }

    /// Sets the data up for `session`.
    fn set_up(&self, session: u8) {
        // SAFETY: loom reports a concurrent access.
        self.0.with_mut(|data| unsafe { *data = 100 + usize::from(session) });
    }

    /// Returns whether it is set up for `session`.
    fn is_for(&self, session: u8) -> bool {
        // SAFETY: loom reports a concurrent write.
        self.0.with(|data| unsafe { *data }) == 100 + usize::from(session)
    }

    /// What a holder of `session` does.
    fn inside(&self, session: u8) {
        if session == READ { self.read() } else { self.write() }
    }
}

type Lock<C> = GroupLock<u8, Data, C>;

fn enter<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    lock.enter(session).inside(session);
}

fn exclusive<C: Core<Session = u8>>(lock: &Lock<C>) {
    lock.exclusive().write();
}

/// Enters alone, and does not change the data.
fn exclusive_idle<C: Core<Session = u8>>(lock: &Lock<C>) {
    drop(lock.exclusive());
}

fn try_enter<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    if let Some(guard) = lock.try_enter(session) {
        guard.inside(session);
    }
}

fn enter_for_some_time<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    if let Some(guard) = lock.try_enter_for(session, SOME_TIME) {
        guard.inside(session);
    }
}

fn switch<C: Core<Session = u8>>(lock: &Lock<C>, from: u8, to: u8) {
    let mut guard = lock.enter(from);
    guard.inside(from);
    SessionGuard::switch(&mut guard, to);
    assert_eq!(*SessionGuard::session(&guard), to);
    guard.inside(to);
}

/// As a task, to the end.
fn switch_async<C: Core<Session = u8>>(lock: &Lock<C>, from: u8, to: u8) {
    let mut guard = lock.enter(from);
    guard.inside(from);
    block_on(SessionGuard::switch_async(&mut guard, to));
    assert_eq!(*SessionGuard::session(&guard), to);
    guard.inside(to);
}

/// As a task that withdraws unless the switch is done at once. The guard is outside then.
fn give_up_switch<C: Core<Session = u8>>(lock: &Lock<C>, from: u8, to: u8) {
    let mut guard = lock.enter(from);
    let mut switch = SessionGuard::switch_async(&mut guard, to);
    let switched = Pin::new(&mut switch).poll(&mut Context::from_waker(Waker::noop()));
    drop(switch);
    if switched.is_ready() {
        guard.inside(to);
    }
}

/// Enters a session of readers, with set-up.
fn enter_with<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let guard = lock.enter_with(session, |data| data.set_up(session));
    assert!(guard.is_for(session));
}

/// As a task, whose set-up takes two polls.
fn enter_with_async<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let guard = block_on(lock.enter_with_async(session, async |data: &mut Data| {
        data.write();
        let mut first = true;
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        data.set_up(session);
    }));
    assert!(guard.is_for(session));
}

/// As a task that is dropped in the queue, after it was admitted, or in the middle of its set-up.
fn give_up_set_up<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let set_up = async |data: &mut Data| {
        data.write();
        std::future::pending::<()>().await;
    };
    let mut future = pin!(lock.enter_with_async(session, set_up));
    let entered = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if let Poll::Ready(guard) = entered {
        assert!(guard.is_for(session));
    }
}

fn downgrade<C: Core<Session = u8>>(lock: &Lock<C>, to: u8) {
    let guard = lock.exclusive();
    guard.write();
    let guard = ExclusiveGuard::downgrade(guard, to);
    guard.inside(to);
}

/// As a task, to the end.
fn enter_async<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    block_on(lock.enter_async(session)).inside(session);
}

/// As a task that withdraws unless it enters at once. It may have been admitted before.
fn give_up<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let mut future = pin!(lock.enter_async(session));
    if let Poll::Ready(guard) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        guard.inside(session);
    }
}

/// The same, for a request to be alone.
fn give_up_exclusive<C: Core<Session = u8>>(lock: &Lock<C>) {
    let mut future = pin!(lock.exclusive_async());
    if let Poll::Ready(guard) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        guard.write();
    }
}

/// Polls twice, with two wakers, and then withdraws.
fn poll_again_and_give_up<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let mut future = pin!(lock.enter_async(session));
    for _ in 0..2 {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        if let Poll::Ready(guard) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            guard.inside(session);
            return;
        }
    }
}

/// As a task that moves from one waker, which does nothing, to another.
fn enter_async_elsewhere<C: Core<Session = u8>>(lock: &Lock<C>, session: u8) {
    let mut future = pin!(lock.enter_async(session));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(guard) => guard.inside(session),
        Poll::Pending => block_on(future).inside(session),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Explores what `participants` do to a lock: all executions if there is no `bound`, otherwise all
/// with at most so many involuntary switches. At the end there are no holders and no waiters.
///
/// With `GROUPLOCK_LOOM_SECONDS` there is no bound. Each model is explored for that time, or to its
/// end. The test prints which.
fn explore<C: Core<Session = u8> + Send + Sync + 'static>(
    bound: Option<usize>,
    new: impl Fn() -> C + Send + Sync + 'static,
    participants: &'static [fn(&Lock<C>)],
) {
    let seconds = std::env::var("GROUPLOCK_LOOM_SECONDS").ok().map(|seconds| {
        seconds.parse().unwrap_or_else(|_| {
            panic!("GROUPLOCK_LOOM_SECONDS={seconds} is not a number of seconds")
        })
    });
    let time = seconds.map_or(LIMIT, Duration::from_secs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = if seconds.is_some() { None } else { bound };
    builder.max_duration = Some(time);
    // How often it reads the clock.
    builder.checkpoint_interval = 1_000;
    builder.max_branches = 100_000;
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let start = Instant::now();
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        let lock = Arc::new(GroupLock::over(new(), Data::default()));
        // Not this thread: loom does not expect an unpark of a thread that joins others, and a
        // thread that was just admitted may get one.
        let threads: Vec<_> = participants
            .iter()
            .map(|participant| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || participant(&lock))
            })
            .collect();
        for thread in threads {
            thread.join().expect("it does not panic");
        }
        let seen = lock.snapshot();
        assert_eq!((seen.holders, seen.waiting.len()), (0, 0));
        lock.try_exclusive().expect("the room is empty").write();
    });
    // Loom does not report that its time is over.
    let ended = start.elapsed() < time;
    let so_far = if ended { "to its end" } else { "not to its end" };
    println!("{} executions, {so_far}, in {:.1?}", executions.load(Relaxed), start.elapsed());
    assert!(ended || seconds.is_some(), "not explored to its end in {time:?}");
}

/// Makes a test for each policy: `name: policy, bound => participants`.
macro_rules! models {
    ($($name:ident: $policy:expr, $bound:expr => [$($participant:expr),* $(,)?];)*) => {
        $(
            #[test]
            fn $name() {
                explore::<Phases<u8>>($bound, || Phases::with_policy($policy), &[$($participant),*]);
            }
        )*
    };
}

/// The same for striped locks. In a model, every entry at the central lock favours its session.
macro_rules! striped_models {
    ($($name:ident: $policy:expr, $bound:expr => [$($participant:expr),* $(,)?];)*) => {
        $(
            #[test]
            fn $name() {
                explore::<Striped<u8>>($bound, || Striped::new($policy), &[$($participant),*]);
            }
        )*
    };
}

/// Two participants, with at most two or three involuntary switches, and one model without a bound.
mod two {
    use super::*;

    models! {
        fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| enter(l, WRITE)];
        impatient: IMPATIENT, Some(3) => [|l| enter(l, READ), |l| enter(l, WRITE)];
        patient: PATIENT, Some(3) => [|l| enter(l, READ), |l| enter(l, WRITE)];
        batch: BATCH, Some(3) => [|l| enter(l, READ), |l| enter(l, WRITE)];
        exclusive_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), exclusive];
        exclusive_patient: PATIENT, Some(3) => [|l| enter(l, READ), exclusive];
        exclusive_both: PATIENT, None => [exclusive, exclusive];
        try_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| try_enter(l, WRITE)];
        try_patient: PATIENT, Some(3) => [|l| enter(l, WRITE), |l| { try_enter(l, READ); try_enter(l, READ) }];
        timeout_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE)];
        timeout_patient: PATIENT, Some(3) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE)];
        timeout_impatient: IMPATIENT, Some(3) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE)];
        task_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| enter_async(l, WRITE)];
        task_patient: PATIENT, Some(3) => [|l| enter(l, READ), |l| enter_async(l, WRITE)];
        tasks_impatient: IMPATIENT, Some(3) => [|l| enter_async(l, READ), |l| enter_async(l, WRITE)];
        task_elsewhere: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| enter_async_elsewhere(l, WRITE)];
        cancel_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| give_up(l, WRITE)];
        cancel_patient: PATIENT, Some(3) => [|l| enter(l, READ), |l| give_up(l, WRITE)];
        cancel_exclusive: Policy::Fifo, Some(3) => [|l| enter(l, READ), give_up_exclusive];
        cancel_repolled: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| poll_again_and_give_up(l, WRITE)];
        switch_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| switch(l, READ, WRITE)];
        switch_patient: PATIENT, Some(3) => [|l| enter(l, WRITE), |l| switch(l, READ, WRITE_TOO)];
        switch_both: Policy::Fifo, Some(2) => [|l| switch(l, READ, WRITE), |l| switch(l, READ, WRITE_TOO)];
        switch_task_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| switch_async(l, READ, WRITE)];
        switch_task_patient: PATIENT, Some(3) => [|l| enter(l, WRITE), |l| switch_async(l, READ, WRITE_TOO)];
        switch_tasks: Policy::Fifo, Some(2) => [|l| switch_async(l, READ, WRITE), |l| switch(l, READ, WRITE_TOO)];
        switch_dropped_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| give_up_switch(l, READ, WRITE)];
        switch_dropped_patient: PATIENT, Some(3) => [|l| enter(l, WRITE), |l| give_up_switch(l, READ, WRITE_TOO)];
        set_up_fifo: Policy::Fifo, Some(3) => [|l| enter_with(l, READ), |l| enter_with(l, READ)];
        set_up_patient: PATIENT, Some(3) => [|l| enter_with(l, READ), |l| enter_with(l, READ)];
        set_up_differ: PATIENT, Some(3) => [|l| enter_with(l, READ), |l| enter_with(l, WRITE)];
        set_up_impatient: IMPATIENT, Some(3) => [|l| enter_with(l, READ), |l| enter(l, WRITE)];
        set_up_plain: PATIENT, Some(3) => [|l| enter_with(l, READ), |l| enter(l, READ)];
        set_up_exclusive: Policy::Fifo, Some(3) => [|l| enter_with(l, READ), exclusive_idle];
        set_up_task: Policy::Fifo, Some(3) => [|l| enter_with_async(l, READ), |l| enter_with(l, READ)];
        set_up_dropped_fifo: Policy::Fifo, Some(3) => [|l| enter_with(l, READ), |l| give_up_set_up(l, READ)];
        set_up_dropped_patient: PATIENT, Some(3) => [|l| enter_with(l, READ), |l| give_up_set_up(l, WRITE)];
        set_up_again: PATIENT, Some(2) => [
            |l| { enter_with(l, READ); enter_with(l, READ) },
            |l| { enter(l, WRITE); enter_with(l, READ) },
        ];
        downgrade_fifo: Policy::Fifo, Some(3) => [|l| enter(l, READ), |l| downgrade(l, READ)];
        downgrade_patient: PATIENT, Some(3) => [|l| enter(l, WRITE), |l| downgrade(l, READ)];
        twice_patient: PATIENT, Some(2) => [
            |l| { enter(l, READ); enter(l, READ) },
            |l| { enter(l, WRITE); enter(l, WRITE) },
        ];
        twice_fifo: Policy::Fifo, Some(2) => [
            |l| { enter(l, READ); enter(l, WRITE) },
            |l| { enter(l, READ); enter(l, WRITE_TOO) },
        ];
    }
}

/// Three participants, with at most one involuntary switch.
mod three {
    use super::*;

    models! {
        fifo: Policy::Fifo, Some(1) => [|l| enter(l, READ), |l| enter(l, READ), |l| enter(l, WRITE)];
        impatient: IMPATIENT, Some(1) => [|l| enter(l, READ), |l| enter(l, READ), |l| enter(l, WRITE)];
        patient: PATIENT, Some(1) => [|l| enter(l, READ), |l| enter(l, READ), |l| enter(l, WRITE)];
        patient_all_differ: PATIENT, Some(1) => [|l| enter(l, READ), |l| enter(l, WRITE), |l| enter(l, WRITE_TOO)];
        cancel: Policy::Fifo, Some(1) => [|l| enter(l, READ), |l| give_up(l, WRITE), |l| enter(l, READ)];
        cancel_patient: PATIENT, Some(1) => [|l| enter(l, READ), |l| give_up(l, WRITE), exclusive];
        timeout: Policy::Fifo, Some(1) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE), |l| enter(l, READ)];
        timeout_patient: PATIENT, Some(1) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE), exclusive];
        switch_three: Policy::Fifo, Some(1) => [|l| enter(l, READ), |l| switch(l, READ, WRITE), exclusive];
        downgrade_three: PATIENT, Some(1) => [|l| enter(l, READ), |l| downgrade(l, READ), |l| enter(l, WRITE)];
        set_up_three: Policy::Fifo, Some(1) => [|l| enter_with(l, READ), |l| give_up_set_up(l, READ), |l| enter(l, READ)];
        set_up_in_turn: PATIENT, Some(1) => [|l| enter_with(l, READ), |l| enter_with_async(l, READ), exclusive_idle];
        task_and_threads: PATIENT, Some(1) => [|l| enter_async(l, READ), |l| enter(l, WRITE), exclusive];
    }
}

/// At most one holder of a session: so holders that share it may write.
mod at_most_one {
    use super::*;

    fn explore_limited(
        policy: Policy,
        bound: Option<usize>,
        participants: &'static [fn(&Lock<Phases<u8>>)],
    ) {
        explore::<Phases<u8>>(
            bound,
            move || Phases::with_policy(policy).at_most(|_| 1),
            participants,
        );
    }

    /// Two requests for one session, which only one may hold, under a strict policy.
    #[test]
    fn same_fifo() {
        explore_limited(Policy::Fifo, Some(3), &[|l| enter(l, WRITE), |l| enter(l, WRITE)]);
    }

    /// Two requests for one session, which only one may hold, under a policy with overtaking.
    #[test]
    fn same_patient() {
        explore_limited(PATIENT, Some(3), &[|l| enter(l, WRITE), |l| enter(l, WRITE)]);
    }

    #[test]
    fn task_and_given_up() {
        explore_limited(PATIENT, Some(3), &[|l| enter_async(l, WRITE), |l| give_up(l, WRITE)]);
    }

    #[test]
    fn three_of_two_sessions() {
        explore_limited(
            PATIENT,
            Some(1),
            &[|l| enter(l, WRITE), |l| enter(l, WRITE), |l| enter(l, WRITE_TOO)],
        );
    }
}

/// Striped locks.
mod striped {
    use super::*;

    striped_models! {
        same: PATIENT, Some(2) => [|l| enter(l, READ), |l| enter(l, READ)];
        two_fifo: Policy::Fifo, Some(2) => [|l| { enter(l, READ); enter(l, READ) }, |l| enter(l, WRITE)];
        two_patient: PATIENT, Some(2) => [|l| { enter(l, READ); enter(l, READ) }, |l| enter(l, WRITE)];
        exclusive_two: PATIENT, Some(2) => [|l| { enter(l, READ); enter(l, READ) }, exclusive];
        switch_two: Policy::Fifo, Some(2) => [|l| { enter(l, READ); switch(l, READ, WRITE) }, |l| enter(l, READ)];
        cancel_two: Policy::Fifo, Some(2) => [|l| { enter(l, READ); enter(l, READ) }, |l| give_up(l, WRITE)];
        set_up_two: PATIENT, Some(2) => [|l| { enter_with(l, READ); enter_with(l, READ) }, |l| enter_with(l, READ)];
        set_up_other: Policy::Fifo, Some(2) => [|l| { enter_with(l, READ); enter_with(l, READ) }, |l| enter(l, WRITE)];
        switch_task: Policy::Fifo, Some(2) => [|l| { enter(l, READ); switch_async(l, READ, WRITE) }, |l| enter(l, READ)];
        try_two: PATIENT, Some(2) => [|l| { enter(l, READ); enter(l, READ) }, |l| try_enter(l, WRITE)];
        three_patient: PATIENT, Some(1) => [|l| { enter(l, READ); enter(l, READ) }, |l| enter(l, READ), |l| enter(l, WRITE)];
    }
}

/// Over the algorithm with constant cost. Its own models, without tasks, are in
/// `grouplock-algorithms`.
#[cfg(feature = "handover")]
mod handover {
    use super::*;

    macro_rules! handover_models {
        ($($name:ident: $bound:expr => [$($participant:expr),* $(,)?];)*) => {
            $(
                #[test]
                fn $name() {
                    explore::<Handover<u8>>($bound, Handover::new, &[$($participant),*]);
                }
            )*
        };
    }

    handover_models! {
        two: Some(2) => [|l| enter(l, READ), |l| enter(l, WRITE)];
        same: Some(2) => [|l| enter(l, READ), |l| enter(l, READ)];
        exclusive_two: Some(2) => [|l| enter(l, READ), exclusive];
        try_two: Some(2) => [|l| enter(l, READ), |l| { try_enter(l, WRITE); try_enter(l, READ) }];
        timeout: Some(2) => [|l| enter(l, READ), |l| enter_for_some_time(l, WRITE)];
        task: Some(2) => [|l| enter(l, READ), |l| enter_async(l, WRITE)];
        cancel: Some(2) => [|l| enter(l, READ), |l| give_up(l, WRITE)];
        cancel_same: Some(2) => [|l| enter(l, READ), |l| give_up(l, READ)];
        switch_task: Some(2) => [|l| enter(l, READ), |l| switch_async(l, READ, WRITE)];
        switch_dropped: Some(2) => [|l| enter(l, READ), |l| give_up_switch(l, READ, WRITE)];
        downgrade_two: Some(2) => [|l| enter(l, READ), |l| downgrade(l, READ)];
        downgrade_other: Some(2) => [|l| enter(l, WRITE), |l| downgrade(l, READ)];
        set_up: Some(2) => [|l| enter_with(l, READ), |l| enter_with(l, READ)];
        cancel_three: Some(1) => [|l| enter(l, READ), |l| give_up(l, WRITE), |l| enter(l, READ)];
        downgrade_three: Some(1) => [|l| enter_async(l, READ), |l| downgrade(l, READ), |l| enter(l, WRITE)];
    }

    /// A task may be admitted at the moment when it begins to wait. Then it admits others of its
    /// session, even if it is never polled again.
    #[test]
    fn a_task_admitted_as_it_begins_to_wait_keeps_no_other_out() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.max_duration = Some(LIMIT);
        let start = Instant::now();
        model.check(|| {
            let lock = std::sync::Arc::new(Lock::over(Handover::new(), Data::default()));
            let inside = lock.enter_arc(WRITE);
            let leaving = thread::spawn(move || drop(inside));
            let mut task = lock.enter_arc_async(READ);
            let first = Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop()));
            leaving.join().expect("it does not panic");
            assert!(lock.try_enter(READ).is_some());
            drop((first, task));
        });
        assert!(start.elapsed() < LIMIT, "not explored to its end in {LIMIT:?}");
    }
}

/// Threads spin before they queue. Two requests conflict, and one withdraws. A request that joins
/// the queue while another spins is not lost, and a request that spins asks before it enters.
mod looking {
    use super::*;

    fn look(rounds: u32, policy: Policy, participants: &'static [fn(&Lock<Phases<u8>>)]) {
        grouplock::LOOM_SPIN_ROUNDS.set(rounds);
        explore::<Phases<u8>>(Some(4), move || Phases::with_policy(policy), participants);
    }

    #[test]
    fn two_lookers_in_order() {
        look(1, Policy::Fifo, &[|lock| enter(lock, WRITE), |lock| enter(lock, WRITE_TOO)]);
    }

    #[test]
    fn one_looker_and_one_waiting_task() {
        look(
            1,
            Policy::Fifo,
            &[|lock| enter(lock, WRITE), |lock| block_on(lock.enter_async(WRITE_TOO)).write()],
        );
    }

    #[test]
    fn exclusive_looks_too() {
        look(1, Policy::Fifo, &[|lock| enter(lock, READ), exclusive]);
    }

    #[test]
    fn two_looks_where_one_may_overtake() {
        look(2, PATIENT, &[|lock| enter(lock, WRITE), exclusive]);
    }
}
