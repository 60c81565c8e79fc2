//! Locks with false statements about dead private values. Each admits two processes at once, and an
//! exploration that uses the statement does not find that.

mod scaffold;

use std::cell::Cell;

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Claims, Text};
use grouplock_algorithms::memory::{Memory, Ordering::SeqCst, Register, Site, Word};
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::slots::Slots;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::{Options, Outcome, Property, Subject, Verdict, check};

/// A test-and-set lock that counts passages. A process that reads a certain count enters at once.
#[derive(Debug)]
struct Careless<M: Memory, const FLAW: u8> {
    held: M::Register<bool>,
    passages: M::Register<u64>,
    slots: Slots<Process>,
}

#[derive(Debug)]
struct Process;

/// No process enters at once.
const NONE: u8 = 0;
/// The text says immediately that the counter is dead.
const AT_ONCE: u8 = 1;
/// The text says twice that it is dead before it counts.
const MUCH_LATER: u8 = 2;
/// The counter is dropped at the end of a wait, and the text says nothing there.
const AFTER_A_WAIT: u8 = 3;
/// A statement about dead values is inside a wait.
const IN_A_WAIT: u8 = 4;
/// A wait inside a wait.
const TWO_WAITS: u8 = 5;

/// The count at which a process enters at once. It is not one of the first two.
const THIRD: u64 = 2;

impl<M: Memory, const FLAW: u8> RawMutex<M> for Careless<M, FLAW> {
    type Process = Process;

    fn claims() -> Claims {
        let text = Text::new(file!(), include_str!("careless.rs"));
        scaffold::claims("careless", text)
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(Careless {
            held: M::Register::new(Site::shared("held"), false),
            passages: M::Register::new(Site::shared("passages"), 0),
            slots: Slots::new(processes, 8, |_| Process)?,
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, _: &mut Process) {
        let mut passage = 0;
        if FLAW == IN_A_WAIT {
            M::await_until(|| {
                M::live(|| []);
                !self.held.read(SeqCst)
            });
        } else if FLAW == TWO_WAITS {
            M::await_until(|| {
                M::await_until(|| !self.held.read(SeqCst));
                true
            });
        } else if FLAW == AFTER_A_WAIT {
            let seen = Cell::new(0);
            M::await_until(|| {
                seen.set(self.passages.read(SeqCst));
                seen.get() < 10
            });
            passage = seen.get();
        } else if FLAW != NONE {
            passage = self.passages.read(SeqCst);
            M::live(|| []);
        }
        if FLAW == MUCH_LATER {
            self.held.read(SeqCst);
            M::live(|| []);
        }
        self.held.read(SeqCst);
        if passage != THIRD {
            M::await_until(|| self.held.cas(false, true, SeqCst));
        }
        M::live(|| []);
        let passages = self.passages.read(SeqCst);
        self.passages.write((passages + 1).min(THIRD + 1), SeqCst);
    }

    unsafe fn release(&self, _: &mut Process) {
        self.held.write(false, SeqCst);
    }

    fn inspect(_: &Process, _: &mut dyn FnMut(&'static str, Word)) {}
}

fn explored<const FLAW: u8>() -> Outcome {
    let subject = Subject::mutex::<Careless<SimMemory, FLAW>>("careless");
    check(&subject, &Options::new(&subject, 2, 1)).expect("it serves two")
}

fn judged<const FLAW: u8>() -> (Verdict, Option<Property>) {
    let outcome = explored::<FLAW>();
    (outcome.verdict, outcome.violation.map(|violation| violation.property))
}

const FOUND_OUT: (Verdict, Option<Property>) = (Verdict::Violated, Some(Property::DeadPrivate));

#[test]
fn the_lock_holds_if_nobody_walks_in() {
    assert_eq!(judged::<NONE>(), (Verdict::Holds, None));
}

#[test]
fn a_value_that_is_said_to_be_dead_and_counts_is_found_out() {
    assert_eq!(judged::<AT_ONCE>(), FOUND_OUT);
}

#[test]
fn a_value_that_counts_only_after_the_next_merge_point_is_found_out() {
    assert_eq!(judged::<MUCH_LATER>(), FOUND_OUT);
}

#[test]
fn a_value_that_is_carried_out_of_a_wait_is_found_out() {
    assert_eq!(judged::<AFTER_A_WAIT>(), FOUND_OUT);
}

/// A failed round leaves no mark, so it cannot be divided. The author of such a text gets an error
/// with the line.
#[test]
fn a_condition_that_does_more_than_read_is_reported_with_its_line() {
    for (outcome, what) in
        [(explored::<IN_A_WAIT>(), "`live`"), (explored::<TWO_WAITS>(), "an `await`")]
    {
        let violation = outcome.violation.expect("it cannot be explored");
        assert_eq!(violation.property, Property::NoPanic);
        let told = format!("{what} in the condition of an");
        assert!(violation.because.contains("careless.rs:"), "{}", violation.because);
        assert!(violation.because.contains(&told), "{}", violation.because);
    }
}
