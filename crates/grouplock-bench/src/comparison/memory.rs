//! How often `GroupLock` allocates: to wait, and to change between sessions with names on the heap.
//!
//! The first waits do not count: a lock may keep the memory.

use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::mpsc;
use std::thread;

use grouplock::{GroupLock, Policy};
use serde::Serialize;

use super::group_lock::batch;
use crate::allocations::counted;

/// How often each operation runs, before and while it is counted.
const WARM_UP: u64 = 8;
const TIMES: u64 = 64;

/// Allocations under one policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Memory {
    pub(super) policy: &'static str,
    /// For a wait of a thread, by the waiter and by the holder that admits it.
    pub(super) thread: f64,
    /// The same for a wait of a task.
    pub(super) task: f64,
    /// For an entry under a new name. The name itself is the caller's, and does not count.
    pub(super) name: f64,
}

pub(super) fn count() -> Vec<Memory> {
    let policies = [("default", Policy::EVENTUAL), ("Fifo", Policy::Fifo), ("Batch", batch())];
    let count =
        |(policy, of)| Memory { policy, thread: thread(of), task: task(of), name: name(of) };
    policies.map(count).to_vec()
}

/// The mean of the counts.
fn mean(mut once: impl FnMut() -> u64) -> f64 {
    (0..WARM_UP).for_each(|_| _ = once());
    (0..TIMES).map(|_| once()).sum::<u64>() as f64 / TIMES as f64
}

fn thread(policy: Policy) -> f64 {
    let lock = GroupLock::with_policy(policy, ());
    let (ask, asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let answer = answer;
            for () in asked {
                let ((), waiter) = counted(|| drop(lock.enter(1)));
                // If this fails, the other side has panicked.
                _ = answer.send(waiter);
            }
        });
        let ask = ask;
        mean(|| {
            let (held, entering) = counted(|| lock.enter(0));
            ask.send(()).expect("the waiter listens to the end");
            while lock.snapshot().waiting.is_empty() {
                thread::yield_now();
            }
            let ((), leaving) = counted(|| drop(held));
            entering + leaving + answers.recv().expect("the waiter answers every time")
        })
    })
}

fn task(policy: Policy) -> f64 {
    let lock = GroupLock::with_policy(policy, ());
    let mut context = Context::from_waker(Waker::noop());
    mean(|| {
        let wait = || {
            let held = lock.enter(0);
            let mut request = pin!(lock.enter_async(1));
            assert!(request.as_mut().poll(&mut context).is_pending(), "session 0 is inside");
            drop(held);
            let Poll::Ready(inside) = request.as_mut().poll(&mut context) else {
                panic!("the lock is free");
            };
            drop(inside);
        };
        counted(wait).1
    })
}

fn name(policy: Policy) -> f64 {
    let lock = GroupLock::with_policy(policy, ());
    let mut names = ["a session", "another session"].into_iter().cycle();
    mean(|| {
        let name = names.next().unwrap_or_default().to_owned();
        counted(|| drop(lock.enter(name))).1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_counted_and_none_allocates_without_end() {
        let all = count();
        assert_eq!(all.len(), 3);
        for memory in all {
            let Memory { thread, task, name, .. } = memory;
            assert!(
                [thread, task, name].iter().all(|count| (0.0..8.0).contains(count)),
                "{memory:?}"
            );
        }
    }
}
