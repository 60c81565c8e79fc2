//! The explorer refutes locks that are broken on purpose, and finds that correct locks hold.

mod scaffold;

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Bound, Claim, Claims, Growth, Limit, Primitive, Text};
use grouplock_algorithms::memory::{Memory, Ordering::SeqCst, Register, Site, Value, Word};
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::slots::Slots;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::trace::Step;
use grouplock_lab::{
    CheckError, Move, Options, Outcome, Properties, Property, Sampling, Schedule, Subject, Verdict,
    check, registry, replay, sample,
};

/// Peterson's lock for two, and possible faults in it.
#[derive(Debug)]
struct Peterson<M: Memory, const FLAW: u8> {
    wants: [M::Register<bool>; 2],
    turn: M::Register<usize>,
    slots: Slots<Process>,
}

#[derive(Debug)]
struct Process {
    i: usize,
}

const RIGHT: u8 = 0;
const TURN_FIRST: u8 = 1;
const NEVER_RELEASED: u8 = 2;
const FORGOTTEN_TOO_EARLY: u8 = 3;
const LIVE_FORGETS_A_VALUE: u8 = 4;
const PANICS: u8 = 5;

impl<M: Memory, const FLAW: u8> RawMutex<M> for Peterson<M, FLAW> {
    type Process = Process;

    fn claims() -> Claims {
        let text = Text::new(file!(), include_str!("verdicts.rs"));
        Claims {
            source: "Peterson 1981",
            starvation_freedom: Claim::Yes,
            fcfs: Claim::Yes,
            group_bounded_abort: Claim::NotApplicable,
            rmr_cc: Bound::of(Growth::Constant),
            primitives: &[Primitive::Read, Primitive::Write],
            processes: Limit::Fixed(2),
            bounded_registers: Claim::Yes,
            ..scaffold::claims("peterson", text)
        }
    }

    fn new(processes: usize) -> Result<Self, CapacityError> {
        Ok(Peterson {
            wants: [0, 1].map(|i| M::Register::new(Site::per_process("wants", i), false)),
            turn: M::Register::new(Site::shared("turn"), 0),
            slots: Slots::new(processes, 2, |i| Process { i })?,
        })
    }

    fn join(&self) -> Result<Process, CapacityError> {
        self.slots.take()
    }

    unsafe fn leave(&self, me: Process) {
        self.slots.give_back(me);
    }

    unsafe fn acquire(&self, me: &mut Process) {
        let other = 1 - me.i;
        if FLAW == TURN_FIRST {
            self.turn.write(other, SeqCst); // 2
            self.wants[me.i].write(true, SeqCst); // 1
        } else {
            self.wants[me.i].write(true, SeqCst); // 1
            self.turn.write(other, SeqCst); // 2
        }
        M::doorway_end();
        let saw = if FLAW == LIVE_FORGETS_A_VALUE { self.turn.read(SeqCst) } else { other };
        M::live(|| []);
        if FLAW == LIVE_FORGETS_A_VALUE && saw != other {
            return;
        }
        M::await_until(|| !self.wants[other].read(SeqCst) || self.turn.read(SeqCst) != other); // 3
        assert!(FLAW != PANICS || !self.wants[other].read(SeqCst), "as asked");
    }

