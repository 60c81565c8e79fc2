//! Mutual exclusion: one process at a time.

pub mod anderson;
pub mod bakery;
pub mod black_white_bakery;
pub mod burns_lamport;
pub mod clh;
pub mod dvir_taubenfeld_1;
pub mod dvir_taubenfeld_1_swap;
pub mod dvir_taubenfeld_2;
pub mod jayanti_jayanti;
pub mod mcs;
