//! The published locks as their users see them: one program, as each takes long to link. The macros of
//! `common` run a test with every lock.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod claims;
mod come_and_go;
mod data;
mod misuse;
mod monitors;
mod occupancy;
mod schedules;
mod threads;