    unsafe fn release(&self, me: &mut Process) {
        if FLAW == FORGOTTEN_TOO_EARLY {
            self.turn.forget();
        }
        if FLAW == NEVER_RELEASED {
            self.wants[me.i].read(SeqCst);
        } else {
            self.wants[me.i].write(false, SeqCst); // 4
        }
        if FLAW == FORGOTTEN_TOO_EARLY {
            self.turn.forget();
        }
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}

fn peterson<const FLAW: u8>() -> Outcome {
    let subject = Subject::mutex::<Peterson<SimMemory, FLAW>>("peterson");
    check(&subject, &Options::new(&subject, 2, 1)).expect("Peterson's lock serves two")
}

fn convicted(outcome: &Outcome) -> Property {
    assert_eq!(outcome.verdict, Verdict::Violated);
    outcome.violation.as_ref().expect("a violation comes with its verdict").property
}

#[test]
fn petersons_lock_holds() {
    let outcome = peterson::<RIGHT>();
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
}

#[test]
fn writing_turn_first_lets_two_in_and_the_trace_shows_it() {
    let outcome = peterson::<TURN_FIRST>();
    assert_eq!(convicted(&outcome), Property::MutualExclusion);
    let trace = &outcome.violation.expect("checked above").trace;
    let last = trace.last().expect("a violation takes steps");
    assert_eq!(last.inside.len(), 2);
    assert!(last.source.as_ref().is_some_and(|source| source.starts_with("verdicts.rs:")));
    assert!(trace.iter().any(|step| step.paper_line.as_deref() == Some("2")));
    assert!(trace.len() <= 9, "two requests and seven accesses are enough: {trace:#?}");
}

#[test]
fn a_lock_that_is_never_released_keeps_the_others_waiting() {
    assert_eq!(convicted(&peterson::<NEVER_RELEASED>()), Property::DeadlockFreedom);
}

#[test]
fn a_wrong_word_on_dead_registers_is_found_out() {
    assert_eq!(convicted(&peterson::<FORGOTTEN_TOO_EARLY>()), Property::DeadRead);
}

#[test]
fn a_wrong_word_on_dead_private_values_is_found_out() {
    assert_eq!(convicted(&peterson::<LIVE_FORGETS_A_VALUE>()), Property::DeadPrivate);
}

#[test]
fn a_panic_is_a_finding() {
    let outcome = peterson::<PANICS>();
    assert_eq!(convicted(&outcome), Property::NoPanic);
    assert!(outcome.violation.expect("checked above").because.contains("as asked"));
}

#[test]
fn too_little_memory_ends_in_limit_and_never_in_holds() {
    let subject = registry::find("handover").expect("it is registered");
    let mut options = Options::new(&subject, 3, 2);
    options.memory_limit = 100_000;
    let outcome = check(&subject, &options).expect("the sizes are right");
    assert_eq!(outcome.verdict, Verdict::Limit);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let subject = registry::find("handover").expect("it is registered");
    for (processes, sessions) in [(0, 2), (99, 2), (2, 0), (2, 9999)] {
        assert!(check(&subject, &Options::new(&subject, processes, sessions)).is_err());
    }
}

/// Two tests, because two run at a time. The specimen has its own test, and breaks only with three
/// processes. The longest explorations are in the evidence and in `cargo xtask soak`.
#[test]
fn every_algorithm_holds_with_two_processes() {
    hold_with_two_processes(|name| !name.starts_with("maor") && !name.starts_with("phases"));
}

#[test]
fn phases_holds_with_two_processes() {
    let is_long = |name: &str| {
        let long = ["-cancel", "-mixed"].iter().any(|end| name.ends_with(end));
        long && name != "phases-fifo-cancel" || name == "phases-setup"
    };
    hold_with_two_processes(|name| name.starts_with("phases") && !is_long(name));
}

fn hold_with_two_processes(are_meant: impl Fn(&str) -> bool) {
    for subject in registry::all().iter().filter(|subject| are_meant(subject.name)) {
        let sessions = if subject.claims.sessions == Limit::Fixed(1) { 1 } else { 2 };
        let mut options = Options::new(subject, 2, sessions);
        // If processes may die, the lab renumbers the tickets.
        if subject.claims.bounded_registers == Claim::No && !subject.dies {
            // Turns and tickets grow forever.
            options.passages = Some(2);
        }
        let outcome = check(subject, &options).expect("all serve two");
        assert_eq!(outcome.verdict, Verdict::Holds, "{}: {:?}", subject.name, outcome.violation);
        // Everything was checked, except infinite executions if passages are bounded.
        if options.passages.is_some() {
            options.properties = options.properties.without(Property::StarvationFreedom);
        }
        assert_eq!(outcome.checked, options.properties, "{}", subject.name);
    }
}

#[test]
fn tickets_of_the_black_white_bakery_stay_small_if_colour_and_number_are_one_register() {
    let tickets = |name, processes| {
        let subject = registry::find(name).expect("it is registered");
        let mut options = Options::new(&subject, processes, 1);
        options.properties = Properties::basic().with(Property::BoundedRegisters);
        check(&subject, &options).expect("it serves so many")
    };
    let pair = tickets("black-white-bakery", 3);
    assert_eq!(pair.verdict, Verdict::Holds, "{:?}", pair.violation);
    assert_eq!(convicted(&tickets("black-white-bakery-split", 2)), Property::BoundedRegisters);
}

/// The paper proves N + 1, and no lower bound holds.
#[test]
fn tickets_of_the_black_white_bakery_for_groups_reach_one_more_than_there_are_processes() {
    let subject = registry::find("black-white-bakery-gme").expect("it is registered");
    let mut options = Options::new(&subject, 2, 2);
    options.properties = Properties::basic().with(Property::BoundedRegisters);
    let bounded_by =
        |in_range| check(&subject.with_range(in_range), &options).expect("it serves two");
    // A token is a session, a number of 14 bits and a colour of 2.
    let within_n = bounded_by(|name, token, n| name != "Token" || token >> 2 & 0x3fff <= n as u64);
    assert_eq!(convicted(&within_n), Property::BoundedRegisters);
    assert_eq!(check(&subject, &options).expect("it serves two").verdict, Verdict::Holds);
}

#[test]
fn a_violation_can_be_repeated() {
    let subject = Subject::mutex::<Peterson<SimMemory, TURN_FIRST>>("peterson");
    let options = Options::new(&subject, 2, 1);
    let found = check(&subject, &options).expect("it serves two").violation.expect("it is broken");
    let again = replay(&subject, &options, &found.schedule).expect("the schedule fits");
    let again = again.violation.expect("the same execution is as broken");
    assert_eq!(again.property, found.property);
    // If an order is checked, the lines of processes are distinguished more finely. The first
    // search does not check an order.
    let steps = |trace: &[Step]| -> Vec<_> {
        trace.iter().map(|step| (step.process, step.operation.clone())).collect()
    };
    assert_eq!(steps(&again.trace), steps(&found.trace));

    let nonsense = [Move { process: 1, session: 0 }];
    let refused = replay(&subject, &options, &nonsense).unwrap_err();
    assert_eq!(refused, CheckError::Schedule(1, 1));
}

/// The result of a check of `name` for a property that it does not claim.
fn asked_for(name: &str, property: Property, passages: Option<u8>) -> Outcome {
    let subject = registry::find(name).expect("it is registered");
    let mut options = Options::new(&subject, 3, 2);
    options.passages = passages;
    options.properties = Properties::basic().with(property);
    check(&subject, &options).expect("all serve three")
}

#[test]
fn a_process_in_keane_and_moirs_lock_may_have_to_wait_for_later_ones() {
    for property in
        [Property::StrongGroupConcurrentEntering, Property::Fcfs, Property::GroupConcurrentEntering]
    {
        let outcome = asked_for("keane-moir", property, None);
        assert_eq!(outcome.verdict, Verdict::Violated, "{property}");
        assert_eq!(convicted(&outcome), property);
    }
}

/// Over an ideal lock, the first step of the exit waits. A process that has not taken it counts as
/// inside.
#[test]
fn leaving_keane_and_moirs_lock_may_take_a_wait() {
    let subject = registry::find("keane-moir+dvir-taubenfeld-1-swap").expect("it is registered");
    let mut options = Options::new(&subject, 2, 2);
    options.properties = Properties::basic().with(Property::GroupBoundedExit);
    let outcome = check(&subject, &options).expect("it serves two");
    assert_eq!(convicted(&outcome), Property::GroupBoundedExit);
}

#[test]
fn the_bakery_for_groups_is_not_first_in_first_enabled() {
    let outcome = asked_for("generalized-bakery", Property::Fife, Some(1));
    assert_eq!(convicted(&outcome), Property::Fife);
}

#[test]
fn a_number_out_of_range_is_found() {
    let subject = Subject::mutex::<Peterson<SimMemory, RIGHT>>("peterson");
    // Peterson's turn is 0 or 1. The false bound says that it is never 1.
    let outcome = check(
        &subject.with_range(|name, number, _| name != "turn" || number == 0),
        &Options::new(&subject, 2, 1),
    );
    assert_eq!(
        convicted(&outcome.expect("Peterson's lock serves two")),
        Property::BoundedRegisters
    );
}

#[test]
fn sampling_finds_what_is_wrong_and_never_says_that_all_is_well() {
    let broken = registry::find("maor-taubenfeld").expect("it is registered");
    let mut options = Options::new(&broken, 3, 2);
    options.properties = Properties::basic();
    for schedule in [Schedule::Random, Schedule::Pct { changes: 6 }] {
        let sampling = Sampling { schedule, runs: 20_000, steps: 400, seed: 1 };
        options.passages = (schedule != Schedule::Random).then_some(4);
        let once = sample(&broken, &options, &sampling).expect("the sizes are right");
        assert_eq!(once.verdict, Verdict::Violated, "{schedule:?}");
        let again = sample(&broken, &options, &sampling).expect("the sizes are right");
        let trace = |outcome: &Outcome| outcome.violation.as_ref().map(|v| v.trace.clone());
        assert_eq!(trace(&once), trace(&again), "the same seed, the same execution");
    }
    let right = registry::find("handover").expect("it is registered");
    let sampling = Sampling { schedule: Schedule::Random, runs: 50, steps: 200, seed: 1 };
    let outcome =
        sample(&right, &Options::new(&right, 5, 3), &sampling).expect("the sizes are right");
    assert_eq!(outcome.verdict, Verdict::Limit);
}

#[test]
fn a_fast_process_can_starve_another_in_the_one_bit_lock() {
    let outcome = asked_for("burns-lamport", Property::StarvationFreedom, None);
    assert_eq!(convicted(&outcome), Property::StarvationFreedom);
    assert!(!outcome.violation.expect("checked above").trace.is_empty());
}

/// The shipped lock: three processes, in strict order and with an infinite patience. There a lost
/// wake-up cannot stay hidden.
#[test]
fn phases_holds_with_three_processes() {
    for name in ["phases-fifo", "phases-patient"] {
        let subject = registry::find(name).expect("it is registered");
        let outcome = check(&subject, &Options::new(&subject, 3, 2)).expect("it serves three");
        assert_eq!(outcome.verdict, Verdict::Holds, "{name}: {:?}", outcome.violation);
    }
}

/// Nodes move between the two locks. The text itself checks that no other process holds the same
/// lock.
#[test]
fn two_locks_that_share_nodes_hold_with_three_processes() {
    let subject = registry::find("dvir-taubenfeld-2-two-locks").expect("it is registered");
    let outcome = check(&subject, &Options::new(&subject, 3, 1)).expect("it serves three");
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
}
