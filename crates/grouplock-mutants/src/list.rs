//! Every mutant: its fault, the size that it is known to need, and the property that it is known to
//! break.

use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::petrovic::Petrovic;
use grouplock_algorithms::policy::{Alone, Cancelled, Fifo, Limited, Mixed, Patient, SetUp};
use grouplock_algorithms::recoverable::Recoverable;
use grouplock_lab::ideal::IdealLock;
use grouplock_lab::ideal_latch::IdealLatch;
use grouplock_lab::memory::SimMemory as M;
use grouplock_lab::report::Mutant;
use grouplock_lab::{Options, Outcome, Properties, Property, Subject, check};

use crate as mutants;
use crate::exit_lock::NoLock;
use crate::turns::Classes;
use crate::untold::Untold;

/// A mutant and its known results.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The algorithm that it was made from.
    pub of: &'static str,
    /// The fault.
    pub what: &'static str,
    /// The lock.
    pub subject: Subject,
    /// The number of processes that it needs.
    pub processes: usize,
    /// The number of sessions; one for a mutex.
    pub sessions: u64,
    /// The property that it breaks. `None`: it holds at this size.
    pub breaks: Option<Property>,
    /// Whether the exploration takes minutes.
    pub long: bool,
}

impl Case {
    /// Explores it without the statements of the text about dead registers, which the mutation may
    /// make false. They are used only for an order of service: an exploration without them would be
    /// large, and the mutations in question do not concern them.
    ///
    /// # Panics
    /// If the lock cannot be made at this size.
    pub fn explore(&self) -> Outcome {
        let mut options = Options::new(&self.subject, self.processes, self.sessions);
        options.properties = Properties::basic();
        // Both of two processes may die: one, and the process that attends to its death.
        options.deaths = Some(if self.processes == 2 { 2 } else { 0 });
        if let Some(property) = self.breaks {
            options.properties = options.properties.with(property);
        }
        options.reductions.forget = self.breaks == Some(Property::Fcfs);
        check(&self.subject, &options).expect("the sizes are right")
    }

    /// The result of its exploration, for the evidence.
    pub fn record(&self, outcome: &Outcome) -> Mutant {
        Mutant {
            of: self.of.to_owned(),
            what: self.what.to_owned(),
            processes: self.processes,
            sessions: self.sessions,
            property: outcome.violation.as_ref().map(|violation| violation.property),
            states: outcome.states,
            steps: outcome.violation.as_ref().map_or(0, |violation| violation.trace.len()),
        }
    }
}

