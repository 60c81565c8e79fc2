//! The lock as its users see it: one program, as each takes long to link.
#![cfg(not(any(loom, shuttle)))]

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod foreign_code;
mod giving_up;
mod misuse;
mod policies;
#[cfg(not(tsan))]
mod reference;
mod sharing;
mod snapshot;
mod storms;
mod striped;
mod views;
