//! Bounded numbers of own steps, and infinite executions: careless locks whose faults no check of
//! single states finds.

mod scaffold;

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Claims, Text};
use grouplock_algorithms::memory::{Memory, Ordering::SeqCst, Register, Site, Value, Word};
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::slots::Slots;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::{Options, Outcome, Properties, Property, Subject, Verdict, check, registry};

fn claims(name: &'static str) -> Claims {
    scaffold::claims(name, Text::new(file!(), include_str!("progress.rs")))
}

#[derive(Debug)]
struct Process {
    i: usize,
}

/// One word. A waiter changes a bit of it again and again, so a process that leaves may have to try
/// again and again.
#[derive(Debug)]
struct Retries<M: Memory> {
    word: M::Register<u64>,
}

/// A process has no private variables: all are alike.
#[derive(Debug)]
struct Nobody;

const HELD: u64 = 1;
const ALIVE: u64 = 2;

impl<M: Memory> RawMutex<M> for Retries<M> {
    type Process = Nobody;

    fn claims() -> Claims {
        claims("retries")
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        Ok(Retries { word: M::Register::new(Site::shared("word"), 0) })
    }

    fn join(&self) -> Result<Nobody, CapacityError> {
        Ok(Nobody)
    }

    unsafe fn leave(&self, _: Nobody) {}

    unsafe fn acquire(&self, _: &mut Nobody) {
        loop {
            M::live(|| []);
            let word = self.word.read(SeqCst);
            let next = if word & HELD == 0 { word | HELD } else { word ^ ALIVE };
            let swapped = self.word.cas(word, next, SeqCst);
            if swapped && word & HELD == 0 {
                return;
            }
        }
    }

    unsafe fn release(&self, _: &mut Nobody) {
        loop {
            M::live(|| []);
            let word = self.word.read(SeqCst);
            let swapped = self.word.cas(word, word & !HELD, SeqCst);
            if swapped {
                return;
            }
        }
    }

