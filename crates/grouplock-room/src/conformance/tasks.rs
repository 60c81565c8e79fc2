//! Entering from tasks.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::{Subject, assert_empty, eventually, open, snapshot};
use crate::error::RoomError;

/// A minimal executor.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(subject: &dyn Subject, future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    let started = Instant::now();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park_timeout(subject.soon()),
        }
        assert!(started.elapsed() < subject.soon(), "the task was not woken");
    }
}

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

pub(super) fn a_task_enters_and_waits(subject: &dyn Subject) {
    let room = open(subject, "task");
    let guard = block_on(subject, room.enter_async("s")).expect("it is empty");
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| block_on(subject, room.enter_async("t")).map(|guard| guard.epoch()));
        super::until_waiting(subject, &room, 1);
        let epoch = guard.epoch();
        guard.leave().expect("it can be left");
        assert!(waiting.join().expect("no panic").expect("it is admitted") > epoch);
    });
    assert_empty(subject, &room);
}

pub(super) fn a_dropped_future_leaves_no_trace(subject: &dyn Subject) {
    let room = open(subject, "dropped");
    let inside = room.enter("s").expect("it is empty");
    let never_polled = room.enter_async("t");
    assert_eq!(snapshot(&room).waiters(), 0, "nothing happens until it is polled");
    drop(never_polled);
    for _ in 0..5 {
        let mut future = room.enter_async("t");
        assert!(poll_once(&mut future, &Arc::default()).is_pending());
        assert_eq!(snapshot(&room).waiters(), 1);
        drop(future);
        assert_eq!(snapshot(&room).waiters(), 0);
        room.try_enter("s").expect("nobody waits any more").leave().expect("it can be left");
    }
    inside.leave().expect("it can be left");
    assert_empty(subject, &room);
}

pub(super) fn a_granted_and_dropped_future_gives_back(subject: &dyn Subject) {
    let room = open(subject, "granted and dropped");
    let inside = room.enter("s").expect("it is empty");
    let (mut future, count) = (room.enter_async("t"), Arc::<Count>::default());
    assert!(poll_once(&mut future, &count).is_pending());
    inside.leave().expect("it can be left");
    eventually(subject, "the task is woken", || count.0.load(Ordering::SeqCst) > 0);
    drop(future);
    assert_empty(subject, &room);
}

pub(super) fn a_task_times_out(subject: &dyn Subject) {
    let room = open(subject, "task timeout");
    let inside = room.enter("s").expect("it is empty");
    let request = room.request("t").timeout(Duration::from_millis(60)).enter_async();
    let error = block_on(subject, request).expect_err("nobody leaves");
    assert!(matches!(error, RoomError::TimedOut { .. }), "{error}");
    let error =
        block_on(subject, room.request("t").no_wait().enter_async()).expect_err("it is occupied");
    assert!(matches!(error, RoomError::Occupied { .. }), "{error}");
    assert_eq!(snapshot(&room).waiters(), 0);
    inside.leave().expect("it can be left");
    assert_empty(subject, &room);
}
