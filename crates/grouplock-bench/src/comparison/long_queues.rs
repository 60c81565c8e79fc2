//! What it takes to join a queue and to leave it when many wait, each for a session of its own.
//!
//! The waiters are requests of tasks, polled by hand: so thousands of them wait on one thread, and nothing is measured but the queue.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;

use grouplock::{GroupLock, Policy};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::group_lock::{GroupLockBatch, GroupLockDefault, GroupLockFifo, batch};
use super::lock::Lock;
use super::workload::Lots;
use crate::statistics::Spread;
use crate::uncontended::rounds::Plan;
use crate::uncontended::subjects::{Subject, keep};

/// How many wait.
pub const FEW: usize = 100;
/// How many wait in the long queue.
pub const MANY: usize = 16_000;
/// The peer, whose queue is a linked list.
pub const SEMAPHORE: &str = "tokio Semaphore";

/// The operations of a turn.
const OPERATIONS: u64 = 250;

/// What is done with a queue, whose length stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A request joins, and gives up.
    JoinAndGiveUp,
    /// A waiter anywhere gives up, and another one joins. The waiters lie all over the memory, which costs as well.
    GiveUpAnywhere,
    /// The holder leaves, the first waiter enters, and a new one joins.
    HandOver,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] =
        [Operation::JoinAndGiveUp, Operation::GiveUpAnywhere, Operation::HandOver];

    /// As it stands in tables.
    pub fn told(self) -> &'static str {
        match self {
            Operation::JoinAndGiveUp => "one joins and gives up",
            Operation::GiveUpAnywhere => "one anywhere gives up, one joins",
            Operation::HandOver => "one is let in, one joins",
        }
    }
}

/// What an operation takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queue {
    /// The lock.
    pub lock: &'static str,
    /// What is done.
    pub operation: Operation,
    /// Nanoseconds with [`FEW`] waiters.
    pub few: Spread,
    /// Nanoseconds with [`MANY`] waiters.
    pub many: Spread,
    /// How many times as long it takes with many, from round to round.
    pub ratio: Spread,
}

/// Measures every queue in each of `rounds` rounds. Nothing, if there are none.
pub fn run(rounds: usize, tell: &mut impl FnMut(&str)) -> Vec<Queue> {
    if rounds == 0 {
        return Vec::new();
    }
    let mut subjects = Vec::new();
    for operation in Operation::ALL {
        for length in [FEW, MANY] {
            tell(&format!("a queue of {length}: {}", operation.told()));
            for policy in [Policy::EVENTUAL, Policy::Fifo, batch()] {
                let lock = keep(GroupLock::with_policy(policy, ()));
                subjects.push(queue(operation, length, |session| lock.enter_async(session)));
            }
            let semaphore = keep(Semaphore::new(1));
            subjects.push(queue(operation, length, |_| semaphore.acquire()));
        }
    }
    tell("long queues");
    let times = Plan { rounds: rounds as u32, passages: OPERATIONS }.run(&mut subjects);
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

/// A queue of `length` requests behind a holder. A new request takes the place of an old one in memory, so nothing is allocated here.
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
    assert!(holder.is_some(), "nobody else holds the lock");
    let mut waiting: VecDeque<_> = (1..=length as u64).map(|n| Box::pin(request(n))).collect();
    assert!(waiting.iter_mut().all(|request| poll(request).is_none()), "the lock is held");
    let (mut session, mut lots) = (length as u64, Lots::new(7));
    Subject::new(operation.told(), "async", None, move || {
        session += 1;
        let place = match operation {
            Operation::JoinAndGiveUp => waiting.len() - 1,
            Operation::GiveUpAnywhere => lots.below(waiting.len() as u64) as usize,
            Operation::HandOver => {
                drop(holder.take());
                holder = poll(&mut waiting[0]);
                assert!(holder.is_some(), "the first waiter is let in");
                waiting.rotate_left(1);
                waiting.len() - 1
            }
        };
        waiting[place].set(request(session));
        assert!(poll(&mut waiting[place]).is_none(), "the lock is held");
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
            // The queue is gone with its subject.
            assert!(lock.snapshot().waiting.is_empty());
            assert!(lock.try_exclusive().is_some());
        }
    }
}