    fn inspect(_: &Nobody, _: &mut dyn FnMut(&'static str, Word)) {}
}

/// For two: raise a flag, read the other's flag, and lower the own flag if the other is raised. The
/// first process may wait instead.
#[derive(Debug)]
struct AfterYou<M: Memory, const ONE_WAITS: bool> {
    flags: Vec<M::Register<bool>>,
    slots: Slots<Process>,
}

impl<M: Memory, const ONE_WAITS: bool> RawMutex<M> for AfterYou<M, ONE_WAITS> {
    type Process = Process;

    fn claims() -> Claims {
        claims("after-you")
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        let flag = |i| M::Register::new(Site::per_process("flag", i), false);
        let slots = Slots::new(processes, 2, |i| Process { i })?;
        Ok(AfterYou { flags: (0..2).map(flag).collect(), slots })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process) {
        loop {
            M::live(|| []);
            self.flags[me.i].write(true, SeqCst);
            if ONE_WAITS && me.i == 0 {
                M::await_until(|| !self.flags[1].read(SeqCst));
                return;
            }
            let raised = self.flags[1 - me.i].read(SeqCst);
            if !raised {
                return;
            }
            self.flags[me.i].write(false, SeqCst);
        }
    }

    unsafe fn release(&self, me: &mut Process) {
        self.flags[me.i].write(false, SeqCst);
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}

/// Tickets, called one after another. A process whose ticket is not called reads again and again.
#[derive(Debug)]
struct Tickets<M: Memory> {
    next: M::Register<u64>,
    called: M::Register<u64>,
}

#[derive(Debug)]
struct Holder {
    ticket: u64,
}

impl<M: Memory> RawMutex<M> for Tickets<M> {
    type Process = Holder;

    fn claims() -> Claims {
        claims("tickets")
    }

    fn new(_: usize) -> Result<Self, CapacityError> {
        let register = |name| M::Register::new(Site::shared(name), 0);
        Ok(Tickets { next: register("next"), called: register("called") })
    }

    fn join(&self) -> Result<Holder, CapacityError> {
        Ok(Holder { ticket: 0 })
    }

    unsafe fn leave(&self, _: Holder) {}

    unsafe fn acquire(&self, me: &mut Holder) {
        me.ticket = self.next.faa(1, SeqCst);
        M::doorway_end();
        M::await_until(|| self.called.read(SeqCst) == me.ticket);
    }

    unsafe fn release(&self, me: &mut Holder) {
        self.called.write(me.ticket + 1, SeqCst);
        me.ticket = 0;
    }

    fn inspect(_: &Holder, _: &mut dyn FnMut(&'static str, Word)) {}
}

fn explore(subject: &Subject, processes: usize, properties: Properties) -> Outcome {
    let mut options = Options::new(subject, processes, 2);
    options.properties = properties;
    options.memory_limit = 500 << 20;
    check(subject, &options).expect("the sizes are right")
}

/// The property that `subject` violates, if it is checked for `property`.
fn asked(subject: &Subject, processes: usize, property: Property) -> Option<Property> {
    let outcome = explore(subject, processes, Properties::basic().with(property));
    outcome.violation.map(|violation| violation.property)
}

fn registered(name: &str) -> Subject {
    registry::find(name).expect("it is registered")
}

#[test]
fn an_exit_that_tries_again_is_not_bounded() {
    let subject = Subject::mutex::<Retries<SimMemory>>("retries");
    for property in [Property::BoundedExit, Property::GroupBoundedExit] {
        let outcome = explore(&subject, 2, Properties::basic().with(property));
        let violation = outcome.violation.expect("it may go on");
        assert_eq!(violation.property, property, "{}", violation.because);
        // The report names the lines of the cycle, and the execution shows a try that fails.
        assert!(violation.because.contains("progress.rs:"), "{}", violation.because);
        let last = violation.trace.last().expect("it takes steps");
        assert!(last.operation.contains("stays"), "{last:?}");
    }
}

#[test]
fn an_exit_that_others_can_keep_from_ending_does_not_terminate() {
    let subject = Subject::mutex::<Retries<SimMemory>>("retries");
    let properties = Properties::only(Property::TerminatingExit);
    let violation = explore(&subject, 2, properties).violation.expect("it may go on");
    assert_eq!(violation.property, Property::TerminatingExit);
    assert!(violation.because.contains("never gets out"), "{}", violation.because);
}

#[test]
fn two_processes_that_give_way_to_each_other_forever_are_convicted() {
    let polite = Subject::mutex::<AfterYou<SimMemory, false>>("after you");
    let outcome = explore(&polite, 2, Properties::basic());
    let violation = outcome.violation.expect("nobody may ever enter");
    assert_eq!(violation.property, Property::DeadlockFreedom);
    assert!(violation.trace.iter().all(|step| step.inside.is_empty()), "{:#?}", violation.trace);
}

/// The awaited condition becomes true and false again. The waiter may always read it at the wrong
/// time. If the other process also waits before it tries again, this cannot happen: that is the
/// one-bit lock.
#[test]
fn a_wait_for_a_flag_that_goes_up_and_down_may_always_look_too_late() {
    let waits = Subject::mutex::<AfterYou<SimMemory, true>>("after you, or me");
    let outcome = explore(&waits, 2, Properties::basic());
    let violation = outcome.violation.expect("nobody may ever enter");
    assert_eq!(violation.property, Property::DeadlockFreedom);
    let one_bit = explore(&registered("burns-lamport"), 2, Properties::basic());
    assert_eq!(one_bit.verdict, Verdict::Holds, "{:?}", one_bit.violation);
    assert!(one_bit.checked.contains(Property::DeadlockFreedom));
}

#[test]
fn an_unchecked_property_is_not_said_to_hold() {
    let subject = registered("handover");
    let mut options = Options::new(&subject, 2, 2);
    let whole = check(&subject, &options).expect("it serves two");
    assert_eq!((whole.verdict, whole.checked), (Verdict::Holds, options.properties));
    assert_eq!(whole.in_part, Properties::default());

    options.graph_limit = 10;
    let small = check(&subject, &options).expect("it serves two");
    assert_eq!(small.verdict, Verdict::Holds);
    for property in [Property::DeadlockFreedom, Property::GroupBoundedExit] {
        assert!(!small.checked.contains(property) && small.in_part.contains(property));
    }
    for property in [Property::StarvationFreedom, Property::TerminatingExit] {
        assert!(!small.checked.contains(property) && !small.in_part.contains(property));
    }
    assert!(small.checked.contains(Property::Fcfs));

    // If passages are bounded, no process overtakes forever.
    let subject = registered("generalized-bakery");
    let mut options = Options::new(&subject, 2, 2);
    options.passages = Some(1);
    let bakery = check(&subject, &options).expect("it serves two");
    assert!(bakery.checked.contains(Property::DeadlockFreedom));
    assert!(!bakery.checked.contains(Property::StarvationFreedom));
}

#[test]
fn a_bound_is_the_longest_way_through_the_text() {
    let subject = registered("dvir-taubenfeld-1");
    let outcome = explore(&subject, 2, Properties::basic().with(Property::BoundedExit));
    // Lines 10, 11, 13, 14 and 15.
    let bounds: Vec<_> = outcome.bounds.iter().map(|bound| (bound.property, bound.steps)).collect();
    assert_eq!(bounds, [(Property::BoundedExit, 5)]);
}

#[test]
fn no_lock_by_reads_and_writes_alone_has_bounded_entry() {
    for name in ["burns-lamport", "black-white-bakery"] {
        let convicted = asked(&registered(name), 2, Property::BoundedEntry);
        assert_eq!(convicted, Some(Property::BoundedEntry), "{name}");
    }
}

/// Until the called process has read its number, the next process reads without success. This does
/// not count against it.
#[test]
fn only_processes_that_could_enter_count_where_some_must() {
    let subject = Subject::mutex::<Tickets<SimMemory>>("tickets");
    let mut options = Options::new(&subject, 3, 1);
    options.passages = Some(2);
    options.properties =
        Properties::basic().with(Property::BoundedEntry).with(Property::StrongFifo);
    let outcome = check(&subject, &options).expect("it serves three");
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
    let bounds: Vec<_> = outcome.bounds.iter().map(|bound| (bound.property, bound.steps)).collect();
    assert_eq!(bounds, [(Property::BoundedEntry, 2)]);
}

#[test]
fn the_tickets_of_a_bakery_are_first_come_first_served_and_not_strong_fifo() {
    let bakery = registered("black-white-bakery");
    assert_eq!(asked(&bakery, 2, Property::Fcfs), None);
    assert_eq!(asked(&bakery, 2, Property::StrongFifo), Some(Property::StrongFifo));
}

#[test]
fn a_late_request_of_another_session_can_delay_one_in_the_bakery_for_groups() {
    let subject = registered("black-white-bakery-gme");
    let property = Property::StrongConcurrentEntering;
    assert_eq!(asked(&subject, 2, property), Some(property));
    assert_eq!(asked(&subject, 2, Property::ConcurrentEntering), None);
}

#[test]
fn cycles_are_the_same_with_and_without_renaming() {
    let retries = Subject::mutex::<Retries<SimMemory>>("retries");
    for (subject, property, convicted) in [
        (registered("mcs"), Property::StarvationFreedom, false),
        (registered("handover"), Property::StarvationFreedom, false),
        (registered("phases-fifo"), Property::StarvationFreedom, true),
        (registered("phases-fifo"), Property::TerminatingExit, false),
        (registered("mcs"), Property::TerminatingExit, false),
        (retries, Property::TerminatingExit, true),
    ] {
        let mut options = Options::new(&subject, 2, 2);
        options.properties = Properties::only(property);
        for symmetry in [true, false] {
            options.reductions.symmetry = symmetry;
            let outcome = check(&subject, &options).expect("all serve two");
            let found = outcome.violation.map(|violation| violation.property);
            assert_eq!(found, convicted.then_some(property), "{subject:?}, {symmetry}");
        }
    }
}
