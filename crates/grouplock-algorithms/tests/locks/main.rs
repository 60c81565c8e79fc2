//! The published locks as their users see them. One program, because each program takes long to
//! link. The macros of `common` run a test with every lock.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

// The thread sanitizer checks these.
mod come_and_go;
mod data;
mod giving_up;
mod occupancy;
mod recovering;

// To instrument these takes long and is useless.
#[cfg(not(tsan))]
mod claims;
#[cfg(not(tsan))]
mod misuse;
#[cfg(not(tsan))]
mod monitors;
#[cfg(not(tsan))]
mod schedules;
#[cfg(not(tsan))]
mod threads;
