//! Every mutant is convicted, of the property it is known to break and within the size it is known to need.

use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::petrovic::Petrovic;
use grouplock_lab::ideal::IdealLock;
use grouplock_lab::memory::SimMemory as M;
use grouplock_lab::{Options, Outcome, Properties, Property, Subject, Verdict, check};
use grouplock_mutants::exit_lock::NoLock;
use grouplock_mutants::turns::Classes;
use grouplock_mutants::{
    anderson_without_3, bakery_without_choosing, bwbgme_naive, bwbgme_without_number_1,
    bwbgme_without_opposite_color, clh_keeps_its_node, dvir_taubenfeld_1_7_before_6,
    dvir_taubenfeld_1_11_before_10, dvir_taubenfeld_1_one_node, dvir_taubenfeld_2_unlocked,
    glb_without_choosing, handover_always_signals, handover_sets_head_late,
    handover_without_cooling, maor_taubenfeld_hands_over, maor_taubenfeld_one_node,
    maor_taubenfeld_signals_outside_its_exit_lock, maor_taubenfeld_without_39,
    maor_taubenfeld_without_cas_13_and_30, maor_taubenfeld_without_cas_15_19_and_44,
};

/// Explores without believing the text on dead registers: the mutation makes that word false.
fn explore(subject: &Subject, processes: usize, sessions: u64) -> Outcome {
    let mut options = Options::new(subject, processes, sessions);
    options.properties = Properties::basic();
    options.reductions.forget = false;
    let outcome = check(subject, &options).expect("the sizes are right");
    let property = outcome.violation.as_ref().map(|violation| violation.property);
    let seconds = outcome.elapsed.as_secs_f64();
    println!(
        "{} {processes} × {sessions}: {:?} {property:?}, {} states, {} steps, {seconds:.1} s",
        subject.name,
        outcome.verdict,
        outcome.states,
        outcome.violation.as_ref().map_or(0, |violation| violation.trace.len()),
    );
    outcome
}

fn convicts(subject: &Subject, processes: usize, sessions: u64) -> Property {
    let outcome = explore(subject, processes, sessions);
    assert_eq!(outcome.verdict, Verdict::Violated, "{}", subject.name);
    outcome.violation.expect("a violation comes with its verdict").property
}

macro_rules! convicted {
    ($($test:ident: $subject:expr, $processes:literal, $sessions:literal => $property:ident;)*) => {$(
        #[test]
        fn $test() {
            assert_eq!(convicts(&$subject, $processes, $sessions), Property::$property);
        }
    )*};
}

