//! Store buffers: which executions they allow and forbid, and what an exploration with them
//! reports.

mod scaffold;

use grouplock_algorithms::CapacityError;
use grouplock_algorithms::claims::{Claims, Text};
use grouplock_algorithms::memory::{Memory, Ordering, Register, Site, Value as _, Word};
use grouplock_algorithms::raw::RawMutex;
use grouplock_algorithms::slots::Slots;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::{
    MemoryModel, Move, Options, Outcome, Properties, Property, Reductions, Sampling, Schedule,
    Subject, Verdict, check, registry, replay, sample,
};

/// Peterson's lock for two. Each of its three writes has its own ordering: a digit for `wants`, for
/// `turn`, and for `wants` in the exit.
#[derive(Debug)]
struct Peterson<M: Memory, const ORDERS: u16> {
    wants: [M::Register<bool>; 2],
    turn: M::Register<usize>,
    slots: Slots<Process>,
}

#[derive(Debug)]
struct Process {
    i: usize,
}

/// Relaxed, release, sequentially consistent.
const STRENGTHS: [Ordering; 3] = [Ordering::Relaxed, Ordering::Release, Ordering::SeqCst];

impl<M: Memory, const ORDERS: u16> Peterson<M, ORDERS> {
    const WANTS: Ordering = STRENGTHS[(ORDERS / 100) as usize];
    const TURN: Ordering = STRENGTHS[(ORDERS / 10 % 10) as usize];
    const LEAVES: Ordering = STRENGTHS[(ORDERS % 10) as usize];
}

impl<M: Memory, const ORDERS: u16> RawMutex<M> for Peterson<M, ORDERS> {
    type Process = Process;

    fn claims() -> Claims {
        scaffold::claims("peterson", Text::new(file!(), include_str!("weak.rs")))
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
        self.wants[me.i].write(true, Self::WANTS); // 1
        self.turn.write(other, Self::TURN); // 2
        let acquire = Ordering::Acquire;
        M::await_until(|| !self.wants[other].read(acquire) || self.turn.read(acquire) != other); // 3
    }

    unsafe fn release(&self, me: &mut Process) {
        self.wants[me.i].write(false, Self::LEAVES); // 4
    }

    fn inspect(me: &Process, see: &mut dyn FnMut(&'static str, Word)) {
        see("i", me.i.word());
    }
}

fn peterson<const ORDERS: u16>() -> Subject {
    Subject::mutex::<Peterson<SimMemory, ORDERS>>("peterson")
}

fn options(subject: &Subject, processes: usize, model: MemoryModel) -> Options {
    let mut options = Options::new(subject, processes, 2);
    options.memory_model = model;
    options
}

fn explore(subject: &Subject, model: MemoryModel) -> Outcome {
    check(subject, &options(subject, 2, model)).expect("all serve two")
}

fn found(subject: &Subject, model: MemoryModel) -> Option<Property> {
    let outcome = explore(subject, model);
    assert_ne!(outcome.verdict, Verdict::Limit, "{model}");
    outcome.violation.map(|violation| violation.property)
}

const BROKEN: Option<Property> = Some(Property::MutualExclusion);

/// Store buffering: each process writes, and then reads what the other wrote.
#[test]
fn a_write_that_is_late_lets_two_in_though_no_interleaving_does() {
    assert_eq!(found(&peterson::<111>(), MemoryModel::Sc), None);
    assert_eq!(found(&peterson::<111>(), MemoryModel::Tso), BROKEN);
    assert_eq!(found(&peterson::<112>(), MemoryModel::Tso), BROKEN, "the way out does not help");
}

#[test]
fn one_write_that_waits_for_the_buffer_is_enough() {
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        assert_eq!(found(&peterson::<121>(), model), None, "{model}");
        assert_eq!(found(&peterson::<222>(), model), None, "{model}");
    }
    assert_eq!(found(&peterson::<211>(), MemoryModel::Tso), BROKEN, "it must be the last one");
}

/// Message passing: a process that enters must see what was written inside.
#[test]
fn a_relaxed_way_out_overtakes_the_data_only_where_writes_are_not_in_order() {
    assert_eq!(found(&peterson::<220>(), MemoryModel::Sc), None);
    assert_eq!(found(&peterson::<220>(), MemoryModel::Tso), None);
    assert_eq!(found(&peterson::<220>(), MemoryModel::Pso), BROKEN);
    let violation = explore(&peterson::<220>(), MemoryModel::Pso).violation.expect("as above");
    let late = "what process 0 wrote inside has not reached memory";
    let other = "what process 1 wrote inside has not reached memory";
    let because = violation.because;
    assert!(because.contains(late) || because.contains(other), "{because}");
}

