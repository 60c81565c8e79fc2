//! Rooms, forums, the pairwise bakery and the abortable queue lock: the properties that the lab
//! finds and refutes.

use grouplock_algorithms::claims::Growth;
use grouplock_algorithms::jayanti_jayanti::JayantiJayanti;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::rmr::{self, Measurement, Model, fit, measure};
use grouplock_lab::{Options, Outcome, Properties, Property, Subject, Verdict, check, registry};

fn named(name: &str) -> Subject {
    registry::find(name).expect("it is listed")
}

/// Explores a lock, for `property` only if it is given.
fn explore(
    subject: &Subject,
    (processes, sessions): (usize, u64),
    passages: Option<u8>,
    property: Option<Property>,
) -> Outcome {
    let mut options = Options::new(subject, processes, sessions);
    options.passages = passages;
    if let Some(property) = property {
        options.properties = Properties::only(property);
    }
    check(subject, &options).expect("the sizes are right")
}

/// The number of steps to a violation of `property`.
fn breaks(name: &str, size: (usize, u64), property: Property) -> usize {
    let outcome = explore(&named(name), size, Some(2), Some(property));
    let violation = outcome.violation.unwrap_or_else(|| panic!("{name} has {property}"));
    assert_eq!(violation.property, property);
    violation.trace.len()
}

#[test]
fn a_late_request_for_a_room_or_a_forum_waits_for_the_next_round() {
    for name in ["rooms", "forums"] {
        let steps = breaks(name, (2, 1), Property::ConcurrentOccupancy);
        assert!(steps <= 16, "{name}: one enters, and one comes late: {steps} steps");
    }
}

#[test]
fn neither_rooms_nor_forums_serve_requests_in_their_order() {
    for name in ["rooms", "forums"] {
        let steps = breaks(name, (2, 2), Property::Fcfs);
        assert!(steps <= 13, "{name}: one ends its doorway, another passes: {steps} steps");
    }
}

#[test]
fn rooms_and_forums_let_nobody_in_before_one_of_its_session_that_came_first() {
    for name in ["rooms", "forums"] {
        let outcome = explore(&named(name), (3, 2), Some(1), None);
        assert_eq!(outcome.verdict, Verdict::Holds, "{name}: {:?}", outcome.violation);
        assert!(outcome.checked.contains(Property::Fife), "{name}");
        assert!(outcome.checked.contains(Property::BoundedExit), "{name}");
    }
}

#[test]
fn the_pairwise_bakery_has_what_it_claims() {
    let outcome = explore(&named("pairwise-bakery"), (2, 2), Some(2), None);
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
    for property in [Property::Fcfs, Property::ConcurrentEntering, Property::BoundedExit] {
        assert!(outcome.checked.contains(property), "{property}");
    }
}

/// A third process is about to draw its ticket. A process that reads its register then must wait,
/// although it arrived first.
#[test]
fn the_pairwise_bakery_is_not_first_in_first_enabled() {
    let subject = named("pairwise-bakery");
    let outcome = explore(&subject, (3, 2), Some(1), Some(Property::Fife));
    assert_eq!(outcome.violation.map(|violation| violation.property), Some(Property::Fife));
    let steps = breaks(subject.name, (2, 2), Property::StrongConcurrentEntering);
    assert!(steps <= 11, "{steps} steps");
}

#[test]
fn a_process_that_withdraws_from_the_queue_lock_delays_nobody() {
    let outcome = explore(&named("jayanti-jayanti"), (3, 1), None, None);
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
    for property in
        [Property::StarvationFreedom, Property::BoundedExit, Property::GroupBoundedAbort]
    {
        assert!(outcome.checked.contains(property), "{property}");
    }
    let abort = outcome.bounds.iter().find(|bound| bound.property == Property::GroupBoundedAbort);
    assert_eq!(abort.map(|bound| bound.steps), Some(1), "giving up is one write");
}

#[test]
fn the_queue_lock_is_first_come_first_served_unless_a_process_returns_to_a_place_left() {
    let outcome = explore(&named("jayanti-jayanti"), (2, 1), None, Some(Property::Fcfs));
    let violation = outcome.violation.expect("who returns is before who came meanwhile");
    let told: Vec<_> = violation.trace.iter().map(|step| step.operation.as_str()).collect();
    assert!(told.contains(&"withdraws"), "{told:?}");

    let patient = Subject::mutex::<JayantiJayanti<SimMemory>>("patient");
    let outcome = explore(&patient, (3, 1), None, Some(Property::Fcfs));
    assert_eq!(outcome.verdict, Verdict::Holds, "{:?}", outcome.violation);
}

fn measured(name: &str, model: Model) -> Vec<Measurement> {
    let options = rmr::Options { passages: 3, search_rounds: 20, ..rmr::Options::default() };
    let of = |processes| {
        let all = measure(name, processes, &options).expect("it does not break");
        all.into_iter().find(|one| one.model == model).expect("all models are measured")
    };
    [4, 16, 64].map(of).into()
}

fn growth(measured: &[Measurement]) -> Growth {
    fit(&measured.iter().map(|one| (one.processes, one.max)).collect::<Vec<_>>())
}

/// The remote references of a passage grow as the claims say.
#[test]
fn what_they_cost() {
    // At most sixteen accesses, with three reads in line 2 and two in line 5.
    for one in measured("forums", Model::Cc) {
        assert!(one.max <= 16, "{} processes: {}", one.processes, one.max);
    }
    assert_eq!(growth(&measured("pairwise-bakery", Model::Cc)), Growth::Linear);
    let dsm = measured("pairwise-bakery", Model::Dsm);
    assert_eq!(growth(&dsm), Growth::Linear);
    assert!(dsm.iter().all(|one| !one.remote_spinning), "everybody waits at home");
    let queue = measured("jayanti-jayanti", Model::Cc);
    let mean =
        |one: &Measurement| one.amortised.map(rmr::rounded_up).expect("waiters can withdraw");
    let means: Vec<_> = queue.iter().map(|one| (one.processes, mean(one))).collect();
    assert_eq!(fit(&means), Growth::Constant, "{means:?}");
}

/// A process of a bakery reads the registers of all processes, even if few compete. A process of a
/// queue lock reads only those of the processes it meets.
#[test]
fn cost_by_contention_shows_which_locks_are_adaptive() {
    let alone = |name: &str| {
        let largest = measured(name, Model::Cc).pop().expect("three sizes");
        for by in [&largest.by_point_contention, &largest.by_interval_contention] {
            assert!(by.iter().all(|one| (1..=largest.processes).contains(&one.contention)));
            assert_eq!(by.iter().map(|one| one.max).max(), Some(largest.max), "{name}");
        }
        let alone = largest.by_interval_contention.first().expect("there were passages");
        assert_eq!(alone.contention, 1, "{name}: somebody met nobody");
        alone.max
    };
    assert!(alone("pairwise-bakery") >= 63);
    assert!(alone("handover") < 32);
}