convicted! {
    handover_needs_cooling:
        Subject::group::<handover_without_cooling::Handover<M, IdealLock>>("handover, no cooling"), 3, 2 => DeadlockFreedom;
    handover_must_not_signal_its_own_session:
        Subject::group::<handover_always_signals::Handover<M, IdealLock>>("handover, always signals"), 3, 2 => MutualExclusion;
    handover_sets_head_before_it_enables:
        Subject::group::<handover_sets_head_late::Handover<M, IdealLock>>("handover, Head late"), 3, 2 => NoPanic;
    handover_needs_its_exit_lock:
        Subject::group::<Handover<M, NoLock>>("handover, no exit lock"), 3, 2 => DeadlockFreedom;
    maor_taubenfeld_is_not_mended_by_handing_over:
        Subject::group::<maor_taubenfeld_hands_over::MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld, hands over"), 2, 2 => MutualExclusion;
    maor_taubenfeld_needs_its_cas_in_lines_13_and_30:
        Subject::group::<maor_taubenfeld_without_cas_13_and_30::MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld, no CAS 13, 30"), 2, 2 => MutualExclusion;
    maor_taubenfeld_needs_its_cas_in_lines_15_19_and_44:
        Subject::group::<maor_taubenfeld_without_cas_15_19_and_44::MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld, no CAS 15, 19, 44"), 2, 2 => DeadlockFreedom;
    maor_taubenfeld_needs_more_than_one_node:
        Subject::group::<maor_taubenfeld_one_node::MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld, one node"), 2, 2 => DeadlockFreedom;
    // The paper says that it may signal there (section 3.3, item 6).
    maor_taubenfeld_must_not_signal_outside_its_exit_lock:
        Subject::group::<maor_taubenfeld_signals_outside_its_exit_lock::MaorTaubenfeld<M, IdealLock>>("maor-taubenfeld, 43 and 47 after 49"), 2, 2 => MutualExclusion;
    the_bakery_needs_choosing:
        Subject::mutex::<bakery_without_choosing::Bakery<M>>("bakery, no choosing"), 2, 1 => MutualExclusion;
    anderson_must_clear_a_slot:
        Subject::mutex::<anderson_without_3::Anderson<M>>("anderson, no line 3"), 2, 1 => MutualExclusion;
    clh_takes_its_predecessors_node:
        Subject::mutex::<clh_keeps_its_node::Clh<M>>("clh, keeps its node"), 2, 1 => DeadlockFreedom;
    dvir_taubenfeld_1_needs_two_nodes:
        Subject::mutex::<dvir_taubenfeld_1_one_node::DvirTaubenfeld1<M>>("dvir-taubenfeld-1, one node"), 2, 1 => DeadlockFreedom;
    dvir_taubenfeld_1_locks_before_it_links:
        Subject::mutex::<dvir_taubenfeld_1_7_before_6::DvirTaubenfeld1<M>>("dvir-taubenfeld-1, 7 before 6"), 2, 1 => DeadlockFreedom;
    dvir_taubenfeld_1_unlocks_before_it_looks:
        Subject::mutex::<dvir_taubenfeld_1_11_before_10::DvirTaubenfeld1<M>>("dvir-taubenfeld-1, 11 before 10"), 2, 1 => DeadlockFreedom;
    dvir_taubenfeld_2_needs_ids:
        Subject::mutex::<dvir_taubenfeld_2_unlocked::DvirTaubenfeld2<M>>("dvir-taubenfeld-2, UNLOCKED"), 3, 1 => NoPanic;
    petrovic_needs_four_classes:
        Subject::group::<Petrovic<M, Classes<3, 3, true>>>("petrovic, 3 × 3 turns"), 2, 3 => DeadlockFreedom;
    petrovic_needs_its_doorway_flag:
        Subject::group::<Petrovic<M, Classes<4, 3, false>>>("petrovic, no doorway flag"), 2, 3 => DeadlockFreedom;
    glb_needs_choosing:
        Subject::group::<glb_without_choosing::GeneralizedBakery<M>>("glb, no Choosing"), 2, 2 => MutualExclusion;
    bwbgme_needs_the_number_test:
        Subject::group::<bwbgme_without_number_1::BlackWhiteBakeryGme<M>>("bwbgme, no number test"), 3, 2 => MutualExclusion;
    bwbgme_is_not_the_naive_generalization:
        Subject::group::<bwbgme_naive::BlackWhiteBakeryGme<M>>("bwbgme, naive"), 3, 2 => MutualExclusion;
}

/// As section 3.3 of the paper says (item 5). With two processes, where the printed text holds as well.
#[test]
fn maor_taubenfeld_may_leave_line_39_out() {
    let subject = Subject::group::<maor_taubenfeld_without_39::MaorTaubenfeld<M, IdealLock>>(
        "maor-taubenfeld, no line 39",
    );
    assert_eq!(explore(&subject, 2, 2).verdict, Verdict::Holds);
}

/// The other test that the paper calls necessary for its exit. Here, nothing shows that it is: exhausted with three processes and
/// two sessions (in `cargo xtask soak`), and 80,000 executions drawn with four and five processes found nothing either.
#[test]
#[ignore = "two minutes and thirteen million states; `cargo xtask soak` runs it"]
fn bwbgme_without_the_opposite_color_test_survives_three_processes() {
    let subject = Subject::group::<bwbgme_without_opposite_color::BlackWhiteBakeryGme<M>>(
        "bwbgme, no opposite-colour test",
    );
    assert_eq!(explore(&subject, 3, 2).verdict, Verdict::Holds);
}

#[test]
fn bwbgme_without_the_opposite_color_test_survives_two_processes() {
    let subject = Subject::group::<bwbgme_without_opposite_color::BlackWhiteBakeryGme<M>>(
        "bwbgme, no opposite-colour test",
    );
    assert_eq!(explore(&subject, 2, 2).verdict, Verdict::Holds);
}
