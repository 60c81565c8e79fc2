//! Processes that die. They die before any step, other processes get a report, and the explorer
//! checks what holds then.

use grouplock_algorithms::claims::Growth;
use grouplock_algorithms::latch::WordLatch;
use grouplock_algorithms::recoverable::Recoverable;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::rmr::{self, Model, fit, measure};
use grouplock_lab::{
    Options, Outcome, Properties, Property, Reductions, Subject, Verdict, check, registry,
};

const NAME: &str = "recoverable";

fn subject() -> Subject {
    registry::find(NAME).expect("it is listed")
}

fn explore(subject: &Subject, options: &Options) -> Outcome {
    let outcome = check(subject, options).expect("the sizes are right");
    println!(
        "{} × {}, {:?} deaths, {:?} passages: {} states, depth {}, {:?}",
        options.processes,
        options.sessions,
        options.deaths,
        options.passages,
        outcome.states,
        outcome.depth,
        outcome.elapsed
    );
    assert_eq!(outcome.verdict, Verdict::Holds, "{:#?}", outcome.violation);
    outcome
}

#[test]
fn two_processes_may_die_any_number_of_times() {
    let options = Options::new(&subject(), 2, 2);
    let outcome = explore(&subject(), &options);
    for property in [
        Property::MutualExclusion,
        Property::DeadlockFreedom,
        Property::StarvationFreedom,
        Property::Fcfs,
        Property::ConcurrentOccupancy,
        Property::TerminatingExit,
    ] {
        assert!(outcome.checked.contains(property), "{property}");
    }
}

/// Each possible death adds states.
#[test]
fn deaths_are_explored() {
    let states = [Some(0), Some(1), Some(2), None].map(|deaths| {
        let properties = Properties::basic();
        let options = Options { deaths, properties, ..Options::new(&subject(), 2, 2) };
        explore(&subject(), &options).states
    });
    // If deaths are counted, states differ by the count.
    assert!(states[0] < states[1] && states[1] < states[2], "{states:?}");
    assert!(states[0] < states[3], "{states:?}");
}

/// Tickets that are numbers grow forever. An exploration with renumbered tickets finds what an
/// exploration with numbers finds.
#[test]
fn tickets_may_be_numbered_anew() {
    let with = |forget| {
        let options = Options::new(&subject(), 2, 2);
        let reductions = Reductions { forget, ..options.reductions };
        let properties = Properties::basic();
        let options =
            Options { passages: Some(2), deaths: Some(1), properties, reductions, ..options };
        explore(&subject(), &options).states
    };
    assert!(with(true) < with(false));
}

/// A latch that is a word, not an ideal latch. (With more than two processes its names must be new
/// after a death, and the processes of an exploration always keep their names.)
#[test]
fn a_latch_that_names_its_owner_is_taken_from_the_dead() {
    let latch = Subject::recovering::<Recoverable<SimMemory, WordLatch<SimMemory>>>(
        "recoverable+word-latch",
    );
    let mut options = Options::new(&latch, 2, 2);
    options.deaths = Some(1);
    options.properties = Properties::basic();
    explore(&latch, &options);
}

/// One exit may admit many. On average over a run a passage has a constant cost, and no process
/// waits on remote memory.
#[test]
fn the_mean_of_a_run_does_not_grow() {
    let options = rmr::Options { passages: 3, search_rounds: 8, ..rmr::Options::default() };
    for model in [Model::Cc, Model::Dsm] {
        let of = |processes| {
            let measured = measure(NAME, processes, &options).expect("it does not break");
            let point =
                measured.into_iter().find(|point| point.model == model).expect("all models");
            let mean = point.amortised.expect("its claim is amortised");
            println!("{model}, {processes}: {} at most, {mean:.1} on the mean", point.max);
            assert!(!point.remote_spinning, "{processes} processes");
            (processes, rmr::rounded_up(mean))
        };
        let means = [8, 32, 128].map(of);
        assert_eq!(fit(&means), Growth::Constant, "{model}: {means:?}");
    }
}
