//! Mutants with one ordering that is too weak. They hold if all processes see every write at once;
//! with store buffers, some do not.

use grouplock_algorithms::policy::Fifo;
use grouplock_lab::ideal::IdealLock;
use grouplock_lab::memory::SimMemory as M;
use grouplock_lab::{MemoryModel, Options, Outcome, Properties, Property, Subject, check};

use crate as mutants;

/// A mutant and its known results.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The algorithm that it was made from.
    pub of: &'static str,
    /// The fault.
    pub what: &'static str,
    /// The lock.
    pub subject: Subject,
    /// The number of passages of each of the two processes, if it is bounded.
    pub passages: Option<u8>,
    /// The property that it breaks in each model. `None`: it holds.
    pub breaks: [(MemoryModel, Option<Property>); 3],
}

impl Case {
    /// Explores it with two processes and two sessions. The statements of its text about dead
    /// registers are used only where the mutant is known to hold: if they are false, `dead-read` is
    /// found.
    ///
    /// # Panics
    /// If the lock cannot be made for two.
    pub fn explore(&self, model: MemoryModel) -> Outcome {
        let mut options = Options::new(&self.subject, 2, 2);
        options.memory_model = model;
        options.passages = self.passages;
        options.properties = Properties::basic();
        options.reductions.forget = self.breaks.contains(&(model, None));
        check(&self.subject, &options).expect("all serve two")
    }
}

macro_rules! cases {
    ($($of:literal, $what:literal: $kind:ident $lock:ty $(, $passages:literal passages)? => $tso:ident, $pso:ident;)*) => {
        vec![$(Case {
            of: $of,
            what: $what,
            subject: Subject::$kind::<$lock>($of),
            passages: [$($passages,)?].first().copied(),
            breaks: [
                (MemoryModel::Sc, None),
                (MemoryModel::Tso, cases!(@ $tso)),
                (MemoryModel::Pso, cases!(@ $pso)),
            ],
        }),*]
    };
    (@ Nothing) => { None };
    (@ $property:ident) => { Some(Property::$property) };
}

/// All mutants, with the properties that they break under total store order and under partial store
/// order.
pub fn all() -> Vec<Case> {
    cases! {
        "dvir-taubenfeld-1", "line 10 is a release":
            mutex mutants::weak_dvir_taubenfeld_1_10::DvirTaubenfeld1<M> => DeadlockFreedom, DeadlockFreedom;
        // The compare-and-swap of line 8 is sequentially consistent: it waits for line 7.
        "dvir-taubenfeld-1", "line 7 is a release":
            mutex mutants::weak_dvir_taubenfeld_1_7::DvirTaubenfeld1<M> => Nothing, Nothing;
        "dvir-taubenfeld-2", "line 11 is a release":
            mutex mutants::weak_dvir_taubenfeld_2_11::DvirTaubenfeld2<M> => DeadlockFreedom, DeadlockFreedom;
        "burns-lamport", "line 1 is a release":
            mutex mutants::weak_burns_lamport_1::BurnsLamport<M> => MutualExclusion, MutualExclusion;
        "burns-lamport", "line 12 is relaxed":
            mutex mutants::weak_burns_lamport_12::BurnsLamport<M> => Nothing, MutualExclusion;
        "bakery", "line 1 is a release":
            mutex mutants::weak_bakery_1::Bakery<M>, 2 passages => MutualExclusion, MutualExclusion;
        "mcs", "line 9 is relaxed":
            mutex mutants::weak_mcs_9::Mcs<M> => Nothing, MutualExclusion;
        "dvir-taubenfeld-1-swap", "line 7 does not release":
            mutex mutants::weak_dvir_taubenfeld_1_swap_7::DvirTaubenfeld1Swap<M> => Nothing, MutualExclusion;
        "handover", "line 2 does not release":
            group mutants::weak_handover_2::Handover<M, IdealLock> => Nothing, DeadlockFreedom;
        "handover", "line 18 is relaxed":
            group mutants::weak_handover_18::Handover<M, IdealLock> => Nothing, MutualExclusion;
        "phases", "line 6 is relaxed":
            group mutants::weak_phases_6::Phases<M, Fifo> => Nothing, MutualExclusion;
    }
}
