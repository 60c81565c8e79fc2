//! The published locks as their users see them: one program, as each takes long to link. The macros
//! of `common` run a test with every lock.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

// The thread sanitizer looks at these.
mod come_and_go;
mod data;
mod giving_up;
mod occupancy;
mod recovering;

// These it would instrument in vain, and that takes long.
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