macro_rules! cases {
    ($($of:literal, $what:literal: $kind:ident $lock:ty, $processes:literal by $sessions:literal => $breaks:ident $($long:ident)?;)*) => {
        vec![$(Case {
            of: $of,
            what: $what,
            subject: Subject::$kind::<$lock>($of),
            processes: $processes,
            sessions: $sessions,
            breaks: cases!(@ $breaks),
            long: cases!(# $($long)?),
        }),*]
    };
    (@ Nothing) => { None };
    (@ $property:ident) => { Some(Property::$property) };
    (#) => { false };
    (# long) => { true };
}

/// All of them.
#[allow(clippy::too_many_lines, reason = "a list")]
pub fn all() -> Vec<Case> {
    cases! {
        "handover", "a node is used again at once":
            group mutants::handover_without_cooling::Handover<M, IdealLock>, 3 by 2 => DeadlockFreedom;
        "handover", "the new head is always signalled":
            group mutants::handover_always_signals::Handover<M, IdealLock>, 3 by 2 => MutualExclusion;
        "handover", "Head is set after enabling":
            group mutants::handover_sets_head_late::Handover<M, IdealLock>, 3 by 2 => NoPanic;
        "handover", "no exit lock":
            group Handover<M, NoLock>, 3 by 2 => DeadlockFreedom;
        "handover-withdraw", "line 25 does not look at go":
            withdrawing mutants::withdraw_without_looking_at_go::HandoverWithdraw<M, IdealLock>, 2 by 2 => DeadlockFreedom;
        "handover-withdraw", "line 27 does not look whether it is being enabled":
            withdrawing mutants::withdraw_though_it_is_being_enabled::HandoverWithdraw<M, IdealLock>, 2 by 2 => MutualExclusion;
        "handover-withdraw", "no line 29":
            withdrawing mutants::withdraw_without_29::HandoverWithdraw<M, IdealLock>, 3 by 2 => DeadlockFreedom long;
        "handover-withdraw", "no line 34":
            withdrawing mutants::withdraw_without_34::HandoverWithdraw<M, IdealLock>, 3 by 2 => ConcurrentOccupancy;
        "handover-withdraw", "a node marked FORWARD is used again at once":
            withdrawing mutants::withdraw_uses_a_forwarding_node_again::HandoverWithdraw<M, IdealLock>, 3 by 2 => DeadlockFreedom long;
        "handover-withdraw", "line 31 waits for the late successor":
            withdrawing mutants::withdraw_waits_for_a_late_successor::HandoverWithdraw<M, IdealLock>, 3 by 2 => GroupBoundedAbort;
        "recoverable", "settle admits only one waiter":
            recovering mutants::recoverable_settles_one::Recoverable<M, IdealLatch>, 3 by 2 => ConcurrentOccupancy;
        "recoverable", "line 29 forgets the last that waits":
            recovering mutants::recoverable_mends_without_the_last::Recoverable<M, IdealLatch>, 2 by 2 => DeadlockFreedom;
        "recoverable", "line 16 does not set Armed":
            recovering mutants::recoverable_buries_unarmed::Recoverable<M, IdealLatch>, 2 by 2 => DeadlockFreedom;
        "recoverable", "the latch does not report a death":
            recovering Recoverable<M, Untold>, 2 by 2 => NoPanic;
        "recoverable", "line 13 clears Armed before it settles":
            recovering mutants::recoverable_disarms_before_it_settles::Recoverable<M, IdealLatch>, 2 by 2 => DeadlockFreedom;
        "recoverable", "no line 32":
            recovering mutants::recoverable_without_32::Recoverable<M, IdealLatch>, 2 by 2 => DeadlockFreedom;
        "maor-taubenfeld", "nodes are handed over, lines 26-31 are kept":
            group mutants::maor_taubenfeld_hands_over::MaorTaubenfeld<M, IdealLock>, 2 by 2 => MutualExclusion;
        "maor-taubenfeld", "no CAS in lines 13 and 30":
            group mutants::maor_taubenfeld_without_cas_13_and_30::MaorTaubenfeld<M, IdealLock>, 2 by 2 => MutualExclusion;
        "maor-taubenfeld", "no CAS in lines 15, 19 and 44":
            group mutants::maor_taubenfeld_without_cas_15_19_and_44::MaorTaubenfeld<M, IdealLock>, 2 by 2 => DeadlockFreedom;
        "maor-taubenfeld", "one node for each process":
            group mutants::maor_taubenfeld_one_node::MaorTaubenfeld<M, IdealLock>, 2 by 2 => DeadlockFreedom;
        "maor-taubenfeld", "lines 43 and 47 stand after line 49":
            group mutants::maor_taubenfeld_signals_outside_its_exit_lock::MaorTaubenfeld<M, IdealLock>, 2 by 2 => MutualExclusion;
        "bakery", "no choosing":
            mutex mutants::bakery_without_choosing::Bakery<M>, 2 by 1 => MutualExclusion;
        "anderson", "no line 3":
            mutex mutants::anderson_without_3::Anderson<M>, 2 by 1 => MutualExclusion;
        "clh", "a process keeps its own node":
            mutex mutants::clh_keeps_its_node::Clh<M>, 2 by 1 => DeadlockFreedom;
        "dvir-taubenfeld-1", "one node":
            mutex mutants::dvir_taubenfeld_1_one_node::DvirTaubenfeld1<M>, 2 by 1 => DeadlockFreedom;
        "dvir-taubenfeld-1", "line 7 before line 6":
            mutex mutants::dvir_taubenfeld_1_7_before_6::DvirTaubenfeld1<M>, 2 by 1 => DeadlockFreedom;
        "dvir-taubenfeld-1", "line 11 before line 10":
            mutex mutants::dvir_taubenfeld_1_11_before_10::DvirTaubenfeld1<M>, 2 by 1 => DeadlockFreedom;
        "dvir-taubenfeld-2", "UNLOCKED in the place of ids":
            mutex mutants::dvir_taubenfeld_2_unlocked::DvirTaubenfeld2<M>, 3 by 1 => NoPanic;
        "petrovic", "3 × 3 turns":
            group Petrovic<M, Classes<3, 3, true>>, 2 by 3 => DeadlockFreedom;
        "petrovic", "no doorway flag":
            group Petrovic<M, Classes<4, 3, false>>, 2 by 3 => DeadlockFreedom;
        "generalized-bakery", "no Choosing":
            group mutants::glb_without_choosing::GeneralizedBakery<M>, 2 by 2 => MutualExclusion;
        "black-white-bakery-gme", "no \"number ≠ 1\" test":
            group mutants::bwbgme_without_number_1::BlackWhiteBakeryGme<M>, 3 by 2 => MutualExclusion long;
        "black-white-bakery-gme", "the naive generalisation":
            group mutants::bwbgme_naive::BlackWhiteBakeryGme<M>, 3 by 2 => MutualExclusion long;
        "jayanti-jayanti", "line 1 does not look whether its place is still there":
            withdrawing_mutex mutants::jayanti_jayanti_lines_up_again::JayantiJayanti<M>, 2 by 1 => DeadlockFreedom;
        "jayanti-jayanti", "line 5 leaves the pointer where it is":
            withdrawing_mutex mutants::jayanti_jayanti_leaves_the_pointer::JayantiJayanti<M>, 3 by 1 => MutualExclusion;
        "jayanti-jayanti", "no line 8":
            withdrawing_mutex mutants::jayanti_jayanti_without_8::JayantiJayanti<M>, 2 by 1 => DeadlockFreedom;
        "pairwise-bakery", "no line 4":
            group mutants::pairwise_bakery_without_4::PairwiseBakery<M>, 2 by 2 => DeadlockFreedom;
        "pairwise-bakery", "no second look in line 7":
            group mutants::pairwise_bakery_looks_once::PairwiseBakery<M>, 2 by 2 => DeadlockFreedom;
        "pairwise-bakery", "no line 1":
            group mutants::pairwise_bakery_without_pending::PairwiseBakery<M>, 2 by 2 => MutualExclusion;
        "rooms", "line 10 admits before it opens":
            group mutants::rooms_let_in_before_they_open::Rooms<M, 2>, 2 by 2 => DeadlockFreedom;
        "rooms", "line 7 waits for late processes":
            group mutants::rooms_wait_for_who_came_late::Rooms<M, 2>, 2 by 2 => DeadlockFreedom;
        "forums", "one slot":
            group mutants::forums_with_one_slot::Forums<M, 3>, 3 by 3 => MutualExclusion;
        "forums", "line 9 waits for late processes":
            group mutants::forums_wait_for_who_came_late::Forums<M, 2>, 2 by 2 => DeadlockFreedom;
        // As section 3.3 of the paper says (item 5). With two processes, where the printed text
        // holds as well.
        "maor-taubenfeld", "no line 39":
            group mutants::maor_taubenfeld_without_39::MaorTaubenfeld<M, IdealLock>, 2 by 2 => Nothing;
        // The other test of its exit. Here, nothing shows that it is needed.
        "black-white-bakery-gme", "no opposite-colour test":
            group mutants::bwbgme_without_opposite_color::BlackWhiteBakeryGme<M>, 2 by 2 => Nothing;
        "black-white-bakery-gme", "no opposite-colour test":
            group mutants::bwbgme_without_opposite_color::BlackWhiteBakeryGme<M>, 3 by 2 => Nothing long;
        "phases-fifo", "`NOTIFY` is not set":
            group mutants::phases_without_notify::Phases<M, Fifo>, 2 by 2 => DeadlockFreedom;
        "phases-fifo", "`MUST_LOCK` is not set":
            group mutants::phases_without_must_lock::Phases<M, Fifo>, 3 by 2 => Fcfs;
        "phases-fifo", "unlocked without comparing the word":
            group mutants::phases_unlocks_without_looking_again::Phases<M, Fifo>, 2 by 2 => DeadlockFreedom;
        "phases-fifo-cancel", "a cancelled grant is kept":
            group mutants::phases_keeps_a_cancelled_grant::Phases<M, Cancelled<Fifo>>, 2 by 2 => DeadlockFreedom;
        "phases-patient", "`CHANGING` does not shut the door":
            group mutants::phases_open_while_changing::Phases<M, Patient>, 2 by 2 => MutualExclusion;
        "phases-patient", "renamed beside other holders":
            group mutants::phases_renames_in_company::Phases<M, Patient>, 2 by 2 => MutualExclusion;
        "phases-patient", "a declined invitation is not noted":
            group mutants::phases_forgets_a_declined_invitation::Phases<M, Patient>, 2 by 2 => DeadlockFreedom;
        "phases-fifo-alone", "a session joins an exclusive holder":
            group mutants::phases_joins_an_exclusive_holder::Phases<M, Alone<Fifo>>, 2 by 2 => MutualExclusion;
        "phases-fifo-alone", "handed over without `EXCLUSIVE`":
            group mutants::phases_hands_over_without_exclusive::Phases<M, Alone<Fifo>>, 3 by 2 => MutualExclusion;
        "phases-fifo-alone", "a reserved room is taken before the holders have left":
            group mutants::phases_reserved_room_is_taken_at_once::Phases<M, Alone<Fifo>>, 2 by 2 => MutualExclusion;
        "phases-patient-alone", "a holder that was alone leaves like other holders":
            group mutants::phases_forgets_that_it_was_alone::Phases<M, Alone<Patient>>, 3 by 2 => ConcurrentOccupancy;
        "phases-fifo-limited", "the limit is ignored":
            group mutants::phases_joins_a_full_session::Phases<M, Limited<Fifo>>, 2 by 2 => MutualExclusion;
        "phases-fifo-setup", "after set-up, waiters of the same session are not admitted":
            group mutants::phases_opens_without_looking::Phases<M, SetUp<Fifo>>, 2 by 2 => ConcurrentOccupancy;
        "phases-fifo-setup", "marked before the set-up has ended":
            group mutants::phases_marked_before_it_is_set_up::Phases<M, SetUp<Fifo>>, 2 by 2 => NoPanic;
        "phases-fifo-setup-cancel", "a set-up that fails leaves the mark":
            group mutants::phases_marked_though_set_up_fails::Phases<M, Cancelled<SetUp<Fifo>>>, 2 by 2 => NoPanic long;
        "phases-patient-mixed", "renamed without taking the mark away":
            group mutants::phases_renamed_with_its_mark::Phases<M, Mixed<Patient>>, 2 by 2 => NoPanic long;
        "phases-patient-mixed", "a request with set-up joins a room that is not set up":
            group mutants::phases_joins_a_room_that_is_not_set_up::Phases<M, Mixed<Patient>>, 2 by 2 => NoPanic long;
        "phases-patient", "renamed without a check of the waiters":
            group mutants::phases_renames_without_looking::Phases<M, Patient>, 3 by 2 => ConcurrentOccupancy;
        "phases-patient", "the first phase does not join its own session":
            group mutants::phases_leaves_its_own_session_waiting::Phases<M, Patient>, 3 by 2 => ConcurrentOccupancy;
    }
}
