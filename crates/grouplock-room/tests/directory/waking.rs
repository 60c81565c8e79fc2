//! Whoever is admitted is woken, instead of finding out when it looks for itself.

use std::fs;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use grouplock_room::{Guard, Room};

use crate::process::{LONG, Scratch, until, until_waiting};

/// How long anybody sleeps before looking for itself.
const NAP: Duration = Duration::from_millis(50);

/// Whether all threads of this process with that name sleep.
fn all_sleep(name: &str) -> bool {
    let threads = fs::read_dir("/proc/self/task").expect("/proc is mounted").flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).all(|stat| {
        // A number, the name in parentheses, a letter for the state.
        let Some((before, state)) = stat.rsplit_once(") ") else { return false };
        !before.ends_with(&format!("({name}")) || state.starts_with('S')
    })
}

/// Whether somebody who waits is woken when the holder leaves. `name` is that of the thread that sleeps.
///
/// Whoever enters within [`NAP`] of asking has not slept to the end of its nap, so it was woken. That it took longer
/// proves nothing on a busy machine: then it is tried again.
fn is_woken(name: &str, enter: impl Fn(&Room) -> Guard<'_> + Sync) -> bool {
    let scratch = Scratch::new();
    let open = || Room::open(scratch.path(), "room").expect("it can be opened");
    let (room, other) = (open(), open());
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        let inside = room.enter("here").expect("it is empty");
        let took = std::thread::scope(|scope| {
            let waits = || {
                let asked = Instant::now();
                drop(enter(&other));
                asked.elapsed()
            };
            let waiter = std::thread::Builder::new().name(name.to_owned());
            let waiter = waiter.spawn_scoped(scope, waits).expect("a thread can be had");
            until_waiting(&room, 1);
            until("the waiter sleeps", || all_sleep(name));
            inside.leave().expect("it can be left");
            waiter.join().expect("no panic")
        });
        if took < NAP {
            return true;
        }
    }
    false
}

#[test]
fn a_thread_is_woken() {
    assert!(is_woken("waiting-thread", |room| {
        room.request("there").timeout(LONG).enter().expect("it is admitted")
    }));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_task_is_woken() {
    // The room starts a thread of this name, which sleeps for the task.
    assert!(is_woken("grouplock-wait", |room| {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut entering = Box::pin(room.request("there").timeout(LONG).enter_async());
        loop {
            match entering.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(guard) => return guard.expect("it is admitted"),
                Poll::Pending => std::thread::park_timeout(LONG),
            }
        }
    }));
}
