//! The promises of the queue.

use std::sync::Arc;

use grouplock::views::Phased;
use grouplock::{GroupLock, Policy};

use super::queue::{Dequeue, Enqueue, Ring};
use super::{numbers, pass};

const VALUES: usize = if cfg!(miri) { 50 } else { 20_000 };

#[test]
fn first_in_first_out_and_full_and_empty() {
    let queue = Phased::new(Ring::with_capacity(4));
    let enqueuing = queue.enter(Enqueue);
    for value in ["a", "b", "c", "d"] {
        assert_eq!(enqueuing.view().enqueue(value), Ok(()));
    }
    assert_eq!(enqueuing.view().enqueue("e"), Err("e"));
    let dequeuing = enqueuing.switch(Dequeue);
    assert_eq!(dequeuing.view().dequeue(), Some("a"));
    let enqueuing = dequeuing.switch(Enqueue);
    assert_eq!(enqueuing.view().enqueue("e"), Ok(()));
    let dequeuing = enqueuing.switch(Dequeue);
    let rest: Vec<_> = std::iter::from_fn(|| dequeuing.view().dequeue()).collect();
    assert_eq!(rest, ["b", "c", "d", "e"]);
    assert_eq!(dequeuing.view().dequeue(), None);
}

#[test]
fn what_is_left_is_dropped_once() {
    let witness = Arc::new(());
    let queue = Phased::new(Ring::with_capacity(8));
    for _ in 0..6 {
        let refused = queue.enter(Enqueue).view().enqueue(Arc::clone(&witness));
        assert!(refused.is_ok());
    }
    drop(queue.enter(Dequeue).view().dequeue());
    assert_eq!(Arc::strong_count(&witness), 6);
    drop(queue);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn every_value_arrives_once_and_in_order() {
    for policy in [Policy::EVENTUAL, Policy::Fifo, Policy::Batch { passes: 4 }] {
        // Smaller than a batch, so that the ring wraps around often.
        let queue = Phased::over(GroupLock::with_policy(policy, Ring::with_capacity(16)));
        assert_eq!(pass(&queue, 2, VALUES).err(), None, "{policy:?}");
    }
}

#[test]
fn bad_arguments_are_named() {
    let refusal = |arguments: &[&str]| {
        numbers(arguments.iter().map(|&argument| argument.to_owned())).expect_err("it is refused")
    };
    assert_eq!(refusal(&["-1"]), "PAIRS is `-1`, but should be a positive number");
    assert_eq!(refusal(&["1", "1", "1"]), "`1` is one argument too many");
}

/// The facts that the `unsafe` code relies on.
#[test]
fn nobody_dequeues_while_others_enqueue() {
    let queue = Phased::new(Ring::<u8>::with_capacity(4));
    let enqueuing = queue.enter(Enqueue);
    assert!(queue.try_enter(Enqueue).is_some());
    assert!(queue.try_enter(Dequeue).is_none());
    let _dequeuing = enqueuing.switch(Dequeue);
    assert!(queue.try_enter(Dequeue).is_some());
    assert!(queue.try_enter(Enqueue).is_none());
}
