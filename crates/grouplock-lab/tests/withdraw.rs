//! Waiters that withdraw, in explorations and in measurements. Claims about them can be wrong.

use grouplock_algorithms::claims::Growth;
use grouplock_algorithms::handover_withdraw::HandoverWithdraw;
use grouplock_lab::ideal::IdealLock;
use grouplock_lab::memory::SimMemory;
use grouplock_lab::rmr::{self, Model, fit, measure};
use grouplock_lab::{Options, Property, Subject, Verdict, check, registry};

const NAME: &str = "handover-withdraw";

fn subject() -> Subject {
    registry::find(NAME).expect("it is listed")
}

#[test]
fn processes_that_withdraw_are_checked() {
    let outcome = check(&subject(), &Options::new(&subject(), 2, 2)).expect("the sizes are right");
    assert_eq!(outcome.verdict, Verdict::Holds);
    for property in [
        Property::GroupBoundedAbort,
        Property::Fcfs,
        Property::StarvationFreedom,
        Property::GroupBoundedExit,
    ] {
        assert!(outcome.checked.contains(property), "{property}");
    }
    let steps = outcome.bounds.iter().find(|bound| bound.property == Property::GroupBoundedAbort);
    assert!(steps.expect("it bounds steps").steps > 0, "nobody gave up");

    // The same text without withdrawal has fewer states.
    let patient = Subject::group::<HandoverWithdraw<SimMemory, IdealLock>>("patient");
    let options = Options::new(&patient, 2, 2);
    let outcome_of_patient = check(&patient, &options).expect("the sizes are right");
    assert_eq!(outcome_of_patient.verdict, Verdict::Holds);
    assert!(outcome_of_patient.states < outcome.states);
}

/// One late process pays for all processes that withdrew before it. On average over a run, that is
/// a constant.
#[test]
fn the_largest_request_grows_and_the_mean_of_a_run_does_not() {
    let options = rmr::Options { passages: 3, search_rounds: 20, ..rmr::Options::default() };
    let sizes = [4, 16, 64];
    let of = |processes| {
        let measured = measure(NAME, processes, &options).expect("it does not break");
        let cc = measured.into_iter().find(|point| point.model == Model::Cc).expect("all models");
        let mean = cc.amortised.expect("its waiters can withdraw");
        println!("{processes} processes: {} at most, {mean:.1} on the mean of a run", cc.max);
        ((processes, cc.max), (processes, rmr::rounded_up(mean)))
    };
    let (largest, means): (Vec<_>, Vec<_>) = sizes.map(of).into_iter().unzip();
    assert_eq!(fit(&largest), Growth::Linear, "{largest:?}");
    assert_eq!(fit(&means), Growth::Constant, "{means:?}");
}
