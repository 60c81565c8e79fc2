//! Producers and consumers on a queue with two sessions, compared with a `Mutex<VecDeque>`.
//!
//! `cargo run --release -p grouplock --example two_session_queue [PAIRS [VALUES]]`. The default is
//! 2 producers and 2 consumers, and 500,000 values from each producer.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use grouplock::views::Phased;
use queue::{Dequeue, Enqueue, Ring};

/// A value: the number of its producer, and its own number.
type Value = (usize, usize);

/// Each call takes the lock once.
trait Queue: Sync {
    /// Takes values from `source` until it has enqueued `BATCH` of them or the queue is full.
    /// Returns whether it enqueued any.
    fn enqueue(&self, source: &mut dyn Iterator<Item = Value>, spare: &mut Option<Value>) -> bool;
    /// Gives at most `BATCH` values to `sink`. Returns whether there were any.
    fn dequeue(&self, sink: &mut dyn FnMut(Value)) -> bool;
}

/// The largest number of values each time the lock is taken.
const BATCH: usize = 64;
const CAPACITY: usize = 1024;

impl Queue for Phased<&'static str, Ring<Value>> {
    fn enqueue(&self, source: &mut dyn Iterator<Item = Value>, spare: &mut Option<Value>) -> bool {
        let inside = self.enter(Enqueue);
        let view = inside.view();
        for done in 0..BATCH {
            let Some(value) = spare.take().or_else(|| source.next()) else { return done > 0 };
            if let Err(value) = view.enqueue(value) {
                *spare = Some(value);
                return done > 0;
            }
        }
        true
    }

    fn dequeue(&self, sink: &mut dyn FnMut(Value)) -> bool {
        let inside = self.enter(Dequeue);
        let view = inside.view();
        (0..BATCH).map_while(|_| view.dequeue()).map(sink).count() > 0
    }
}

impl Queue for Mutex<VecDeque<Value>> {
    fn enqueue(&self, source: &mut dyn Iterator<Item = Value>, spare: &mut Option<Value>) -> bool {
        let mut queue = self.lock().unwrap_or_else(PoisonError::into_inner);
        for done in 0..BATCH {
            let Some(value) = spare.take().or_else(|| source.next()) else { return done > 0 };
            if queue.len() == CAPACITY {
                *spare = Some(value);
                return done > 0;
            }
            queue.push_back(value);
        }
        true
    }

    fn dequeue(&self, sink: &mut dyn FnMut(Value)) -> bool {
        let mut queue = self.lock().unwrap_or_else(PoisonError::into_inner);
        (0..BATCH).map_while(|_| queue.pop_front()).map(sink).count() > 0
    }
}

/// The result of a run.
struct Passage {
    time: Duration,
    /// How often the lock was taken without result: the queue was full, or empty.
    in_vain: usize,
}

/// Passes `values` from each of `pairs` producers to as many consumers. Every value must arrive
/// once, and the values of a producer in order.
fn pass(queue: &impl Queue, pairs: usize, values: usize) -> Result<Passage, String> {
    let (arrived, in_vain) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let pause = || {
        in_vain.fetch_add(1, Relaxed);
        std::thread::yield_now();
    };
    let consume = || {
        let mut received = Vec::new();
        while arrived.load(Relaxed) < pairs * values {
            let before = received.len();
            if queue.dequeue(&mut |value| received.push(value)) {
                arrived.fetch_add(received.len() - before, Relaxed);
            } else {
                pause();
            }
        }
        received
    };
    let start = Instant::now();
    let received: Vec<Vec<Value>> = std::thread::scope(|scope| {
        for producer in 0..pairs {
            let pause = &pause;
            scope.spawn(move || {
                let (mut source, mut spare) = ((0..values).map(|n| (producer, n)).peekable(), None);
                while spare.is_some() || source.peek().is_some() {
                    if !queue.enqueue(&mut source, &mut spare) {
                        pause();
                    }
                }
            });
        }
        let consumers: Vec<_> = (0..pairs).map(|_| scope.spawn(consume)).collect();
        consumers.into_iter().map(|consumer| consumer.join().expect("no consumer panics")).collect()
    });
    let time = start.elapsed();
    for (consumer, list) in received.iter().enumerate() {
        let mut next = vec![0; pairs];
        for &(producer, number) in list {
            if number < next[producer] {
                return Err(format!(
                    "consumer {consumer} got {number} of producer {producer} late"
                ));
            }
            next[producer] = number + 1;
        }
    }
    let mut all: Vec<Value> = received.concat();
    all.sort_unstable();
    if !all.iter().copied().eq((0..pairs).flat_map(|p| (0..values).map(move |n| (p, n)))) {
        return Err(format!("{} values arrived, not each of them once", all.len()));
    }
    Ok(Passage { time, in_vain: in_vain.into_inner() })
}

fn run(pairs: usize, values: usize) -> Result<(), String> {
    println!("{pairs} producers, {pairs} consumers, {values} values from each producer,");
    println!("at most {BATCH} values each time the lock is taken, room for {CAPACITY}\n");
    println!("{:22}{:>18}{:>18}", "", "million values/s", "without result");
    for round in 1..=3 {
        let sessions = pass(&Phased::new(Ring::with_capacity(CAPACITY)), pairs, values)?;
        let mutex = pass(&Mutex::new(VecDeque::with_capacity(CAPACITY)), pairs, values)?;
        println!("round {round}");
        for (name, Passage { time, in_vain }) in
            [("two sessions", sessions), ("Mutex<VecDeque>", mutex)]
        {
            let speed = (pairs * values) as f64 / time.as_secs_f64() / 1e6;
            println!("  {name:20}{speed:18.1}{in_vain:18}");
        }
    }
    println!("\nevery value arrived once, and the values of each producer in order");
    Ok(())
}

/// The numbers from the arguments, or what is wrong with them.
fn numbers(mut arguments: impl Iterator<Item = String>) -> Result<(usize, usize), String> {
    let mut next = |what: &str, usual: usize| match arguments.next() {
        None => Ok(usual),
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => Err(format!("{what} is `{text}`, but should be a positive number")),
            Ok(number) => Ok(number),
        },
    };
    let numbers = (next("PAIRS", 2)?, next("VALUES", 500_000)?);
    match arguments.next() {
        Some(extra) => Err(format!("`{extra}` is one argument too many")),
        None => Ok(numbers),
    }
}

fn main() -> ExitCode {
    match numbers(std::env::args().skip(1)).and_then(|(pairs, values)| run(pairs, values)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("two_session_queue: {reason}\nusage: two_session_queue [PAIRS [VALUES]]");
            ExitCode::FAILURE
        }
    }
}
