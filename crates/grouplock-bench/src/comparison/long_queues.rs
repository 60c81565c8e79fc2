//! What it costs to join and to leave a long queue, in which each request has a session of its own.
//!
//! The waiters are requests of tasks, polled by hand: so thousands of them wait on one thread, and
//! only the queue is measured.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;

use grouplock::{GroupLock, Policy};
use grouplock_testing::Random;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockFifo, batch};
use super::lock::Lock;
use crate::report::labels;
use crate::rounds::{self, Subject, keep};
use crate::statistics::Spread;

pub(super) const FEW: usize = 100;
pub(super) const MANY: usize = 16_000;
/// The peer. Its queue is a linked list.
pub(super) const SEMAPHORE: &str = "tokio Semaphore";

/// The operations of a turn.
const OPERATIONS: u64 = 250;

labels!(
    /// What is done with a queue. Its length stays the same.
    Operation {
        JoinAndWithdraw = "one joins and withdraws",
        /// The waiters lie all over the memory, which costs time too.
        WithdrawAnywhere = "one anywhere withdraws, one joins",
        HandOver = "one is admitted, one joins",
    }
);

/// The time of an operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Queue {
    pub(super) lock: &'static str,
    pub(super) operation: Operation,
    /// Nanoseconds with [`FEW`] waiters.
    pub(super) few: Spread,
    /// Nanoseconds with [`MANY`] waiters.
    pub(super) many: Spread,
    /// How many times as long it takes with many.
    pub(super) ratio: Spread,
}

/// Measures every queue in each round. Does nothing if there are no rounds.
pub(super) fn run(rounds: usize, progress: &mut impl FnMut(&str)) -> Vec<Queue> {
    if rounds == 0 {
        return Vec::new();
    }
    let mut subjects = Vec::new();
    for operation in Operation::ALL {
        for length in [FEW, MANY] {
            progress(&format!("a queue of {length}: {}", operation.text()));
            for policy in [Policy::EVENTUAL, Policy::Fifo, batch()] {
                let lock = keep(GroupLock::with_policy(policy, ()));
                subjects.push(queue(operation, length, |session| lock.enter_async(session)));
            }
            let semaphore = keep(Semaphore::new(1));
            subjects.push(queue(operation, length, |_| semaphore.acquire()));
        }
    }
    progress("long queues");
    let times = rounds::run(rounds as u32, OPERATIONS, &mut subjects);
    let locks = [GroupLockDefault::NAME, GroupLockFifo::NAME, GroupLockBatch::NAME, SEMAPHORE];
    let mut queues = Vec::new();
    for (part, operation) in Operation::ALL.into_iter().enumerate() {
        for (index, lock) in locks.into_iter().enumerate() {
            let few = part * 2 * locks.len() + index;
            let many = few + locks.len();
            queues.push(Queue {
                lock,
                operation,
                few: times.nanoseconds(few),
                many: times.nanoseconds(many),
                ratio: times.ratio(many, few),
            });
        }
    }
    queues
}

/// A queue of `length` requests behind a holder. A new request is written over an old one, so
/// nothing is allocated here.
fn queue<F: Future + 'static>(
    operation: Operation,
    length: usize,
    request: impl Fn(u64) -> F + 'static,
) -> Subject {
    fn poll<F: Future>(request: &mut Pin<Box<F>>) -> Option<F::Output> {
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(held) => Some(held),
            Poll::Pending => None,
        }
    }
    let mut holder = poll(&mut Box::pin(request(0)));
    assert!(holder.is_some(), "the lock is free");
    let mut waiting: VecDeque<_> = (1..=length as u64).map(|n| Box::pin(request(n))).collect();
    assert!(waiting.iter_mut().all(|request| poll(request).is_none()), "the lock is held");
    let (mut session, mut random) = (length as u64, Random::new(7));
    Subject::new(operation.text(), move || {
        session += 1;
        let position = match operation {
            Operation::JoinAndWithdraw => waiting.len() - 1,
            Operation::WithdrawAnywhere => random.below(waiting.len() as u64) as usize,
            Operation::HandOver => {
                drop(holder.take());
                holder = poll(&mut waiting[0]);
                assert!(holder.is_some(), "the first waiter is admitted");
                waiting.rotate_left(1);
                waiting.len() - 1
            }
        };
        waiting[position].set(request(session));
        assert!(poll(&mut waiting[position]).is_none(), "the lock is held");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_length() {
        for operation in Operation::ALL {
            let lock = keep(GroupLock::with_policy(Policy::Fifo, ()));
            queue(operation, 5, |session| lock.enter_async(session)).run(20);
            // The subject owned the queue.
            assert!(lock.snapshot().waiting.is_empty());
            assert!(lock.try_exclusive().is_some());
        }
    }
}