#[test]
fn the_trace_shows_when_a_write_reaches_memory_and_can_be_repeated() {
    let subject = peterson::<111>();
    let options = options(&subject, 2, MemoryModel::Tso);
    let violation = explore(&subject, MemoryModel::Tso).violation.expect("it is broken");
    let last = violation.trace.last().expect("it takes steps");
    assert_eq!(last.inside.len(), 2);
    let late = violation.trace.iter().find(|step| step.operation.ends_with(", on its way"));
    let access = late.and_then(|step| step.access.as_ref()).expect("some write is late");
    assert!(!access.writes, "memory is as before: {access:?}");
    let repeated = replay(&subject, &options, &violation.schedule).expect("it fits");
    assert_eq!(repeated.verdict, Verdict::Violated);
    assert_eq!(repeated.violation.expect("as before").because, violation.because);

    let asks = Move { process: 0, session: 1 };
    let reaches = Move { process: 0, session: Move::REACHES };
    assert!(replay(&subject, &options, &[asks, reaches]).is_ok(), "the first write does");
    assert!(replay(&subject, &options, &[reaches]).is_err(), "nothing is on its way");
}

#[test]
fn draws_find_it_too() {
    let subject = peterson::<111>();
    let sampling = Sampling { schedule: Schedule::Random, runs: 1_000, steps: 60, seed: 1 };
    let draw = |model| {
        let options = options(&subject, 2, model);
        sample(&subject, &options, &sampling).expect("it serves two")
    };
    assert_eq!(draw(MemoryModel::Sc).verdict, Verdict::Limit, "nothing is to be found");
    let drawn = draw(MemoryModel::Tso);
    assert_eq!(drawn.violation.map(|violation| violation.property), BROKEN);
}

/// A process alone writes more than a buffer holds, passage after passage. Nothing empties the
/// buffer.
#[test]
fn a_full_buffer_is_a_limit_and_never_a_proof() {
    let subject = peterson::<111>();
    let outcome = check(&subject, &options(&subject, 1, MemoryModel::Tso)).expect("it serves one");
    assert_eq!((outcome.verdict, outcome.buffer_full), (Verdict::Limit, true));
    assert_eq!(outcome.checked, Properties::default());
    let outcome = check(&subject, &options(&subject, 1, MemoryModel::Sc)).expect("it serves one");
    assert_eq!((outcome.verdict, outcome.buffer_full), (Verdict::Holds, false));
}

#[test]
fn unchecked_properties_are_named() {
    let subject = registry::find("handover").expect("it is registered");
    let outcome = explore(&subject, MemoryModel::Tso);
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
    let held = [Property::MutualExclusion, Property::Fcfs, Property::BoundedRegisters];
    for property in held {
        assert!(outcome.checked.contains(property), "{property}");
    }
    assert!(outcome.in_part.contains(Property::DeadlockFreedom), "no states, but for ever");
    let missing = outcome.answered().missing(&subject.claims, None);
    for property in [Property::DeadlockFreedom, Property::Fife, Property::StarvationFreedom] {
        assert!(missing.contains(property), "{property}");
    }
}

/// The two remaining reductions lose nothing, on texts that hold and on one that does not.
#[test]
fn names_and_dead_contents_can_be_merged() {
    let sets = [
        Reductions::ALL,
        Reductions { forget: false, ..Reductions::ALL },
        Reductions { symmetry: false, ..Reductions::ALL },
        Reductions::NONE,
    ];
    let names = ["mcs", "dvir-taubenfeld-1", "dvir-taubenfeld-1-swap", "handover"];
    for (model, passages) in [(MemoryModel::Tso, 2), (MemoryModel::Pso, 1)] {
        for name in names {
            let subject = registry::find(name).expect("it is registered");
            let states = sets.map(|reductions| {
                let mut options = options(&subject, 2, model);
                options.properties = Properties::basic();
                options.passages = Some(passages);
                options.reductions = reductions;
                let outcome = check(&subject, &options).expect("all serve two");
                let wrong = outcome.violation;
                assert_eq!(outcome.verdict, Verdict::Holds, "{name}, {reductions:?}: {wrong:?}");
                outcome.states
            });
            let [all, .., none] = states;
            assert!(all <= none, "{name}: {states:?}");
        }
        for reductions in sets {
            let subject = peterson::<110>();
            let mut options = options(&subject, 2, model);
            options.reductions = reductions;
            let outcome = check(&subject, &options).expect("it serves two");
            assert_eq!(outcome.verdict, Verdict::Violated, "{reductions:?}");
        }
    }
}

/// If nothing is weaker than sequentially consistent, buffers hold only data, and the same states
/// are reached.
#[test]
fn strong_orderings_leave_nothing_to_buffers() {
    let subject = registry::find("burns-lamport").expect("it is registered");
    let count = |model| {
        let mut options = options(&subject, 3, model);
        // Without mutual exclusion no process writes data.
        options.properties = Properties::only(Property::BoundedRegisters);
        options.reductions = Reductions::NONE;
        check(&subject, &options).expect("it serves three").states
    };
    assert_eq!(count(MemoryModel::Sc), count(MemoryModel::Tso));
    assert_eq!(count(MemoryModel::Sc), count(MemoryModel::Pso));
}
