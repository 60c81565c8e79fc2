//! Whoever is admitted is woken, instead of finding out when it looks for itself.

mod common;

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use common::Scratch;
use grouplock_room::{Guard, Room};

/// Less than anybody sleeps before looking for itself, more than a busy machine takes to run someone who is awake.
const SOON: Duration = Duration::from_millis(20);

/// The median time from someone's leaving to the entry of the one who waits for that.
fn hand_over(enter: impl Fn(&Room) -> Guard<'_> + Sync) -> Duration {
    let scratch = Scratch::new();
    let open = || Room::open(scratch.path(), "room").expect("it can be opened");
    let (room, other) = (open(), open());
    let mut times: Vec<Duration> = (0..11)
        .map(|_| {
            let inside = room.enter("here").expect("it is empty");
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    drop(enter(&other));
                    Instant::now()
                });
                while room.snapshot().expect("it can be seen").waiters() == 0 {
                    std::thread::yield_now();
                }
                // Now it is about to sleep.
                std::thread::sleep(Duration::from_millis(5));
                let left = Instant::now();
                inside.leave().expect("it can be left");
                waiter.join().expect("no panic").saturating_duration_since(left)
            })
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_thread_is_woken() {
    let time = hand_over(|room| room.enter("there").expect("it can be entered"));
    assert!(time < SOON, "{time:?}");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_task_is_woken() {
    let time = hand_over(|room| {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut entering = Box::pin(room.enter_async("there"));
        loop {
            match entering.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(guard) => return guard.expect("it can be entered"),
                Poll::Pending => std::thread::park(),
            }
        }
    });
    assert!(time < SOON, "{time:?}");
}
