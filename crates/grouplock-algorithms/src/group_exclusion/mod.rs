//! Group mutual exclusion: any number of processes of one session at a time.

pub mod black_white_bakery_gme;
pub mod forums;
pub mod generalized_bakery;
pub mod handover;
mod handover_steps;
pub mod handover_withdraw;
pub mod keane_moir;
pub mod latch;
pub mod maor_taubenfeld;
pub mod pairwise_bakery;
pub mod petrovic;
pub mod phases;
#[doc(hidden)]
pub mod phases_word;
pub mod policy;
pub mod recoverable;
pub mod rooms;
