//! Processes that die: they do so before any step, others are told, and what holds then is looked
//! at.

use grouplock_algorithms::claims::Growth;
use grouplock_algorithms::latch::Gate;
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

/// Each death that may come has states of its own.
#[test]
fn deaths_are_explored() {
    let states = [Some(0), Some(1), Some(2), None].map(|deaths| {
        let properties = Properties::basic();
        let options = Options { deaths, properties, ..Options::new(&subject(), 2, 2) };
        explore(&subject(), &options).states
    });
    // Where deaths are counted, states differ by the count.
    assert!(states[0] < states[1] && states[1] < states[2], "{states:?}");
    assert!(states[0] < states[3], "{states:?}");
}

/// As numbers, tickets grow for ever. What is found with tickets that are numbered anew is found
/// with numbers.
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

/// A latch that is a word and no ideal one. (With more than two processes its names have to be new
/// ones after a death, and the processes of an exploration have the same for ever.)
#[test]
fn a_latch_that_names_its_owner_is_taken_from_the_dead() {
    let gate = Subject::recovering::<Recoverable<SimMemory, Gate<SimMemory>>>("recoverable+gate");
    let mut options = Options::new(&gate, 2, 2);
    options.deaths = Some(1);
    options.properties = Properties::basic();
    explore(&gate, &options);
}

/// One exit may let in many. On the mean of a run a passage costs a constant, and nobody waits on
/// remote memory.
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
