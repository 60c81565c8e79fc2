//! Small odd locks, each with its verdict worked out by hand: what an exploration, or a proof of a
//! bound, could overlook.

#[path = "../scaffold/mod.rs"]
mod scaffold;

mod costs;
mod deaths;
mod pointers;
mod sessions;
mod withdrawal;
mod words;

use std::cell::Cell;

use grouplock_algorithms::claims::{Claims, Entering, Exit, Kind, Limit, Text};
use grouplock_algorithms::latch::{Deaths, RecoverableMutex, WordLatch};
use grouplock_algorithms::memory::Ordering::{Relaxed, SeqCst};
use grouplock_algorithms::memory::{Flag, Memory, Ptr, Register, Site, Value, Word};
use grouplock_algorithms::nodes::Nodes;
use grouplock_algorithms::raw::{GiveUp, RawGroup, RawMutex, WithdrawMutex};
use grouplock_algorithms::slots::Slots;
use grouplock_algorithms::{CapacityError, Session};
use grouplock_lab::memory::{SimFlag, SimMemory, SimRegister};
use grouplock_lab::rmr::bounds_of;
use grouplock_lab::{MemoryModel, Options, Outcome, Properties, Property, Subject, check};

fn claims() -> Claims {
    scaffold::claims("odd", Text::new(file!(), include_str!("main.rs")))
}

fn told(outcome: Outcome, property: Property) -> String {
    match outcome.violation {
        Some(violation) => format!("violated: {}: {}", violation.property, violation.because),
        None if outcome.checked.contains(property) => format!("{:?}", outcome.verdict),
        None => format!("{:?}, not looked at", outcome.verdict),
    }
}

fn explore(subject: &Subject, processes: usize, property: Property) -> String {
    explore_with(subject, processes, property, |_| {})
}

fn explore_with(
    subject: &Subject,
    processes: usize,
    property: Property,
    change: impl FnOnce(&mut Options),
) -> String {
    let mut options = Options::new(subject, processes, 2);
    options.properties = Properties::only(property);
    options.memory_limit = 500 << 20;
    change(&mut options);
    told(check(subject, &options).expect("the sizes are right"), property)
}

#[track_caller]
fn violates(said: &str, property: Property) {
    assert!(said.starts_with(&format!("violated: {property}:")), "{said}");
}

#[track_caller]
fn holds(said: &str) {
    assert_eq!(said, "Holds");
}

fn tas(held: &SimRegister<u64>) {
    SimMemory::await_until(|| held.cas(0, 1, SeqCst));
}

#[derive(Debug)]
struct Record {
    next: SimRegister<Ptr<Record>>,
    a: SimRegister<u64>,
    b: SimRegister<u64>,
}

impl Record {
    fn new(home: Option<usize>) -> Self {
        let site = |name| home.map_or(Site::shared(name), |p| Site::of(p, name));
        Record {
            next: SimRegister::new(site("next"), Ptr::NIL),
            a: SimRegister::new(site("a"), 0),
            b: SimRegister::new(site("b"), 0),
        }
    }
}

fn at<'a>(record: Ptr<Record>) -> &'a Record {
    // SAFETY: all pointers come from the store of the lock, and a run ends before its lock.
    unsafe { SimMemory::follow(record) }
}
