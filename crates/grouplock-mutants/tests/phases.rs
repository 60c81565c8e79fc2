//! What each step of `phases` is there for: without it, the explorer finds an execution that breaks the property told.

use grouplock_lab::memory::SimMemory as M;
use grouplock_lab::{Options, Properties, Property, Subject, Verdict, check};
use grouplock_mutants as mutants;

use grouplock_algorithms::policy::{Cancelled, Fifo, Patient};

/// Explores without believing the text on dead registers, as a mutation may make that word false. Only for an order of service it is believed:
/// that is looked for after an exploration without, which would be large, and the mutation in question does not touch it.
fn convicts(subject: &Subject, processes: usize, property: Property) {
    let mut options = Options::new(subject, processes, 2);
    options.properties = Properties::basic().with(property);
    options.reductions.forget = property == Property::Fcfs;
    let outcome = check(subject, &options).expect("the sizes are right");
    assert_eq!(outcome.verdict, Verdict::Violated, "{}", subject.name);
    let violation = outcome.violation.expect("a violation comes with its verdict");
    println!(
        "{} {processes} × 2: {}, {} states, {} steps, {:.1} s",
        subject.name,
        violation.property,
        outcome.states,
        violation.trace.len(),
        outcome.elapsed.as_secs_f64(),
    );
    assert_eq!(violation.property, property, "{}: {}", subject.name, violation.because);
}

macro_rules! convicted {
    ($($test:ident: $mutant:ident, $policy:ty, $processes:literal => $property:ident;)*) => {$(
        #[test]
        fn $test() {
            let name = concat!("phases, ", stringify!($test));
            let subject = Subject::group::<mutants::$mutant::Phases<M, $policy>>(name);
            convicts(&subject, $processes, Property::$property);
        }
    )*};
}

convicted! {
    who_waits_asks_to_be_noticed: phases_without_notify, Fifo, 2 => DeadlockFreedom;
    strict_order_shuts_the_door: phases_without_ask, Fifo, 3 => Fcfs;
    the_word_is_compared_when_the_lock_is_released: phases_unlocks_without_looking_again, Fifo, 2 => DeadlockFreedom;
    a_cancelled_grant_is_passed_on: phases_keeps_a_cancelled_grant, Cancelled<Fifo>, 2 => DeadlockFreedom;
    the_door_is_shut_while_the_name_changes: phases_open_while_changing, Patient, 2 => MutualExclusion;
    only_who_is_alone_renames_the_room: phases_renames_in_company, Patient, 2 => MutualExclusion;
    a_declined_invitation_is_noted: phases_forgets_a_declined_invitation, Patient, 2 => DeadlockFreedom;
    who_renames_the_room_lets_its_fellows_in: phases_renames_without_looking, Patient, 3 => ConcurrentOccupancy;
    the_first_phase_joins_its_own_session: phases_leaves_its_own_session_waiting, Patient, 3 => ConcurrentOccupancy;
}
