//! The locks of `grouplock-algorithms`, each with one fault.
//!
//! `build.rs` makes them from the texts that ship. The names that these use under `crate::` are
//! defined here.

mod prelude;

pub(crate) use grouplock_algorithms::{
    CapacityError, Session, claims, domain, dvir_taubenfeld_1, dvir_taubenfeld_1_swap, handover,
    latch, memory, nodes, phases_word, policy, raw, slots,
};

include!(concat!(env!("OUT_DIR"), "/mutants.rs"));

pub mod exit_lock;
pub mod list;
pub mod turns;
pub mod untold;
pub mod weak;
